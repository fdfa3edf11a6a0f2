"""Checkpoints: files from which a run continues as if it had not stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from hogwild import array_file
from hogwild.errors import CheckpointError
from hogwild.registry import invalid_parameter

LATEST, PREVIOUS = "latest.safetensors", "previous.safetensors"
FORMAT = 2

T = TypeVar("T")


@dataclass(slots=True)
class Checkpoints:
    """Folder with the latest checkpoint of a run and the one before.

    A checkpoint is written at the end of every epoch and, with ``seconds``, also in the middle of long epochs. Each
    file is either complete or absent.

    Parameters
    ----------
    folder : path
        Folder of the checkpoints; it is created if necessary.
    seconds : float, optional
        Seconds after the last checkpoint at which another one is due in the middle of an epoch. By default there are
        none.

    Raises
    ------
    ParameterError
        If ``seconds`` is not positive.
    """

    folder: Path
    seconds: float | None = None
    _last: float = field(default_factory=time.monotonic, repr=False)

    def __post_init__(self) -> None:
        self.folder = Path(self.folder)
        if self.seconds is not None and not self.seconds > 0:
            raise invalid_parameter("seconds", "a positive number", self.seconds)

    @property
    def due(self) -> bool:
        """Whether a checkpoint in the middle of an epoch is due."""
        return self.seconds is not None and time.monotonic() - self._last >= self.seconds

    def save(self, arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> None:
        """Write a checkpoint, and keep the one before it.

        Parameters
        ----------
        arrays : mapping of str to array
            Arrays of the checkpoint.
        record : mapping
            Values of types that JSON has.
        """
        content = {"kind": "checkpoint", "format": FORMAT, **record}
        self.replace(LATEST, PREVIOUS, lambda latest: array_file.save(latest, arrays, content))

    def replace(self, latest: str, previous: str, write: Callable[[Path], None]) -> None:
        """Write a file, after renaming the file that has its name.

        Parameters
        ----------
        latest : str
            Name of the file to write.
        previous : str
            New name of the file that is called ``latest`` now.
        write : callable
            Function that writes the file at a given path.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / latest
        if path.exists():
            path.replace(self.folder / previous)
        write(path)
        self._last = time.monotonic()

    def load(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """Return the latest intact checkpoint.

        Returns
        -------
        tuple of dict and dict, or None
            Arrays and record; None if there is no checkpoint.

        Raises
        ------
        CheckpointError
            If there are checkpoints, and none of them can be read.
        """
        return self.first_whole((LATEST, PREVIOUS), _read)

    def first_whole(self, names: Iterable[str], read: Callable[[Path], T]) -> T | None:
        """Return the content of the first of several files that exists and can be read.

        Parameters
        ----------
        names : iterable of str
            Names of the files, in the order of preference.
        read : callable
            Function that reads the file at a given path, and raises CheckpointError for a damaged one.

        Returns
        -------
        object or None
            Result of ``read``; None if none of the files exists.

        Raises
        ------
        CheckpointError
            If at least one file exists, and none can be read.
        """
        problems = []
        for path in (self.folder / name for name in names):
            if not path.exists():
                continue
            try:
                return read(path)
            except CheckpointError as error:
                problems.append(str(error))
        if problems:
            raise CheckpointError(" ".join(problems) + " Remove the folder to start from the beginning.")
        return None


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    arrays, record = array_file.load(path, CheckpointError)
    if record.get("kind") != "checkpoint" or record.get("format") != FORMAT:
        raise CheckpointError(f"{path}: this is no checkpoint that this version can read.")
    return arrays, record


def check_same(config: Mapping[str, Any], found: Mapping[str, Any], folder: Path) -> None:
    """Raise CheckpointError if a checkpoint belongs to a run with another configuration."""
    differ = sorted(key for key in config.keys() | found.keys() if config.get(key) != found.get(key))
    if differ:
        what = "; ".join(f"{key} was {found.get(key)!r}, now {config.get(key)!r}" for key in differ)
        raise CheckpointError(
            f"{folder}: the checkpoint belongs to another run: {what}. "
            "Resume with the same data and options, or choose another folder."
        )
