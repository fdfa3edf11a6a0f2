"""Encoding of Arrow batches as rows: the features of each column, by its role, and the label and weight of each row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, Array, CSRRows, Layout
from hogwild.data.field_vocabulary import MISSING, FieldVocabulary
from hogwild.data.tables.column_entries import (
    CategoricalLists,
    Column,
    Converter,
    Entries,
    converter,
    is_number,
    is_text,
    kept,
    number_entries,
    numbers,
)
from hogwild.data.tables.column_roles import no_column
from hogwild.data.tables.log_bins import log_bins
from hogwild.data.tables.row_assembly import assembled
from hogwild.data.tables.table_encoding import ColumnEncoding, TableEncoding
from hogwild.data.tables.words import word_entries
from hogwild.errors import DataError

if TYPE_CHECKING:
    import pyarrow

    _Arrays = dict[str, list[pyarrow.Array]]  # columns by name: a table may have several of one name


@dataclass(frozen=True, slots=True)
class TableEncoder:
    """Function from Arrow batches with the columns of an encoding to rows.

    >>> import pyarrow
    >>> encoding = TableEncoding((ColumnEncoding("city", "categorical", "hash"),), "y", bits=10)
    >>> rows = TableEncoder(encoding)(pyarrow.table({"y": [1, 0], "city": ["Ulm", None]}))
    >>> rows.labels, rows.indptr, rows.features
    (array([1., 0.]), array([0, 1, 1]), 1024)
    """

    encoding: TableEncoding
    path: Path | None = None  # File of the table, for errors.
    unlabelled: bool = False  # Whether rows may lack a label.
    sparse: bool = False  # Whether a column may be absent from a batch, as from JSON objects without that key.
    # Converters of ``typed`` columns, which remember the length of lists.
    typed: dict[tuple[str, str], Converter] = field(default_factory=dict)
    # Column of each pair (field, feature), where the encoding has fields.
    vocabulary: FieldVocabulary | None = None

    def __call__(self, batch: pyarrow.RecordBatch | pyarrow.Table, first_row: int = 0) -> CSRRows:
        """Return the rows of a batch, of which the first has this number in the file.

        Raises
        ------
        DataError
            If a column is missing or has values that do not suit its role.
        """
        import pyarrow as pa

        if isinstance(batch, pa.Table):
            batch = one_batch(batch)
        arrays = _by_name(batch)
        labels, weights = self._labels(arrays, batch.num_rows, first_row), self._weights(arrays, first_row)
        parts = []
        for number, (column, first) in enumerate(
            zip(self.encoding.columns, self.encoding.first_columns(), strict=True)
        ):
            array = self._array(arrays, column.name)
            if array is not None:
                made = self._converter(column, first, array.type)(array, first_row)
                parts.append(made if self.encoding.fields is None else self._in_field(made, number))
        features = self.encoding.features if self.vocabulary is None else max(1, len(self.vocabulary))
        found = assembled(parts, batch.num_rows, features, self.encoding.binary)
        layout: Layout = "binary" if self.encoding.binary else "sparse"
        rows = CSRRows(*found, labels, weights, features, layout)
        self._check_sums(rows, first_row)
        return rows

    def _in_field(self, entries: Entries, column: int) -> Entries:
        """Return the entries of a column of the table in the columns of a vocabulary, without those that it lacks."""
        if self.vocabulary is None or self.encoding.fields is None:
            raise DataError(
                "a table with fields can only be read into memory", path=self.path,
                remedy="Train on the file itself, without packing it.",
            )  # fmt: skip
        fields = np.full(len(entries.indices), self.encoding.fields[column], np.uint64)
        found = self.vocabulary.look_up(fields, entries.indices)
        known = found != MISSING
        if known.all():
            return Entries(entries.counts, found, entries.values)
        values = entries.values[known] if len(entries.values) else entries.values
        return Entries(kept(entries.counts, known), found[known], values)

    def check(self, schema: pyarrow.Schema) -> None:
        """Raise ``DataError`` if a table of this schema cannot be encoded."""
        names = Counter(schema.names)
        for name, count in names.items():
            if count > 1:
                raise DataError("several columns have this name", path=self.path, column=name, remedy="Rename them.")
        for name in self.needed():
            if name not in names and not self.sparse:
                raise no_column(name, list(names), self.path, "label" if name == self.encoding.label else "")

    def needed(self) -> list[str]:
        """Return the names of the columns that every table must have."""
        label = [] if self.encoding.label is None or self.unlabelled else [self.encoding.label]
        weight = [] if self.encoding.weight is None or self.unlabelled else [self.encoding.weight]
        return [*label, *weight, *(column.name for column in self.encoding.columns)]

    def column(self, name: str) -> Column:
        """Return a column of the table, for hashing and errors."""
        return Column(self.path, name, 2**self.encoding.bits - 1)

    def _array(self, arrays: _Arrays, name: str) -> pyarrow.Array | None:
        found = arrays.get(name, ())
        if len(found) > 1:
            raise DataError("several columns have this name", path=self.path, column=name, remedy="Rename them.")
        if found:
            return found[0]
        if self.sparse:
            return None
        raise no_column(name, list(arrays), self.path)

    def _labels(self, arrays: _Arrays, rows: int, first_row: int) -> Array:
        name = self.encoding.label
        if name is None:
            return np.zeros(rows)
        if self.unlabelled and name not in arrays:
            return np.full(rows, np.nan)
        column, array = self.column(name), self._array(arrays, name)
        if array is None:
            raise column.error("the label is missing", first_row, "Fill it in, or leave the row out.")
        if self.encoding.classes is not None:
            found, present = self._classes(column, array, first_row)
        else:
            found, present = numbers(column, as_numbers(column, array, first_row, "label"), first_row)
        if self.unlabelled:
            return np.where(present, found, np.nan)
        _refuse(column, ~present, first_row, "the label is missing", "Fill it in, or leave the row out.")
        return found

    def _classes(self, column: Column, array: pyarrow.Array, first_row: int) -> tuple[Array, Array]:
        """Return the number of the class of each label, and which labels are classes."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts, known = as_texts(array), pa.array(self.encoding.classes, pa.string())
        if not pa.types.is_dictionary(texts.type):
            texts = utf8_texts(column, texts, first_row)
        found = pc.index_in(texts, value_set=known)
        unknown = _valid(texts) & ~_valid(found)
        if unknown.any() and not self.unlabelled:
            row = int(np.argmax(unknown))
            what = (
                f"the label {texts[row].as_py()!r:.80} is none of {', '.join(map(repr, self.encoding.classes or ()))}"
            )
            raise column.error(what, first_row + row, "Correct it, or train with all classes.")
        return np.asarray(found.fill_null(0).to_numpy(zero_copy_only=False), np.float64), _valid(found)

    def _weights(self, arrays: _Arrays, first_row: int) -> Array:
        name = self.encoding.weight
        if name is None or (self.unlabelled and name not in arrays):
            return NO_WEIGHTS
        column, array = self.column(name), self._array(arrays, name)
        if array is None:
            raise column.error("the weight is missing", first_row, "Fill it in; 1 is neutral.")
        weights, present = numbers(column, as_numbers(column, array, first_row, "weight"), first_row)
        _refuse(column, ~present, first_row, "the weight is missing", "Fill it in; 1 is neutral.")
        _refuse(column, weights < 0, first_row, "the weight is negative", "A weight is 0 or more.")
        return weights.astype(np.float32)

    def _converter(self, encoding: ColumnEncoding, first: int, kind: pyarrow.DataType) -> Converter:
        from pyarrow import types

        column = self.column(encoding.name)
        if types.is_null(kind):
            return _nothing
        if encoding.role == "typed":
            key = encoding.name, str(kind)
            if key not in self.typed:
                self.typed[key] = converter(column, kind)
            return self.typed[key]
        if encoding.role == "numeric":
            return _Numbers(column, encoding)
        if encoding.role == "text":
            return _Words(column, encoding.transformation == "bigrams")
        if types.is_list(kind) or types.is_large_list(kind):
            return converter(column, kind)
        if encoding.transformation == "dictionary":
            return _Dictionary(column, encoding.values or (), first)
        return _Categories(column, encoding.transformation.removeprefix("list:") if _splits(encoding) else None)

    def _check_sums(self, rows: CSRRows, first_row: int) -> None:
        finite = np.isfinite(rows.values)
        if not finite.all():
            row = int(np.searchsorted(rows.indptr, int(np.argmin(finite)), side="right")) - 1
            raise DataError(
                "features of one column add up to more than 32 bits hold", path=self.path, row=first_row + row,
                remedy="Scale the features down, or hash to more bits. Rows are counted from 0.",
            )  # fmt: skip


def _by_name(batch: pyarrow.RecordBatch) -> _Arrays:
    """Return the columns of each name. Arrow looks through all names to find one."""
    found: _Arrays = {}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        found.setdefault(name, []).append(array)
    return found


def one_batch(table: pyarrow.Table) -> pyarrow.RecordBatch:
    """Return a table as one batch."""
    import pyarrow as pa

    batches = table.combine_chunks().to_batches()
    if len(batches) == 1:
        return batches[0]
    return pa.RecordBatch.from_pylist([], schema=table.schema) if not batches else pa.concat_batches(batches)


def as_numbers(column: Column, array: pyarrow.Array, first_row: int, role: str = "column") -> pyarrow.Array:
    """Return a column as numbers: itself, or the numbers that its texts are.

    Raises
    ------
    DataError
        For the first text that is not a number, and for types that have no numbers.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if is_number(array.type):
        return array
    if pa.types.is_null(array.type):
        return array.cast(pa.float64())
    if not is_text(array.type):
        column.check_numeric(array.type, role)
    texts = pc.utf8_trim_whitespace(utf8_texts(column, array, first_row))
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        row = next(row for row, text in enumerate(texts.to_pylist()) if text is not None and not _is_float(text))
        what = f"{array[row].as_py()!r:.80} is not a number"
        raise column.error(what, first_row + row, "Correct it, or make the column categorical.") from None


def utf8_texts(column: Column, array: pyarrow.Array, first_row: int | None) -> pyarrow.Array:
    """Return a column of texts, or of bytes that are texts in UTF-8, as strings.

    Raises
    ------
    DataError
        For the first cell that is not UTF-8. ``first_row`` is the number of the first cell, or None if it is unknown.
    """
    import pyarrow as pa

    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        row = next(row for row, cell in enumerate(array.to_pylist()) if cell is not None and not _is_utf8(cell))
        place = None if first_row is None else first_row + row
        raise column.error("the text is not UTF-8", place, "Save it as UTF-8.") from None


def _is_utf8(cell: object) -> bool:
    try:
        return not isinstance(cell, bytes) or cell.decode() is not None
    except UnicodeDecodeError:
        return False


def _is_float(text: str) -> bool:
    import pyarrow as pa

    try:
        pa.array([text]).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def as_texts(array: pyarrow.Array) -> pyarrow.Array:
    """Return a column as texts or as a dictionary of texts. A whole number has no decimal point."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types, kind = pa.types, array.type
    if types.is_dictionary(kind):
        if is_text(kind.value_type):
            return array
        array, kind = array.dictionary_decode(), kind.value_type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return array
    if types.is_floating(kind) and len(array):
        whole = pc.all(pc.equal(array, pc.trunc(array)), min_count=0).as_py()
        largest = pc.max(pc.abs(array)).as_py()
        if whole and largest is not None and largest < 2**53:
            array = array.cast(pa.int64())
    return array.cast(pa.string())


def _nothing(array: pyarrow.Array | Array, first_row: int) -> Entries:
    return Entries(np.zeros(len(array), np.int64), np.empty(0, np.uint32), np.empty(0, np.float32))


def _splits(encoding: ColumnEncoding) -> bool:
    return encoding.transformation.startswith("list:")


def _valid(array: pyarrow.Array) -> Array:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)


def _refuse(column: Column, bad: Array, first_row: int, what: str, remedy: str) -> None:
    if bad.any():
        raise column.error(what, first_row + int(np.argmax(bad)), remedy)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Numbers of a column: one feature with the transformed number, or one feature for each bin."""

    column: Column
    encoding: ColumnEncoding

    def __call__(self, array: pyarrow.Array, first_row: int) -> Entries:
        found, present = numbers(self.column, as_numbers(self.column, array, first_row), first_row)
        how, statistics = self.encoding.transformation, self.encoding.statistics or ()
        if how.startswith("quantile:"):
            return self._binned(np.searchsorted(statistics, found, side="right"), present, "#")
        if how == "log-bins":
            return self._binned(log_bins(found), present, "=")
        if how == "log":
            found = np.copysign(np.log1p(np.abs(found)), found)
        elif how == "standard":
            mean, deviation = statistics
            found = np.where(present, (found - mean) / deviation, 0.0)
        return number_entries(self.column, found)

    def _binned(self, bins: Array, present: Array, between: str) -> Entries:
        kept = bins[present]
        if not len(kept):
            return _nothing(present, 0)
        least = int(kept.min())
        hashed = self.column.hashed(*(f"{between}{number}" for number in range(least, int(kept.max()) + 1)))
        return Entries(present.astype(np.int64), hashed[kept - least], NO_VALUES)


@dataclass(frozen=True, slots=True)
class _Categories:
    """Hashed categories of a column: one for each cell, or several if a cell is a list with separators."""

    column: Column
    separator: str | None

    def __call__(self, array: pyarrow.Array, first_row: int) -> Entries:
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = as_texts(array)
        if self.separator is not None:
            texts = texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts
            return self._lists(pc.split_pattern(utf8_texts(self.column, texts, first_row), self.separator))
        return converter(self.column, texts.type)(texts, first_row)

    def _lists(self, lists: pyarrow.Array) -> Entries:
        import pyarrow as pa
        import pyarrow.compute as pc

        elements = pc.utf8_trim_whitespace(lists.flatten())
        elements = pc.if_else(pc.equal(elements, ""), pa.scalar(None, pa.string()), elements)
        whole = pa.ListArray.from_arrays(_offsets(lists), elements)
        return CategoricalLists(self.column)(whole, 0)


def _offsets(lists: pyarrow.Array) -> pyarrow.Array:
    """Return the offsets of lists from 0 on; null lists are empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


@dataclass(frozen=True, slots=True)
class _Dictionary:
    """Categories with a column of their own each; values that the training data did not have make no entry."""

    column: Column
    values: tuple[str, ...]
    first: int

    def __call__(self, array: pyarrow.Array, first_row: int) -> Entries:
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = as_texts(array)
        texts = texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts
        found = pc.index_in(utf8_texts(self.column, texts, first_row), value_set=pa.array(self.values, pa.string()))
        known = _valid(found)
        kept = np.asarray(found.fill_null(0).to_numpy(zero_copy_only=False))[known]
        indices = (kept + self.first).astype(np.uint32)
        return Entries(known.astype(np.int64), indices, NO_VALUES)


@dataclass(frozen=True, slots=True)
class _Words:
    """Hashed words of texts, each cell with the Euclidean norm of about one."""

    column: Column
    bigrams: bool

    def __call__(self, array: pyarrow.Array, first_row: int) -> Entries:
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = as_texts(array)
        texts = texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts
        lowered = pc.utf8_lower(utf8_texts(self.column, texts, first_row).cast(pa.large_string())).fill_null("")
        return word_entries(self.column, lowered, self.bigrams)
