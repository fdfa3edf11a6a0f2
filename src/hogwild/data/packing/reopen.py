"""Reopening of packed folders in other processes, possibly on other machines, by path, once per process."""

from __future__ import annotations

import platform
import weakref
from pathlib import Path

from hogwild.data.packing.mapped_arrays import MappedRows
from hogwild.errors import DataError

_open: weakref.WeakValueDictionary[tuple[Path, int | None, int], MappedRows] = weakref.WeakValueDictionary()


def reopen(folder: Path, memory: int | None, checksums: int) -> MappedRows:
    """Open a folder that another process has opened; raise ``DataError`` if the folder is absent or differs.

    A block is verified when it is first read. A process that only forwards the data set reads no block, so it verifies
    none.

    >>> reopen(Path("/not/there"), None, 0)
    Traceback (most recent call last):
    hogwild.errors.DataError: /not/there/meta.json: ... on the machine ... Put the folder ...
    """
    found = _open.get((folder, memory, checksums))
    if found is not None:
        return found
    machine = f"on the machine {platform.node()!r}"
    try:
        stored = MappedRows(folder, memory, verify=False)
    except DataError as error:
        remedy = (
            "Put the folder where every node finds it under this path, such as on a disk that they share. Or train on "
            "the files that it was made of: their rows are sent to the nodes."
        )
        raise DataError(f"{error.what} {machine}", path=error.path or folder, remedy=remedy) from None
    if stored.meta.checksums != checksums:
        what = f"the folder {machine} is another than the one that was opened first"
        raise DataError(what, path=folder, remedy="Copy it to every node again.")
    _open[folder, memory, checksums] = stored
    return stored
