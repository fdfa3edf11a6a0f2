"""Atomic writing of files and folders, sizes in human-readable form, and conversion of values for JSON.

A file or folder is written beside its destination, flushed to the disk, and renamed. A crash at any time leaves either
the old content or the new. A crash can also leave a temporary file whose name starts with a dot. The next writer
removes that file. All output goes through this module, so that devices, pipes and links keep their kind (see
:mod:`hogwild.destination`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import math
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from hogwild.destination import destination_of, errors_name, folder_target
from hogwild.errors import ParameterError

_UNITS = {
    "": 1, "b": 1,
    "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_LONGEST = 200  # bytes of a name to which a system of 255 bytes can add the parts of a temporary name
_OURS: set[str] = set()  # names of the temporary files and folders of this process


def parse_size(size: str | int) -> int:
    """Return the number of bytes in ``"512MB"``, ``"2GiB"``, ``"1.5G"`` or a plain number.

    ``KB``, ``MB``, ... are powers of 1,000. ``KiB``, ``MiB``, ... and the bare letters are powers of 1,024.

    >>> parse_size("512MB"), parse_size("2GiB"), parse_size("1.5G"), parse_size(4096)
    (512000000, 2147483648, 1610612736, 4096)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", str(size).lower())
    factor = _UNITS.get(match[2]) if match else None
    if match is None or factor is None:
        raise ParameterError(
            f"A size must be a number of bytes such as '512MB', '2GiB' or '1.5G'. Got {size!r} instead."
        )
    return int(float(match[1]) * factor) if "." in match[1] else int(match[1]) * factor


def format_size(size: int) -> str:
    """Return a number of bytes in human-readable form.

    >>> format_size(512), format_size(1536), format_size(3 * 2**30)
    ('512 B', '1.5 KiB', '3.0 GiB')
    """
    if size < 1024:
        return f"{size} B"
    amount, unit = float(size), ""
    for unit in ("KiB", "MiB", "GiB", "TiB"):  # noqa: B007 - the last one reached is the answer
        amount /= 1024
        if amount < 1024:
            break
    return f"{amount:,.1f} {unit}"


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file for writing, which replaces ``path`` when the block ends without an error.

    The new file has the permissions of the old one. A device or a pipe is opened itself, and keeps its kind.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "a.txt")) as file:
    ...         _ = file.write(b"all or nothing")
    ...     Path(folder, "a.txt").read_text()
    'all or nothing'
    """
    where = destination_of(path)
    with errors_name(path, _OURS):
        if where.stream:
            with where.open() as file:
                yield file
            return
        beside = _beside(where.target, "partial")
        try:
            with beside.open("wb") as file:
                yield file
                flush(file)
                _keep_permissions(file, where.target)
            beside.replace(where.target)
            flush_folder(where.target.parent)
        finally:
            beside.unlink(missing_ok=True)


def appending(path: str | Path) -> TextIO:
    """Open a text file to append to; its writer closes it. A device or a pipe is written to as a stream.

    >>> with appending("/dev/null") as file:
    ...     file.write("nothing is kept")
    15
    """
    return io.TextIOWrapper(appending_bytes(path), "utf-8", write_through=True)


def appending_bytes(path: str | Path) -> BinaryIO:
    """Open a file to append bytes to, as :func:`appending` does for text."""
    where = destination_of(path)
    with errors_name(path):
        return where.open() if where.stream else where.target.open("ab")


def special_kind(path: Path) -> str | None:
    """Return what stands at a path if it is something other than a file; None for a file, and for nothing.

    >>> special_kind(Path("/")), special_kind(Path("/no/such/file"))
    ('a folder', None)
    """
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket", stat.S_IFIFO: "a pipe"}
    devices = {stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    try:
        return (kinds | devices).get(stat.S_IFMT(path.stat().st_mode))
    except OSError:
        return None


def check_writable(path: str | Path) -> None:
    """Raise ``ParameterError`` if a file could not be written, before any work is done for it.

    >>> check_writable("no-such-folder/model")
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: no-such-folder/model: there is no folder ...no-such-folder.
    """
    try:
        where = destination_of(path)
        if where.stream:
            if where.descriptor is None and not os.access(where.path, os.W_OK):
                raise ParameterError(f"{path}: it may not be written to. Check its permissions.")
            return
        folder = where.target.parent
        if not folder.is_dir():
            raise ParameterError(f"{path}: there is no folder {folder}.")
        try_folder(folder, path)
    except OSError as error:
        raise ParameterError(f"{path}: it cannot be written ({error.strerror}).") from None


def try_folder(folder: Path, path: str | Path) -> None:
    """Create a file in a folder and remove it; ``ParameterError`` says that ``path`` cannot be written there."""
    beside = _beside(folder / Path(path).name, "partial")
    try:
        beside.touch(exist_ok=False)
    except OSError as error:
        raise ParameterError(f"{path}: nothing can be written to {folder} ({error.strerror}).") from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def check_appendable(path: str | Path) -> None:
    """Raise ``ParameterError`` if nothing could be appended to a file, whose folder is created if necessary."""
    check_folder(Path(path).parent)
    check_writable(path)
    if Path(path).exists() and not os.access(path, os.W_OK):
        raise ParameterError(f"{path}: it may not be written to. Check its permissions.")


def check_folder(folder: str | Path) -> None:
    """Create a folder if necessary, and raise ``ParameterError`` if nothing can be written to it.

    >>> check_folder("/dev/null")
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: /dev/null: this is not a folder. Remove it, or choose another name.
    """
    folder_target(folder)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"{folder}: the folder cannot be made ({error.strerror}).") from None
    try_folder(Path(folder), folder)


def check_free(path: str | Path, overwrite: bool) -> None:
    """Raise ``ParameterError`` if a file could not be written, or exists and may not be overwritten.

    A device or a pipe is written to as it is: nothing there is overwritten.
    """
    check_writable(path)
    if not destination_of(path).stream:
        _refuse_existing(Path(path), overwrite)


def write_file(path: str | Path, content: bytes) -> None:
    """Write a whole file, so that a reader sees either all of it or the old content.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder, "a.bin"), bytes(3))
    ...     Path(folder, "a.bin").stat().st_size
    3
    """
    with replacing(path) as file:
        file.write(content)


@contextmanager
def new_folder(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary folder to fill, which is renamed to ``path`` when the block ends without an error.

    After an error the temporary folder is removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with new_folder(Path(parent, "made")) as folder:
    ...         _ = Path(folder, "a.txt").write_text("a")
    ...     sorted(file.name for file in Path(parent, "made").iterdir())
    ['a.txt']
    """
    target = folder_target(path)
    with errors_name(path, _OURS):
        clear_leftovers(target)
        _refuse_existing(target, overwrite)
        partial = _beside(target, "partial")
        try:
            partial.mkdir(parents=True)
            yield partial
            for file in sorted(partial.rglob("*"), reverse=True):  # The files of a folder come before it.
                if file.is_dir():
                    flush_folder(file)
                else:
                    _flush_path(file)
            flush_folder(partial)
            _refuse_existing(target, overwrite)
            _take_place(partial, target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def clear_leftovers(path: str | Path) -> None:
    """Remove the temporary files that crashed processes left beside ``path``.

    If a crashed process had moved the folder ``path`` aside and not replaced it, rename that folder back.
    """
    path = Path(os.path.realpath(path))
    for aside in path.parent.glob(f".{escape(_stem(path))}.replaced-*"):
        if _is_orphan(aside):
            if path.exists():
                shutil.rmtree(aside, ignore_errors=True)
            else:
                aside.rename(path)
    for partial in path.parent.glob(f".{escape(_stem(path))}.partial-*"):
        if _is_orphan(partial):
            shutil.rmtree(partial, ignore_errors=True) if partial.is_dir() else partial.unlink(missing_ok=True)


def flush(file: BinaryIO) -> None:
    """Flush a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk, so that a rename in it survives a crash of the machine."""
    _flush_path(folder)


def _flush_path(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _beside(path: Path, kind: str) -> Path:
    name = f".{_stem(path)}.{kind}-{os.getpid()}-{os.urandom(3).hex()}"
    _OURS.add(name)
    return path.parent / name


def _stem(path: Path) -> str:
    """Return the name of a path, or a digest if temporary names that contain it would be too long for the system."""
    name = path.name
    return (
        name if len(os.fsencode(name)) <= _LONGEST else hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest()
    )


def _keep_permissions(file: BinaryIO, old: Path) -> None:
    """Give a new file the mode and, where the system allows it, the owner of the file that it replaces."""
    with suppress(OSError):
        before = old.stat()
        os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
        os.fchown(file.fileno(), before.st_uid, before.st_gid)


def _refuse_existing(path: Path, overwrite: bool) -> None:
    if path.exists() and not overwrite:
        raise ParameterError(
            f"'{path}' exists already. Choose another name, or overwrite it (overwrite=True, --overwrite)."
        )


def _take_place(partial: Path, path: Path) -> None:
    """Rename a folder to its final name.

    A folder cannot be renamed to the name of a folder that is not empty, so the old folder is moved aside first.
    """
    if not path.exists():
        partial.rename(path)
        flush_folder(path.parent)
        return
    aside = _beside(path, "replaced")
    path.rename(aside)
    try:
        partial.rename(path)
    except BaseException:
        aside.rename(path)
        raise
    try:
        flush_folder(path.parent)
    finally:
        shutil.rmtree(aside) if aside.is_dir() else aside.unlink()


def _is_orphan(path: Path) -> bool:
    match = re.search(r"-(\d+)-[0-9a-f]+$", path.name)
    if match is None:
        return False
    if int(match[1]) == os.getpid():  # in a container, a crashed process may have had the same number as this one
        return path.name not in _OURS
    try:
        os.kill(int(match[1]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


def to_jsonable(value: Any) -> Any:
    """Return a value as types that JSON has; a number that is not finite becomes None.

    >>> from pathlib import Path; import numpy as np
    >>> to_jsonable({"loss": float("nan"), "counts": np.array([1, 2]), "out": Path("m"), 3: (np.float32(0.5), None)})
    {'loss': None, 'counts': [1, 2], 'out': 'm', '3': [0.5, None]}
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): to_jsonable(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy
        return to_jsonable(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_jsonable(item) for item in value]
    return str(value)
