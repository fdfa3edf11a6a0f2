"""Generated TFRecord files of any size: sparse rows of a planted model, drawn and written piece by piece.

Every row is drawn from its own number, so that it is the same however many rows there are. Its planted scores are sums
of random weights, one for each feature and class. The weights are computed on demand and never stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, Array, CSRRows
from hogwild.data.reader import LARGEST_INDEX
from hogwild.data.tfrecord_writer import RecordWriter
from hogwild.errors import ParameterError
from hogwild.jit import compiled, compiled_part

DISTRIBUTIONS = ("uniform", "zipf")
_ENTRIES = 1 << 20  # Largest number of entries of a piece.
_TRIES = 16  # Attempts to draw a feature that the row does not have. After these the next free feature is taken.


@dataclass(frozen=True, slots=True)
class SparseRecords:
    """Rows ``dense_size`` wide with ``min_nnz`` to ``max_nnz`` non-zeros, and labels from 0 to ``classes - 1``.

    With ``distribution="zipf"`` the frequency of feature ``k`` is about ``1 / (k + 1)`` of that of the first. The label
    is the class with the largest planted score. ``noise`` is added to the scores, so that some labels are wrong.

    >>> made = SparseRecords(rows=3, dense_size=1000, min_nnz=2, max_nnz=4)
    >>> (piece,) = made.pieces()
    >>> len(piece), piece.layout, bool((np.diff(piece.indptr) >= 2).all())
    (3, 'sparse', True)
    """

    rows: int = 100_000
    dense_size: int = 1_000_000
    min_nnz: int = 10
    max_nnz: int = 100
    classes: int = 10
    distribution: str = "uniform"
    noise: float = 0.1
    seed: int = 0
    binary: bool = False

    def __post_init__(self) -> None:
        if self.distribution not in DISTRIBUTIONS:
            raise ParameterError(
                f"The 'distribution' parameter must be one of {', '.join(DISTRIBUTIONS)}. Got {self.distribution!r}."
            )
        for name, least, most in (
            ("rows", 1, 2**62), ("dense_size", 1, LARGEST_INDEX + 1), ("max_nnz", 1, self.dense_size),
            ("min_nnz", 0, self.max_nnz), ("classes", 2, 10_000), ("noise", 0, 1e6), ("seed", 0, 2**62),
        ):  # fmt: skip
            value = getattr(self, name)
            if not least <= value <= most:
                raise ParameterError(
                    f"The '{name}' parameter must be between {least:,} and {most:,}. Got {value!r} instead."
                )

    def pieces(self) -> Iterator[CSRRows]:
        """Yield all rows, in order, in pieces of at most 2**20 entries."""
        at_once = max(1, _ENTRIES // self.max_nnz)
        for first in range(0, self.rows, at_once):
            yield self._piece(first, min(at_once, self.rows - first))

    def _piece(self, first: int, count: int) -> CSRRows:
        indptr, labels = np.zeros(count + 1, np.int64), np.empty(count)
        indices = np.empty(count * self.max_nnz, np.uint32)
        values = NO_VALUES if self.binary else np.empty(len(indices), np.float32)
        _draw(
            np.uint64(self.seed), first, self.min_nnz, self.max_nnz, self.dense_size, self.distribution == "zipf",
            self.noise, indptr, indices, values, labels, np.empty(self.classes),
        )  # fmt: skip
        end = indptr[-1]
        layout: Any = "binary" if self.binary else "sparse"
        return CSRRows(indptr, indices[:end], values[:end], labels, NO_WEIGHTS, self.dense_size, layout)

    def write(self, path: str | Path, progress: Callable[[int], None] | None = None) -> None:
        """Write all rows as TFRecords, compressed if the name ends in ``.gz`` or ``.zst``.

        ``progress`` is called with the number of rows written.
        """
        done = 0
        with RecordWriter(path) as writer:
            for piece in self.pieces():
                writer.write_rows(piece)
                done += len(piece)
                if progress is not None:
                    progress(done)


@compiled_part
def mixed(number: np.uint64) -> np.uint64:
    """Return a pseudo-random number: the last steps of SplitMix64."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@compiled_part
def share(number: np.uint64) -> float:
    """Return a pseudo-random number between 0 and 1, both excluded."""
    return (np.float64(mixed(number) >> np.uint64(11)) + 0.5) / 9007199254740992.0


@compiled
def _draw(
    seed: np.uint64, first: int, least: int, most: int, size: Any, zipf: bool, noise: float, indptr: Array,
    indices: Array, values: Array, labels: Array, scores: Array,
) -> None:  # fmt: skip
    golden, one = np.uint64(0x9E3779B97F4A7C15), np.uint64(1)
    key, spread = mixed(seed + golden), math.log(size + 1.0)
    for row in range(len(labels)):
        state = mixed(key ^ mixed(np.uint64(first + row) * golden + one))
        start = indptr[row]
        count = least + np.int64(share(state) * (most - least + 1))
        scores[:] = 0
        for at in range(start, start + count):
            index, tries = np.int64(0), 0
            while True:
                state += golden
                drawn = share(state)
                index = min(size - 1, np.int64(math.exp(drawn * spread) - 1.0 if zipf else drawn * size))
                taken = is_among(indices, start, at, index)
                tries += 1
                if not taken or tries >= _TRIES:
                    break
            while is_among(indices, start, at, index):
                index = (index + 1) % size
            indices[at] = index
            weight = 1.0
            if len(values) > 0:
                state += golden
                values[at] = 0.5 + share(state)
                weight = values[at]
            place = mixed(key ^ np.uint64(index))
            for label in range(len(scores)):
                scores[label] += weight * (share(place + np.uint64(label) * golden) - 0.5)
        best = 0
        for label in range(len(scores)):
            state += golden
            scores[label] -= noise * math.log(-math.log(share(state)))
            if scores[label] > scores[best]:
                best = label
        labels[row] = best
        sort_part(indices, values, start, start + count)
        indptr[row + 1] = start + count


@compiled_part
def is_among(indices: Array, start: int, stop: int, index: np.int64) -> Any:
    """Return whether a row has this feature already."""
    found = False
    for at in range(start, stop):
        found |= indices[at] == index
    return found


@compiled_part
def sort_part(indices: Array, values: Array, start: int, stop: int) -> None:
    """Sort the features of a row in rising order."""
    order = np.argsort(indices[start:stop])
    indices[start:stop] = indices[start:stop][order]
    if len(values) > 0:
        values[start:stop] = values[start:stop][order]
