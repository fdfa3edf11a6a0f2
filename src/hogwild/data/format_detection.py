"""Format detection: chooses the reader of a file by its name, and then by its first bytes."""

from __future__ import annotations

import bz2
import difflib
import gzip
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from hogwild.data.reader import Reader
from hogwild.errors import DataError
from hogwild.registry import lookup

_AMBIGUOUS = (".txt", ".dat", ".data")  # File name endings that any text format may have.
_COMPRESSED = (".gz", ".bz2")
_SNIFFED = 2**16  # Bytes at the start of a file in which the first line is looked for.
_FIELDED = re.compile(rb"\d:\d+:")  # Pattern of ``field:feature:value``, which tells libffm text from svmlight text.


def reader_for(path: Path, format_name: str, readers: Sequence[Reader]) -> Reader:
    """Choose the reader of a file.

    >>> text = Reader("svmlight", (".svm",), lambda path, reading, size: iter(()), compressible=True)
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".svm.gz") as file:
    ...     reader_for(Path(file.name), "auto", [text]).name
    'svmlight'
    """
    check_exists(path)
    by_name = {reader.name: reader for reader in readers}
    if format_name != "auto":
        return lookup("format", format_name, by_name)
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    packed = bool(endings) and endings[-1] in _COMPRESSED
    ending = (endings[:-1] if packed else endings)[-1:]
    if ending and ending[0] not in _AMBIGUOUS:
        for reader in readers:
            if ending[0] in reader.endings:
                return _uncompressed(path, reader) if packed and not reader.compressible else reader
    return lookup("format", _sniffed(path), by_name)


def check_exists(path: Path) -> None:
    """Raise ``DataError`` if there is no file or folder at this path; the error proposes a similar existing name."""
    if path.exists():
        if not (path.is_file() or path.is_dir()):
            what = "this is a pipe or a device, and files are looked at more than once"
            raise DataError(what, path=path, remedy="Save it as a file first.")
        return
    folder = path.parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    if path.is_symlink():
        raise DataError("this link leads nowhere", path=path, remedy=f"It points to '{path.readlink()}'.")
    close = difflib.get_close_matches(path.name, [name for name in names if name != path.name], n=1)
    remedy = f"Did you mean '{folder / close[0]}'?" if close else "Check the path."
    raise DataError("there is no such file or folder", path=path, remedy=remedy)


def _uncompressed(path: Path, reader: Reader) -> Reader:
    raise DataError(f"{reader.name} files are not read compressed", path=path, remedy="Unpack the file first.")


def _sniffed(path: Path) -> str:
    try:
        with path.open("rb") as file:
            first = file.read(8)
    except OSError as error:
        raise DataError(f"the file cannot be read ({error.strerror})", path=path, remedy="Check it.") from None
    if first.startswith(b"PAR1"):
        return "parquet"
    if first.startswith(b"PK"):
        return "npz"
    line = _first_line(path, first)
    return "vw" if b"|" in line else "libffm" if _FIELDED.search(line) else "svmlight"


def _first_line(path: Path, first: bytes) -> bytes:
    unpack = gzip.open if first.startswith(b"\x1f\x8b") else bz2.open if first.startswith(b"BZh") else open
    try:
        with unpack(path, "rb") as file:
            text: bytes = file.read(_SNIFFED)
    except (OSError, EOFError, zlib.error):
        return b""  # The archive is damaged, and the reader raises the error that tells how.
    lines = (line.strip() for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    return next((line for line in lines if line and not line.startswith(b"#")), b"")
