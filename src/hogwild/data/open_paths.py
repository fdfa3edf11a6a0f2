"""Opening of files and folders: text, tables, records, packed folders and addresses, whose format is detected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hogwild.data.dataset import Dataset
from hogwild.data.loader import load
from hogwild.data.opened_files import opened_files
from hogwild.data.packing.format import META
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.data.packing.sharded_rows import is_packed
from hogwild.data.reader import Reader, ReadOptions
from hogwild.data.sources import FileSource, local_folder
from hogwild.data.tables.partitions import parquet_files
from hogwild.errors import DataError, ParameterError
from hogwild.files import format_size, parse_size
from hogwild.machine import resident_bytes

_LEAST_ROOM = 144 * 2**20  # Bytes that compiling and training take besides the data.


def open_paths(
    paths: Sequence[FileSource], reading: ReadOptions, memory: int | str | None, readers: Sequence[Reader] | None,
    *, shuffle: bool,
) -> Dataset:  # fmt: skip
    """Open the files or the folder at some paths, as :func:`hogwild.data.open` does."""
    limit = None if memory is None else parse_size(memory)
    folders = [folder for folder in map(local_folder, paths) if folder is not None]
    if len(folders) == 1 and len(paths) == 1 and not is_packed(folders[0]) and (files := parquet_files(folders[0])):
        paths, reading = list(files), replace(reading, folder=folders[0])
    elif folders:
        return _packed(folders[0], len(paths), reading, limit)
    room = None if limit is None else max(0, limit - resident_bytes())
    with opened_files(paths, reading, readers) as opened:
        return load(opened.paths, opened.reader, reading, shuffle=shuffle, limit=room, name=opened.name)


def _packed(folder: Path, sources: int, reading: ReadOptions, memory: int | None) -> PackedDataset:
    if sources > 1:
        raise DataError("a packed folder is opened alone", path=folder, remedy="Pack all files into one folder.")
    if not is_packed(folder):
        remedy = f"Name the files in it, or a folder made by 'hogwild pack', which has a {META}."
        raise DataError("this folder is not a packed one", path=folder, remedy=remedy)
    if memory is not None and memory < resident_bytes() + _LEAST_ROOM:
        least, got = format_size(resident_bytes() + _LEAST_ROOM), format_size(memory)
        raise ParameterError(
            f"The 'memory' parameter must be at least {least}, the program included. Got {got} instead."
        )
    data = PackedDataset(folder, memory)
    if reading.features is not None and reading.features != data.n_features:
        what = f"there are {data.n_features:,} features, and {reading.features:,} are expected"
        raise DataError(what, path=folder, remedy=f"Pack the data again with {reading.features:,} features.")
    return data
