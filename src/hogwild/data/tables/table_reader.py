"""Reading of tables: a format gives Arrow batches, and this module makes rows of them, on several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hogwild.data.csr import CSRRows
from hogwild.data.loader import map_in_order, reader_threads
from hogwild.data.tables.encode import TableEncoder, one_batch
from hogwild.data.tables.fit import fit
from hogwild.data.tables.guess import guess_encoding
from hogwild.data.tables.sample import PLACES, Sample, evenly, spread_rows
from hogwild.data.tables.table_encoding import TableEncoding
from hogwild.errors import DataError

if TYPE_CHECKING:
    import pyarrow

    from hogwild.data.field_vocabulary import FieldVocabulary
    from hogwild.data.reader import ReadOptions

_SAMPLE_BYTES = 2**24  # Bytes of the first batch, from which roles are guessed.
_MEMORY_PER_ENTRY = 32  # Bytes of memory per entry during the conversion from the table to rows.
_LEAST_PER_ENTRY = 4  # Smallest number of bytes of an entry in a column of lists or words.


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of a table, and the line of the first of them where the table is text."""

    rows: pyarrow.RecordBatch
    first_line: int | None = None


@dataclass(frozen=True, slots=True)
class TableFormat:
    """Format of tables.

    ``batches(path, reading, piece_bytes)`` yields the rows of a file in order, in batches of about ``piece_bytes``
    bytes. With ``reading.encoding``, only its columns are needed. Without, types are those that the file has or that
    its first rows suggest.
    """

    batches: Callable[[Path, ReadOptions, int], Iterator[Batch]]
    label_named: bool = False  # Whether the label has to be named ``label`` unless the user names it.
    sparse: bool = False  # Whether a column may be absent from a batch.
    # Function that yields some rows from a number of places of a file; none if the file has to be read in order.
    spread: Callable[[Path, ReadOptions, int], Iterator[pyarrow.RecordBatch]] | None = None

    def fitted(self, paths: Sequence[Path], reading: ReadOptions) -> ReadOptions:
        """Return options with an encoding, fitted to these files unless there is one already.

        Raises
        ------
        DataError
            If a file cannot be read, or lacks a column.
        """
        if reading.encoding is not None:
            return reading
        if not reading.fits:
            what = "this is a table, and the training data was none: what its columns mean is not known"
            raise DataError(what, path=paths[0], remedy="Give data in the format of the training data.")
        first = next(self.batches(paths[0], reading, _SAMPLE_BYTES), None)
        if first is None:
            raise DataError("the table has no rows", path=paths[0], remedy="Check that it was written completely.")
        guessed = guess_encoding(first.rows, reading, paths[0], label_named=self.label_named)

        def everything() -> Iterator[pyarrow.RecordBatch]:
            for path in paths:
                for batch in self.batches(path, replace(reading, encoding=guessed), _SAMPLE_BYTES):
                    yield batch.rows

        sample = self._sample(paths, replace(reading, encoding=guessed), first.rows)
        return replace(reading, encoding=fit(guessed, sample, everything, paths[0]))

    def _sample(self, paths: Sequence[Path], reading: ReadOptions, first: pyarrow.RecordBatch) -> Sample:
        """Return rows from all parts of the files, which may be sorted; the first rows if they are read in order."""
        assert reading.encoding is not None
        found: list[pyarrow.RecordBatch] = []
        if self.spread is not None and any(column.needs_statistics for column in reading.encoding.columns):
            chosen = [paths[at] for at in evenly(len(paths), PLACES)]
            for path in chosen:
                found += self.spread(path, reading, max(1, PLACES // len(chosen)))
        return Sample(first.schema, found or [spread_rows(first, reading.encoding)])

    def read(self, path: Path, reading: ReadOptions, piece_bytes: int) -> Iterator[CSRRows]:
        """Yield the rows of a file, in order and checked."""
        reading = self.fitted([path], reading)
        empty = True
        for rows in self.encoded(path, reading, self.batches(path, reading, piece_bytes), piece_bytes):
            if len(rows):
                yield rows
                empty = False
        if empty:
            raise DataError("the table has no rows", path=path, remedy="Check that it was written completely.")

    def encoded(
        self, path: Path, reading: ReadOptions, batches: Iterator[Batch], piece_bytes: int, first_row: int = 0
    ) -> Iterator[CSRRows]:
        """Yield the rows of batches, of which the first row has this number, with the encoding of the options."""
        assert reading.encoding is not None
        encoder = TableEncoder(
            reading.encoding, path, reading.unlabelled, self.sparse, vocabulary=vocabulary_of(reading)
        )
        if reading.encoding.fields is not None or any(column.role == "typed" for column in reading.encoding.columns):
            # The first list of floats determines the length of all, and a vocabulary counts features as they come, so
            # that batches are encoded in order.
            for batch, row in _numbered(batches, reading.encoding, piece_bytes, first_row):
                yield _encoded(encoder, batch, row)
            return
        ahead = max(1, piece_bytes // (reader_threads() + 2))
        parts = _numbered(batches, reading.encoding, ahead, first_row)
        for _, rows in map_in_order(lambda part: _encoded(encoder, *part), parts):
            yield rows


def flat(table: pyarrow.Table) -> pyarrow.Table:
    """Return a table in which the fields of structures are columns, named ``outer.inner``."""
    from pyarrow import types

    while any(types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def vocabulary_of(reading: ReadOptions) -> FieldVocabulary | None:
    """Return the vocabulary of the fields of a table; None if its encoding has no fields."""
    return None if reading.encoding is None or reading.encoding.fields is None else reading.table


def encoding_for(table: pyarrow.Table, reading: ReadOptions, *, apart: bool = False) -> TableEncoding:
    """Return the encoding of a table in memory, fitted to it unless the options have one."""
    if reading.encoding is not None:
        return reading.encoding.without_label() if apart else reading.encoding
    batch = one_batch(table)
    guessed = guess_encoding(batch, reading, None, label_named=False, apart=apart)
    return fit(guessed, Sample(batch.schema, [spread_rows(batch, guessed)]), lambda: iter([batch]), None)


def _numbered(
    batches: Iterator[Batch], encoding: TableEncoding, piece_bytes: int, done: int
) -> Iterator[tuple[Batch, int]]:
    """Yield parts of batches that surely make small enough pieces, with the number of their first row."""
    several = {column.name for column in encoding.columns if column.several}
    for batch in batches:
        rows = batch.rows
        entries = sum(
            column.nbytes // _LEAST_PER_ENTRY if name in several or column.type.num_fields else len(column)
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        )
        parts = max(1, min(rows.num_rows, _MEMORY_PER_ENTRY * entries // piece_bytes))
        size = max(1, -(-rows.num_rows // parts))
        for start in range(0, rows.num_rows, size):
            line = None if batch.first_line is None else batch.first_line + start
            yield Batch(rows.slice(start, size), line), done + start
        done += rows.num_rows


def _encoded(encoder: TableEncoder, batch: Batch, first_row: int) -> CSRRows:
    try:
        return encoder(batch.rows, first_row)
    except DataError as error:
        if batch.first_line is None or error.row is None:
            raise
        remedy = error.remedy.removesuffix(" Rows are counted from 0.")
        line = batch.first_line + error.row - first_row
        raise DataError(error.what, path=error.path, line=line, column=error.column, remedy=remedy) from None
