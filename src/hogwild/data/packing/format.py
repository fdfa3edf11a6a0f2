"""Format of a packed folder: raw arrays, the checksums of their blocks, and the description ``meta.json``.

    meta.json         description of the folder, with digests of itself and of checksums.u32
    checksums.u32     CRC-32 of each block of each array below, in this order
    indptr.i64        offset of each row, then the end of the last row
    indices.u32       absent when dense
    values.f32        absent when binary
    labels.f64
    weights.f32       absent when every row weighs one
    frequencies.i64   number of rows in which each feature is present

All numbers are little-endian.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, get_args

import numpy as np

from hogwild.data.csr import Array, Layout
from hogwild.data.tables.table_encoding import from_record
from hogwild.errors import DataError
from hogwild.files import flush

FORMAT, VERSION = "hogwild packed data", 1
META, CHECKSUMS = "meta.json", "checksums.u32"
BLOCK_BYTES = 2**20  # Bytes of a block. Each block has a checksum of its own.
AGAIN = "Pack the data again, or fetch the folder again."


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """Array of the folder: its name, its file and the type of its elements."""

    name: str
    file: str
    type: str


ARRAYS = tuple(
    ArrayFile(name, f"{name}.{kind}", f"<{kind[0]}{int(kind[1:]) // 8}")
    for name, kind in (("indptr", "i64"), ("indices", "u32"), ("values", "f32"), ("labels", "f64"),
                       ("weights", "f32"), ("frequencies", "i64"))
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Meta:
    """Contents of ``meta.json``."""

    rows: int
    features: int
    nonzeros: int
    layout: Layout
    weighted: bool
    base: int
    memory: int  # Memory limit in bytes under which the folder was packed.
    seed: int
    checksums: int  # CRC-32 of the file of checksums.
    sources: list[str]
    labels: dict[str, Any]
    frequencies: dict[str, Any]
    encoding: dict[str, Any] | None = None  # How columns of a table became features, where the files are tables.

    def sizes(self) -> dict[str, int]:
        """Return the number of elements of each array that is present."""
        entries = {} if self.layout == "dense" else {"indices": self.nonzeros}
        if self.layout != "binary":
            entries["values"] = self.nonzeros
        weights = {"weights": self.rows} if self.weighted else {}
        return {"indptr": self.rows + 1, **entries, "labels": self.rows, **weights, "frequencies": self.features}

    def files(self) -> Iterator[tuple[ArrayFile, int]]:
        """Yield the arrays that are present, in the order of their checksums, with their sizes in bytes."""
        sizes = self.sizes()
        for array in ARRAYS:
            if array.name in sizes:
                yield array, sizes[array.name] * np.dtype(array.type).itemsize


def opened(path: Path) -> int:
    """Open a file of a packed folder without waiting: a named pipe in its place has no bytes."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def content(path: Path, size: int) -> bytes:
    """Return the content of a file of this size: a part of it if it is longer, as a device in its place is.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    try:
        with os.fdopen(opened(path), "rb") as file:
            return file.read(size + 1)
    except OSError as error:
        raise DataError(f"the file cannot be read ({error.strerror})", path=path, remedy=AGAIN) from None


def write_description(path: Path, kind: str, version: int, contents: dict[str, Any]) -> None:
    """Write a description as JSON, with its format, its version and a digest of its contents."""
    description = {"format": kind, "version": version, **contents}
    text = json.dumps({**description, "digest": _digest(description)}, indent=1) + "\n"
    path.write_text(text, encoding="utf-8")


def read_description(path: Path, kind: str, version: int) -> dict[str, Any]:
    """Read a description that :func:`write_description` wrote, and check its format, version and digest."""
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"it cannot be read ({error})", path=path, remedy=AGAIN) from None
    if not isinstance(description, dict) or description.get("format") != kind:
        raise DataError("this does not describe packed data", path=path, remedy="Give a folder made by 'hogwild pack'.")
    if description.get("version") != version:
        raise DataError(
            f"the folder has format version {description.get('version')!r}, and this program reads version {version}",
            path=path, remedy="Pack the data again with this program, or use the one it was packed with.",
        )  # fmt: skip
    if description.pop("digest", None) != _digest(description):
        raise DataError("the file is damaged: its digest does not match", path=path, remedy=AGAIN)
    return description


def write_meta(folder: Path, meta: Meta) -> None:
    """Write ``meta.json``, with a digest of its contents."""
    files = {array.file: {"type": array.type, "bytes": size} for array, size in meta.files()}
    write_description(folder / META, FORMAT, VERSION, {**asdict(meta), "files": files})


def read_meta(folder: Path) -> Meta:
    """Read and check ``meta.json``."""
    path = folder / META
    description = read_description(path, FORMAT, VERSION)
    try:
        known = {"encoding": None, **description}  # Folders of earlier versions have no encoding.
        meta = Meta(**{name: known[name] for name in Meta.__dataclass_fields__})
    except KeyError as error:
        raise DataError(f"{error} is missing", path=path, remedy=AGAIN) from None
    check_meta(meta, path)
    return meta


def check_meta(meta: Meta, path: Path) -> None:
    """Raise ``DataError`` for sizes that no packed folder has; the digest detects damage, but not invalid contents."""
    counts = (meta.rows, meta.features, meta.nonzeros, meta.memory, meta.checksums)
    valid = all(type(count) is int and 0 <= count < 2**62 for count in counts) and meta.rows and meta.features
    valid = valid and meta.layout in get_args(Layout) and meta.base in (0, 1) and meta.features < 2**32
    valid = valid and isinstance(meta.labels, dict) and isinstance(meta.frequencies, dict)
    if not valid or (meta.layout == "dense" and meta.nonzeros != meta.rows * meta.features):
        raise DataError("the sizes it gives make no sense", path=path, remedy=AGAIN)
    try:
        _ = None if meta.encoding is None else from_record(meta.encoding)
    except ValueError as error:
        raise DataError(f"the encoding of its table makes no sense ({error})", path=path, remedy=AGAIN) from None


def _digest(description: dict[str, Any]) -> str:
    text = json.dumps(description, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class BlockWriter:
    """Writer that appends to the file of an array and keeps the checksum of each block."""

    def __init__(self, path: Path, array: ArrayFile) -> None:
        self._file: BinaryIO = path.open("wb")
        self._type, self._crc, self._filled = array.type, 0, 0
        self.checksums: list[int] = []

    def write(self, array: Array) -> None:
        """Append elements to the file."""
        data = np.ascontiguousarray(array, dtype=self._type).view(np.uint8).data
        self._file.write(data)
        while len(data):
            part = data[: BLOCK_BYTES - self._filled]
            self._crc, self._filled = zlib.crc32(part, self._crc), self._filled + len(part)
            data = data[len(part) :]
            if self._filled == BLOCK_BYTES:
                self._end_block()

    def finish(self) -> None:
        """Flush all data to the disk and close the file."""
        if self._filled:
            self._end_block()
        flush(self._file)
        self.close()

    def close(self) -> None:
        """Close the file in its present state."""
        self._file.close()

    def _end_block(self) -> None:
        self.checksums.append(self._crc)
        self._crc = self._filled = 0
