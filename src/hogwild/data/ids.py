"""Numbers of named users and items. This module needs no compiled code, so that models load without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from hogwild.data.csr import Array
from hogwild.errors import DataError
from hogwild.lazy import cached_property

Names = ArrayLike | Sequence[object]  # Names of users or items: whole numbers, strings, or both.


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
    def of(cls, names: Names) -> Ids:
        """Return the index of all distinct names, sorted."""
        return cls(np.unique(as_names(names)))

    def numbers_of(self, names: Names) -> Array:
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

    def number_of(self, name: str | int) -> int:
        """Return the number of one name, and -1 for an unknown name.

        >>> Ids.of(["b", "a"]).number_of("b"), Ids.of([4, 7]).number_of(7), Ids.of([4, 7]).number_of("x")
        (1, 1, -1)
        """
        kind = self.names.dtype.kind
        if not len(self.names) or kind != ("U" if isinstance(name, str) else "i"):
            return int(self.numbers_of([name])[0])
        # NumPy would convert all names to the type of a longer name. A name that does not fit is not among them.
        fits = 4 * len(name) <= self.names.itemsize if isinstance(name, str) else -_LIMIT <= name < _LIMIT
        if not fits:
            return -1
        order = self._sorted
        number = int(order[min(int(self.names.searchsorted(name, sorter=order)), len(order) - 1)])
        return number if self.names[number] == name else -1

    def with_more(self, names: Names) -> Ids:
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
            return cls(_distinct(arrays[f"{prefix}_ids"], np.int64, f"{prefix}_ids"))
        letters, ends = arrays[f"{prefix}_text"], arrays[f"{prefix}_ends"]
        if letters.dtype != np.uint8 or ends.dtype != np.int64 or letters.ndim != 1 or ends.ndim != 1:
            raise ValueError(f"names of the types {letters.dtype} and {ends.dtype}")
        starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        if len(ends) and ((starts > ends).any() or ends[-1] != len(letters)):
            raise ValueError(f"'{prefix}_ends' does not divide {len(letters)} bytes")
        text, bounds = letters.tobytes(), zip(starts.tolist(), ends.tolist(), strict=True)
        names = np.array([text[low:high].decode() for low, high in bounds], dtype=np.str_)
        return cls(_distinct(names, None, f"{prefix}_text"))

    @cached_property
    def _sorted(self) -> Array:
        return np.argsort(self.names, kind="stable")


def _distinct(names: Array, kind: type[np.int64] | None, name: str) -> Array:
    if names.ndim != 1 or (kind is not None and names.dtype != kind) or len(np.unique(names)) != len(names):
        raise ValueError(f"'{name}' has names twice, or of the type {names.dtype}")
    return names


def as_names(names: Names) -> Array:
    """Convert names to an array of int64 if all are whole numbers that fit, else to an array of strings.

    >>> as_names([3, 1]).dtype.kind, as_names(["7", 1]).tolist(), as_names([1, 2**63]).tolist()
    ('i', ['7', '1'], ['1', '9223372036854775808'])
    """
    if isinstance(names, np.ma.MaskedArray) and np.ma.is_masked(names):
        raise DataError("some names of users or items are masked", remedy=_NAME)
    array = np.asarray(names)
    if array.ndim != 1:
        raise DataError(f"names of users and items come one after the other, and here is an array {array.ndim} deep")
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            at = int(finite.argmin())
            raise DataError(f"the name {array[at]} of a user or an item is not finite", row=at, remedy=_NAME)
        if (array == np.floor(array)).all():
            fit = (abs(array) < _LIMIT).all()
            array = array.astype(np.int64) if fit else np.array([int(name) for name in array], object)
    if array.dtype.kind == "O":
        _require_names(array.tolist())
    whole = array.dtype.kind == "O" and all(isinstance(name, (int, np.integer)) for name in array)
    if (whole or array.dtype.kind in "iu") and _fit(array):
        return array.astype(np.int64, copy=False)
    return array if array.dtype.kind == "U" else np.array([str(name) for name in array], dtype=np.str_)


_LIMIT = 2**63  # Names that are whole numbers are smaller. Larger numbers are strings.
_NAME = "Give every user and every item a name, or leave out the rating."


def _require_names(names: list[object]) -> None:
    """Raise ``DataError`` for a name that is missing: None, NaN, or pandas.NA."""
    for row, name in enumerate(names):
        if name is None or type(name).__name__ == "NAType" or (isinstance(name, (float, np.floating)) and name != name):
            raise DataError(f"the name of a user or an item is missing ({name})", row=row, remedy=_NAME)


def _fit(numbers: Array) -> bool:
    return not len(numbers) or (int(numbers.min()) >= -_LIMIT and int(numbers.max()) < _LIMIT)


def _converted(names: Array, kind: str, strict: bool = False) -> list[str] | list[int]:
    """Convert names to strings, or to whole numbers where possible.

    A name that is not a number that fits becomes the smallest int64, which is no known name. With ``strict`` such a
    name raises ``DataError``.
    """
    if kind == "U":
        return [str(name) for name in names]
    numbers = [int(name) if name.removeprefix("-").isdecimal() else None for name in names.tolist()]
    numbers = [None if number is None or not -_LIMIT <= number < _LIMIT else number for number in numbers]
    if strict and None in numbers:
        odd = str(names[numbers.index(None)])
        raise DataError(f"names are whole numbers so far, and here is {odd!r}", remedy="Fit anew, with all names.")
    return [np.iinfo(np.int64).min if number is None else number for number in numbers]
