"""Which samples each worker draws: one file, one class and one line for each way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hogwild.registry import invalid_parameter, kebab, lookup

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WorkerShare:
    """What a worker must know to find its own samples: how many there are, who it is, and which epoch it is."""

    samples: int
    worker: int
    workers: int
    epoch: int
    seed: int
    batch: int
    labels: NDArray[Any] | None = None  # of all samples, for splits that go by them

    def generator(self, *more: int) -> np.random.Generator:
        """Random numbers that are the same for all workers, or, with ``more``, this one's own."""
        return np.random.default_rng([self.seed, self.epoch, *more])

    @property
    def fair(self) -> int:
        """How many samples an epoch has for this worker if all have as many."""
        return self.samples // self.workers + (self.worker < self.samples % self.workers)


class Sampling(Protocol):
    """Says which samples a worker trains on in an epoch, in which order."""

    @property
    def needs_labels(self) -> bool:
        """Whether the split goes by labels."""

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        """The worker's batches of an epoch, as indices into the data."""


@dataclass(frozen=True, slots=True)
class Split:
    """One shuffle of all samples in each epoch, its batches dealt out in turn: each sample is drawn once.

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
    """Each worker draws from all samples, independently and with replacement, as in the paper."""

    needs_labels = False

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        drawn = share.generator(share.worker, 1).integers(0, share.samples, share.fair)
        return _cut(drawn, share.batch)


@dataclass(frozen=True, slots=True)
class Whole:
    """Each worker walks all samples, in an order of its own: with n workers an epoch is n times the work."""

    needs_labels = False

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        return _cut(share.generator(share.worker, 2).permutation(share.samples), share.batch)


@dataclass(frozen=True, slots=True)
class LabelSkew:
    """A split in which workers see different labels: a share ``skew`` of the samples goes by label, the rest at random.

    With 1 a worker shares at most its first and its last label with others, with 0 it is a split like any other. Who
    has what stays the same in all epochs; the order does not.
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
        mine = np.concatenate([np.array_split(part, share.workers)[share.worker] for part in (by_label, others)])
        return _cut(share.generator(share.worker, 3).permutation(mine), share.batch)


@dataclass(frozen=True, slots=True)
class SizeSkew:
    """A split in which each worker has ``ratio`` times as many samples as the one before it."""

    ratio: float = 2.0
    needs_labels = False

    def __post_init__(self) -> None:
        if not 0 < self.ratio < float("inf"):
            raise invalid_parameter("ratio", "a positive number", self.ratio)

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        powers = np.log(self.ratio) * np.arange(share.workers)
        weights = np.exp(powers - powers.max())  # the largest is 1: with many workers the ratio's own powers overflow
        ends = np.round(np.cumsum(weights) / weights.sum() * share.samples).astype(int)
        mine = np.split(share.generator().permutation(share.samples), ends[:-1])[share.worker]
        return _cut(mine, share.batch)


SAMPLINGS: dict[str, Any] = {
    kebab(kind.__name__): kind for kind in (Split, Replacement, Whole, LabelSkew, SizeSkew)
}  # fmt: skip


def named(sampling: str | Sampling) -> Sampling:
    """A way of sampling from its name, or from itself.

    >>> named("size-skew")
    SizeSkew(ratio=2.0)
    """
    return lookup("sampling", sampling, SAMPLINGS)() if isinstance(sampling, str) else sampling


def _cut(order: Indices, batch: int) -> Iterator[Indices]:
    return (order[first : first + batch] for first in range(0, len(order), batch))
