"""Rows of a file in its order, a block at a time, so that memory is bounded whatever the size of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hogwild.data.csr import CSRRows, compact, concatenate
from hogwild.data.dataset import Dataset
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.loader import checked_room, joined
from hogwild.data.open_dataset import open as open_data
from hogwild.data.open_dataset import paths_of
from hogwild.data.opened_files import opened_files
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.data.packing.sharded_rows import is_packed
from hogwild.data.reader import ReadOptions, SchemaBuilder, fit_to_schema
from hogwild.data.sources import FileSource, local_folder
from hogwild.data.tables.partitions import parquet_files

_BLOCK_BYTES = 2**23  # Bytes of memory of a block: milliseconds of scoring for each core.
_LEAST_BLOCK_BYTES = 2**20
_BLOCKS_OF_ROOM = 64  # Where memory is short, a block takes one of these parts of it: each thread has several.
_BYTES_PER_ENTRY = 8


def row_blocks(source: FileSource | Sequence[FileSource], reading: ReadOptions) -> Iterator[Dataset]:
    """Yield the rows of files, of standard input or of a packed folder in their order, as data sets of some MiB each.

    The number of features must be given. An ``.npz`` file is read whole, because its arrays are compressed.

    Raises
    ------
    DataError
        At the first error in the data. The blocks before it have been yielded then.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.svm").write_text("1 1:2 3:1\\n0 2:1\\n")
    ...     [block.n_rows for block in row_blocks(Path(folder, "a.svm"), ReadOptions(features=3))]
    [2]
    """
    paths = paths_of(source) or []
    folders = [folder for folder in map(local_folder, paths) if folder is not None]
    if len(folders) == 1 and len(paths) == 1 and not is_packed(folders[0]) and (files := parquet_files(folders[0])):
        paths, reading = list(files), replace(reading, folder=folders[0])
    elif folders:
        data = open_data(paths, reading=reading)
        assert isinstance(data, PackedDataset)
        blocks = max(1, -(-_BYTES_PER_ENTRY * data.nonzeros // _BLOCK_BYTES))
        yield from (data.shard(number, blocks) for number in range(blocks))
        return
    yield from _blocks_of_files(paths, reading)


def _blocks_of_files(sources: Sequence[FileSource], reading: ReadOptions) -> Iterator[Dataset]:
    unknown = reading.base == "auto"  # Whether indices count from 0 or from 1 is known at the end of the files alone.
    with opened_files(sources, reading, twice=unknown) as files:
        size = max(_LEAST_BLOCK_BYTES, min(_BLOCK_BYTES, checked_room(files.paths[0]) // _BLOCKS_OF_ROOM))
        reading = files.reader.fit(files.paths, reading)
        if unknown and files.reader.counts_from_one:
            builder = SchemaBuilder(files.reader, reading)
            for _ in builder.pieces(files.paths, size):
                pass
            reading = replace(reading, base=1 if builder.zero_seen is None else 0)
        builder = SchemaBuilder(files.reader, reading)
        for piece in builder.pieces(files.paths, size):
            shape = builder.shape()
            rows = joined([fit_to_schema(piece, shape, reading)], shape, shuffle=False)
            yield InMemoryDataset(
                rows, shuffled=False, name=files.name, base=shape.base, table=reading.table, encoding=reading.encoding
            )


def in_multiples_of(rows: int, blocks: Iterator[Dataset]) -> Iterator[Dataset]:
    """Yield the rows of blocks in memory in blocks whose length is a multiple of ``rows``, and then the rest.

    >>> data = [open_data([[1.0]] * 3, [0, 1, 2]), open_data([[1.0]] * 2, [3, 4])]
    >>> [block.labels().tolist() for block in in_multiples_of(2, iter(data))]
    [[0.0, 1.0], [2.0, 3.0], [4.0]]
    """
    held: list[CSRRows] = []
    name = ""
    for block in blocks:
        assert block.rows is not None
        name = block.name
        held.append(_with_values(block.rows))
        count = sum(map(len, held))
        if whole := count - count % rows:
            together = concatenate(held)
            yield InMemoryDataset(together[:whole], shuffled=False, name=name)
            held = [compact(together[whole:])] if whole < count else []
    if held:
        yield InMemoryDataset(concatenate(held), shuffled=False, name=name)


def _with_values(rows: CSRRows) -> CSRRows:
    """Return rows that can be concatenated with those of another block, in which not every value is one."""
    if rows.layout != "binary":
        return rows
    rows = compact(rows)
    return replace(rows, values=np.ones(len(rows.indices), np.float32), layout="sparse")
