# mypy: disable-error-code="call-arg"
"""Deltas of parameters: dense vectors, or groups of values with indices where that takes fewer bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.errors import MessageError
from hogwild.jit import compiled
from hogwild.prefetch import prefetch_to_write

Floats = NDArray[Any]
INDEX = np.uint32
COMPILED = (np.dtype(np.float32), np.dtype(np.float64))  # Types of numbers for which loops are compiled.
MANY = 2**13  # Values from which on a compiled loop adds a sparse vector.
SPAN = 2**18  # Values that are added in double precision while they are in the cache.
AHEAD = 16  # groups between one that is added to and the one that is fetched into the cache meanwhile


@dataclass(frozen=True, slots=True, eq=False)
class SparseDelta:
    """Sparse vector: groups of ``width`` consecutive values, and zeros at all other places up to ``size``.

    A group begins at its index times the width. Groups come in any order, and those of one index add up. Beyond the
    last whole group there are zeros.

    >>> SparseDelta(np.array([1], INDEX), np.array([2.0], np.float32), 3).dense()
    array([0., 2., 0.], dtype=float32)
    >>> SparseDelta(np.array([1, 1], INDEX), np.ones(4, np.float32), 6, width=2).dense()
    array([0., 0., 2., 2., 0., 0.], dtype=float32)
    """

    indices: NDArray[np.uint32]
    values: Floats
    size: int
    width: int = 1

    @property
    def nbytes(self) -> int:
        """The size of the indices and values, in bytes."""
        return self.indices.nbytes + self.values.nbytes

    def dense(self, dtype: type = np.float32) -> Floats:
        """Return the vector with its zeros, as an array."""
        whole: Floats = np.zeros(self.size, dtype)
        add(whole, self)
        return whole


Vector = Floats | SparseDelta


def frozen(values: Floats) -> Floats:
    """Make an array read-only and return it, so that several nodes can share it without a copy."""
    values.flags.writeable = False
    return values


def change(before: Floats, after: Floats) -> Vector:
    """Return the delta between two vectors, sparse or dense, whichever takes fewer bytes.

    >>> change(np.zeros(100, np.float32), np.eye(1, 100, 7, np.float32)[0]).indices
    array([7], dtype=uint32)
    """
    moved = np.flatnonzero(before != after)
    if shorter(len(moved), before):
        return SparseDelta(moved.astype(INDEX), after[moved] - before[moved], len(before))
    return frozen(after - before)


def shorter(places: int, whole: Floats) -> bool:
    """Return whether ``places`` values with their indices take fewer bytes than the whole vector."""
    return places * (whole.itemsize + np.dtype(INDEX).itemsize) < whole.nbytes


def add(into: Floats, vector: Vector, times: float = 1.0) -> None:
    """Add a multiple of a vector to an array, in place."""
    if isinstance(vector, SparseDelta):
        if vector.values.dtype in COMPILED and into.dtype in COMPILED:
            _add_groups(_table(into, vector.width), vector.indices, vector.values, into.dtype.type(times))
        else:
            groups = vector.values.astype(into.dtype).reshape(-1, vector.width)
            np.add.at(_table(into, vector.width), vector.indices, into.dtype.type(times) * groups)
    elif times == 1.0:
        into += vector
    else:
        into += into.dtype.type(times) * vector


def _table(values: Floats, width: int) -> Floats:
    """Return the whole groups of an array, as rows."""
    table: Floats = values[: len(values) // width * width].reshape(-1, width)
    return table


@compiled
def _add_groups(table: Any, indices: Any, values: Any, times: Any) -> None:
    width = table.shape[1]
    for i in range(indices.size):
        if i + AHEAD < indices.size:
            prefetch_to_write(table, np.int64(indices[i + AHEAD]), 0)
        u = np.int64(indices[i])
        for k in range(width):
            table[u, k] += times * values[i * width + k]


def plus(values: Floats, vector: Vector, times: float = 1.0) -> Floats:
    """Return the sum of an array and a multiple of a vector, in one pass where both are dense.

    >>> plus(np.ones(3, np.float32), SparseDelta(np.array([1], INDEX), np.array([2.0], np.float32), 3), 0.5)
    array([1., 2., 1.], dtype=float32)
    """
    if isinstance(vector, SparseDelta):
        total = values.copy()
        add(total, vector, times)
        return total
    total = values + (vector if times == 1.0 else values.dtype.type(times) * vector)
    return total.astype(values.dtype, copy=False)


def weighted_sum(weighted: Sequence[tuple[float, Floats]]) -> Floats:
    """Return the sum of multiples of arrays, which is added in double precision.

    >>> weighted_sum([(0.5, np.ones(3, np.float32)), (2.0, np.ones(3, np.float32))])
    array([2.5, 2.5, 2.5], dtype=float32)
    """
    whole = np.empty_like(weighted[0][1])
    sums = np.empty(min(SPAN, len(whole)))
    for first in range(0, len(whole), SPAN):
        part = slice(first, first + SPAN)
        sums[:] = 0
        for weight, values in weighted:
            _add_weighted(sums, values[part].astype(whole.dtype, copy=False), weight)
        whole[part] = sums[: len(whole) - first]
    return frozen(whole)


@compiled
def _add_weighted(sums: Any, values: Any, weight: Any) -> None:
    for i in range(values.size):
        sums[i] += weight * values[i]


def scaled(vector: Vector, times: float) -> Vector:
    """Return a multiple of a vector, of the same kind.

    >>> scaled(SparseDelta(np.array([1], INDEX), np.array([2.0], np.float32), 3), 0.5).values
    array([1.], dtype=float32)
    """
    if isinstance(vector, SparseDelta):
        values = vector.values.dtype.type(times) * vector.values
        return SparseDelta(vector.indices, frozen(values), vector.size, vector.width)
    return frozen(vector.dtype.type(times) * vector)


def total(vectors: Sequence[Vector]) -> Vector:
    """Return the sum of vectors, in the form that takes fewer bytes.

    Groups of sparse vectors are put one after the other. To add them to parameters takes no longer than to add them up
    first.

    >>> one = SparseDelta(np.array([1], INDEX), np.array([2.0], np.float32), 9)
    >>> total([one, one]).values
    array([2., 2.], dtype=float32)
    """
    sparse = [vector for vector in vectors if isinstance(vector, SparseDelta)]
    if len(vectors) == 1:
        return vectors[0]
    if len(sparse) == len(vectors) and len({(each.size, each.width) for each in sparse}) == 1:
        indices = np.concatenate([each.indices for each in sparse])
        values = np.concatenate([each.values for each in sparse])
        return compact(SparseDelta(frozen(indices), frozen(values), sparse[0].size, sparse[0].width))
    dense: list[Floats] = [vector for vector in vectors if not isinstance(vector, SparseDelta)]
    whole: Floats = dense[0].copy() if dense else np.zeros(sparse[0].size, np.float32)
    more: list[Vector] = [*dense[1:], *sparse]
    for vector in more:
        add(whole, vector)
    return frozen(whole)


def warm_up() -> None:
    """Compile or load the loops of this module, so that a run does not wait for them."""
    one = frozen(np.zeros(1, np.float32))
    add(np.zeros(2, np.float32), SparseDelta(frozen(np.zeros(1, INDEX)), one, 2))
    weighted_sum([(1.0, one)])


def part(vector: Vector, start: int, stop: int) -> Vector:
    """Return the slice of a vector from index ``start`` up to index ``stop``, of whole groups.

    >>> part(SparseDelta(np.array([1, 5], INDEX), np.array([2.0, 3.0], np.float32), 9), 4, 9).indices
    array([1], dtype=uint32)
    """
    if not isinstance(vector, SparseDelta):
        return vector[start:stop]
    if (start, stop) == (0, vector.size):
        return vector
    width = vector.width
    first = INDEX(start // width)
    # Smaller indices wrap around to large ones.
    inside = vector.indices - first < INDEX((stop - start) // width)
    values = vector.values.reshape(-1, width)[inside].reshape(-1)
    return SparseDelta(vector.indices[inside] - first, values, stop - start, width)


def compact(vector: Vector) -> Vector:
    """Return a vector in the form that takes fewer bytes.

    >>> compact(SparseDelta(np.array([0, 1], INDEX), np.array([1.0, 2.0], np.float32), 3))
    array([1., 2., 0.], dtype=float32)
    """
    if not isinstance(vector, SparseDelta) or vector.nbytes <= vector.size * vector.values.itemsize:
        return vector
    return frozen(vector.dense(vector.values.dtype.type))


def joined(pieces: Sequence[Vector | None], parts: Sequence[tuple[int, int]]) -> Vector | None:
    """Return the vector of which these are the parts; a part of None is zero. Return None if all are None.

    >>> joined([None, SparseDelta(np.array([1], INDEX), np.array([2.0], np.float32), 4)], [(0, 5), (5, 9)]).indices
    array([6], dtype=uint32)
    """
    there = [(piece, start) for piece, (start, _) in zip(pieces, parts, strict=True) if piece is not None]
    if not there or len(pieces) == 1:
        return pieces[0]
    size = parts[-1][1]
    sparse = [(piece, start) for piece, start in there if isinstance(piece, SparseDelta)]
    if len(sparse) == len(there):
        width = sparse[0][0].width
        indices = np.concatenate([piece.indices + INDEX(start // width) for piece, start in sparse])
        return SparseDelta(indices, np.concatenate([piece.values for piece, _ in sparse]), size, width)
    whole = np.zeros(size, np.float32)
    for piece, start in there:
        stop = start + (piece.size if isinstance(piece, SparseDelta) else len(piece))
        add(whole[start:stop], piece)
    return frozen(whole)


def checked(vector: Vector, size: int) -> Vector:
    """Return a vector if it fits ``size`` parameters, and raise :class:`MessageError` otherwise.

    A vector of another size comes from another run or is damaged. Adding it would corrupt the parameters.
    """
    if isinstance(vector, SparseDelta):
        fits = vector.size == size and vector.width > 0
        fits = fits and len(vector.indices) * vector.width == len(vector.values)
        if fits and len(vector.indices) and (int(vector.indices.max()) + 1) * vector.width > size:
            fits = False
    else:
        fits = vector.shape == (size,)
    if not fits:
        raise MessageError(f"a vector does not fit {size:,} parameters: it was sent by another run, or damaged.")
    return vector


def nbytes(vector: Vector | None) -> int:
    """Return the size of a vector in bytes, and 0 for None."""
    return 0 if vector is None else vector.nbytes
