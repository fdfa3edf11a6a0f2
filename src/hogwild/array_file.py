"""Files of arrays and a record, for models and checkpoints: safetensors, a format that runs no code on loading."""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.errors import HogwildError
from hogwild.files import clear_leftovers, special_kind, write_file

RECORD = "hogwild"  # key of the record in the file's metadata

Arrays = Mapping[str, NDArray[Any]]


def save(path: str | Path, arrays: Arrays, record: Mapping[str, Any]) -> None:
    """Write arrays and a record to a file, atomically, with a checksum of both.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder, "a.safetensors"), {"w": np.ones(2)}, {"epoch": 3})
    ...     arrays, record = load(Path(folder, "a.safetensors"), HogwildError)
    >>> arrays["w"], record
    (array([1., 1.]), {'epoch': 3})
    """
    from safetensors.numpy import save as encode

    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    text = json.dumps(record)
    clear_leftovers(path)
    write_file(path, encode(whole, {RECORD: text, "crc32": str(_checksum(whole, text))}))


def load(path: str | Path, error: type[HogwildError]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the record of a file; raise ``error`` if the file is missing or damaged."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as decode

    check_kind(path, error)
    try:
        # The file is read, not mapped: another program may cut it.
        content = Path(path).read_bytes()
        metadata = _metadata(content)
        arrays = decode(content)
        record = json.loads(metadata[RECORD])
        intact = int(metadata["crc32"]) == _checksum(arrays, metadata[RECORD])
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as reason:
        if isinstance(reason, FileNotFoundError) or not Path(path).is_file():
            raise error(f"{path}: there is no such file.") from None
        raise error(f"{path}: this is not a file written by hogwild, or it is damaged ({reason}).") from None
    if not intact or not isinstance(record, dict):
        raise error(f"{path}: the file is damaged: its checksum does not match. Use another copy of it.")
    return arrays, record


def check_kind(path: str | Path, error: type[HogwildError]) -> None:
    """Raise ``error`` for what is no file: a device can be endless, and a pipe can be read once only."""
    given: object = path  # a user may give anything
    if not isinstance(given, (str, os.PathLike)):
        raise error(f"The path of a file is a text or a pathlib.Path. Got {given!r} instead.")
    if path == "":
        raise error("The path of the file is empty. Name a file.")
    if not _can_be_a_name(str(path)):
        raise error(f"{str(path)[:100]!r}: no file can have this name. Name a file.")
    kind = special_kind(Path(path))
    if kind is not None:
        raise error(f"{path}: this is {kind}, not a file. Save it as a file first.")


def _can_be_a_name(path: str) -> bool:
    """Return whether the system takes a path as a name: it has no zero bytes, and is not too long."""
    try:
        os.stat(path)  # noqa: PTH116  (pathlib answers for some of these names itself)
    except ValueError:
        return False
    except OSError as reason:
        return reason.errno != errno.ENAMETOOLONG
    return True


def _metadata(content: bytes) -> dict[str, str]:
    """Return the entry of the header, which safetensors checks but does not return."""
    length = int.from_bytes(content[:8], "little")
    found: dict[str, str] = json.loads(content[8 : 8 + length])["__metadata__"]
    return found


def _checksum(arrays: Arrays, record: str) -> int:
    checksum = zlib.crc32(record.encode())
    for name in sorted(arrays):
        array = arrays[name]
        checksum = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), checksum)
        checksum = zlib.crc32(array.tobytes(), checksum)
    return checksum
