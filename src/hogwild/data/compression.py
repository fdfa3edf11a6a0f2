"""Compressed files: gzip, bzip2 and Zstandard, recognised by their first bytes, and read and written as streams.

A file is unpacked block by block, so that what a call returns is bounded whatever the file says. Frames of Zstandard
that need a window of more than 128 MiB are refused, as its own tool refuses them.
"""

from __future__ import annotations

import bz2
import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

from hogwild.data.text_limits import TextLimits
from hogwild.errors import DataError, MissingExtraError

_BLOCK = 1 << 18  # Bytes that are processed at a time: few calls, and a block fits into the cache.
_AGAIN = "Make or fetch the file again."


class _DamagedError(Exception):
    """Error of an archive whose bytes are wrong."""


@dataclass(frozen=True, slots=True)
class Compression:
    """Kind of compression: its name, its file name ending, its first bytes, and its functions."""

    name: str
    ending: str
    magic: re.Pattern[bytes]
    unpack: Callable[[BufferedReader], Iterator[bytes]]  # raises EOFError if the archive is truncated
    pack: Callable[[BinaryIO], Any]  # (file) -> file to write to, which leaves the other one open


def compression_of(first: bytes) -> Compression | None:
    """Return the compression of a file that begins with these bytes, of which 10 suffice.

    >>> compression_of(gzip.compress(b"1 1:1")).name, compression_of(b"1 1:1")
    ('gzip', None)
    """
    return next((each for each in COMPRESSIONS if each.magic.match(first)), None)


def checked_compression(path: Path, first: bytes) -> Compression | None:
    """Return the compression by the first bytes; raise ``DataError`` if the file name claims another one."""
    found = compression_of(first)
    if found is None and first:
        for claimed in COMPRESSIONS:
            if path.suffix.lower() == claimed.ending:
                raise DataError(
                    f"the file is not {claimed.name}-compressed although its name ends in {claimed.ending}",
                    path=path,
                    remedy=f"Fetch it again, or remove {claimed.ending} from its name if it is plain text.",
                )
    return found


def unpacked(path: Path, file: BufferedReader, compression: Compression, limits: TextLimits) -> Iterator[bytes]:
    """Yield the contents of a compressed file in blocks.

    Raises
    ------
    DataError
        If the archive is damaged or truncated, or holds more than the limits allow.
    """
    file_bytes, unpacked_bytes, counted = path.stat().st_size, 0, _Counted(file)
    try:
        for block in compression.unpack(BufferedReader(counted, _BLOCK)):
            unpacked_bytes += len(block)
            limits.check_unpacked(path, max(file_bytes, counted.bytes), unpacked_bytes)  # a pipe has no size
            yield block
    except (DataError, MissingExtraError):
        raise
    except EOFError:
        raise DataError(f"the {compression.name} archive is truncated", path=path, remedy=_AGAIN) from None
    except (zlib.error, OSError, ValueError, _DamagedError) as error:
        raise DataError(f"the {compression.name} archive is damaged ({error})", path=path, remedy=_AGAIN) from None


class _Counted(RawIOBase):
    """File that counts the bytes that are read from it."""

    def __init__(self, file: BufferedReader) -> None:
        self.file, self.bytes = file, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        count = self.file.readinto1(buffer)
        self.bytes += count
        return count


def gathered(blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield the same bytes in blocks of at least ``size`` bytes each, except the last one.

    >>> list(gathered(iter([b"ab", b"c", b"def", b"g"]), 3))
    [b'abc', b'def', b'g']
    """
    waiting: list[bytes] = []
    held = 0
    for block in blocks:
        waiting.append(block)
        held += len(block)
        if held >= size:
            yield b"".join(waiting)
            waiting, held = [], 0
    if held:
        yield b"".join(waiting)


def first_unpacked(first: bytes, most: int) -> bytes:
    """Return the first bytes of the contents, at most about ``most``, from the first bytes of a file.

    An archive may be cut or damaged: then these are the bytes before that.
    """
    compression = compression_of(first)
    if compression is None:
        return first
    found = b""
    try:
        for block in compression.unpack(BufferedReader(BytesIO(first))):
            found += block
            if len(found) >= most:
                break
    except (EOFError, OSError, ValueError, zlib.error, _DamagedError):
        pass  # The reader raises the error that tells how.
    return found


@contextmanager
def packing(path: Path, file: BinaryIO) -> Iterator[Any]:
    """Yield a file whose contents are compressed into ``file`` if the name ``path`` says so, else ``file`` itself."""
    compression = next((each for each in COMPRESSIONS if each.ending == path.suffix.lower()), None)
    if compression is None:
        yield file
        return
    with compression.pack(file) as packed:
        yield packed


def without_compression(path: Path) -> Path:
    """Return a path without the ending of a compression.

    >>> without_compression(Path("a.svm.zst")).name
    'a.svm'
    """
    return path.with_suffix("") if path.suffix.lower() in ENDINGS else path


def _decompressed(file: BufferedReader, make: Callable[[], Any]) -> Iterator[bytes]:
    """Yield the contents of all members, and raise an error for invalid bytes after the last member.

    File objects of the standard library ignore such bytes.
    """
    unpacker, data = make(), b""
    while data or (data := file.read1(_BLOCK)):
        yield unpacker.decompress(data, _BLOCK)
        while not unpacker.needs_input and not unpacker.eof:
            yield unpacker.decompress(b"", _BLOCK)
        data = unpacker.unused_data if unpacker.eof else b""
        if unpacker.eof:
            unpacker = make()
            if not data and not file.peek(1):
                return
    raise EOFError


def _gunzipped(file: BufferedReader) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as contents:
        yield from iter(lambda: contents.read1(_BLOCK), b"")


def _bunzipped(file: BufferedReader) -> Iterator[bytes]:
    yield from _decompressed(file, bz2.BZ2Decompressor)


def _zstd_unpacked(file: BufferedReader) -> Iterator[bytes]:
    zstd = _zstd()
    try:
        yield from _decompressed(file, zstd.ZstdDecompressor)
    except zstd.ZstdError as error:
        raise _DamagedError(str(error).removesuffix(".")) from None


def _zstd() -> Any:
    try:
        from compression import zstd
    except ImportError:  # Python before 3.14
        try:
            from backports import zstd
        except ImportError:
            raise MissingExtraError("Zstandard (.zst)", "backports.zstd", "zstd") from None
    return zstd


def _gzip_packed(file: BinaryIO) -> Any:
    # The gzip header has neither name nor time, so that the same data give the same file.
    return gzip.GzipFile("", "wb", compresslevel=3, fileobj=file, mtime=0)


def _zstd_packed(file: BinaryIO) -> Any:
    """Return a file with a checksum, as the tool of Zstandard writes it: without one, damage may go unnoticed."""
    zstd = _zstd()
    key = zstd.CompressionParameter
    return zstd.ZstdFile(file, "wb", options={key.compression_level: 3, key.checksum_flag: 1})


COMPRESSIONS = (
    Compression("gzip", ".gz", re.compile(rb"\x1f\x8b"), _gunzipped, _gzip_packed),
    Compression(
        "bzip2", ".bz2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), _bunzipped, lambda file: bz2.BZ2File(file, "wb")
    ),
    # A frame, or a frame to skip, with which the parallel tools begin.
    Compression(
        "Zstandard", ".zst", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), _zstd_unpacked,
        _zstd_packed,
    ),
)  # fmt: skip
ENDINGS = tuple(each.ending for each in COMPRESSIONS)
