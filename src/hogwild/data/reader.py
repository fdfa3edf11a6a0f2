"""Readers of file formats: their options, and the schema of the rows that they read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, Array, CSRRows, Layout, compact
from hogwild.data.text_limits import TextLimits
from hogwild.data.unchanged_file import unchanged
from hogwild.errors import DataError
from hogwild.registry import invalid_parameter

if TYPE_CHECKING:
    from hogwild.data.field_vocabulary import FieldVocabulary
    from hogwild.data.readers.line_segments import Segment
    from hogwild.data.tables.column_roles import ColumnRoles
    from hogwild.data.tables.table_encoding import TableEncoding


LARGEST_INDEX = 2**31 - 2  # Largest index of a column, because indices are stored in 32 bits.


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading a file. The defaults suit a file that describes itself completely."""

    format: str = "auto"  # Name of a reader, or "auto": chosen by the name of the file, then by its first bytes.
    features: int | None = None  # Number of columns. None means as many as the file has.
    # Treatment of columns beyond ``features``: raise an error or ignore them.
    extra: Literal["error", "ignore"] = "error"
    # First index of svmlight files, 0 or 1. "auto" means 0 if an index 0 occurs, else 1.
    base: Literal["auto", 0, 1] = "auto"
    bits: int = 18  # Number of hash bits of hashed formats, which have 2**bits columns.
    # Name of the label column of tables. None means "label" for Parquet, and a guess for other tables.
    label: str | None = None
    weight: str | None = None  # Name of the weight column of tables.
    roles: ColumnRoles | None = None  # Roles of the other columns of tables. None means a guess.
    # Columns of tables that are fields, for factorisation machines. None means no fields. Each column is a field of its
    # own, unless it fits an entry here: a name, a number or a pattern, whose columns are one field together.
    fields: tuple[str, ...] | None = None
    header: bool | None = None  # Whether the first line of a CSV file has names. None means a guess.
    folder: Path | None = None  # Folder of Parquet files, whose subfolders column=value are columns.
    # Fitted encoding of tables, as that of the training data. None means that it is fitted to the data.
    encoding: TableEncoding | None = None
    # Whether an encoding may be fitted. Data for a model, and held-out data, has that of the training data or none.
    fits: bool = True
    # Column of each pair (field, feature) of libffm files. None means columns in the order of first occurrence.
    table: FieldVocabulary | None = None
    # Whether rows without a label are accepted, for prediction. Their label is 0. In tables, where some rows may have
    # one, it is NaN.
    unlabelled: bool = False
    limits: TextLimits = field(default_factory=TextLimits)  # Longest line, and most bytes of a compressed file.

    def __post_init__(self) -> None:
        if self.features is not None and not 1 <= self.features <= LARGEST_INDEX + 1:
            raise invalid_parameter("features", f"between 1 and {LARGEST_INDEX + 1:,}", self.features)

    @property
    def encodes_numbers(self) -> bool:
        """Whether these options ask for the encoding of a frame also where it has numbers alone."""
        given = (self.label, self.roles, self.fields, self.encoding)
        return any(option is not None for option in given)


@dataclass(frozen=True, slots=True)
class Divided:
    """Reading of parts of a file, such as bytes of lines or row groups, which are counted from 0."""

    units: Callable[[Path], int]  # Number of units that a file can be divided into, at least 1.
    # As ``Reader.read``, for the rows of the units from a first one up to another. They may be none.
    read: Callable[[Path, ReadOptions, int, tuple[int, int]], Iterator[CSRRows]]


def _as_given(paths: Sequence[Path], reading: ReadOptions) -> ReadOptions:
    return reading


@dataclass(frozen=True, slots=True)
class Reader:
    """File format: its name, its file name endings, and its function ``read``.

    ``read(path, reading, piece_bytes)`` yields checked pieces of all rows, in order. Each piece takes about
    ``piece_bytes`` bytes of memory at most. ``CSRRows.features`` of a piece is one more than its largest index, or the
    number of hash buckets. ``read`` raises ``DataError`` at the first error, with file, line and column. Pieces of a
    reader that ``counts_from_one`` have raw indices, and the caller that collects the pieces subtracts the base.
    """

    name: str
    endings: tuple[str, ...]
    read: Callable[[Path, ReadOptions, int], Iterator[CSRRows]]
    counts_from_one: bool = False
    compressible: bool = False  # Whether compressed files can be read (``data.compression``).
    # Whether the format gives the field of each feature. Such a reader needs a table of fields to write to.
    fielded: bool = False
    # Whether a file is opened once and read from its beginning to its end, as a pipe can be.
    streams: bool = False
    # Function that parses whole lines of text, for files that grow. None means that the format has no lines.
    lines: Callable[[Path, ReadOptions, Segment], CSRRows] | None = None
    divided: Divided | None = None  # Reading of parts of a file. None means that a file is read as a whole.
    tabular: bool = False  # Whether files are tables, of which one column is the label.
    # Function of all files that returns the options with the encoding of a table; other formats need none.
    fit: Callable[[Sequence[Path], ReadOptions], ReadOptions] = _as_given

    @property
    def fits(self) -> bool:
        """Whether an encoding of columns is fitted to files of the format."""
        return self.fit is not _as_given


@dataclass(frozen=True, slots=True)
class Schema:
    """Properties that all pieces of a data set have in common."""

    base: int
    features: int
    layout: Layout
    weighted: bool


@dataclass(slots=True)
class SchemaBuilder:
    """Builder of a schema: examines pieces while the caller reads them.

    >>> from hogwild.data.csr import NO_WEIGHTS
    >>> reader = Reader("svmlight", (".svm",), lambda path, reading, size: iter(()), counts_from_one=True)
    >>> builder = SchemaBuilder(reader, ReadOptions())
    >>> _ = builder.seen(Path("a.svm"), CSRRows(np.array([0, 2]), np.array([1, 4], np.uint32), np.ones(2, np.float32),
    ...                                 np.zeros(1), NO_WEIGHTS, features=5, layout="sparse"))
    >>> builder.shape()
    Schema(base=1, features=4, layout='binary', weighted=False)
    """

    reader: Reader
    reading: ReadOptions
    rows: int = 0
    nonzeros: int = 0
    end: int = 0  # One more than the largest raw index.
    layout: Layout | None = None
    all_ones: bool = True
    weighted: bool = False
    # Error at the first index 0, which is raised if the user says that indices count from 1.
    zero_seen: DataError | None = None
    # Error at the first entry beyond the last column, for each base.
    _beyond: dict[int, DataError] = field(default_factory=dict)
    widest: Path | None = None  # The file of the largest index.
    _path: Path | None = None
    _rows_of_path: int = 0

    def pieces(self, sources: Sequence[Path], piece_bytes: int) -> Iterator[CSRRows]:
        """Yield all pieces of all files after examining them; raise ``DataError`` if there is no row."""
        for path in sources:
            with unchanged(path):
                for piece in self.reader.read(path, self.reading, piece_bytes):
                    if len(piece):
                        yield self.seen(path, piece)
        if self.rows == 0:
            raise DataError("there are no rows", path=sources[0], remedy="Give a file that has some.")

    def seen(self, path: Path, piece: CSRRows) -> CSRRows:
        """Examine a piece, and return it with indices in uint32 and values in float32."""
        if path != self._path:
            self._path, self._rows_of_path = path, 0
        piece = self._standard(compact(piece))
        self._check_layout(piece.layout, piece.features)
        self._note_indices(piece)
        self.all_ones = self.all_ones and piece.layout != "dense" and _all_one(piece.values)
        self.weighted = self.weighted or not _all_one(piece.weights)
        self.rows += len(piece)
        self.nonzeros += piece.nonzeros
        self._rows_of_path += len(piece)
        return piece

    def join(self, path: Path, later: SchemaBuilder) -> None:
        """Take over what another builder has seen in a file, or in the next part of the same file."""
        if path != self._path:
            self._path, self._rows_of_path = path, 0
        if later.layout is None:
            return
        self._check_layout(later.layout, later.end)
        self._note_end(later.end)
        self.all_ones = self.all_ones and later.all_ones
        self.weighted = self.weighted or later.weighted
        if self.zero_seen is None and later.zero_seen is not None:
            self.zero_seen = self._moved(later.zero_seen)
        for base, error in later._beyond.items():
            self._beyond.setdefault(base, self._moved(error))
        self.rows, self.nonzeros = self.rows + later.rows, self.nonzeros + later.nonzeros
        self._rows_of_path += later.rows

    def _moved(self, error: DataError) -> DataError:
        """Return an error about a row of a part as one about a row of the file."""
        row = None if error.row is None else error.row + self._rows_of_path
        return DataError(error.what, path=error.path, row=row, remedy=error.remedy)

    def shape(self) -> Schema:
        """Return the schema, or raise ``DataError`` if the data contradict the options of the user."""
        base, layout = self._base(), self.layout or "sparse"
        features = max(0, self.end - base) if self.reading.features is None else self.reading.features
        if base in self._beyond and (self.reading.extra == "error"):
            raise self._beyond[base]
        if layout == "dense" and self.end < features:
            raise DataError(
                f"there are {self.end:,} columns, and {features:,} are expected", path=self._path,
                remedy="Give the same columns in the same order.",
            )  # fmt: skip
        if features == 0:
            raise DataError("no row has any feature", path=self._path, remedy="Check that this is the right file.")
        if layout == "sparse" and self.all_ones:
            layout = "binary"
        return Schema(base, features, layout, self.weighted)

    def _base(self) -> int:
        if not self.reader.counts_from_one:
            return 0
        if self.reading.base == "auto":
            return 1 if self.zero_seen is None else 0
        if self.reading.base == 1 and self.zero_seen is not None:
            raise self.zero_seen
        return self.reading.base

    def _check_layout(self, layout: Layout, features: int) -> None:
        if self.layout is not None and (layout != self.layout or (layout == "dense" and features != self.end)):
            raise DataError(
                f"the rows are {layout} with {features:,} columns, those before them are {self.layout} with "
                f"{self.end:,}",
                path=self._path, remedy="Read files of different kinds one by one.",
            )  # fmt: skip
        self.layout = layout

    def _note_end(self, end: int) -> None:
        if end > self.end:
            self.end, self.widest = end, self._path

    def _note_indices(self, piece: CSRRows) -> None:
        self._note_end(piece.features)
        if piece.layout != "dense" and self.zero_seen is None and self.reader.counts_from_one:
            # Indices rise within a row, so an index 0 can only come first.
            starts = piece.indptr[:-1][np.diff(piece.indptr) > 0]
            zeros = starts[piece.indices[starts] == 0]
            if zeros.size:
                self.zero_seen = self._place(piece, int(zeros[0]), "index 0 in a file that counts from 1",
                                             "Say that indices count from 0.")  # fmt: skip
        features = self.reading.features
        if features is None or piece.features <= features:
            return
        for base in (0, 1) if self.reader.counts_from_one else (0,):
            if base not in self._beyond:
                self._note_beyond(piece, features, base)

    def _note_beyond(self, piece: CSRRows, features: int, base: int) -> None:
        remedy = "Allow more features, or have the extra ones ignored."
        if piece.layout == "dense":
            what = f"there are {piece.features:,} columns, and {features:,} are expected"
            self._beyond[base] = DataError(what, path=self._path, remedy=remedy)
            return
        beyond = np.flatnonzero(piece.indices >= features + base)
        if beyond.size:
            at = int(beyond[0])
            what = f"index {int(piece.indices[at]):,} is beyond the last of {features:,} features"
            self._beyond[base] = self._place(piece, at, what, remedy)

    def _place(self, piece: CSRRows, entry: int, what: str, remedy: str) -> DataError:
        row = int(np.searchsorted(piece.indptr, entry, side="right"))
        return DataError(what, path=self._path, row=self._rows_of_path + row, remedy=remedy)

    def _standard(self, piece: CSRRows) -> CSRRows:
        """Convert indices to 32 bits and values to single precision, in which all values must be finite."""
        if piece.features > LARGEST_INDEX + 1:
            raise DataError(f"there are {piece.features:,} columns, and at most {LARGEST_INDEX + 1:,} can be",
                            path=self._path, remedy="Hash the features.")  # fmt: skip
        values = piece.values
        if values.dtype != np.float32:
            with np.errstate(over="ignore"):
                values = values.astype(np.float32)
            bad = np.flatnonzero(~np.isfinite(values))
            if bad.size:
                raise self._place(piece, int(bad[0]), "a value is too large for single precision",
                                  "Scale the features.")  # fmt: skip
        return replace(piece, indices=piece.indices.astype(np.uint32, copy=False), values=values)


def fit_to_schema(piece: CSRRows, shape: Schema, reading: ReadOptions) -> CSRRows:
    """Return a piece that fits the schema, with raw indices.

    The result has no values if all values of the data set are one, and no weights if all weights are one. It has no
    columns beyond those that the user asked for.
    """
    if piece.features > shape.features + shape.base and reading.features is not None:
        piece = _without_columns_from(piece, shape.features + shape.base)
    if shape.layout == "binary":
        piece = replace(piece, values=NO_VALUES)
    weights = piece.weights if shape.weighted else NO_WEIGHTS
    if shape.weighted and not weights.size:
        weights = np.ones(len(piece), np.float32)
    return replace(piece, weights=weights, layout=shape.layout)


def _without_columns_from(rows: CSRRows, end: int) -> CSRRows:
    if rows.layout == "dense":
        values = rows.values.reshape(len(rows), rows.features)[:, :end]
        indptr = np.arange(len(rows) + 1, dtype=np.int64) * end
        return replace(rows, indptr=indptr, values=values.ravel(), features=end)
    keep = rows.indices < end
    kept_before = np.concatenate([[0], np.cumsum(keep)]).astype(np.int64)
    values = rows.values[keep] if rows.values.size else rows.values
    return replace(rows, indptr=kept_before[rows.indptr], indices=rows.indices[keep], values=values, features=end)


def _all_one(array: Array) -> bool:
    return bool((array == 1).all())
