"""Deltas of parameters: dense vectors, or indices with values where that takes fewer bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.errors import MessageError
from hogwild.jit import compiled
from hogwild.messaging.places import Places

Floats = NDArray[Any]
INDEX = np.uint32
COMPILED = (np.dtype(np.float32), np.dtype(np.float64))  # Types of numbers for which loops are compiled.
MANY = 2**13  # Values from which on a compiled loop adds a sparse vector.


@dataclass(frozen=True, slots=True, eq=False)
class SparseDelta:
    """Sparse vector: values at sorted indices, and zeros at all other indices up to ``size``.

    >>> SparseDelta(np.array([1], INDEX), np.array([2.0], np.float32), 3).dense()
    array([0., 2., 0.], dtype=float32)
    """

    indices: NDArray[np.uint32]
    values: Floats
    size: int

    @property
    def nbytes(self) -> int:
        """The size of the indices and values, in bytes."""
        return self.indices.nbytes + self.values.nbytes

    def dense(self, dtype: type = np.float32) -> Floats:
        """Return the vector with its zeros, as an array."""
        whole: Floats = np.zeros(self.size, dtype)
        whole[self.indices] = self.values
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
    if isinstance(vector, SparseDelta) and len(vector.indices) > MANY and vector.values.dtype in COMPILED:
        _add_at(into, vector.indices, vector.values, into.dtype.type(times))
    elif isinstance(vector, SparseDelta):
        into[vector.indices] += into.dtype.type(times) * vector.values
    elif times == 1.0:
        into += vector
    else:
        into += into.dtype.type(times) * vector


@compiled
def _add_at(into: Floats, indices: Any, values: Floats, times: Any) -> None:
    for i in range(indices.size):
        into[indices[i]] += times * values[i]


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


def scaled(vector: Vector, times: float) -> Vector:
    """Return a multiple of a vector, of the same kind.

    >>> scaled(SparseDelta(np.array([1], INDEX), np.array([2.0], np.float32), 3), 0.5).values
    array([1.], dtype=float32)
    """
    if isinstance(vector, SparseDelta):
        values = vector.values.dtype.type(times) * vector.values
        return SparseDelta(vector.indices, frozen(values), vector.size)
    return frozen(vector.dtype.type(times) * vector)


def summed(first: Vector, second: Vector) -> Vector:
    """Return the sum of two vectors, sparse if both are sparse.

    >>> one = SparseDelta(np.array([1], INDEX), np.array([2.0], np.float32), 9)
    >>> summed(one, one).values
    array([4.], dtype=float32)
    """
    kinds = {each.values.dtype for each in (first, second) if isinstance(each, SparseDelta)}
    if isinstance(first, SparseDelta) and isinstance(second, SparseDelta) and kinds <= set(COMPILED):
        indices = np.empty(len(first.indices) + len(second.indices), INDEX)
        values = np.empty(len(indices), first.values.dtype)
        count = _merge(first.indices, first.values, second.indices, second.values, indices, values)
        return SparseDelta(frozen(indices[:count]), frozen(values[:count]), first.size)
    whole = first.dense() if isinstance(first, SparseDelta) else first.copy()
    add(whole, second)
    return frozen(whole)


class Adder:
    """Sums of vectors of one size, in memory that is kept from sum to sum.

    The time depends on the number of values that are added, and neither on the size nor on the number of vectors.

    >>> Adder(900).sum_of([SparseDelta(np.array([7, 8], INDEX), np.ones(2, np.float32), 900)] * 3).values
    array([3., 3.], dtype=float32)
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._places: Places | None = None
        self._whole: Floats = np.empty(0, np.float32)

    def sum_of(self, vectors: Sequence[Vector]) -> Vector:
        """Return the sum of one or more vectors, sparse if all are sparse and the sum is short."""
        sparse = [each for each in vectors if isinstance(each, SparseDelta) and each.values.dtype in COMPILED]
        if len(vectors) < 3 or len(sparse) < len(vectors):
            return reduce(summed, vectors)
        if self._places is None:
            self._places, self._whole = Places(self.size), np.zeros(self.size, np.float32)
        for vector in sparse:
            _add_at(self._whole, vector.indices, vector.values, np.float32(1))
            self._places.mark(vector.indices)
        indices = self._places.take()
        values = np.empty(len(indices), np.float32)
        _take_at(self._whole, indices, values)
        return compact(SparseDelta(frozen(indices), frozen(values), self.size))


@compiled
def _take_at(whole: Floats, indices: Any, values: Floats) -> None:
    """Take values at indices, and leave zeros there."""
    for i in range(indices.size):
        values[i] = whole[indices[i]]
        whole[indices[i]] = 0


@compiled
def _merge(first: Any, first_values: Any, second: Any, second_values: Any, indices: Any, values: Any) -> int:
    """Merge two sorted vectors, add values at equal indices, and return the number of indices."""
    i = j = count = 0
    while i < first.size or j < second.size:
        take_first = j == second.size or (i < first.size and first[i] <= second[j])
        take_second = i == first.size or (j < second.size and second[j] <= first[i])
        value = values.dtype.type(0)
        if take_first:
            indices[count] = first[i]
            value += first_values[i]
            i += 1
        if take_second:
            indices[count] = second[j]
            value += second_values[j]
            j += 1
        values[count] = value
        count += 1
    return count


def warm_up() -> None:
    """Compile or load the loops of this module, so that a run does not wait for them."""
    size = 2 * MANY
    delta = SparseDelta(frozen(np.arange(MANY + 1, dtype=INDEX)), frozen(np.zeros(MANY + 1, np.float32)), size)
    add(np.zeros(size, np.float32), delta)
    Adder(size).sum_of([delta] * 3)
    summed(delta, delta)


def part(vector: Vector, start: int, stop: int) -> Vector:
    """Return the slice of a vector from index ``start`` up to index ``stop``.

    >>> part(SparseDelta(np.array([1, 5], INDEX), np.array([2.0, 3.0], np.float32), 9), 4, 9).indices
    array([1], dtype=uint32)
    """
    if not isinstance(vector, SparseDelta):
        return vector[start:stop]
    if (start, stop) == (0, vector.size):
        return vector
    # Bounds of the same type, since the indices would be converted otherwise.
    first, last = np.searchsorted(vector.indices, np.array([start, stop], INDEX))
    return SparseDelta(vector.indices[first:last] - INDEX(start), vector.values[first:last], stop - start)


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
    if all(isinstance(piece, SparseDelta) for piece, _ in there):
        sparse = [(piece, start) for piece, start in there if isinstance(piece, SparseDelta)]
        indices = np.concatenate([piece.indices + INDEX(start) for piece, start in sparse])
        return SparseDelta(indices, np.concatenate([piece.values for piece, _ in sparse]), size)
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
        fits = vector.size == size and len(vector.indices) == len(vector.values)
        if fits and len(vector.indices) and int(vector.indices.max()) >= size:
            fits = False
    else:
        fits = vector.shape == (size,)
    if not fits:
        raise MessageError(f"a vector does not fit {size:,} parameters: it was sent by another run, or damaged.")
    return vector


def nbytes(vector: Vector | None) -> int:
    """Return the size of a vector in bytes, and 0 for None."""
    return 0 if vector is None else vector.nbytes
