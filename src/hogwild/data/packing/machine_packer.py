"""Packer of one machine of several: it reads the files that the machine has and writes shards there.

Machines may have a disk in common or not. Those that see the same destination fill one folder, which one of them makes.
"""

from __future__ import annotations

import platform
import shutil
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.packing.file_parts import FilePart, FileSize, file_size
from hogwild.data.packing.format import CHECKSUMS, META, Meta
from hogwild.data.packing.pack import check_replaceable
from hogwild.data.packing.process_pool import ProcessPool
from hogwild.data.packing.sharded_rows import shard_name, summed_frequencies, write_shard_list
from hogwild.data.packing.stages import (
    DividedPart,
    PackOptions,
    ShardPlan,
    SpooledPart,
    divide_part,
    read_part,
    write_shard,
)
from hogwild.data.reader import ReadOptions, Schema
from hogwild.errors import DataError, ParameterError
from hogwild.files import new_folder

CHUNK = 2**23  # Bytes of files that are sent to another machine at a time.
_ENDS = 2**16  # Bytes at both ends of a file by which copies of it are told from other files.


class Fetch(Protocol):
    """Access to files of other machines, by the folders that they fill."""

    def sizes(self, folder: Path, paths: Sequence[Path]) -> list[int]:
        """Return the bytes of files."""

    def read(self, folder: Path, paths: Sequence[Path], first: int, size: int) -> bytes:
        """Return some bytes of files, one file after the other: at least one, and at most ``size``."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """File that a machine has: its size, its format, and a checksum of its ends."""

    size: FileSize
    format: str
    checksum: int


class MachinePacker:
    """Packer of one machine, which works in processes of its own.

    Parameters
    ----------
    number : int
        Number of the machine.
    dest : path
        The folder to make.
    workers : int
        Number of processes.
    """

    def __init__(self, number: int, dest: Path, workers: int) -> None:
        self._number, self._dest, self._workers = number, dest, workers
        self._folder, self._owner = dest, False
        self._made, self._processes = ExitStack(), ExitStack()
        self._pool: ProcessPool | None = None

    def name(self) -> str:
        """Return the name of the machine."""
        return platform.node()

    def look(self, sources: Sequence[str], reading: ReadOptions) -> list[list[FoundFile]]:
        """Return the files that this machine has of each source, a path or a pattern such as ``/data/day_*.svm``."""
        return [[_found(path, reading) for path in _matches(source)] for source in sources]

    # The folder that machines fill together where they see the same disk

    def mark(self, run: str) -> None:
        """Leave a mark beside the destination, which shows others that they see the same folder."""
        try:
            self._dest.parent.mkdir(parents=True, exist_ok=True)
            self._mark(run, self._number).touch()
        except OSError as error:
            raise ParameterError(
                f"'{self._dest.parent}' cannot be written to on the machine {self.name()!r} ({error.strerror}): choose "
                "a folder that every machine can make."
            ) from None

    def marks(self, run: str, machines: int) -> list[int]:
        """Return the machines whose marks are here."""
        return [number for number in range(machines) if self._mark(run, number).exists()]

    def unmark(self, run: str) -> None:
        """Remove the mark."""
        self._mark(run, self._number).unlink(missing_ok=True)

    def make(self, overwrite: bool) -> Path:
        """Make the folder that is filled, beside the destination."""
        check_replaceable(self._dest, overwrite)
        self._folder, self._owner = self._made.enter_context(new_folder(self._dest, overwrite=overwrite)), True
        self._spilled.mkdir()
        return self._folder

    def fill(self, folder: Path) -> None:
        """Fill a folder that another machine has made."""
        self._folder = folder

    # The stages of packing

    def read(self, parts: Sequence[tuple[int, FilePart]], options: PackOptions) -> list[SpooledPart]:
        """Read parts of files, which are numbered among all parts."""
        return self._call(read_part, [(options, *part, self._spilled) for part in parts])

    def divide(self, parts: Sequence[tuple[int, SpooledPart, int]], options: PackOptions) -> list[DividedPart]:
        """Divide numbered parts, each with the number of its first row, into buckets."""
        return self._call(divide_part, [(options, *part, self._spilled) for part in parts])

    def write(
        self, plans: Sequence[tuple[int, ShardPlan]], options: PackOptions, shape: Schema, alone: bool, fetch: Fetch
    ) -> list[Meta]:
        """Write shards, after fetching what other machines have of their rows; ``alone``: one shard is the folder."""
        calls = []
        for number, plan in plans:
            folder = self._folder if alone else self._folder / shard_name(number)
            calls.append((options, self._fetched(plan, fetch), shape, folder, self._spilled / shard_name(number)))
        return self._call(write_shard, calls)

    def copy(self, number: int, meta: Meta, folder: Path, fetch: Fetch) -> None:
        """Copy a shard from the folder of another machine."""
        (self._folder / shard_name(number)).mkdir()
        names = (META, CHECKSUMS, *(array.file for array, _ in meta.files()))
        theirs, mine = ([each / shard_name(number) / name for name in names] for each in (folder, self._folder))
        _copy(folder, theirs, mine, fetch)

    def sizes(self, paths: Sequence[Path]) -> list[int]:
        """Return the bytes of files, for another machine."""
        return [path.stat().st_size for path in paths]

    def chunk(self, paths: Sequence[Path], first: int, size: int) -> bytes:
        """Return bytes of files, one file after the other, for another machine."""
        found = []
        for path, total in zip(paths, self.sizes(paths), strict=True):
            if size > 0 and first < total:
                with path.open("rb") as file:
                    file.seek(first)
                    found.append(file.read(size))
                size -= len(found[-1])
            first = max(0, first - total)
        return b"".join(found)

    def frequencies(self, shards: Sequence[int]) -> Array:
        """Return the number of rows of some shards in which each feature is present."""
        return summed_frequencies([self._folder / shard_name(number) for number in shards])

    def total(self, *frequencies: Array) -> Array:
        """Return the sum of the frequencies of several machines."""
        found = np.array(frequencies[0])
        for other in frequencies[1:]:
            found += other
        return found

    def finish(self, metas: list[Meta], frequencies: Array) -> None:
        """Write the description of all shards, also of those on other machines."""
        write_shard_list(self._folder, metas, frequencies)

    def close(self, keep: bool) -> None:
        """End the processes. Rename a folder that this machine has made to the destination, or remove it."""
        self._processes.close()
        if not self._owner:
            return
        if not keep:
            self._made.__exit__(InterruptedError, InterruptedError(), None)
            return
        shutil.rmtree(self._spilled)
        self._made.close()

    @property
    def _spilled(self) -> Path:
        return self._folder / "spilled"

    def _mark(self, run: str, number: int) -> Path:
        return self._dest.parent / f".{self._dest.name}.{run}-{number}"

    def _call(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        if self._pool is None:
            self._pool = self._processes.enter_context(ProcessPool(self._workers))
        results: list[Any] = [None] * len(calls)
        for number, result in self._pool.call(function, calls):
            results[number] = result
        return results

    def _fetched(self, plan: ShardPlan, fetch: Fetch) -> ShardPlan:
        """Return a plan whose files are all on this disk."""
        here: dict[Path, Path] = {}
        paths = [path for bucket in plan.buckets for path in bucket.paths]
        for folder in {path.parent.parent for path in paths} - {self._folder}:
            away = [path for path in paths if path.parent.parent == folder]
            here |= {path: self._spilled / f"fetched-{plan.number:04d}-{path.name}-{folder.name}" for path in away}
            _copy(folder, away, [here[path] for path in away], fetch)
        buckets = [replace(bucket, paths=[here.get(path, path) for path in bucket.paths]) for bucket in plan.buckets]
        return replace(plan, buckets=buckets)


def _copy(folder: Path, paths: Sequence[Path], copies: Sequence[Path], fetch: Fetch) -> None:
    """Copy files from another machine, many of them with one call."""
    read, held = 0, b""
    for copy, size in zip(copies, fetch.sizes(folder, paths), strict=True):
        with copy.open("wb") as file:
            while file.tell() < size:
                held = held or fetch.read(folder, paths, read, CHUNK)
                written = file.write(held[: size - file.tell()])
                read, held = read + written, held[written:]


def _matches(source: str) -> list[Path]:
    if has_magic(source) and not Path(source).exists():
        return [Path(path) for path in sorted(glob(source))]  # noqa: PTH207 - the pattern is an absolute path
    return [Path(source)] if Path(source).exists() else []


def _found(path: Path, reading: ReadOptions) -> FoundFile:
    from hogwild.data.opened_files import single_reader

    reader = single_reader([path], reading)
    if reader.tabular and reader.name != "criteo" and (reader.name != "parquet" or reading.roles is not None):
        raise DataError(
            f"columns of a {reader.name} file are encoded by what one machine sees of all files", path=path,
            remedy="Pack tables without --runtime ray, or convert them to Parquet, whose types say what columns are.",
        )  # fmt: skip
    with path.open("rb") as file:
        ends = file.read(_ENDS)
        file.seek(max(0, path.stat().st_size - _ENDS))
        ends += file.read(_ENDS)
    return FoundFile(file_size(path, reader), reader.name, zlib.crc32(ends))
