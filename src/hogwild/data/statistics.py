"""Statistics of a data set for asynchronous workers: feature frequencies, Omega, Delta, rho and expected collisions.

Omega, Delta and rho are those of Niu et al. 2011 (arXiv 1106.5730), with a term for each row and a coordinate for each
feature. Omega is the largest number of coordinates in one row. Delta is the largest share of rows that have one
coordinate in common. rho is the largest share of rows that have a coordinate in common with one row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hogwild.data.csr import Array, Layout
from hogwild.data.dataset import Chunk, Dataset, Epoch, look_like_numbers
from hogwild.data.row_overlap import Progress, RowOverlap, row_overlap
from hogwild.data.slices import in_slices
from hogwild.jit import compiled
from hogwild.machine import usable_cores
from hogwild.parallel import in_parallel


def feature_counts(epoch: Epoch, features: int, nonzeros: int) -> Array:
    """Count the rows of an epoch in which each feature is present, as int64.

    In the dense layout every row has every feature.

    >>> from hogwild.data.in_memory import InMemoryDataset
    >>> from hogwild.data.csr import CSRRows, NO_WEIGHTS
    >>> rows = CSRRows(np.array([0, 2, 3]), np.array([0, 2, 2], np.uint32), np.ones(3, np.float32),
    ...             np.zeros(2), NO_WEIGHTS, features=3, layout="sparse")
    >>> feature_counts(InMemoryDataset(rows, shuffled=True).in_order(), 3, 3)
    array([1, 0, 2])
    """
    # Each thread counts in bytes of its own, which stay in caches where wider numbers would not. A further thread pays
    # only if it counts more entries than it adds up in the end.
    threads = max(1, min(usable_cores(), len(epoch), nonzeros // (features // 4 + 2**18)))
    whole = epoch.whole()
    if whole is None:
        shares = [_chunks(epoch, range(part, len(epoch), threads)) for part in range(threads)]
    else:
        bounds = [len(whole.order) * part // threads for part in range(threads + 1)]
        pieces = (whole.order[first:last] for first, last in itertools.pairwise(bounds))
        shares = [iter([Chunk(whole.rows, piece)]) for piece in pieces]
    found = in_parallel(lambda chunks: _count_share(chunks, features), shares)
    total = np.empty(features, np.int64)
    in_slices(features, lambda part: _add_up([share.counts[part] for share in found], total[part]))
    dense_rows = sum(share.dense_rows for share in found)
    if dense_rows:
        total += dense_rows
    for share in found:
        for places in share.carries:
            _carry(places, total)
    return total


def _chunks(epoch: Epoch, numbers: range) -> Iterator[Chunk]:
    for number in numbers:
        yield epoch[number]
        epoch.done(number)


@dataclass(slots=True, eq=False)
class _CountedShare:
    """Counts of the features of some chunks: the last eight bits of each, and its number for each 256 above them."""

    counts: Array
    carries: list[Array]
    dense_rows: int = 0  # rows that have every feature


def _count_share(chunks: Iterator[Chunk], features: int) -> _CountedShare:
    found = _CountedShare(np.zeros(features, np.uint8), [])
    for chunk in chunks:
        if chunk.rows.layout == "dense":
            found.dense_rows += len(chunk.order)
        else:
            found.carries.append(_count_bytes(chunk.rows.indptr, chunk.rows.indices, chunk.order, found.counts))
    return found


@compiled
def _count_bytes(indptr: Array, indices: Array, order: Array, counts: Array) -> Array:
    """Add the entries of the rows in ``order`` to the counts of their features modulo 256; return those that carry."""
    entries = 0
    for row in order:
        entries += indptr[np.int64(row) + 1] - indptr[row]
    carries, carried = np.empty(entries, indices.dtype), 0
    for row in order:
        for at in range(np.uint64(indptr[row]), np.uint64(indptr[np.int64(row) + 1])):
            count = np.uint8(counts[indices[at]] + np.uint8(1))
            counts[indices[at]] = count
            if count == 0:
                carries[carried] = indices[at]
                carried += 1
    return carries[:carried].copy()


def _add_up(counts: list[Array], total: Array) -> None:
    """Add up the counts of all threads for some features."""
    np.copyto(total, counts[0])
    for more in counts[1:]:
        total += more


@compiled
def _carry(places: Array, total: Array) -> None:
    for place in places:
        total[place] += 256


@compiled
def count_features(indptr: Array, indices: Array, order: Array, counts: Array) -> None:
    """Add the entries of the rows in ``order`` to the counts of their features."""
    for row in order:
        for at in range(np.uint64(indptr[row]), np.uint64(indptr[np.int64(row) + 1])):
            counts[indices[at]] += 1


WORKERS = (1, 2, 4, 8, 16, 32, 64)

LabelKind = Literal["constant", "two classes", "classes", "real"]


@dataclass(frozen=True, slots=True)
class LabelStatistics:
    """Statistics of the labels: classes with their counts, or the range of real numbers."""

    kind: LabelKind
    low: float
    high: float
    mean: float
    counts: dict[float, int]  # Number of rows in each class, or empty if the labels are real numbers.


@dataclass(frozen=True, slots=True)
class Collisions:
    """Expected collisions of ``workers`` workers, each of which holds a random row.

    The numbers are for one worker and its row, with W workers in total. ``others`` is the expected number of other
    workers whose row shares a coordinate with it, ``(W - 1) * mean share``. ``probability`` is the probability of at
    least one such worker. It is the mean over rows ``e`` of ``1 - (1 - share(e)) ** (W - 1)``. ``coordinates`` is the
    expected number of pairs (coordinate of the row, other worker whose row has that coordinate). It is
    ``(W - 1) * sum(p[u] ** 2)``, where ``p[u]`` is the share of rows that have feature ``u``.

    A worker writes a coordinate during only a small part of the time in which it holds a row. Lost updates are
    therefore far rarer than these collisions.
    """

    workers: int
    others: float
    probability: float
    coordinates: float


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """Shape of a data set, and overlap between its rows."""

    rows: int
    features: int
    nonzeros: int
    layout: Layout
    omega: int
    empty_rows: int
    delta: float
    most_frequent: int  # Feature with the largest frequency, Delta, counted from zero.
    used_features: int  # Number of features that are present in at least one row.
    ever_present: int  # Number of features that are present in every row.
    # Expected number of common coordinates of two rows: the sum over features of the squared share of rows.
    crowding: float
    overlap: RowOverlap
    labels: LabelStatistics

    @property
    def density(self) -> float:
        """The share of matrix cells that are stored."""
        return self.nonzeros / (self.rows * self.features)

    @property
    def mean_nonzeros(self) -> float:
        """The mean number of non-zeros per row."""
        return self.nonzeros / self.rows

    def collisions(self, workers: int) -> Collisions:
        """Return the expected collisions of ``workers`` workers."""
        rest = workers - 1
        probability = float(np.mean(1.0 - (1.0 - self.overlap.shares) ** rest))
        return Collisions(workers, rest * self.overlap.mean, probability, rest * self.crowding)


def describe(dataset: Dataset, *, seed: int = 0, progress: Progress | None = None) -> Statistics:
    """Measure a data set in two or three passes over it; ``seed`` selects the sampled rows.

    >>> from hogwild.data.in_memory import InMemoryDataset
    >>> from hogwild.data.csr import CSRRows, NO_VALUES, NO_WEIGHTS
    >>> rows = CSRRows(np.array([0, 2, 3, 4, 5]), np.array([0, 1, 1, 0, 2], np.uint32), NO_VALUES,
    ...             np.array([1.0, 1.0, -1.0, 1.0]), NO_WEIGHTS, features=3, layout="binary")
    >>> found = describe(InMemoryDataset(rows, shuffled=False, name="example"))
    >>> found.omega, found.delta, found.overlap.rho
    (2, 0.5, 0.75)
    >>> found.collisions(workers=3)
    Collisions(workers=3, others=1.0, probability=0.72, coordinates=1.12)
    """
    frequencies = dataset.frequencies()
    omega, empty, layout = row_lengths(dataset)
    shares = frequencies[frequencies > 0] / dataset.n_rows
    most_frequent = int(frequencies.argmax())
    return Statistics(
        rows=dataset.n_rows,
        features=dataset.all_features,
        nonzeros=dataset.nonzeros,
        layout=layout,
        omega=omega,
        empty_rows=empty,
        delta=float(shares.max(initial=0.0)),
        most_frequent=most_frequent if dataset.columns is None else int(dataset.columns.columns[most_frequent]),
        used_features=len(shares),
        ever_present=int(np.count_nonzero(frequencies == dataset.n_rows)),
        crowding=float(np.dot(shares, shares)),
        overlap=row_overlap(dataset, seed=seed, progress=progress),
        labels=describe_labels(dataset.labels()),
    )


def row_lengths(dataset: Dataset) -> tuple[int, int, Layout]:
    """Return the largest number of entries of a row, the number of empty rows, and the layout."""
    omega, empty = 0, 0
    epoch = dataset.in_order()
    for number in range(len(epoch)):
        chunk = epoch[number]
        lengths = chunk.rows.indptr[chunk.order + 1] - chunk.rows.indptr[chunk.order]
        omega = max(omega, int(lengths.max(initial=0)))
        empty += int(np.count_nonzero(lengths == 0))
        layout = chunk.rows.layout
        epoch.done(number)
    return omega, empty, layout


def describe_labels(labels: Array) -> LabelStatistics:
    """Return label statistics, and distinguish classes from quantities.

    Classes are whole numbers with few distinct values (``look_like_numbers``).

    >>> describe_labels(np.array([1.0, -1.0, 1.0]))
    LabelStatistics(kind='two classes', low=-1.0, high=1.0, mean=0.33, counts={-1.0: 1, 1.0: 2})
    >>> describe_labels(np.array([0.5, 2.0])).kind
    'real'
    """
    low, high, mean = float(labels.min()), float(labels.max()), float(labels.mean())
    if not np.array_equal(labels, np.rint(labels)):
        return LabelStatistics("real" if low < high else "constant", low, high, mean, {})
    values, counts = np.unique(labels, return_counts=True)
    if look_like_numbers(len(values), len(labels)):
        return LabelStatistics("real", low, high, mean, {})
    kind: LabelKind = "constant" if len(values) == 1 else "two classes" if len(values) == 2 else "classes"
    return LabelStatistics(kind, low, high, mean, dict(zip(values.tolist(), counts.tolist(), strict=True)))


def ranked(frequencies: Array, points: int = 200) -> tuple[Array, Array]:
    """Return frequencies by rank, largest first, at ranks that are evenly spaced on a logarithmic scale.

    >>> ranked(np.array([5, 0, 100, 20]))
    (array([1, 2, 3]), array([100,  20,   5]))
    """
    ordered = np.sort(frequencies[frequencies > 0])[::-1]
    if not len(ordered):
        return np.empty(0, np.int64), ordered
    ranks = np.unique(np.geomspace(1, len(ordered), min(points, len(ordered))).round().astype(np.int64))
    return ranks, ordered[ranks - 1]
