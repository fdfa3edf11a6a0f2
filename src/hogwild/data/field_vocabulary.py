"""Vocabulary of pairs (field, feature): the column of each pair, for files that give the field of each feature."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hogwild.data.csr import Array
from hogwild.jit import compiled, compiled_part

MISSING: Final = np.uint32(2**32 - 1)  # Column of a pair that is not in the table.
FEWEST: Final = 1024  # The hash table has more places than this number.
_ONE: Final = np.uint64(1)
_SHIFT: Final = np.uint64(32)
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


class FieldVocabulary:
    """Table that assigns columns to pairs (field, feature) in the order of their first occurrence, until it is closed.

    The same feature in two fields has two columns. Column numbers have no gaps, however large the numbers in the files
    are.

    >>> table = FieldVocabulary()
    >>> table.look_up(np.array([3, 8, 3]), np.array([70, 5, 70])), len(table)
    (array([0, 1, 0], dtype=uint32), 2)
    >>> table.close()
    >>> table.look_up(np.array([8, 8]), np.array([5, 70])) == MISSING, table.fields
    (array([False,  True]), array([0, 1], dtype=uint32))
    """

    def __init__(self, keys: Array | None = None) -> None:
        """Create an empty table that grows, or a closed table of the given keys."""
        self.keys = np.empty(0, np.uint64) if keys is None else np.asarray(keys, np.uint64)
        self.grows, self._places = keys is None, np.empty(0, np.uint32)
        self.make_room(0)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def fields(self) -> Array:
        """The field of each column. Fields are renumbered without gaps, in the order of their numbers in the files."""
        return np.asarray(np.unique(self.keys >> _SHIFT, return_inverse=True)[1], np.uint32)

    def close(self) -> None:
        """Close the table: new pairs get no column from now on."""
        self.grows = False

    def make_room(self, more: int) -> tuple[Array, Array]:
        """Return keys and places with room for ``more`` further pairs.

        Compiled code needs both arrays to look up a pair and to add one.
        """
        needed = 1 << max(FEWEST, 2 * (len(self.keys) + more)).bit_length()
        if len(self._places) < needed:
            self._places = np.full(needed, MISSING, np.uint32)
            _place_all(self._places, self.keys)
        keys = np.empty(len(self.keys) + (more if self.grows else 0), np.uint64)
        keys[: len(self.keys)] = self.keys
        return keys, self._places

    def look_up(self, fields: Array, features: Array) -> Array:
        """Return the columns of pairs; a new pair gets a column if the table grows, and ``MISSING`` if it is closed."""
        keys, places = self.make_room(len(fields))
        columns = np.empty(len(fields), np.uint32)
        pairs = key(np.asarray(fields, np.uint64), np.asarray(features, np.uint64))
        size = _look_up_all(pairs, keys, places, len(self.keys), self.grows, columns)
        self.keys = keys[:size]
        return columns


def key(fields: Any, features: Any) -> Any:
    """Combine a field and a feature into one 64-bit number.

    >>> int(key(np.uint64(1), np.uint64(2)))
    4294967298
    """
    return (fields << _SHIFT) | features


@compiled_part
def column_of(pair: np.uint64, keys: Array, places: Array, size: int, grows: bool) -> tuple[Any, Any]:
    """Find a key by linear probing, and return (its column, the number of keys).

    A new key gets the next column if the table grows, and ``MISSING`` if not.
    """
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
def _look_up_all(pairs: Array, keys: Array, places: Array, size: int, grows: bool, columns: Array) -> int:
    for number in range(pairs.size):
        columns[number], size = column_of(pairs[number], keys, places, size, grows)
    return size


@compiled
def _place_all(places: Array, keys: Array) -> None:
    last = np.uint64(places.size - 1)
    for number in range(keys.size):
        at = ((keys[number] * _MIX) >> _SHIFT) & last
        while places[at] != MISSING:
            at = (at + _ONE) & last
        places[at] = number
