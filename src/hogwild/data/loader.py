"""Loading of files into memory: threads read pieces ahead, and each is copied to its shuffled place and freed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from hogwild.data.csr import NO_INDICES, NO_VALUES, NO_WEIGHTS, Array, CSRRows, bytes_of
from hogwild.data.field_vocabulary import FieldVocabulary
from hogwild.data.growing_rows import GrowingRows
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.present_columns import mostly_absent
from hogwild.data.reader import Reader, ReadOptions, Schema, SchemaBuilder, fit_to_schema
from hogwild.data.shuffle import place, shuffled_order
from hogwild.errors import DataError
from hogwild.files import format_size
from hogwild.machine import available_bytes, usable_cores

MOST = 8  # Largest number of threads.
Given = TypeVar("Given")
Made = TypeVar("Made")


def reader_threads() -> int:
    """Return the number of threads that work ahead."""
    return min(MOST, usable_cores())


def map_in_order(make: Callable[[Given], Made], given: Iterable[Given]) -> Iterator[tuple[Given, Made]]:
    """Yield each item and the result of ``make`` for it, in order, computed ahead on several threads.

    Each thread has one item in advance. The function raises an exception of ``make`` at the turn of the item that
    caused it. Threads gain time only if ``make`` releases the global interpreter lock (GIL).

    >>> list(map_in_order(len, ["a", "bcd", ""]))
    [('a', 1), ('bcd', 3), ('', 0)]
    """
    threads = reader_threads()
    with ThreadPoolExecutor(threads, "hogwild-reads") as pool:
        waiting: deque[tuple[Given, Future[Made]]] = deque()
        try:
            for one in given:
                waiting.append((one, pool.submit(make, one)))
                if len(waiting) > threads:
                    yield _next(waiting)
            while waiting:
                yield _next(waiting)
        finally:
            for _, made in waiting:
                made.cancel()


def _next(waiting: deque[tuple[Given, Future[Made]]]) -> tuple[Given, Made]:
    one, made = waiting.popleft()
    return one, made.result()


_PIECE_BYTES = 2**26  # Bytes of memory of a piece.
_LEAST_PIECE_BYTES = 2**20
_LEAST_ROOM = 160 * 2**20  # Bytes that libraries, compiled functions and the smallest data take.
_PIECES_OF_ROOM = 24  # Where memory is short, a piece takes one of these parts of it, because each thread has several.
_SEED = 0  # Loading a file is deterministic, because this seed is fixed. Epochs have seeds of their own.


def load(
    sources: Sequence[Path], reader: Reader, reading: ReadOptions, *, shuffle: bool = True, limit: int | None = None,
    name: str | None = None,
) -> InMemoryDataset:  # fmt: skip
    """Read files of one format into one data set, shuffled by default.

    With ``shuffle=False`` the order of the files is kept. The name of the data set is by default that of the files.
    ``limit`` is the largest number of bytes that the rows may take while they are read. None means the available
    memory. Rows that take more than half of it stay in the order of the files, because a shuffle needs a copy of them.
    Epochs visit them in random order all the same, some neighbours at a time.
    """
    room = checked_room(sources[0]) if limit is None else limit
    reading = reader.fit(sources, reading)
    fielded = reader.fielded or (reading.encoding is not None and reading.encoding.fields is not None)
    if fielded and reading.table is None:
        reading = replace(reading, table=FieldVocabulary())
    builder = SchemaBuilder(reader, reading)
    pieces, held = [], 0
    # Rows take about as much as their text. Pieces that are collected first would leave gaps in memory.
    large = limit is not None and 2 * sum(path.stat().st_size for path in sources) > room
    growing = GrowingRows(room) if large else None
    for piece in builder.pieces(sources, max(_LEAST_PIECE_BYTES, min(_PIECE_BYTES, room // _PIECES_OF_ROOM))):
        if growing is None or piece.layout == "dense":
            growing = None
            pieces.append(piece)
            held += bytes_of(piece)
            if 2 * held > room:
                growing, pieces = _without_second_copy(pieces, sources[0], room), []
        elif not growing.add(piece):
            raise _too_large(sources[0], room)
    shape = builder.shape()
    if shape.layout == "dense" or not mostly_absent(shape.features, builder.nonzeros):
        check_width(shape.features, shape.base, builder.widest or sources[0], room)
    pieces = [fit_to_schema(piece, shape, reading) for piece in pieces]
    name = name or ", ".join(path.name for path in sources)
    if reading.table is not None:
        reading.table.close()
    table, base = reading.table if fielded else None, shape.base
    if growing is not None:
        rows = growing.finished(shape, reading)
        if 2 * bytes_of(rows) > room:
            return InMemoryDataset(
                rows, shuffled=False, name=name, base=base, table=table, encoding=reading.encoding, copied=False
            )
        pieces, shape = [rows], replace(shape, base=0)  # The base is subtracted already.
    return InMemoryDataset(
        joined(pieces, shape, shuffle), shuffled=shuffle, name=name, base=base, table=table,
        encoding=reading.encoding,
    )  # fmt: skip


def checked_room(path: Path) -> int:
    """Return the number of bytes of available memory; raise ``DataError`` if they do not suffice to read anything."""
    room = available_bytes()
    if room < _LEAST_ROOM:
        what = f"{format_size(room)} of memory are left, and to read and train takes {format_size(_LEAST_ROOM)} or more"
        raise DataError(what, path=path, remedy="Give this process more memory.")
    return room


def _without_second_copy(pieces: list[CSRRows], path: Path, room: int) -> GrowingRows:
    """Append pieces to arrays that stay in the order of the file; rows that are not shuffled need no second copy."""
    if pieces[0].layout == "dense":
        raise _too_large(path, room)
    growing = GrowingRows(room)
    while pieces:
        if not growing.add(pieces.pop(0)):  # The memory of a piece is freed once it is appended.
            raise _too_large(path, room)
    return growing


def check_width(features: int, base: int, path: Path, room: int) -> None:
    """Raise ``DataError`` if one vector of parameters, 4 bytes per feature, does not fit into ``room`` bytes."""
    if features * 4 > room:
        raise DataError(
            f"the largest index is {features - 1 + base:,}: one vector of parameters would take "
            f"{format_size(features * 4)}, and {format_size(room)} of memory are left",
            path=path,
            remedy="Check that index, or number the features without gaps (or hash them).",
        )


def joined(pieces: list[CSRRows], shape: Schema, shuffle: bool) -> CSRRows:
    """Lay out the rows of all pieces, in random order or in theirs.

    The function empties the list of pieces, so that the memory of each piece is freed once the piece is placed.
    """
    n_rows = sum(len(piece) for piece in pieces)
    lengths = np.concatenate([np.diff(piece.indptr) for piece in pieces])
    order = shuffled_order(n_rows, _SEED) if shuffle else np.arange(n_rows)
    indptr = np.zeros(n_rows + 1, np.int64)
    np.cumsum(lengths[order], out=indptr[1:])
    starts = np.empty(n_rows, np.int64)
    starts[order] = indptr[:-1]
    labels = np.concatenate([piece.labels for piece in pieces]).astype(np.float64, copy=False)[order]
    weights = np.concatenate([piece.weights for piece in pieces])[order] if shape.weighted else NO_WEIGHTS
    indices, values = _place_all(pieces, starts, shape, int(indptr[-1]))
    return CSRRows(indptr, indices, values, labels, weights, shape.features, shape.layout)


def _place_all(pieces: list[CSRRows], starts: Array, shape: Schema, nonzeros: int) -> tuple[Array, Array]:
    indices = NO_INDICES if shape.layout == "dense" else np.empty(nonzeros, np.uint32)
    values = NO_VALUES if shape.layout == "binary" else np.empty(nonzeros, np.float32)
    with ThreadPoolExecutor(usable_cores()) as pool:
        while pieces:
            piece = pieces.pop()
            place(pool, piece, starts[len(starts) - len(piece) :], indices, values, shape.base)
            starts = starts[: len(starts) - len(piece)]
    return indices, values


def _too_large(path: Path, room: int) -> DataError:
    return DataError(
        f"the rows do not fit into {format_size(room)} of memory",
        path=path,
        remedy="Pack the data first (hogwild pack) and train on the packed folder.",
    )
