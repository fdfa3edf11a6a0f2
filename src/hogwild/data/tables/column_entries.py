"""Conversion of a column of a table to entries of rows, by its Arrow type, without Python loops over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.data.csr import NO_VALUES, Array
from hogwild.data.hashing import hash_joined
from hogwild.errors import DataError

if TYPE_CHECKING:
    import pyarrow

_TOO_LARGE = 2.0**128 - 2.0**103  # Smallest number that is infinite when it is rounded to 32 bits.


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Entries that a column adds to rows: their number for each row, then the entries row by row."""

    counts: Array  # Number of entries of each row, int64.
    indices: Array  # Column of each entry in the result, uint32.
    values: Array  # Value of each entry, float32; empty if all are one.


Converter = Callable[[Any, int], Entries]  # Function of an Arrow array and the number of its first row.


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table: its file, its name, and the bit mask of hashed features."""

    path: Path | None
    name: str
    mask: int

    def error(self, what: str, row: int | None, remedy: str) -> DataError:
        """Return an error in this column."""
        counted = "" if row is None else " Rows are counted from 0."
        return DataError(what, path=self.path, row=row, column=self.name, remedy=remedy + counted)

    def check_numeric(self, type_: pyarrow.DataType, role: str) -> None:
        """Raise ``DataError`` if the type of a label or weight is not a number."""
        if not is_number(type_):
            raise self.error(
                f"the {role} is of type {type_}, not a number", None, f"Encode the {role} as numbers, or name another."
            )

    def hashed(self, *names: str) -> Array:
        """Return the hashed positions of features whose names are the column name followed by each of ``names``."""
        offsets = np.cumsum([0, *(len(name.encode()) for name in names)])
        return self._hashed("", "".join(names).encode(), offsets)

    def hashed_categories(self, values: pyarrow.Array) -> Array:
        """Return the hashed position of the feature ``column=value`` for every value.

        Values of a dictionary and whole numbers are hashed once each. To hash a text is faster than to look it up.
        """
        import pyarrow as pa

        if is_text(values.type):
            return self._hashed_texts(values)
        coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        distinct = coded.dictionary
        hashes = self._hashed_texts(distinct.cast(pa.string()) if pa.types.is_integer(distinct.type) else distinct)
        return np.asarray(hashes[coded.indices.to_numpy(zero_copy_only=False)])

    def _hashed_texts(self, texts: pyarrow.Array) -> Array:
        import pyarrow as pa

        if len(texts) == 0:
            return np.empty(0, np.uint32)
        texts = texts.cast(pa.large_binary())
        _, offsets, text = texts.buffers()
        ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        return self._hashed("=", text or b"", ends)

    def _hashed(self, between: str, text: bytes | pyarrow.Buffer, offsets: Array) -> Array:
        out = np.empty(len(offsets) - 1, np.uint32)
        prefix = np.frombuffer((self.name + between).encode(), np.uint8)
        hash_joined(prefix, np.frombuffer(bytes(1) if not len(text) else text, np.uint8), offsets, out)
        return out & np.uint32(self.mask)


def converter(column: Column, type_: pyarrow.DataType) -> Converter:
    """Return the function that converts a column of this Arrow type to entries."""
    import pyarrow as pa

    types = pa.types
    if types.is_null(type_):
        return lambda array, first_row: _nothing(len(array))
    if is_number(type_):
        return _Numeric(column)
    if _is_category(type_):
        return _Categorical(column)
    if types.is_map(type_) and _names_features(type_.key_type) and is_number(type_.item_type):
        return _Mapped(column)
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        if _names_features(type_.value_type):
            return CategoricalLists(column)
        if is_number(type_.value_type) and not types.is_boolean(type_.value_type):
            return _FloatLists(column)
    remedy = "Leave the column out, or convert it to numbers, text, or lists of these."
    if types.is_temporal(type_):
        remedy = "Convert it to a number (an age, an hour of the day) or to text, or leave the column out."
    if types.is_struct(type_):
        remedy = "Make a column of each of its fields, or leave the column out."
    raise column.error(f"a column of type {type_} makes no features", None, remedy)


def numbers(column: Column, array: pyarrow.Array, first_row: int, rows: Array | None = None) -> tuple[Array, Array]:
    """Return the numbers of a column as float64, 0 for nulls, and the mask of those that are not null.

    All numbers are finite. ``rows`` is the row of each number, for columns that do not have one number per row.
    """
    import pyarrow as pa

    present = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)
    whole = pa.types.is_integer(array.type)
    if pa.types.is_boolean(array.type):
        array, whole = array.cast(pa.uint8()), True
    filled = array.fill_null(0) if array.null_count else array
    found = (filled if whole else filled.cast(pa.float64())).to_numpy(zero_copy_only=False).astype(np.float64)
    bad = ~(np.abs(found) < _TOO_LARGE)
    if bad.any():
        at = int(np.argmax(bad))
        what = f"the value {found[at]} is " + ("too large for 32 bits" if np.isfinite(found[at]) else "not finite")
        raise column.error(what, first_row + int(at if rows is None else rows[at]), "Make it null, or a finite number.")
    return found, present


def is_number(type_: pyarrow.DataType) -> bool:
    """Return whether values of this type are numbers or booleans."""
    from pyarrow import types

    return bool(
        types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_) or types.is_decimal(type_)
    )


def is_text(type_: pyarrow.DataType) -> bool:
    """Return whether values of this type are texts or bytes."""
    from pyarrow import types

    return any(
        test(type_)
        for test in (
            types.is_string,
            types.is_large_string,
            types.is_string_view,
            types.is_binary,
            types.is_large_binary,
        )
    )


def _is_category(type_: pyarrow.DataType) -> bool:
    from pyarrow import types

    return is_text(type_.value_type if types.is_dictionary(type_) else type_)


def _names_features(type_: pyarrow.DataType) -> bool:
    """Return whether values of this type are names of features; in lists and map keys, whole numbers are names too."""
    from pyarrow import types

    return _is_category(type_) or bool(types.is_integer(type_))


def number_entries(column: Column, found: Array) -> Entries:
    """Return the entries of one number for each row: the feature is named as the column, and zeros make no entry."""
    values = found.astype(np.float32)
    present = values != 0
    kept = values[present]
    return Entries(present.astype(np.int64), np.full(len(kept), column.hashed("")[0]), kept)


def _nothing(n_rows: int) -> Entries:
    return Entries(np.zeros(n_rows, np.int64), np.empty(0, np.uint32), np.empty(0, np.float32))


def kept(counts: Array, keep: Array) -> Array:
    """Return the number of entries of each row that ``keep`` selects."""
    before = np.concatenate([[0], np.cumsum(keep)])
    ends = np.cumsum(counts)
    return np.asarray(before[ends] - before[ends - counts])


def _lengths(array: pyarrow.Array) -> Array:
    import pyarrow.compute as pc

    return np.asarray(pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _valid(array: pyarrow.Array) -> Array:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)


@dataclass(frozen=True, slots=True)
class _Numeric:
    column: Column

    def __call__(self, array: pyarrow.Array, first_row: int) -> Entries:
        return number_entries(self.column, numbers(self.column, array, first_row)[0])


@dataclass(frozen=True, slots=True)
class _Categorical:
    column: Column

    def __call__(self, array: pyarrow.Array, first_row: int) -> Entries:
        array = _copied_view(array)
        if not array.null_count:
            return Entries(np.ones(len(array), np.int64), self.column.hashed_categories(array), NO_VALUES)
        present = _valid(array)
        if is_text(array.type):  # To hash the empty text of a null is faster than to copy the other texts.
            indices = self.column.hashed_categories(array)[present]
        else:
            indices = self.column.hashed_categories(array.filter(_mask(present)))
        return Entries(present.astype(np.int64), indices, NO_VALUES)


@dataclass(frozen=True, slots=True)
class CategoricalLists:
    """Converter of lists whose elements are categories."""

    column: Column

    def __call__(self, array: pyarrow.Array, first_row: int) -> Entries:
        elements = _copied_view(array.flatten())
        keep = _valid(elements)
        indices = self.column.hashed_categories(elements.filter(_mask(keep)))
        return Entries(kept(_lengths(array), keep), indices, NO_VALUES)


@dataclass(slots=True)
class _FloatLists:
    """Converter of lists of floats with one common length, which the first list determines."""

    column: Column
    length: int | None = None
    indices: Array | None = None

    def __call__(self, array: pyarrow.Array, first_row: int) -> Entries:
        lengths, valid = _lengths(array), _valid(array)
        if self.length is None and valid.any():
            self.length = int(lengths[np.argmax(valid)])
            self.indices = self.column.hashed(*(f"[{k}]" for k in range(self.length)))
        bad = valid & (lengths != (self.length or 0))
        if bad.any():
            at = int(np.argmax(bad))
            raise self.column.error(
                f"a list of {lengths[at]:,} floats where others have {self.length:,}",
                first_row + at,
                "Give all lists one length, or make a map (name to number) of each.",
            )
        rows = np.repeat(np.arange(len(lengths)), lengths)
        found, _ = numbers(self.column, array.flatten(), first_row, rows)
        values = found.astype(np.float32)
        keep = values != 0
        hashed = np.tile(np.empty(0, np.uint32) if self.indices is None else self.indices, int(valid.sum()))
        return Entries(kept(lengths, keep), hashed[keep], values[keep])


@dataclass(frozen=True, slots=True)
class _Mapped:
    column: Column

    def __call__(self, array: pyarrow.Array, first_row: int) -> Entries:
        import pyarrow as pa

        # Offsets are absolute, into all keys. The entries of a null row do not count.
        offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        lengths = np.diff(offsets) * _valid(array)
        before = np.cumsum(lengths) - lengths
        meant = pa.array(np.repeat(offsets[:-1] - before, lengths) + np.arange(lengths.sum()))
        keys, items = _copied_view(array.keys).take(meant), array.items.take(meant)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        found, _ = numbers(self.column, items, first_row, rows)
        values = found.astype(np.float32)
        keep = (values != 0) & _valid(keys)
        indices = self.column.hashed_categories(keys.filter(_mask(keep)))
        return Entries(kept(lengths, keep), indices, values[keep])


def _copied_view(array: pyarrow.Array) -> pyarrow.Array:
    """Convert a text view to plain text, because many Arrow functions do not support text views yet."""
    import pyarrow as pa

    return array.cast(pa.string()) if pa.types.is_string_view(array.type) else array


def _mask(keep: Array) -> pyarrow.Array:
    import pyarrow as pa

    return pa.array(keep, pa.bool_())
