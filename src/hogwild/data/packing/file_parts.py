"""Parts of files that several processes read side by side: whole files, ranges of lines, row groups of Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from hogwild.data.csr import CSRRows
from hogwild.data.reader import Reader, ReadOptions
from hogwild.data.unchanged_file import unchanged

LEAST_BYTES = 2**20  # Smallest part of a file. A smaller file is read as a whole.


@dataclass(frozen=True, slots=True)
class FilePart:
    """Part of a file: units from a first one up to another, as the reader of the file counts them."""

    path: Path
    bytes: int  # About the size of the part.
    extent: tuple[int, int] | None = None  # None: the whole file.

    def pieces(self, reader: Reader, reading: ReadOptions, piece_bytes: int) -> Iterator[CSRRows]:
        """Yield the rows of the part in pieces, as ``Reader.read`` does."""
        with unchanged(self.path):
            if self.extent is None:
                yield from reader.read(self.path, reading, piece_bytes)
            else:
                assert reader.divided is not None
                yield from reader.divided.read(self.path, reading, piece_bytes, self.extent)


@dataclass(frozen=True, slots=True)
class FileSize:
    """Size of a file in bytes, and the number of units that it can be divided into."""

    path: Path
    bytes: int
    units: int


def file_size(path: Path, reader: Reader) -> FileSize:
    """Return the size of a file."""
    return FileSize(path, path.stat().st_size, 1 if reader.divided is None else reader.divided.units(path))


def divide_files(files: Sequence[FileSize], parts: int) -> list[FilePart]:
    """Divide files into about ``parts`` parts of about the same size, in the order of their rows.

    There are more parts where files are many, and fewer where they are small or cannot be divided.

    >>> files = [FileSize(Path("a.svm"), 6_000_000, 6_000_000), FileSize(Path("b.svm.gz"), 3_000_000, 1)]
    >>> [(part.path.name, part.extent) for part in divide_files(files, 3)]
    [('a.svm', (0, 3000000)), ('a.svm', (3000000, 6000000)), ('b.svm.gz', None)]
    """
    size = max(LEAST_BYTES, sum(file.bytes for file in files) // parts)
    found: list[FilePart] = []
    for file in files:
        wanted = min(file.units, max(1, round(file.bytes / size)))
        if wanted == 1:
            found.append(FilePart(file.path, file.bytes))
            continue
        cuts = [file.units * number // wanted for number in range(wanted + 1)]
        found += [FilePart(file.path, file.bytes // wanted, extent) for extent in pairwise(cuts)]
    return found
