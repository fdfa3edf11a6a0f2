"""Which column each feature of each field has, where files say of which field a feature is."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hogwild.data.csr import Array
from hogwild.jit import compiled, compiled_part

MISSING: Final = np.uint32(2**32 - 1)
FEWEST: Final = 1024  # places
_ONE: Final = np.uint64(1)
_SHIFT: Final = np.uint64(32)
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


class FieldVocabulary:
    """Numbers pairs of a field and a feature as they are first met, until it is closed.

    The same feature in two fields is two columns. Numbers have no gaps, however large those in the files are.

    >>> table = FieldVocabulary()
    >>> table.look_up(np.array([3, 8, 3]), np.array([70, 5, 70])), len(table)
    (array([0, 1, 0], dtype=uint32), 2)
    >>> table.close()
    >>> table.look_up(np.array([8, 8]), np.array([5, 70])) == MISSING, table.fields
    (array([False,  True]), array([0, 1], dtype=uint32))
    """

    def __init__(self, keys: Array | None = None) -> None:
        """An empty table that grows, or one of these keys that does not."""
        self.keys = np.empty(0, np.uint64) if keys is None else np.asarray(keys, np.uint64)
        self.grows, self._places = keys is None, np.empty(0, np.uint32)
        self.make_room(0)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def fields(self) -> Array:
        """The field of each column; fields are numbered without gaps, in the order of their numbers in the files."""
        return np.asarray(np.unique(self.keys >> _SHIFT, return_inverse=True)[1], np.uint32)

    def close(self) -> None:
        """Let it grow no more."""
        self.grows = False

    def make_room(self, more: int) -> tuple[Array, Array]:
        """Keys and places with room for so many more: what compiled code needs to look up and to add."""
        needed = 1 << max(FEWEST, 2 * (len(self.keys) + more)).bit_length()
        if len(self._places) < needed:
            self._places = np.full(needed, MISSING, np.uint32)
            _place_all(self._places, self.keys)
        keys = np.empty(len(self.keys) + (more if self.grows else 0), np.uint64)
        keys[: len(self.keys)] = self.keys
        return keys, self._places

    def look_up(self, fields: Array, features: Array) -> Array:
        """The columns of some pairs; new pairs get one while the table grows, and are missing when it is closed."""
        keys, places = self.make_room(len(fields))
        columns = np.empty(len(fields), np.uint32)
        pairs = key(np.asarray(fields, np.uint64), np.asarray(features, np.uint64))
        size = _look_up_all(pairs, keys, places, len(self.keys), self.grows, columns)
        self.keys = keys[:size]
        return columns


def key(fields: Any, features: Any) -> Any:
    """One number for both.

    >>> int(key(np.uint64(1), np.uint64(2)))
    4294967298
    """
    return (fields << _SHIFT) | features


@compiled_part
def column_of(pair: Any, keys: Any, places: Any, size: Any, grows: Any) -> tuple[Any, Any]:
    """(the column of a key, how many there are now): found by probing one place after the other."""
    last = np.uint64(places.size - 1)
    at = ((pair * _MIX) >> _SHIFT) & last
    while places[at] != MISSING:
        if keys[places[at]] == pair:
            return places[at], size
        at = (at + _ONE) & last
    if not grows:
        return MISSING, size
    keys[size], places[at] = pair, size
    return np.uint32(size), size + 1


@compiled
def _look_up_all(pairs: Any, keys: Any, places: Any, size: Any, grows: Any, columns: Any) -> Any:
    for number in range(pairs.size):
        columns[number], size = column_of(pairs[number], keys, places, size, grows)
    return size


@compiled
def _place_all(places: Any, keys: Any) -> None:
    last = np.uint64(places.size - 1)
    for number in range(keys.size):
        at = ((keys[number] * _MIX) >> _SHIFT) & last
        while places[at] != MISSING:
            at = (at + _ONE) & last
        places[at] = number
