"""Memory of packing: how much of a limit is left to work in, and pieces and batches of rows that fit into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hogwild.data.csr import CSRRows, bytes_of, concatenate
from hogwild.data.reader import Reader, ReadOptions, Schema, SchemaBuilder
from hogwild.data.shuffle import gather
from hogwild.data.statistics import count_features
from hogwild.errors import DataError, ParameterError
from hogwild.files import format_size
from hogwild.machine import available_bytes, resident_bytes

_ROOM = 2**30  # Bytes of working memory beyond the present resident memory, if the caller gives no limit.
_LEAST = 32 * 2**20  # Smallest working memory in bytes.
_USED = 0.6  # Share of the remaining memory that is used. Allocators keep the rest.
# Copies of a piece while it is read: the text, its parsed parts and their union are in memory at the same time.
_READER_COPIES = 6
_WARM_UP = 2**16  # Bytes of the first piece, which is read to compile all functions.


def memory_limit(memory: int | None) -> int:
    """Return the limit of a process: the one that was asked for, or 1 GiB more than its present memory.

    Where less is available, as in a small container, it is that.
    """
    return resident_bytes() + min(_ROOM, available_bytes()) if memory is None else memory


def working_memory(memory: int, besides: int = 0) -> int:
    """Return the number of bytes of ``memory`` that are left to work in.

    If they are too few, raise ``ParameterError`` with a limit that suffices.
    """
    now = resident_bytes()
    left = memory - now - besides
    if left < _LEAST:
        raise ParameterError(
            f"The 'memory' parameter must be at least {format_size(now + besides + _LEAST + 2**22)} for this data: "
            f"the program itself takes {format_size(now)}. Got {format_size(memory)} instead."
        )
    return int(left * _USED)


def check_counts(shape: Schema, path: Path, memory: int, *, vectors: int = 1, processes: int = 1) -> None:
    """Raise ``DataError`` if counts of all features, in each of some processes, leave no memory to work in.

    Packing counts the rows of each feature, also of those that no row has.
    """
    needed = 8 * vectors * shape.features
    left = max(0, min(memory - resident_bytes(), available_bytes() // processes))
    if needed > _LEAST and needed + _LEAST > left:
        raise DataError(
            f"features are numbered up to {shape.features - 1 + shape.base:,}: packing takes {format_size(needed)} to "
            f"count how often each occurs, and {format_size(left)} of memory are left to a process",
            path=path,
            remedy="Check that index, number the features without gaps (or hash them), or allow more memory "
            "(--memory). Training on the file itself takes memory only for features that occur.",
        )


def warm_up(path: Path, reader: Reader, reading: ReadOptions) -> None:
    """Load and compile all functions before the remaining memory is measured."""
    if path.is_file():
        for piece in reader.read(path, reading, _WARM_UP):
            rows = SchemaBuilder(reader, reading).seen(path, piece[:1])
            rows = gather(rows, np.arange(len(rows)))
            if rows.layout != "dense":
                count_features(rows.indptr, rows.indices, np.arange(0), np.zeros(1, np.int64))
            break


def piece_bytes(room: int) -> int:
    """Return the bytes of a piece, for a reader that may take half of ``room`` bytes."""
    return min(2**25, max(2**18, room // (2 * _READER_COPIES)))


def batches(pieces: Iterator[CSRRows], size: int) -> Iterator[CSRRows]:
    """Join small pieces to batches of about ``size`` bytes, so that each bucket gets many rows at a time."""
    batch, held = [], 0
    for piece in pieces:
        batch.append(piece)
        held += bytes_of(piece)
        if held >= size:
            yield concatenate(batch)
            batch, held = [], 0
    if batch:
        yield concatenate(batch)


def check_reader(reader: Reader, memory: int) -> None:
    """Raise ``ParameterError`` if reading has exceeded the memory limit, since not every format is read in pieces."""
    if resident_bytes() > memory:
        raise ParameterError(
            f"The 'memory' parameter must be more than {format_size(resident_bytes())} for this {reader.name} file, "
            f"which cannot be read piece by piece. Got {format_size(memory)} instead."
        )
