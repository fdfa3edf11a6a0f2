"""Files that must stay as they are while they are read: their size and the time of their last change."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hogwild.errors import DataError


@dataclass(frozen=True, slots=True)
class FileState:
    """Size and time of the last change of a file."""

    path: Path
    size: int
    changed_at: int  # in nanoseconds

    @classmethod
    def of(cls, path: Path, descriptor: int | None = None) -> FileState | None:
        """Return the state of a file; None if it is a device or a pipe, or cannot be found."""
        try:
            found = path.stat() if descriptor is None else os.fstat(descriptor)
        except OSError:
            return None
        return cls(path, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None

    def error(self, now: FileState | None) -> DataError:
        """Return the error of a file that has another state now."""
        size = None if now is None else now.size
        what = "another program has changed the file while it was read"
        if size is None:
            what = "another program has removed the file while it was read"
        elif size < self.size:
            what = f"another program has cut the file from {self.size:,} to {size:,} bytes while it was read"
        return DataError(what, path=self.path, remedy="Wait until the file is complete, and start again.")


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Raise ``DataError`` if a file is another one after the block than before.

    An error within the block may come from the change, so the change is raised instead.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.svm"); _ = path.write_text("1 1:1")
    ...     with unchanged(path):
    ...         _ = path.write_text("1 1")
    Traceback (most recent call last):
        ...
    hogwild.errors.DataError: ...a.svm: another program has cut the file from 5 to 3 bytes while it was read. Wait...
    """
    before = FileState.of(path)
    try:
        yield
    except Exception:
        _check(before)
        raise
    _check(before)


def _check(before: FileState | None) -> None:
    if before is not None and (now := FileState.of(before.path)) != before:
        raise before.error(now) from None
