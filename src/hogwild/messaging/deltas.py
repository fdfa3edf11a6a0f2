"""Deltas of parameters: dense vectors, or indices with values where that takes fewer bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.errors import MessageError

Floats = NDArray[Any]
INDEX = np.uint32


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
    if isinstance(vector, SparseDelta):
        into[vector.indices] += into.dtype.type(times) * vector.values
    elif times == 1.0:
        into += vector
    else:
        into += into.dtype.type(times) * vector


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


def summed(first: Vector, second: Vector) -> Vector:
    """Return the sum of two vectors, sparse if both are sparse.

    >>> one = SparseDelta(np.array([1], INDEX), np.array([2.0], np.float32), 9)
    >>> summed(one, one).values
    array([4.], dtype=float32)
    """
    if isinstance(first, SparseDelta) and isinstance(second, SparseDelta):
        indices, where = np.unique(np.concatenate([first.indices, second.indices]), return_inverse=True)
        values = np.zeros(len(indices), first.values.dtype)
        np.add.at(values, where, np.concatenate([first.values, second.values]))
        return SparseDelta(indices, values, first.size)
    whole = first.dense() if isinstance(first, SparseDelta) else first.copy()
    add(whole, second)
    return frozen(whole)


def part(vector: Vector, start: int, stop: int) -> Vector:
    """Return the slice of a vector from index ``start`` up to index ``stop``.

    >>> part(SparseDelta(np.array([1, 5], INDEX), np.array([2.0, 3.0], np.float32), 9), 4, 9).indices
    array([1], dtype=uint32)
    """
    if not isinstance(vector, SparseDelta):
        return vector[start:stop]
    first, last = np.searchsorted(vector.indices, [start, stop])
    return SparseDelta(vector.indices[first:last] - INDEX(start), vector.values[first:last], stop - start)


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
