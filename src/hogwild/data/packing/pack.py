"""Packing: one streaming conversion of files into a packed folder, with a physical shuffle, in bounded memory.

Every row has a random key. The first pass divides the rows into buckets on disk, by the first bits of their keys. The
second pass sorts the buckets by key, one after the other. A bucket that is too large for the memory is divided again.
``pack`` writes the folder beside its destination and renames it when it is complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from hogwild.data.csr import NO_INDICES, NO_VALUES, Array, CSRRows, Layout, bytes_of, concatenate
from hogwild.data.loader import check_width
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.data.packing.sharded_rows import ShardedWriter, is_packed
from hogwild.data.packing.writer import Bucket, Buckets, Origin, PackedWriter, records
from hogwild.data.reader import Reader, ReadOptions, Schema, SchemaBuilder
from hogwild.data.shuffle import copy_rows, gather, row_keys
from hogwild.data.statistics import count_features
from hogwild.errors import ParameterError
from hogwild.files import format_size, new_folder
from hogwild.machine import available_bytes, resident_bytes
from hogwild.registry import invalid_parameter

Progress = Callable[[str, int, int | None], None]

_ROOM = 2**30  # Bytes of working memory beyond the present resident memory, if the caller gives no limit.
_LEAST = 32 * 2**20  # Smallest working memory in bytes.
_USED = 0.6  # Share of the remaining memory that is used. Allocators keep the rest.
# Copies of a piece while it is read: the text, its parsed parts and their union are in memory at the same time.
_READER_COPIES = 6
_FAN_OUT_BITS = 6  # Bits of the key that one division uses, which makes 2**6 buckets.
_WARM_UP = 2**16  # Bytes of the first piece, which is read to compile all functions.
_WRITTEN = 2**19  # Entries that are sorted and written at a time.


def pack(
    sources: Sequence[str | Path],
    dest: str | Path,
    *,
    reading: ReadOptions | None = None,
    memory: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    shards: int = 1,
    progress: Progress | None = None,
    readers: Sequence[Reader] | None = None,
) -> PackedDataset:
    """Convert files into a packed folder with shuffled rows.

    The result depends on the files, the options of reading and the seed, but not on the memory.

    Parameters
    ----------
    sources : sequence of path
        Files of one format.
    dest : path
        The folder to write.
    reading : ReadOptions, optional
        Options of reading, such as the format and the number of features.
    memory : int, optional
        Largest resident memory of the process, in bytes. By default 1 GiB more than the present resident memory.
    seed : int, default 0
        Seed of the shuffle.
    overwrite : bool, default False
        Whether an existing packed folder is replaced.
    shards : int, default 1
        Number of parts of the folder, each a random sample. On a cluster, a machine needs only the parts of its
        workers.
    progress : callable, optional
        Called with the stage ("reading" or "writing"), the rows done, and the rows in total or None if unknown.
    readers : sequence of Reader, optional
        The known file formats. By default all formats of :mod:`hogwild.data.readers`.

    Returns
    -------
    PackedDataset
        The packed folder, opened.

    Raises
    ------
    DataError
        If a file cannot be read or is invalid.
    ParameterError
        If ``dest`` exists and may not be replaced, or if ``memory`` is too small.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.svm").write_text("1 1:0.5 3:2\\n-1 2:1\\n")
    ...     data = pack([Path(folder, "a.svm")], Path(folder, "a.packed"))
    ...     data.n_rows, data.n_features, data.nonzeros
    (2, 3, 3)
    """
    from hogwild.data.open_dataset import single_reader

    reading = reading or ReadOptions()
    if shards < 1:
        raise invalid_parameter("shards", "a number of at least 1", shards)
    paths = [Path(source) for source in sources]
    reader = single_reader(paths, reading, readers)
    dest = Path(dest)
    check_replaceable(dest, overwrite)
    report = progress or (lambda stage, done, total: None)
    _warm_up(paths[0], reader, reading)
    if memory is None:
        memory = resident_bytes() + _ROOM
    working_memory(memory)  # This call raises its error before any file is written.
    builder = SchemaBuilder(reader, reading)
    with new_folder(dest, overwrite=overwrite) as folder:
        spilled = folder / "spilled"
        spilled.mkdir()
        buckets = _divide(paths, builder, spilled, memory, seed, report)
        shape = builder.shape()
        check_width(shape.features, shape.base, paths[0], available_bytes())
        if shards > builder.rows:
            raise ParameterError(f"There are {builder.rows:,} rows: use no more than {builder.rows:,} shards.")
        room = working_memory(memory, (8 if shards == 1 else 16) * shape.features)
        origin = Origin(memory, seed, [path.name for path in paths])
        with _writer(folder, shape, reading, origin, builder.rows, shards) as writer:
            for part in _in_order(buckets, shape, room):
                writer.write(part)
                report("writing", writer.rows, builder.rows)
            shutil.rmtree(spilled)
            writer.finish()
    return PackedDataset(dest, memory, verify=False)


def _writer(
    folder: Path, shape: Schema, reading: ReadOptions, origin: Origin, rows: int, shards: int
) -> PackedWriter | ShardedWriter:
    if shards == 1:
        return PackedWriter(folder, shape, reading, origin)
    return ShardedWriter(folder, shape, reading, origin, rows, shards)


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


def check_replaceable(dest: Path, overwrite: bool) -> None:
    """Raise ``ParameterError`` if ``dest`` exists and may not be overwritten, or is not a packed folder."""
    if dest.exists() and not overwrite:
        raise ParameterError(
            f"'{dest}' exists already. Choose another name, or overwrite it (overwrite=True, --overwrite)."
        )
    if dest.exists() and not is_packed(dest) and not (dest.is_dir() and not any(dest.iterdir())):
        raise ParameterError(f"'{dest}' is not a packed folder, so it is not overwritten. Choose another name.")


def _warm_up(path: Path, reader: Reader, reading: ReadOptions) -> None:
    """Load and compile all functions before the remaining memory is measured."""
    if path.is_file():
        for piece in reader.read(path, reading, _WARM_UP):
            rows = SchemaBuilder(reader, reading).seen(path, piece[:1])
            rows = gather(rows, np.arange(len(rows)))
            if rows.layout != "dense":
                count_features(rows.indptr, rows.indices, np.arange(len(rows)), np.zeros(rows.features, np.int64))
            break


def _divide(
    paths: Sequence[Path], builder: SchemaBuilder, folder: Path, memory: int, seed: int, report: Progress
) -> list[Bucket]:
    room = working_memory(memory)
    piece_bytes = min(2**25, max(2**18, room // (2 * _READER_COPIES)))
    divided = 0
    with Buckets(folder, "rows", 0, _FAN_OUT_BITS) as buckets:
        for rows in _batches(builder.pieces(paths, piece_bytes), room // 4):
            buckets.add(rows, row_keys(divided, len(rows), seed))
            divided += len(rows)
            report("reading", divided, None)
            _check_reader(builder.reader, memory)
    return buckets.all


def _batches(pieces: Iterator[CSRRows], size: int) -> Iterator[CSRRows]:
    """Join small pieces, so that each bucket gets many rows at a time."""
    batch, held = [], 0
    for piece in pieces:
        batch.append(piece)
        held += bytes_of(piece)
        if held >= size:
            yield concatenate(batch)
            batch, held = [], 0
    if batch:
        yield concatenate(batch)


def _check_reader(reader: Reader, memory: int) -> None:
    """Raise ``ParameterError`` if reading has exceeded the memory limit, since not every format is read in pieces."""
    if resident_bytes() > memory:
        raise ParameterError(
            f"The 'memory' parameter must be more than {format_size(resident_bytes())} for this {reader.name} file, "
            f"which cannot be read piece by piece. Got {format_size(memory)} instead."
        )


def _in_order(buckets: list[Bucket], shape: Schema, room: int) -> Iterator[CSRRows]:
    """Yield the rows of all buckets in the order of their keys, in small parts; delete the file of each bucket."""
    for bucket in buckets:
        if bucket.rows > 1 and bucket.bytes_in_memory(shape.layout) > room and bucket.bits < 48:
            yield from _in_order(_divided(bucket, shape), shape, room)
        elif bucket.rows:
            yield from _sorted(bucket, shape)
            bucket.path.unlink()


def _divided(bucket: Bucket, shape: Schema) -> list[Bucket]:
    with Buckets(bucket.path.parent, bucket.path.name, bucket.bits, _FAN_OUT_BITS) as buckets:
        for rows, keys in records(bucket, _spilled_layout(shape)):
            buckets.add(rows, keys)
    bucket.path.unlink()
    return buckets.all


def _sorted(bucket: Bucket, shape: Schema) -> Iterator[CSRRows]:
    rows, keys = _loaded(bucket, shape)
    order = np.argsort(keys)
    ends = np.cumsum(rows.indptr[order + 1] - rows.indptr[order])
    cuts = np.flatnonzero(np.diff((ends - 1) // _WRITTEN)) + 1
    for part in np.split(order, cuts):
        yield gather(rows, part)


def _loaded(bucket: Bucket, shape: Schema) -> tuple[CSRRows, Array]:
    indptr, keys = np.zeros(bucket.rows + 1, np.int64), np.empty(bucket.rows, np.uint64)
    indices = NO_INDICES if shape.layout == "dense" else np.empty(bucket.entries, np.uint32)
    values = NO_VALUES if shape.layout == "binary" else np.empty(bucket.entries, np.float32)
    labels, weights = np.empty(bucket.rows), np.empty(bucket.rows if shape.weighted else 0, np.float32)
    row = entry = features = 0
    for rows, some_keys in records(bucket, _spilled_layout(shape)):
        to = slice(row, row + len(rows))
        keys[to], labels[to] = some_keys, rows.labels
        indptr[row + 1 : row + 1 + len(rows)] = rows.indptr[1:] + entry
        starts = indptr[to]
        copy_rows(*rows.arrays[:3], np.arange(len(rows)), starts, indices, values, 0)
        if shape.weighted:
            weights[to] = rows.weights
        row, entry, features = row + len(rows), entry + rows.nonzeros, max(features, rows.features)
    return CSRRows(indptr, indices, values, labels, weights, features, shape.layout), keys


def _spilled_layout(shape: Schema) -> Layout:
    return "dense" if shape.layout == "dense" else "sparse"
