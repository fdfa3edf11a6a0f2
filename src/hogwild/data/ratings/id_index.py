"""Index of the names of users or items: each name has a number."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.errors import DataError


class Ids:
    """Names that are whole numbers or strings. The number of a name is its position.

    >>> ids = Ids.of(["b", "a", "b"])
    >>> ids.names.tolist(), ids.numbers_of(["b", "x"]).tolist()
    (['a', 'b'], [1, -1])
    >>> ids.with_more(["c", "a"]).names.tolist()
    ['a', 'b', 'c']
    """

    def __init__(self, names: Array) -> None:
        self.names = names

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of(cls, names: Any) -> Ids:
        """Return the index of all distinct names, sorted."""
        return cls(np.unique(as_names(names)))

    def numbers_of(self, names: Any) -> Array:
        """Return the numbers of names, and -1 for unknown names."""
        wanted = as_names(names)
        if not len(self.names) or not len(wanted):
            return np.full(len(wanted), -1, np.int64)
        # All names of one file are whole numbers, and those of the other file are not.
        if wanted.dtype.kind != self.names.dtype.kind:
            wanted = as_names(_converted(wanted, self.names.dtype.kind))
        places = np.searchsorted(self.names, wanted, sorter=self._sorted)
        numbers = self._sorted[np.minimum(places, len(self.names) - 1)]
        return np.asarray(np.where(self.names[numbers] == wanted, numbers, -1))

    def with_more(self, names: Any) -> Ids:
        """Return an index with new names appended; the numbers of known names stay the same."""
        more = np.unique(as_names(names))
        if len(self.names) and more.dtype.kind != self.names.dtype.kind:
            more = as_names(_converted(more, self.names.dtype.kind, strict=True))
        more = more[self.numbers_of(more) < 0]
        return Ids(np.concatenate([self.names, more])) if len(more) else self

    def arrays(self, prefix: str) -> dict[str, Array]:
        """Return the names as arrays for a file."""
        if self.names.dtype.kind == "i":
            return {f"{prefix}_ids": self.names.astype(np.int64)}
        texts = [str(name).encode() for name in self.names]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        return {f"{prefix}_text": np.frombuffer(b"".join(texts), np.uint8), f"{prefix}_ends": ends}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], prefix: str) -> Ids:
        """Restore an index from the arrays of a file."""
        if f"{prefix}_ids" in arrays:
            return cls(arrays[f"{prefix}_ids"])
        text, ends = arrays[f"{prefix}_text"].tobytes(), arrays[f"{prefix}_ends"].tolist()
        starts = [0, *ends[:-1]] if ends else []
        return cls(np.array([text[low:high].decode() for low, high in zip(starts, ends, strict=True)], dtype=np.str_))

    @cached_property
    def _sorted(self) -> Array:
        return np.argsort(self.names, kind="stable")


def as_names(names: Any) -> Array:
    """Convert names to an array of int64 if all are whole numbers, else to an array of strings.

    >>> as_names([3, 1]).dtype.kind, as_names(["7", 1]).tolist()
    ('i', ['7', '1'])
    """
    array = np.asarray(names)
    if array.ndim != 1:
        raise DataError(f"names of users and items come one after the other, and here is an array {array.ndim} deep")
    if array.dtype.kind in "iu":
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "f" and np.all(array == np.floor(array)):
        return array.astype(np.int64)
    if array.dtype.kind == "O" and all(isinstance(name, (int, np.integer)) for name in array):
        return array.astype(np.int64)
    return array if array.dtype.kind == "U" else np.array([str(name) for name in array], dtype=np.str_)


def _converted(names: Array, kind: str, strict: bool = False) -> Any:
    """Convert names to strings, or to whole numbers where possible.

    A name that is not a number becomes the smallest int64, which is no known name. With ``strict`` such a name raises
    ``DataError``.
    """
    if kind == "U":
        return [str(name) for name in names]
    numbers = [int(name) if name.removeprefix("-").isdecimal() else None for name in names.tolist()]
    if strict and None in numbers:
        odd = names[numbers.index(None)]
        raise DataError(f"names are whole numbers so far, and here is {odd!r}", remedy="Fit anew, with all names.")
    return [np.iinfo(np.int64).min if number is None else number for number in numbers]
