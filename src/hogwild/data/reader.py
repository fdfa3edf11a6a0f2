"""How files are to be read: the choices a user has, and what a reader is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hogwild.data.csr import CSRRows

if TYPE_CHECKING:
    from hogwild.data.field_vocabulary import FieldVocabulary  # which is compiled code

LARGEST_INDEX = 2**31 - 2  # indices are kept in 32 bits


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a file. The defaults suit a file that says everything itself."""

    format: str = "auto"  #               a reader's name, or "auto": by the file's name, then by its first bytes
    features: int | None = None  #        how many columns there are; None: as many as the file has
    extra: Literal["error", "ignore"] = "error"  # what becomes of columns beyond ``features``
    base: Literal["auto", 0, 1] = "auto"  # svmlight: do indices count from 0 or 1; "auto": 0 if a 0 is seen
    bits: int = 18  #                     hashed formats: features are hashed into 2**bits columns
    label: str = "label"  #               Parquet: the column that holds the label
    weight: str | None = None  #          Parquet: the column that holds the row's weight
    table: FieldVocabulary | None = None  #    libffm: the column of each feature of each field; None: as they are met
    unlabelled: bool = False  #           rows without a label are accepted (their label is 0), for prediction


@dataclass(frozen=True, slots=True)
class Reader:
    """A file format: its name, the endings it is known by, and how it is read.

    ``read(path, reading, piece_bytes)`` yields checked pieces of all the rows, in order, each of about
    ``piece_bytes`` of memory at most; ``CSRRows.features`` of a piece is one more than its largest index (or the
    number of hash buckets). It raises ``DataError`` at the first thing that is wrong, with file, line and column.
    Pieces of a reader that ``counts_from_one`` carry raw indices: whoever collects them subtracts the base.
    """

    name: str
    endings: tuple[str, ...]
    read: Callable[[Path, ReadOptions, int], Iterator[CSRRows]]
    counts_from_one: bool = False
    compressible: bool = False  # .gz and .bz2 of it are read too
    fielded: bool = False  # it says of which field each feature is, and needs a table to note it in
