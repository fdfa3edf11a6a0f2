"""Folders of caches: machine code and remote files, each in the first folder that suits.

Machine code goes to the first folder that can be written, and that no other user could have written to.

Cached machine code is loaded and run, and Numba unpickles the file that lists it. A user who can write to the folder
can run code as another user. A folder is therefore taken only if it belongs to this user or to root, and if no
other user may write to it or replace it. A user who may change the source can run code anyway, so that the folder
beside the source may be as open as the source.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from numba.core import config
from numba.core.caching import InTreeCacheLocator
from numba.misc.appdirs import AppDirs

from hogwild.errors import ParameterError

# mypy: disable-error-code="no-untyped-call, attr-defined"


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """Folder in which machine code is cached, and the reasons why others are not."""

    path: Path | None  # None: there is no folder to write to, and every process compiles anew.
    prebuilt: Path | None = None  # Folder beside the source, which can be read and not written.
    # Whether one of the usual places was taken: ``NUMBA_CACHE_DIR``, beside the source, or the user's cache.
    usual: bool = True
    refused: tuple[str, ...] = ()  # Folders that were not taken, each with the reason.

    def explain(self) -> str:
        """Return one line about an unusual choice.

        >>> print(CacheFolder(None, usual=False, refused=("/cache cannot be written",)).explain())
        Compiled code cannot be kept, so every start compiles anew: /cache cannot be written. Set NUMBA_CACHE_DIR to ...
        """
        where = f"is kept in {self.path.parent}" if self.path else "cannot be kept, so every start compiles anew"
        return (
            f"Compiled code {where}: {', '.join(self.refused)}. "
            "Set NUMBA_CACHE_DIR to a folder that only this user can write."
        )


def cache_folder(source_file: str | Path) -> CacheFolder:
    """Return the folder for machine code of the functions of a source file.

    >>> cache_folder(__file__).path is not None
    True
    """
    return _chosen(str(Path(source_file).absolute().parent), config.CACHE_DIR, _temporary())


def data_cache_folder() -> Path:
    """Return the folder for copies of remote files: ``HOGWILD_CACHE``, the user's cache, or a private temporary one.

    Raises
    ------
    ParameterError
        If no folder can be written.
    """
    return _chosen_for_data(os.environ.get("HOGWILD_CACHE", ""), os.environ.get("XDG_CACHE_HOME", ""), _temporary())


@functools.cache
def _chosen_for_data(given: str, user_cache: str, temporary: str | None) -> Path:
    candidates: list[tuple[Path, bool]] = [(Path(given), False)] if given else []
    if not given:
        with contextlib.suppress(RuntimeError):  # This user has no home.
            home = user_cache or AppDirs(appname="hogwild", appauthor=False).user_cache_dir
            candidates.append((Path(home, "hogwild") if user_cache else Path(home), False))
        if temporary is not None and sys.platform != "win32":
            candidates.append((Path(temporary, f"hogwild-data-{os.getuid()}", "cache"), True))
    refused = []
    for folder, private in candidates:
        reason = _unwritable(folder, private=private)
        # A folder that was named is taken as it is: a group may share it.
        reason = reason or ("" if given else _refusal(folder, None))
        if not reason:
            return folder.resolve()
        refused.append(reason)
    raise ParameterError(
        f"Remote files cannot be kept: {', '.join(refused)}. Set HOGWILD_CACHE to a folder that can be written."
    )


def _temporary() -> str | None:
    """Return the folder of temporary files; None if there is none but the working directory, which is not taken."""
    try:
        folder = tempfile.gettempdir()
        return None if Path(folder).samefile(Path.cwd()) else folder
    except OSError:
        return None


@functools.cache
def _chosen(source: str, given: str, temporary: str | None) -> CacheFolder:
    refused: list[str] = []
    beside = Path(source, "__pycache__")
    readable = beside if not given and beside.is_dir() and not _refusal(beside, Path(source)) else None
    for folder, usual, beside_source in _candidates(source, given, temporary):
        reason = _unwritable(folder, private=not usual) or _refusal(folder, beside_source)
        if not reason:
            # The path without links is used from now on: a link could be changed after the check.
            return CacheFolder(folder.resolve(), readable if folder != beside else None, usual, tuple(refused))
        refused.append(reason)
    return CacheFolder(None, readable, usual=False, refused=tuple(refused))


def _candidates(source: str, given: str, temporary: str | None) -> Iterator[tuple[Path, bool, Path | None]]:
    """Yield folders, whether each is a usual one, and the source that each may be as open as."""
    name = InTreeCacheLocator.get_suitable_cache_subpath(str(Path(source, "any.py")))
    if given:
        yield Path(given, name), True, None
    yield Path(source, "__pycache__"), True, Path(source)
    with contextlib.suppress(RuntimeError):  # This user has no home.
        yield Path(AppDirs(appname="numba", appauthor=False).user_cache_dir, name), True, None
    if temporary is not None and sys.platform != "win32":
        yield Path(temporary, f"hogwild-kernels-{os.getuid()}", name), False, None


def _unwritable(folder: Path, *, private: bool) -> str:
    """Make a folder and write to it. Return an empty text, or the reason why that cannot be done."""
    try:
        if private:
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            if folder.parent.is_symlink():
                return f"{folder.parent} is a link"
        folder.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return f"{folder if folder.name == '__pycache__' else folder.parent} cannot be written ({error.strerror})"
    return ""


def _refusal(folder: Path, source: Path | None) -> str:
    """Return an empty text if machine code may be loaded from a folder, or the reason why not."""
    if sys.platform == "win32":  # Permissions of Windows are not those of POSIX; Numba's folders are the user's own.
        return ""
    trusted = {("user", os.getuid()), ("user", 0), ("user", Path("/").stat().st_uid)}
    try:
        folder = folder.resolve(strict=True)
        if source is not None:
            return "" if _writers(folder) <= trusted | _writers(source) else _open_to_others(folder)
        if not _writers(folder) <= trusted:
            return _open_to_others(folder)
        for parent in folder.parents:
            # In a sticky folder, such as /tmp, only the owner of an entry can rename it.
            sticky = parent.stat().st_mode & stat.S_ISVTX
            writers = {writer for writer in _writers(parent) if writer[0] == "user" or not sticky}
            if not writers <= trusted:
                return _open_to_others(parent)
    except OSError as error:
        return f"{folder} cannot be examined ({error.strerror})"
    return ""


def _open_to_others(folder: Path) -> str:
    return f"{folder} can be written by other users"


def _writers(folder: Path) -> set[tuple[str, int]]:
    """Return the users and groups that may write to a folder; 'others' stands for all users."""
    status = folder.stat()
    writers = {("user", status.st_uid)}
    if status.st_mode & stat.S_IWGRP and not _is_private(status.st_gid, status.st_uid):
        writers.add(("group", status.st_gid))
    if status.st_mode & stat.S_IWOTH:
        writers.add(("others", 0))
    return writers


@functools.cache
def _is_private(group: int, user: int) -> bool:
    """Return whether a group is that of one user alone, as most Linux systems make one for each user."""
    import grp
    import pwd

    try:
        entry, name = grp.getgrgid(group), pwd.getpwuid(user).pw_name
    except KeyError:
        return False
    return entry.gr_name == name and set(entry.gr_mem) <= {name}
