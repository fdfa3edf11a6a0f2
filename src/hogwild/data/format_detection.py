"""Format detection: chooses the reader of a file by its name, and then by its first bytes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path

from hogwild.data.compression import ENDINGS, first_unpacked
from hogwild.data.reader import Reader
from hogwild.errors import DataError
from hogwild.registry import lookup

_AMBIGUOUS = (".txt", ".dat", ".data")  # File name endings that any text format may have.
SNIFFED = 2**20  # Bytes at the start of a file in which the first line is looked for; a block of bzip2 is as long.
_CRITEO_TABS = 39  # Tabs of a line of Criteo's format, which starts with a click or none.
_FIELDED = re.compile(rb"\d:\d+:")  # Pattern of ``field:feature:value``, which tells libffm text from svmlight text.


def reader_for(path: Path, format_name: str, readers: Sequence[Reader], first: bytes | None = None) -> Reader:
    """Choose the reader of a file, whose first bytes are given if it can be read only once.

    >>> text = Reader("svmlight", (".svm",), lambda path, reading, size: iter(()), compressible=True)
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".svm.gz") as file:
    ...     reader_for(Path(file.name), "auto", [text]).name
    'svmlight'
    """
    if first is None:
        check_exists(path)
    by_name = {reader.name: reader for reader in readers}
    if format_name != "auto":
        return lookup("format", format_name, by_name)
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    packed = bool(endings) and endings[-1] in ENDINGS
    ending = (endings[:-1] if packed else endings)[-1:]
    if ending and ending[0] not in _AMBIGUOUS:
        for reader in readers:
            if ending[0] in reader.endings:
                return _uncompressed(path, reader) if packed and not reader.compressible else reader
    return lookup("format", _sniffed(path) if first is None else format_of(first), by_name)


def check_exists(path: Path) -> None:
    """Raise ``DataError`` if there is no file or folder at this path; the error proposes a similar existing name."""
    if path.exists():
        if path.is_socket():
            raise DataError("this is a socket, not a file", path=path, remedy="Save it as a file first.")
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
            first = file.read(SNIFFED)
    except OSError as error:
        raise DataError(f"the file cannot be read ({error.strerror})", path=path, remedy="Check it.") from None
    return format_of(first)


def format_of(first: bytes) -> str:
    """Return the name of the format of a file that begins with these bytes, which may be compressed.

    >>> format_of(b"# clicks\\n1 |a b c"), format_of(b"1 3:0.5")
    ('vw', 'svmlight')
    """
    if first.startswith(b"PAR1"):
        return "parquet"
    if first.startswith(b"PK"):
        return "npz"
    if first.startswith(b"ARROW1"):
        return "arrow"
    if _is_criteo(first):
        return "criteo"
    line = first_line(first)
    if line.startswith(b"{"):
        return "json"
    if b":" not in line and (b"," in line or b"\t" in line):
        return "csv"
    return "vw" if b"|" in line else "libffm" if _FIELDED.search(line) else "svmlight"


def tells_format(first: bytes) -> bool:
    """Return whether these first bytes of a file suffice to tell its format: a line that is complete, for text."""
    if first.startswith((b"PAR1", b"PK")):
        return True
    lines = first_unpacked(first, SNIFFED).split(b"\n")[:-1]
    return any(line.strip() and not line.strip().startswith(b"#") for line in lines)


def _is_criteo(first: bytes) -> bool:
    """Return whether the first line has the columns of Criteo's format, of which the last may be empty."""
    line = first_unpacked(first, SNIFFED).partition(b"\n")[0]
    return line.count(b"\t") == _CRITEO_TABS and line[:2] in (b"0\t", b"1\t")


def first_line(first: bytes) -> bytes:
    """Return the first line that is not a comment in the first bytes of a file, or nothing if there is none yet."""
    text = first_unpacked(first, SNIFFED).removeprefix(b"\xef\xbb\xbf")
    lines = (line.strip() for line in text.split(b"\n"))
    return next((line for line in lines if line and not line.startswith(b"#")), b"")
