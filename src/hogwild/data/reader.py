"""Readers of file formats, and the options for reading files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hogwild.data.csr import CSRRows

if TYPE_CHECKING:
    # This module contains compiled code, which takes time to import.
    from hogwild.data.field_vocabulary import FieldVocabulary

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
    label: str = "label"  # Name of the label column of Parquet files.
    weight: str | None = None  # Name of the weight column of Parquet files.
    # Column of each pair (field, feature) of libffm files. None means columns in the order of first occurrence.
    table: FieldVocabulary | None = None
    unlabelled: bool = False  # Whether rows without a label are accepted, for prediction. Their label is 0.


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
    compressible: bool = False  # Whether files that are compressed as .gz or .bz2 can be read.
    # Whether the format gives the field of each feature. Such a reader needs a table of fields to write to.
    fielded: bool = False
