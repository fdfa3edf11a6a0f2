"""What is sent of parameters: all of them, or where and by how much they have changed when that is shorter."""

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
    """Values at some places of a vector that is zero elsewhere.

    >>> SparseDelta(np.array([1], INDEX), np.array([2.0], np.float32), 3).dense()
    array([0., 2., 0.], dtype=float32)
    """

    indices: NDArray[np.uint32]
    values: Floats
    size: int

    @property
    def nbytes(self) -> int:
        """How many bytes it takes to send."""
        return self.indices.nbytes + self.values.nbytes

    def dense(self, dtype: type = np.float32) -> Floats:
        """The same with its zeros."""
        whole: Floats = np.zeros(self.size, dtype)
        whole[self.indices] = self.values
        return whole


Vector = Floats | SparseDelta


def frozen(values: Floats) -> Floats:
    """The same array, which nobody may write to from now on: then everybody may keep it without a copy."""
    values.flags.writeable = False
    return values


def change(before: Floats, after: Floats) -> Vector:
    """What was added to a vector, in the shorter form.

    >>> change(np.zeros(100, np.float32), np.eye(1, 100, 7, np.float32)[0]).indices
    array([7], dtype=uint32)
    """
    moved = np.flatnonzero(before != after)
    if shorter(len(moved), before):
        return SparseDelta(moved.astype(INDEX), after[moved] - before[moved], len(before))
    return frozen(after - before)


def shorter(places: int, whole: Floats) -> bool:
    """Whether so many values with their places are less to send than all values."""
    return places * (whole.itemsize + np.dtype(INDEX).itemsize) < whole.nbytes


def add(into: Floats, vector: Vector, times: float = 1.0) -> None:
    """Add a multiple of a vector, in place."""
    if isinstance(vector, SparseDelta):
        into[vector.indices] += into.dtype.type(times) * vector.values
    elif times == 1.0:
        into += vector
    else:
        into += into.dtype.type(times) * vector


def plus(values: Floats, vector: Vector, times: float = 1.0) -> Floats:
    """A vector and a multiple of another, in one pass where both are dense.

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
    """The sum of two, sparse if both are.

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
    """The piece of a vector from one place to another.

    >>> part(SparseDelta(np.array([1, 5], INDEX), np.array([2.0, 3.0], np.float32), 9), 4, 9).indices
    array([1], dtype=uint32)
    """
    if not isinstance(vector, SparseDelta):
        return vector[start:stop]
    first, last = np.searchsorted(vector.indices, [start, stop])
    return SparseDelta(vector.indices[first:last] - INDEX(start), vector.values[first:last], stop - start)


def checked(vector: Vector, size: int) -> Vector:
    """Refuse what cannot be a piece of so many parameters."""
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
    """How many bytes a vector takes to send."""
    return 0 if vector is None else vector.nbytes
