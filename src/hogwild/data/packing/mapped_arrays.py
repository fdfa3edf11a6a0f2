"""Memory-mapped arrays of a packed folder: verified before use, and resident only within the memory limit."""

from __future__ import annotations

import mmap
import os
import threading
import time
import weakref
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from hogwild.data.chunks import ChunkExtents, rows_per_chunk
from hogwild.data.csr import NO_INDICES, NO_VALUES, NO_WEIGHTS, Array, CSRRows
from hogwild.data.packing.format import AGAIN, BLOCK_BYTES, CHECKSUMS, ArrayFile, Meta, content, opened, read_meta
from hogwild.data.unchanged_file import FileState
from hogwild.errors import DataError
from hogwild.guarded_map import cut_short, map_file
from hogwild.machine import available_bytes, release_pages, resident_bytes, usable_cores

_AROUND = 2**21  # Bytes that the system may map on each side of the touched bytes, which is the size of a huge page.
# Bytes. A larger folder is verified block by block when a block is first read, instead of all at once.
_VERIFIED_AT_ONCE = 2**30


_LIVE: weakref.WeakSet[MappedArray] = weakref.WeakSet()


def check_mapped_files() -> None:
    """Raise ``DataError`` if a kernel has read zeros behind the new end of a file that another program has cut.

    What the kernel has computed must not be kept. The error is raised once: later runs may use other folders.
    """
    for array in list(_LIVE):
        if array.is_cut and not array.told:
            array.check()


class MappedArray:
    """Memory-mapped file as an array, with the checksums of its blocks."""

    def __init__(self, folder: Path, file: ArrayFile, size: int, checksums: Array) -> None:
        self.path = folder / file.file
        self._checksums, self._verified = checksums, np.zeros(len(checksums), np.bool_)
        self._pages: mmap.mmap | None = None
        self.told = False  # Whether an error has told that the file was cut.
        self._type, self.size = np.dtype(file.type), size
        try:
            # The descriptor stays open. Blocks are verified by plain reads, which leave no pages resident around the
            # wanted rows.
            self._descriptor = opened(self.path)
            weakref.finalize(self, os.close, self._descriptor)
            found = os.fstat(self._descriptor).st_size
            if found == size and size:
                self._pages = map_file(self._descriptor, size)
        except OSError as error:
            raise DataError(f"the file cannot be read ({error.strerror})", path=self.path, remedy=AGAIN) from None
        if found != size:
            what = f"the file has {found:,} bytes instead of {size:,}"
            raise DataError(what, path=self.path, remedy=AGAIN)
        self._state = FileState.of(self.path, self._descriptor)
        _LIVE.add(self)
        self._array: Array = np.empty(0, self._type) if self._pages is None else np.frombuffer(self._pages, self._type)

    def __len__(self) -> int:
        return len(self._array)

    def part(self, start: int, stop: int) -> Array:
        """Return the elements from ``start`` up to ``stop``, after verifying the blocks that contain them."""
        first, last = self._bytes(start, stop)
        for block in range(first // BLOCK_BYTES, -(-last // BLOCK_BYTES)):
            if not self._verified[block]:
                self._verify(block)
        return self._array[start:stop]

    def check(self) -> None:
        """Raise ``DataError`` if the file was cut short or changed since it was mapped."""
        now = FileState.of(self.path, self._descriptor)
        if self._state is not None and (self.is_cut or now != self._state):
            self.told = True
            raise self._state.error(now)

    @property
    def is_cut(self) -> bool:
        """Whether elements were read that the file does not have any more."""
        return self._pages is not None and cut_short(self._pages)

    def ahead(self, start: int, stop: int) -> None:
        """Ask the system to read the pages with these elements from the disk."""
        if hasattr(mmap, "MADV_WILLNEED"):
            self._advise(mmap.MADV_WILLNEED, *self._bytes(start, stop))

    def release(self, start: int, stop: int) -> None:
        """Remove the pages with these elements from the resident set; a later access reads them again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            first, last = self._bytes(start, stop)
            self._advise(mmap.MADV_DONTNEED, max(0, first - _AROUND), min(self.size, last + _AROUND))

    def _advise(self, advice: int, first: int, last: int) -> None:
        first -= first % mmap.PAGESIZE
        if self._pages is not None and last > first:
            self._pages.madvise(advice, first, last - first)

    def _bytes(self, start: int, stop: int) -> tuple[int, int]:
        return start * self._type.itemsize, stop * self._type.itemsize

    def _verify(self, block: int) -> None:
        if zlib.crc32(os.pread(self._descriptor, BLOCK_BYTES, block * BLOCK_BYTES)) != self._checksums[block]:
            what = f"the file is damaged: block {block:,} (of {BLOCK_BYTES:,} bytes) does not match its checksum"
            raise DataError(what, path=self.path, remedy=AGAIN)
        self._verified[block] = True


_LEAST_HELD = 2**23  # Bytes of rows that may always be resident. With fewer bytes an epoch could not proceed.
# Bytes of memory left under the limit. With less, ``_limit`` also releases pages of program code that is not running.
_SHORT = 2**25
# Seconds between two releases of program code. Part of the code is needed again, and part was only just needed.
_CODE_RELEASE_SECONDS = 0.5


class MappedRows:
    """Rows of a packed folder. ``read`` returns rows that are verified and valid input for a kernel."""

    def __init__(self, folder: Path, memory: int | None, verify: bool) -> None:
        self.folder, self.meta = folder, read_meta(folder)
        self.memory, self.requested_memory = self.meta.memory if memory is None else memory, memory
        self._arrays = dict(_mapped(folder, self.meta))
        total = sum(array.size for array in self._arrays.values())
        self.bounded = total > (self.memory - resident_bytes()) // 2
        self._held: OrderedDict[tuple[int, int], int] = OrderedDict()
        self._held_bytes = 0
        self._lock = threading.Lock()
        self._checked: set[tuple[int, int]] = set()
        self._code_released_at, self._verified = -_CODE_RELEASE_SECONDS, False
        if self.offset(0) != 0 or self.offset(self.meta.rows) != self.meta.nonzeros:
            raise self._invalid("indptr", "the rows do not cover all entries")
        if verify and total <= _VERIFIED_AT_ONCE:
            self._verify_all()

    def labels(self, start: int, stop: int) -> Array:
        """Return the labels of these rows, as float64."""
        labels = self._arrays["labels"].part(start, stop)
        if not np.isfinite(labels).all():
            raise self._invalid("labels", "a label is not a number")
        self._arrays["labels"].check()
        return labels

    def offset(self, row: int) -> int:
        """Return the position of the first entry of a row among all entries."""
        offset = int(self._arrays["indptr"].part(row, row + 1)[0])
        if not 0 <= offset <= self.meta.nonzeros:
            raise self._invalid("indptr", "a row lies outside the entries")
        return offset

    def frequencies(self) -> Array:
        """Return the number of rows, among all rows, in which each feature is present."""
        return self._arrays["frequencies"].part(0, self.meta.features)

    def read(self, start: int, stop: int) -> CSRRows:
        """Return the rows from ``start`` up to ``stop``, checked."""
        indptr = self._indptr(start, stop)
        first, last = int(indptr[0]), int(indptr[-1])
        rows = CSRRows(
            indptr - first,
            self._entries("indices", first, last, NO_INDICES),
            self._entries("values", first, last, NO_VALUES),
            self.labels(start, stop),
            self._entries("weights", start, stop, NO_WEIGHTS),
            self.meta.features,
            self.meta.layout,
        )
        if (start, stop) not in self._checked:
            self._check(rows)
            self._check_unchanged()
            self._checked.add((start, stop))
        self._hold(start, stop, 16 * (stop - start) + 8 * (last - first))
        return rows

    def all_of(self, start: int, stop: int) -> CSRRows:
        """Return these rows, checked, as views of the mapped arrays."""
        self._verify_all()
        return CSRRows(
            self._indptr(start, stop),
            self._entries("indices", 0, self.meta.nonzeros, NO_INDICES),
            self._entries("values", 0, self.meta.nonzeros, NO_VALUES),
            self.labels(start, stop),
            self._entries("weights", start, stop, NO_WEIGHTS),
            self.meta.features,
            self.meta.layout,
        )

    def ahead(self, start: int, stop: int) -> None:
        """Start reading these rows from the disk."""
        for array, first, last in self._parts(start, stop):
            array.ahead(first, last)

    def everything(self) -> None:
        """Return None, because the rows are on disk."""

    def release(self, start: int, stop: int) -> None:
        """Remove these rows from memory if memory is limited; the next read loads them from the file again.

        The rows have been used now, so this is the moment to find that a file was changed meanwhile.
        """
        self._check_unchanged()
        if self.bounded:
            with self._lock:
                self._held_bytes -= self._held.pop((start, stop), 0)
            for array, first, last in self._parts(start, stop):
                array.release(first, last)

    def _check_unchanged(self) -> None:
        for array in self._arrays.values():
            array.check()

    def _hold(self, start: int, stop: int, size: int) -> None:
        """Record that these rows are resident, and release the rows that were read first if there are too many.

        The release does not depend on the caller, which may never mark a chunk as finished.
        """
        if not self.bounded:
            return
        with self._lock:
            self._held_bytes += size - self._held.pop((start, stop), 0)
            self._held[start, stop] = size
            too_many, limit = [], self._limit()
            while self._held_bytes > limit and len(self._held) > 1:
                extent, freed = self._held.popitem(last=False)
                self._held_bytes -= freed
                too_many.append(extent)
        for extent in too_many:
            self.release(*extent)

    @property
    def room(self) -> int:
        """The number of bytes that may become resident besides the resident bytes.

        A limit that the user did not ask for applies to rows, and not to models.
        """
        limited = self.bounded and self.requested_memory is not None
        return max(0, self.memory - resident_bytes()) if limited else available_bytes()

    def _limit(self) -> int:
        """Return the number of bytes of rows that may be resident at this moment.

        The model and compiled code take their part of the memory limit. Three quarters of the room stay free, for rows
        that are being read and for later allocations.
        """
        room = self.memory - resident_bytes()
        if room < _SHORT and time.monotonic() > self._code_released_at + _CODE_RELEASE_SECONDS:
            self._code_released_at = time.monotonic()
            release_pages()
            room = self.memory - resident_bytes()
        return max(_LEAST_HELD, (room + self._held_bytes) // 4)

    def _parts(self, start: int, stop: int) -> Iterator[tuple[MappedArray, int, int]]:
        """Yield each array with the first and last position of these rows in it."""
        entries = self.offset(start), self.offset(stop)
        for name, array in self._arrays.items():
            if name != "frequencies":
                yield array, *(entries if name in ("indices", "values") else (start, stop))

    def _indptr(self, start: int, stop: int) -> Array:
        indptr = self._arrays["indptr"].part(start, stop + 1)
        if indptr[0] < 0 or indptr[-1] > self.meta.nonzeros or (np.diff(indptr) < 0).any():
            raise self._invalid("indptr", "rows do not follow each other")
        return indptr

    def _entries(self, name: str, start: int, stop: int, absent: Array) -> Array:
        return self._arrays[name].part(start, stop) if name in self._arrays else absent

    def _check(self, rows: CSRRows) -> None:
        """Raise ``DataError`` if the contents are invalid.

        Checksums detect damage, but not invalid contents. A kernel trusts the indices, so this method checks each
        extent once.
        """
        if rows.layout == "dense":
            if (np.diff(rows.indptr) != rows.features).any():
                raise self._invalid("indptr", "a dense row does not have every column")
        else:
            if rows.indices.size and int(rows.indices.max()) >= rows.features:
                raise self._invalid("indices", f"an index is beyond the last of {rows.features:,} features")
            rises = rows.indices[1:] > rows.indices[:-1]
            starts = rows.indptr[1:-1]
            # The index may fall from the last entry of a row to the first entry of the next row.
            rises[starts[(starts > 0) & (starts < len(rows.indices))] - 1] = True
            if not rises.all():
                raise self._invalid("indices", "the indices of a row do not rise")
        if not np.isfinite(rows.values).all():
            raise self._invalid("values", "a value is not a number")
        if not (np.isfinite(rows.weights) & (rows.weights >= 0)).all():
            raise self._invalid("weights", "a weight is negative or not a number")

    def _invalid(self, name: str, what: str) -> DataError:
        return DataError(what, path=self._arrays[name].path, remedy=AGAIN)

    def _verify_all(self) -> None:
        if self._verified:
            return
        extents = ChunkExtents(0, self.meta.rows, rows_per_chunk(self.meta.rows, self.meta.nonzeros))

        def visit(number: int) -> None:
            self.read(*extents[number])
            self.release(*extents[number])

        self.frequencies()
        with ThreadPoolExecutor(usable_cores()) as pool:
            for task in [pool.submit(visit, number) for number in range(len(extents))]:
                task.result()
        self._verified = True


def _mapped(folder: Path, meta: Meta) -> list[tuple[str, MappedArray]]:
    checksums, arrays = _checksums(folder, meta), []
    for file, size in meta.files():
        blocks = -(-size // BLOCK_BYTES)
        arrays.append((file.name, MappedArray(folder, file, size, checksums[:blocks])))
        checksums = checksums[blocks:]
    return arrays


def _checksums(folder: Path, meta: Meta) -> Array:
    path, size = folder / CHECKSUMS, 4 * sum(-(-size // BLOCK_BYTES) for _, size in meta.files())
    found = content(path, size)
    if len(found) != size:
        raise DataError(f"the file does not have {size:,} bytes, as it should", path=path, remedy=AGAIN)
    if zlib.crc32(found) != meta.checksums:
        raise DataError("the file is damaged: its own checksum does not match", path=path, remedy=AGAIN)
    return np.frombuffer(found, "<u4")
