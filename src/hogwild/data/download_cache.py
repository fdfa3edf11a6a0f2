"""Cache of remote files: each is fetched once, as a whole, and again only after it has changed on its server.

A file is in a folder of its own, under its own name, beside a record of its size and version. It is written to a
temporary file and renamed, so that a download that broke is never taken for the file. Of several processes that want
the same file one fetches it, and the others wait.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from pathlib import Path

from hogwild.cache_folder import data_cache_folder
from hogwild.data.remote import RemoteFile
from hogwild.errors import CheckpointError, DataError
from hogwild.files import clear_leftovers, format_size, replacing, write_file
from hogwild.folder_lock import folder_lock

RECORD = "source.json"
WAIT_SECONDS = 120.0  # Longest wait for another process whose download does not grow.
_POLL_SECONDS = 0.1


def cached(remote: RemoteFile) -> Path:
    """Return the local copy of a remote file, which is fetched if there is none or it has changed.

    Raises
    ------
    DataError
        If the file cannot be fetched, or does not fit onto the disk.
    """
    digest = hashlib.sha256(remote.system.unstrip_protocol(remote.path).encode()).hexdigest()[:32]
    folder = data_cache_folder() / "files" / digest
    path = folder / remote.name
    seen, last = -1, time.monotonic()
    while not _is_current(path, remote):
        try:
            with folder_lock(folder):
                if not _is_current(path, remote):
                    _fetch(remote, path)
        except CheckpointError:  # Another process fetches this file.
            if (size := _growth(folder)) != seen:
                seen, last = size, time.monotonic()
            if time.monotonic() - last > WAIT_SECONDS:
                raise DataError(
                    f"another process fetches this file, and got nothing for {WAIT_SECONDS:g} seconds",
                    path=remote.shown, remedy=f"End it, or remove {folder}.",
                ) from None  # fmt: skip
            time.sleep(_POLL_SECONDS)
        else:
            break
    return path


def _fetch(remote: RemoteFile, path: Path) -> None:
    free = shutil.disk_usage(path.parent).free
    if remote.size is not None and remote.size > free:
        raise DataError(
            f"the file of {format_size(remote.size)} does not fit into {path.parent.parent.parent}, where "
            f"{format_size(free)} are free",
            path=remote.shown, remedy="Set HOGWILD_CACHE to a folder on a larger disk.",
        )  # fmt: skip
    clear_leftovers(path)
    (path.parent / RECORD).unlink(missing_ok=True)  # Until the end of the download there is no valid copy.
    with replacing(path) as file:
        remote.fetch(Path(file.name))
    record = {"source": remote.shown, "size": path.stat().st_size, "version": remote.version}
    write_file(path.parent / RECORD, json.dumps(record).encode())


def _is_current(path: Path, remote: RemoteFile) -> bool:
    """Return whether the local copy is whole, and the version that is on the server now."""
    try:
        record = json.loads((path.parent / RECORD).read_bytes())
        size = path.stat().st_size
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(record, dict) or record.get("size") != size:
        return False
    # A server that gives neither a size nor a version is asked for the file each time.
    known = bool(remote.version) or remote.size is not None
    return known and record.get("version") == remote.version and remote.size in (None, size)


def _growth(folder: Path) -> int:
    try:
        return sum(each.stat().st_size for each in folder.iterdir())
    except OSError:
        return 0
