"""Stages of packing that several processes do side by side, each for a part of the rows.

1. ``read_part`` reads a part of a file and spools its rows. Then the number of rows before each part is known.
2. ``divide_part`` divides spooled rows into buckets by the keys of their numbers.
3. ``write_shard`` sorts the buckets of a shard and writes them, from the files of all parts.

The key of a row depends on its number among all rows, so the result is the same as that of one process.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

from hogwild.data.csr import CSRRows, compact
from hogwild.data.packing.bucket_sort import FAN_OUT_BITS, sorted_rows, spilled_layout
from hogwild.data.packing.file_parts import FilePart
from hogwild.data.packing.format import Meta, read_meta
from hogwild.data.packing.memory_limit import (
    batches,
    check_counts,
    check_reader,
    memory_limit,
    piece_bytes,
    warm_up,
    working_memory,
)
from hogwild.data.packing.sharded_rows import bounds
from hogwild.data.packing.writer import Bucket, Buckets, Origin, PackedWriter, records
from hogwild.data.reader import Reader, ReadOptions, Schema, SchemaBuilder
from hogwild.data.shuffle import row_keys
from hogwild.errors import DataError, ParameterError
from hogwild.registry import lookup

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class PackOptions:
    """Options of a packing that all its processes know."""

    reading: ReadOptions  # With the name of the format.
    memory: int | None  # Memory limit of each process in bytes.
    origin: Origin

    @property
    def reader(self) -> Reader:
        """The reader of all files."""
        from hogwild.data.readers import READERS

        return lookup("format", self.reading.format, {reader.name: reader for reader in READERS})


@dataclass(frozen=True, slots=True)
class SpooledPart:
    """Rows of a part of a file, in the order of the file, and what was seen in them."""

    file: Bucket
    seen: SchemaBuilder

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.file.rows


@dataclass(frozen=True, slots=True)
class DividedPart:
    """Rows of a part of a file in buckets, which are as many for each part."""

    buckets: list[Bucket]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(bucket.rows for bucket in self.buckets)


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """Shard to write: its buckets, how many rows of the first one belong to the shard before, and its rows."""

    number: int
    buckets: list[Bucket]
    skipped: int
    rows: int


def read_part(options: PackOptions, number: int, part: FilePart, folder: Path) -> SpooledPart:
    """Read a part of a file and spool its rows in ``folder``."""
    reader = options.reader
    warm_up(part.path, reader, options.reading)
    limit = memory_limit(options.memory)
    room = working_memory(limit)
    seen, spooled = SchemaBuilder(reader, options.reading), 0
    pieces = part.pieces(reader, options.reading, piece_bytes(room))
    pieces = (seen.seen(part.path, piece) for piece in pieces if len(piece))
    with Buckets(folder, f"part-{number:05d}", 0, 0) as spool:
        for rows in batches(pieces, room // 4):
            spool.add(rows, np.arange(spooled, spooled + len(rows), dtype=np.uint64))
            spooled += len(rows)
            check_reader(reader, limit)
    return SpooledPart(spool.all[0], seen)


def divide_part(options: PackOptions, number: int, part: SpooledPart, first: int, folder: Path) -> DividedPart:
    """Divide the rows of a part, of which the first has the number ``first``, into buckets in ``folder``."""
    with Buckets(folder, f"rows-{number:05d}", 0, FAN_OUT_BITS) as buckets:
        for rows, numbers in records(part.file, spilled_layout(part.seen.layout)):
            buckets.add(rows, row_keys(first + int(numbers[0]), len(rows), options.origin.seed))
    part.file.delete()
    return DividedPart(buckets.all)


def write_shard(options: PackOptions, plan: ShardPlan, shape: Schema, folder: Path, spare: Path) -> Meta:
    """Write a shard into ``folder``, which may exist; buckets that are too large are divided in ``spare``."""
    room = working_memory(memory_limit(options.memory), 8 * shape.features)
    folder.mkdir(exist_ok=True)
    spare.mkdir()
    with PackedWriter(folder, shape, options.reading, options.origin) as writer:
        for rows in _within(sorted_rows(plan.buckets, shape, room, spare), plan.skipped, plan.rows):
            writer.write(rows)
        writer.finish()
    shutil.rmtree(spare)
    return read_meta(folder)


def _within(parts: Iterator[CSRRows], skipped: int, count: int) -> Iterator[CSRRows]:
    """Yield ``count`` rows after those that are skipped."""
    for rows in parts:
        wanted = compact(rows[skipped : skipped + count])
        skipped, count = max(0, skipped - len(rows)), count - len(wanted)
        if len(wanted):
            yield wanted


def common_schema(
    parts: Sequence[FilePart], spooled: Sequence[SpooledPart], options: PackOptions, shards: int, writers: int
) -> Schema:
    """Return the schema of all parts; raise an error where files contradict each other or the options.

    ``writers`` is the number of processes that write shards at the same time.
    """
    whole = SchemaBuilder(options.reader, options.reading)
    for part, found in zip(parts, spooled, strict=True):
        whole.join(part.path, found.seen)
    if whole.rows == 0:
        raise DataError("there are no rows", path=parts[0].path, remedy="Give a file that has some.")
    shape = whole.shape()
    path, memory = whole.widest or parts[0].path, memory_limit(options.memory)
    check_counts(shape, path, memory, vectors=1 if shards == 1 else 2, processes=writers)
    check_shards(shards, whole.rows)
    return shape


def check_shards(shards: int, rows: int) -> None:
    """Raise ``ParameterError`` if there are more shards than rows."""
    if shards > rows:
        raise ParameterError(f"There are {rows:,} rows: use no more than {rows:,} shards.")


def first_rows(spooled: Sequence[SpooledPart]) -> list[int]:
    """Return the number of rows before each part."""
    return list(accumulate((part.rows for part in spooled), initial=0))[:-1]


def plan_shards(parts: Sequence[DividedPart], shards: int) -> list[ShardPlan]:
    """Return which buckets each shard is made of, from the buckets of all parts.

    A bucket in which a shard ends belongs to the next shard too.
    """
    joined = [_joined(same) for same in zip(*(part.buckets for part in parts), strict=True)]
    ends = np.cumsum([bucket.rows for bucket in joined])
    limits = bounds(int(ends[-1]), shards)
    plans = []
    for number, (first, last) in enumerate(pairwise(limits)):
        start, stop = np.searchsorted(ends, [first, last - 1], side="right")
        mine = [
            replace(bucket, kept=bool(end > last or end - bucket.rows < first))
            for bucket, end in zip(joined[start : stop + 1], ends[start : stop + 1], strict=True)
            if bucket.rows
        ]
        plans.append(ShardPlan(number, mine, int(first - ends[start] + joined[start].rows), last - first))
    return plans


def _joined(buckets: Sequence[Bucket]) -> Bucket:
    some = [bucket for bucket in buckets if bucket.rows]
    paths = [path for bucket in some for path in bucket.paths]
    rows, entries = sum(bucket.rows for bucket in some), sum(bucket.entries for bucket in some)
    return Bucket(paths, FAN_OUT_BITS, rows, entries)
