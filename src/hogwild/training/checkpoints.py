"""Checkpoints: everything a run needs to go on as if it had never stopped."""

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
    """A folder with the latest checkpoint of a run and the one before it.

    One is written at the end of every epoch, and, with ``seconds``, in the middle of long ones. Each is complete or
    not there at all.
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
        """Whether it is time for one in the middle of an epoch."""
        return self.seconds is not None and time.monotonic() - self._last >= self.seconds

    def save(self, arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> None:
        """Write a checkpoint; the one before it is kept until the next."""
        content = {"kind": "checkpoint", "format": FORMAT, **record}
        self.replace(LATEST, PREVIOUS, lambda latest: array_file.save(latest, arrays, content))

    def replace(self, latest: str, previous: str, write: Callable[[Path], None]) -> None:
        """Write a file; the one that had its name gets another."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / latest
        if path.exists():
            path.replace(self.folder / previous)
        write(path)
        self._last = time.monotonic()

    def load(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """The latest checkpoint that is whole, or None where there is none yet."""
        return self.first_whole((LATEST, PREVIOUS), _read)

    def first_whole(self, names: Iterable[str], read: Callable[[Path], T]) -> T | None:
        """What the first of these files has that is there and can be read; None where none is there."""
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
    """Refuse to continue another run's checkpoint."""
    differ = sorted(key for key in config.keys() | found.keys() if config.get(key) != found.get(key))
    if differ:
        what = "; ".join(f"{key} was {found.get(key)!r}, now {config.get(key)!r}" for key in differ)
        raise CheckpointError(
            f"{folder}: the checkpoint belongs to another run: {what}. "
            "Resume with the same data and options, or choose another folder."
        )
