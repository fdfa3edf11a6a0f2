"""Packing: one streaming conversion of files into a packed folder, with a physical shuffle, in bounded memory.

Every row has a random key. The first pass divides the rows into buckets on disk, by the first bits of their keys. The
second pass sorts the buckets by key, one after the other. A bucket that is too large for the memory is divided again.
``pack`` writes the folder beside its destination and renames it when it is complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hogwild.data.packing.bucket_sort import FAN_OUT_BITS, sorted_rows
from hogwild.data.packing.memory_limit import (
    batches,
    check_counts,
    check_reader,
    memory_limit,
    piece_bytes,
    warm_up,
    working_memory,
)
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.data.packing.packers import pack_side_by_side
from hogwild.data.packing.sharded_rows import ShardedWriter, foreign_files, is_packed
from hogwild.data.packing.stages import PackOptions, Progress, check_shards
from hogwild.data.packing.writer import Bucket, Buckets, Origin, PackedWriter
from hogwild.data.reader import Reader, ReadOptions, Schema, SchemaBuilder
from hogwild.data.shuffle import row_keys
from hogwild.data.sources import FileSource, local_files, local_folder
from hogwild.data.tables.partitions import parquet_files
from hogwild.errors import ParameterError
from hogwild.files import new_folder
from hogwild.machine import MOST_WORKERS
from hogwild.registry import invalid_parameter


def pack(
    sources: Sequence[FileSource],
    dest: str | Path,
    *,
    reading: ReadOptions | None = None,
    memory: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    shards: int = 1,
    workers: int = 1,
    progress: Progress | None = None,
    readers: Sequence[Reader] | None = None,
) -> PackedDataset:
    """Convert files into a packed folder with shuffled rows.

    The result depends on the files, the options of reading and the seed, but not on the memory.

    Parameters
    ----------
    sources : sequence of path
        Files of one format, also remote ones and streams, as :func:`hogwild.data.open` takes them.
    dest : path
        The folder to write.
    reading : ReadOptions, optional
        Options of reading, such as the format and the number of features.
    memory : int, optional
        Largest resident memory of each process, in bytes. By default 1 GiB more than its memory at the start.
    seed : int, default 0
        Seed of the shuffle.
    overwrite : bool, default False
        Whether an existing packed folder is replaced.
    shards : int, default 1
        Number of parts of the folder, each a random sample. On a cluster, a machine needs only the parts of its
        workers.
    workers : int, default 1
        Number of processes. Each reads a share of the files: files, lines of text or row groups of Parquet. Then each
        writes shards, so more processes than shards do not help with that. The result is that of one process.
    progress : callable, optional
        Called with the stage ("reading" or "writing"), the rows done, and the rows in total or None if unknown.
    readers : sequence of Reader, optional
        The known file formats, for one process. By default all formats of :mod:`hogwild.data.readers`.

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
    WorkerError
        If a process ends while it works.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.svm").write_text("1 1:0.5 3:2\\n-1 2:1\\n")
    ...     data = pack([Path(folder, "a.svm")], Path(folder, "a.packed"))
    ...     data.n_rows, data.n_features, data.nonzeros
    (2, 3, 3)
    """
    from hogwild.data.opened_files import check_columns, single_reader

    reading = reading or ReadOptions()
    for name, number in (("shards", shards), ("workers", workers)):
        if number < 1:
            raise invalid_parameter(name, "a number of at least 1", number)
    if workers > MOST_WORKERS:
        raise invalid_parameter("workers", f"at most {MOST_WORKERS:,}", workers)
    if readers is not None and workers > 1:
        raise ParameterError("Formats of your own are packed by one process: leave out 'workers'.")
    dest = Path(dest)
    check_replaceable(dest, overwrite)
    report = progress or (lambda stage, done, total: None)
    folder_of = local_folder(sources[0]) if len(sources) == 1 else None
    if folder_of is not None and (files := parquet_files(folder_of)):
        sources, reading = files, replace(reading, folder=folder_of)
    with local_files(sources) as paths:
        reader = single_reader(paths, reading, readers)
        check_columns(reader, reading, str(sources[0]))
        reading = reader.fit(paths, reading)
        warm_up(paths[0], reader, reading)
        memory = memory_limit(memory)
        working_memory(memory)  # This call raises its error before any file is written.
        origin = Origin(memory, seed, [path.name for path in paths])
        with new_folder(dest, overwrite=overwrite) as folder:
            if workers == 1:
                _pack_alone(paths, folder, reader, reading, origin, shards, report)
            else:
                options = PackOptions(replace(reading, format=reader.name), memory, origin)
                pack_side_by_side(paths, folder, options, shards, workers, report)
    return PackedDataset(dest, memory, verify=False)


def _pack_alone(
    paths: Sequence[Path], folder: Path, reader: Reader, reading: ReadOptions, origin: Origin, shards: int,
    report: Progress,
) -> None:  # fmt: skip
    """Fill a folder in this process."""
    memory, spilled = origin.memory, folder / "spilled"
    builder = SchemaBuilder(reader, reading)
    spilled.mkdir()
    buckets = _divide(paths, builder, spilled, origin, report)
    shape = builder.shape()
    vectors = 1 if shards == 1 else 2
    check_counts(shape, builder.widest or paths[0], memory, vectors=vectors)
    check_shards(shards, builder.rows)
    room = working_memory(memory, 8 * vectors * shape.features)
    with _writer(folder, shape, reading, origin, builder.rows, shards) as writer:
        for part in sorted_rows(buckets, shape, room, spilled):
            writer.write(part)
            report("writing", writer.rows, builder.rows)
        shutil.rmtree(spilled)
        writer.finish()


def _writer(
    folder: Path, shape: Schema, reading: ReadOptions, origin: Origin, rows: int, shards: int
) -> PackedWriter | ShardedWriter:
    if shards == 1:
        return PackedWriter(folder, shape, reading, origin)
    return ShardedWriter(folder, shape, reading, origin, rows, shards)


def check_replaceable(dest: Path, overwrite: bool) -> None:
    """Raise ``ParameterError`` if ``dest`` exists and may not be overwritten, or is not a packed folder."""
    if dest.exists() and not overwrite:
        raise ParameterError(
            f"'{dest}' exists already. Choose another name, or overwrite it (overwrite=True, --overwrite)."
        )
    if dest.exists() and not is_packed(dest) and not (dest.is_dir() and not any(dest.iterdir())):
        raise ParameterError(f"'{dest}' is not a packed folder, so it is not overwritten. Choose another name.")
    strange = foreign_files(dest) if dest.is_dir() else []
    if strange:
        raise ParameterError(
            f"'{dest}' has files that packing did not write ({strange[0]!r}), so it is not overwritten. Move them, "
            "or choose another name."
        )


def _divide(
    paths: Sequence[Path], builder: SchemaBuilder, folder: Path, origin: Origin, report: Progress
) -> list[Bucket]:
    room = working_memory(origin.memory)
    divided = 0
    with Buckets(folder, "rows", 0, FAN_OUT_BITS) as buckets:
        for rows in batches(builder.pieces(paths, piece_bytes(room)), room // 4):
            buckets.add(rows, row_keys(divided, len(rows), origin.seed))
            divided += len(rows)
            report("reading", divided, None)
            check_reader(builder.reader, origin.memory)
    return buckets.all
