"""Sampling of rows: a small sample for trials, and the share of each worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hogwild.data.csr import CSRRows, concatenate
from hogwild.data.dataset import Dataset
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.shuffle import gather
from hogwild.registry import invalid_parameter, kebab, lookup

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WorkerShare:
    """Description of a worker's part of an epoch: the number of samples, the worker and the epoch."""

    samples: int
    worker: int
    workers: int
    epoch: int
    seed: int
    batch: int
    labels: NDArray[Any] | None = None  # Labels of all samples, for sampling by label.

    def generator(self, *more: int) -> np.random.Generator:
        """Return a random generator that is the same for all workers, or differs by the numbers in ``more``."""
        return np.random.default_rng([self.seed, self.epoch, *more])

    @property
    def fair(self) -> int:
        """The number of samples of this worker in an epoch if all workers get equally many."""
        return self.samples // self.workers + (self.worker < self.samples % self.workers)


class Sampling(Protocol):
    """Sampling method: selects the samples of a worker in an epoch, and their order."""

    @property
    def needs_labels(self) -> bool:
        """Whether the selection depends on labels."""

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        """Yield the worker's batches of an epoch, as indices into the data."""


@dataclass(frozen=True, slots=True)
class Split:
    """Sampling without replacement: workers share one random permutation per epoch, and each sample is drawn once.

    Batches of the permutation go to the workers in turn.

    Examples
    --------
    >>> share = lambda worker: WorkerShare(samples=5, worker=worker, workers=2, epoch=0, seed=0, batch=2)
    >>> sorted(int(i) for worker in (0, 1) for batch in Split().batches(share(worker)) for i in batch)
    [0, 1, 2, 3, 4]
    """

    needs_labels = False

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        order = share.generator().permutation(share.samples)
        for first in range(share.worker * share.batch, share.samples, share.workers * share.batch):
            yield order[first : first + share.batch]


@dataclass(frozen=True, slots=True)
class Replacement:
    """Sampling with replacement: each worker draws from all samples, independently, as in Niu et al. 2011 (Hogwild!).

    All workers together draw as many samples per epoch as there are.
    """

    needs_labels = False

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        drawn = share.generator(share.worker, 1).integers(0, share.samples, share.fair)
        return _cut(drawn, share.batch)


@dataclass(frozen=True, slots=True)
class Whole:
    """Full pass per worker: each worker visits all samples in an order of its own.

    With n workers an epoch is n times the work of a split.
    """

    needs_labels = False

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        return _cut(share.generator(share.worker, 2).permutation(share.samples), share.batch)


@dataclass(frozen=True, slots=True)
class LabelSkew:
    """Split by label: a share ``skew`` of the samples is divided by label, and the other samples at random.

    The assignment of samples to workers is the same in all epochs. Their order differs between epochs.

    Parameters
    ----------
    skew : float, default 1.0
        Share of the samples that is divided by label, from 0 to 1. With 1 a worker has at most its first and its last
        label in common with other workers. With 0 the split is random.
    """

    skew: float = 1.0
    needs_labels = True

    def __post_init__(self) -> None:
        if not 0 <= self.skew <= 1:
            raise invalid_parameter("skew", "between 0 and 1", self.skew)

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        assert share.labels is not None
        drawn = np.random.default_rng(share.seed).permutation(share.samples)
        by_label, others = np.split(drawn, [round(self.skew * share.samples)])
        by_label = by_label[np.argsort(share.labels[by_label], kind="stable")]
        selected = np.concatenate([np.array_split(part, share.workers)[share.worker] for part in (by_label, others)])
        return _cut(share.generator(share.worker, 3).permutation(selected), share.batch)


@dataclass(frozen=True, slots=True)
class SizeSkew:
    """Split by size: each worker has ``ratio`` times as many samples as the worker before it.

    Parameters
    ----------
    ratio : float, default 2.0
        Factor between the numbers of samples of consecutive workers, greater than 0.
    """

    ratio: float = 2.0
    needs_labels = False

    def __post_init__(self) -> None:
        if not 0 < self.ratio < float("inf"):
            raise invalid_parameter("ratio", "a positive number", self.ratio)

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        powers = np.log(self.ratio) * np.arange(share.workers)
        # The largest weight is 1, because with many workers the powers of the ratio itself overflow.
        weights = np.exp(powers - powers.max())
        ends = np.round(np.cumsum(weights) / weights.sum() * share.samples).astype(int)
        selected = np.split(share.generator().permutation(share.samples), ends[:-1])[share.worker]
        return _cut(selected, share.batch)


SAMPLINGS: dict[str, Any] = {
    kebab(kind.__name__): kind for kind in (Split, Replacement, Whole, LabelSkew, SizeSkew)
}  # fmt: skip


def named(sampling: str | Sampling) -> Sampling:
    """Return the sampling method with this name; return an object unchanged.

    >>> named("size-skew")
    SizeSkew(ratio=2.0)
    """
    return lookup("sampling", sampling, SAMPLINGS)() if isinstance(sampling, str) else sampling


def _cut(order: Indices, batch: int) -> Iterator[Indices]:
    return (order[first : first + batch] for first in range(0, len(order), batch))


# Largest ratio of all rows to wanted rows at which one copy from all rows is faster than a copy per chunk.
MANY_CHUNKS = 16


def subsample(data: Dataset, rows: int, seed: int = 0) -> InMemoryDataset:
    """Copy about ``rows`` random rows, or all if there are fewer, into a new data set in memory.

    >>> from hogwild.data.csr import NO_INDICES, NO_WEIGHTS
    >>> table = CSRRows(np.arange(0, 30, 3), NO_INDICES, np.ones(27), np.zeros(9), NO_WEIGHTS, 3, "dense")
    >>> subsample(InMemoryDataset(table, shuffled=False), 4).n_rows
    4
    """
    pieces: list[CSRRows] = []
    epoch, wanted, number = data.epoch(seed, 0), min(rows, data.n_rows), 0
    whole = epoch.whole() if data.n_rows <= MANY_CHUNKS * wanted else None
    if whole is not None:
        pieces.append(gather(whole.rows, np.asarray(whole.order[:wanted], np.int64)))
        wanted = 0
    while wanted > 0 and number < len(epoch):
        chunk = epoch[number]
        order = np.asarray(chunk.order[:wanted], np.int64)
        pieces.append(gather(chunk.rows, order))
        epoch.done(number)
        wanted, number = wanted - len(order), number + 1
    return InMemoryDataset(
        replace(concatenate(pieces), features=data.n_features), shuffled=True, name=data.name, base=data.base
    )


def narrowed(data: InMemoryDataset) -> InMemoryDataset:
    """Return the same rows without empty columns; the other columns are renumbered in their order.

    >>> from hogwild.data.csr import NO_WEIGHTS
    >>> indices = np.array([3, 9, 3], np.uint32)
    >>> rows = CSRRows(np.array([0, 2, 3]), indices, np.ones(3), np.zeros(2), NO_WEIGHTS, 10, "sparse")
    >>> few = narrowed(InMemoryDataset(rows, shuffled=True))
    >>> few.n_features, few.rows.indices
    (2, array([0, 1, 0], dtype=uint32))
    """
    rows = data.rows
    if rows.layout == "dense" or not rows.nonzeros:
        return data
    present = np.zeros(rows.features, np.bool_)
    present[rows.indices] = True
    numbers = np.cumsum(present, dtype=rows.indices.dtype)  # New column numbers, counted from one.
    few = replace(rows, indices=numbers[rows.indices] - numbers.dtype.type(1), features=int(numbers[-1]))
    return InMemoryDataset(few, shuffled=data.shuffled, name=data.name, base=data.base)
