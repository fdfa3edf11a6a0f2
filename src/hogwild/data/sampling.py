"""Sampling: the rows that epochs draw, the samples of each worker, and a few rows for trials."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hogwild.data.chunks import RowDraws
from hogwild.data.csr import Array
from hogwild.data.dataset import Dataset
from hogwild.data.shuffle import gather
from hogwild.errors import ParameterError
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


class Sampling(ABC):
    """Sampling method of a ``Module``: selects the samples of a worker in an epoch, and their order."""

    needs_labels: ClassVar[bool] = False  # Whether the selection depends on labels.

    def check(self, samples: int) -> None:  # noqa: B027  (most methods suit any number)
        """Raise ParameterError if the method does not suit this number of samples."""

    def epoch_size(self, samples: int, workers: int) -> int:
        """Return the number of samples that all workers together draw in an epoch."""
        return samples

    @abstractmethod
    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        """Yield the worker's batches of an epoch, as indices into the data."""


class RowSampling(ABC):
    """Sampling method of a problem of rows: selects the rows that all workers together visit in an epoch."""

    @abstractmethod
    def rows(self, data: Dataset) -> Dataset:
        """Return the same rows, with epochs that draw them by this method."""

    def chances(self, data: Dataset) -> Array | None:
        """Return the relative probability of each row in a draw, in stored order; None if all rows are alike.

        Raises
        ------
        ParameterError
            If the method does not suit the data.
        """
        return None

    def for_trials(self, data: Dataset) -> Dataset:
        """Return rows of which a sample may be taken that stands for all rows."""
        return data


@dataclass(frozen=True, slots=True)
class Split(Sampling, RowSampling):
    """Sampling without replacement: workers share one random permutation per epoch, and each sample is drawn once.

    Batches of the permutation go to the workers in turn. Of many rows, blocks stay together in every epoch.

    Examples
    --------
    >>> share = lambda worker: WorkerShare(samples=5, worker=worker, workers=2, epoch=0, seed=0, batch=2)
    >>> sorted(int(i) for worker in (0, 1) for batch in Split().batches(share(worker)) for i in batch)
    [0, 1, 2, 3, 4]
    """

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        order = share.generator().permutation(share.samples)
        for first in range(share.worker * share.batch, share.samples, share.workers * share.batch):
            yield order[first : first + share.batch]

    def rows(self, data: Dataset) -> Dataset:
        return data


@dataclass(frozen=True, slots=True)
class Replacement(Sampling, RowSampling):
    """Sampling with replacement: draws from all samples, uniform and independent, as in Niu et al. 2011 (Hogwild!).

    All workers together draw as many samples per epoch as there are. In an epoch over a packed folder, draws from the
    same chunk of rows follow each other, so that the epoch reads each chunk once.

    Examples
    --------
    >>> from hogwild import Linear
    >>> problem = Linear((np.eye(4), [1, -1, 1, -1]), sampling="replacement")
    >>> len(problem.training.epoch(seed=0, number=0).whole().order)
    4
    """

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        drawn = share.generator(share.worker, 1).integers(0, share.samples, share.fair)
        return _cut(drawn, share.batch)

    def rows(self, data: Dataset) -> Dataset:
        return data.drawn(RowDraws())


@dataclass(frozen=True, eq=False)
class Weighted(RowSampling):
    """Sampling with replacement of rows, each with a probability of its own (importance sampling).

    The objective stays the same: the gradient of a row that is drawn with probability p among n rows is multiplied by
    1/(n p), so that the expected gradient is that of uniform draws. A step along a rarely drawn row is therefore large.
    Probabilities that differ by large factors need small step sizes. To give rows more weight in the objective, give
    the data weights instead.

    Parameters
    ----------
    weights : array of float, optional
        Relative probability of each row, positive, in the order of the rows of arrays. Rows of files are in the order
        of ``data.labels()``. By default the rows' own weights in the objective, such as the weights of edges. Steps
        along all rows are then weighted alike.

    Raises
    ------
    ParameterError
        If the weights are not finite numbers of at least 0.

    Examples
    --------
    >>> from hogwild import Linear
    >>> problem = Linear((np.eye(4), [1, -1, 1, -1]), sampling=Weighted([1, 1, 1, 5]))
    >>> problem.training.rows.weights
    array([2. , 2. , 2. , 0.4], dtype=float32)

    References
    ----------
    D. Needell, N. Srebro and R. Ward, "Stochastic Gradient Descent, Weighted Sampling, and the Randomized Kaczmarz
    Algorithm", NIPS 2014.
    """

    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        if self.weights is not None:
            object.__setattr__(self, "weights", _checked_weights(self.weights, "Weighted", "row"))

    def __repr__(self) -> str:
        """Return the digest of the weights, by which a resumed run recognises them."""
        return "Weighted()" if self.weights is None else f"Weighted({_digest(self.weights)})"

    def rows(self, data: Dataset) -> Dataset:
        """Return the same rows, with epochs that draw by weight, and with weights that make up for it."""
        return data.drawn(RowDraws(self.chances(data)))

    def chances(self, data: Dataset) -> Array:
        """Return the relative probability of each row.

        Raises
        ------
        ParameterError
            If there are more or fewer weights than rows, or if a row that counts would never be drawn.
        """
        own = row_weights(data)
        if self.weights is None:
            if own is None or not own.any():
                raise ParameterError(
                    f"The rows of {data.name} have no weights of their own. Other weights are given in Python, by "
                    "Weighted(weights) with one for each row; the sampling 'replacement' draws uniformly."
                )
            return own
        given = np.asarray(self.weights)
        if len(given) != data.n_rows:
            raise ParameterError(
                f"Weighted must have a weight for each of the {data.n_rows:,} rows of {data.name}. Got {len(given):,}."
            )
        never = (given == 0) & (True if own is None else own > 0)
        if never.any():
            raise ParameterError(
                f"Weighted would never draw row {int(never.argmax()):,} of {data.name}, whose weight is 0, though it "
                "counts in the objective: give it a positive weight, or leave out the row."
            )
        return given

    def for_trials(self, data: Dataset) -> Dataset:
        """Return the rows as they are drawn, so that trials have the same steps as the run."""
        return self.rows(data)


@dataclass(frozen=True, eq=False)
class WeightedRandom(Sampling):
    """Sampling with replacement of the samples of a ``Module``, each with a probability of its own.

    It draws as PyTorch's ``WeightedRandomSampler`` does, for instance rare classes as often as frequent ones. The mean
    loss of the draws is minimised: a sample with twice the weight counts twice as much. All workers draw from all
    samples, independently, and together as many as one loader would.

    Parameters
    ----------
    weights : array of float
        Relative probability of each sample, at least 0, in the order of the data set.
    draws : int, optional
        Number of samples of an epoch; by default that of the data set.

    Raises
    ------
    ParameterError
        If the weights are not finite numbers of at least 0.

    Examples
    --------
    >>> share = WorkerShare(samples=4, worker=0, workers=1, epoch=0, seed=0, batch=8)
    >>> [set(batch.tolist()) for batch in WeightedRandom([0, 1, 0, 1], draws=8).batches(share)]
    [{1, 3}]
    """

    weights: ArrayLike
    draws: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _checked_weights(self.weights, "WeightedRandom", "sample"))
        draws: Any = self.draws
        if draws is not None and (isinstance(draws, bool) or not isinstance(draws, int) or draws < 1):
            raise invalid_parameter("draws", "a positive integer", draws)

    def __repr__(self) -> str:
        """Return the digest of the weights, by which a resumed run recognises them."""
        draws = "" if self.draws is None else f", draws={self.draws}"
        return f"WeightedRandom({_digest(self.weights)}{draws})"

    def check(self, samples: int) -> None:
        """Raise ParameterError unless there is a weight for each sample."""
        if (given := len(np.asarray(self.weights))) != samples:
            raise ParameterError(
                f"WeightedRandom must have a weight for each of the {samples:,} samples. Got {given:,}."
            )

    def epoch_size(self, samples: int, workers: int) -> int:
        return samples if self.draws is None else self.draws

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        drawn = replace(share, samples=self.epoch_size(share.samples, share.workers)).fair
        chances = np.cumsum(np.asarray(self.weights))
        places = share.generator(share.worker, 5).random(drawn) * chances[-1]
        return _cut(np.searchsorted(chances, places, side="right").astype(np.int64), share.batch)


@dataclass(frozen=True, slots=True)
class Whole(Sampling):
    """Full pass per worker: each worker visits all samples in an order of its own.

    With n workers an epoch is n times the work of a split.
    """

    def epoch_size(self, samples: int, workers: int) -> int:
        return samples * workers

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        return _cut(share.generator(share.worker, 2).permutation(share.samples), share.batch)


@dataclass(frozen=True, slots=True)
class Blocks(Sampling):
    """Sampling without replacement of data on disk: blocks of rows in random order, shuffled within a buffer.

    The blocks of an epoch, one after the other, are divided among the workers, and each worker reads its part once, in
    this order. Each worker has as many samples in every epoch.

    Parameters
    ----------
    starts : tuple of int
        Number of the first row of each block, in ascending order from 0.
    buffer : int, default 65536
        Number of rows that are shuffled together, at least one batch; 0 keeps the order in which rows are stored.

    Examples
    --------
    >>> share = lambda worker: WorkerShare(samples=7, worker=worker, workers=2, epoch=0, seed=0, batch=2)
    >>> blocks = Blocks(starts=(0, 3, 5), buffer=4)
    >>> sorted(int(i) for worker in (0, 1) for batch in blocks.batches(share(worker)) for i in batch)
    [0, 1, 2, 3, 4, 5, 6]
    """

    starts: tuple[int, ...] = field(repr=False)
    buffer: int = 65_536

    def __post_init__(self) -> None:
        if not isinstance(self.buffer, int) or isinstance(self.buffer, bool) or self.buffer < 0:
            raise invalid_parameter("buffer", "a number of rows", self.buffer)

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        order = share.generator().permutation(len(self.starts)) if self.buffer else np.arange(len(self.starts))
        starts, stops = np.array(self.starts)[order], np.array([*self.starts[1:], share.samples])[order]
        # Positions of the blocks in the sequence of the epoch.
        ends = np.cumsum(stops - starts)
        begins = ends - (stops - starts)
        first = share.worker * (share.samples // share.workers) + min(share.worker, share.samples % share.workers)
        last, size = first + share.fair, max(1, self.buffer // share.batch) * share.batch
        for number, start in enumerate(range(first, last, size)):
            stop = min(start + size, last)
            inside = range(int(np.searchsorted(ends, start, "right")), int(np.searchsorted(ends, stop)) + 1)
            parts = [np.arange(max(start, begins[k]), min(stop, ends[k])) - begins[k] + starts[k] for k in inside]
            rows = np.concatenate(parts)
            if self.buffer:
                rows = share.generator(share.worker, 4, number).permutation(rows)
            yield from _cut(rows, share.batch)


@dataclass(frozen=True, slots=True)
class LabelSkew(Sampling):
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
class SizeSkew(Sampling):
    """Split by size: each worker has ``ratio`` times as many samples as the worker before it.

    Parameters
    ----------
    ratio : float, default 2.0
        Factor between the numbers of samples of consecutive workers, greater than 0.
    """

    ratio: float = 2.0

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
    kebab(kind.__name__): kind for kind in (Split, Replacement, Weighted, Whole, LabelSkew, SizeSkew)
}  # fmt: skip  (WeightedRandom has no name: it needs weights)


def named(sampling: str | Sampling | RowSampling) -> Sampling | RowSampling:
    """Return the sampling method with this name; return an object unchanged.

    >>> named("size-skew")
    SizeSkew(ratio=2.0)
    """
    if not isinstance(sampling, str):
        return sampling
    found: Sampling | RowSampling = lookup("sampling", sampling, SAMPLINGS)()
    return found


def batch_sampling(sampling: str | Sampling) -> Sampling:
    """Return the sampling method of a ``Module`` with this name; return an object unchanged.

    >>> batch_sampling("weighted")
    Traceback (most recent call last):
    hogwild.errors.ParameterError: Weighted() is for problems of rows...
    """
    found = named(sampling)
    _check_sampling(found)
    if isinstance(found, RowSampling) and not isinstance(found, Sampling):
        raise ParameterError(
            f"{found!r} is for problems of rows, whose gradients it weighs so that the objective stays the same; "
            "samples of a batch cannot be weighed. WeightedRandom(weights) draws samples of a Module by weight, as "
            "PyTorch's WeightedRandomSampler does, and counts them as often as it draws them."
        )
    return found


def _check_sampling(found: object) -> None:
    if not isinstance(found, (Sampling, RowSampling)):
        raise invalid_parameter("sampling", "a name, or a sampling method such as Replacement()", found)


def row_sampling(sampling: str | RowSampling) -> RowSampling:
    """Return the sampling method of a problem of rows with this name; return an object unchanged.

    >>> row_sampling("replacement")
    Replacement()
    >>> row_sampling("whole")
    Traceback (most recent call last):
    hogwild.errors.ParameterError: Whole() is for a Module, ... Rows are drawn by 'split', 'replacement' or Weighted().
    """
    found: object = named(sampling)
    _check_sampling(found)
    if not isinstance(found, RowSampling):
        raise ParameterError(
            f"{found!r} is for a Module, whose workers have samples of their own. Rows are drawn by 'split', "
            "'replacement' or Weighted()."
        )
    return found


def row_weights(data: Dataset) -> Array | None:
    """Return the weight of each row in stored order, as float64; None if every row weighs one."""
    epoch = data.in_order()
    pieces: list[Array] = []
    for number in range(len(epoch)):
        chunk = epoch[number]
        if not chunk.rows.weights.size:
            return None
        pieces.append(chunk.rows.weights[chunk.order].astype(np.float64))
        epoch.done(number)
    return np.concatenate(pieces)


def feature_visits(data: Dataset, chances: Array | None) -> Array:
    """Return the number of rows in an epoch that have each feature; where rows are drawn, the expected number.

    >>> from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, CSRRows
    >>> from hogwild.data.in_memory import InMemoryDataset
    >>> indices = np.array([0, 0, 1], np.uint32)
    >>> rows = CSRRows(np.array([0, 1, 3]), indices, NO_VALUES, np.zeros(2), NO_WEIGHTS, 2, "binary")
    >>> data = InMemoryDataset(rows, shuffled=False)
    >>> feature_visits(data, None), feature_visits(data, np.array([1.0, 3.0]))
    (array([2, 1]), array([2. , 1.5]))
    """
    if chances is None:
        return data.frequencies()
    expected = chances * (data.n_rows / chances.sum())
    visits, epoch, first = np.zeros(data.n_features), data.in_order(), 0
    for number in range(len(epoch)):
        chunk = epoch[number]
        amounts, first = expected[first : first + len(chunk.order)], first + len(chunk.order)
        if chunk.rows.layout == "dense":
            visits += amounts.sum()
        else:
            few = gather(chunk.rows, chunk.order.astype(np.int64))
            each = np.repeat(amounts, np.diff(few.indptr))
            visits += np.bincount(few.indices.astype(np.int64), each, minlength=data.n_features)
        epoch.done(number)
    return visits


def _checked_weights(weights: object, kind: str, each: str) -> NDArray[np.float64]:
    """Return weights as an array of their own that cannot be written to."""
    try:
        given = np.array(weights, np.float64)
    except (TypeError, ValueError):
        raise invalid_parameter("weights", f"a number for each {each}", type(weights).__name__) from None
    if given.ndim != 1 or not (np.isfinite(given) & (given >= 0)).all() or not given.any():
        raise ParameterError(
            f"The 'weights' parameter of {kind} must be a finite number of at least 0 for each {each}, and not 0 for "
            f"all {each}s."
        )
    given.setflags(write=False)
    return given


def _digest(weights: object) -> str:
    given = np.asarray(weights)
    return f"<{len(given):,} weights, {hashlib.blake2b(given.tobytes(), digest_size=8).hexdigest()}>"


def _cut(order: Indices, batch: int) -> Iterator[Indices]:
    return (order[first : first + batch] for first in range(0, len(order), batch))
