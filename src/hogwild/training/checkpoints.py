"""Checkpoints: everything a run needs to go on as if it had never stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hogwild import tensors
from hogwild.errors import CheckpointError
from hogwild.naming import must

LATEST, PREVIOUS = "latest.safetensors", "previous.safetensors"
FORMAT = 2


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
            raise must("seconds", "a positive number", self.seconds)

    @property
    def due(self) -> bool:
        """Whether it is time for one in the middle of an epoch."""
        return self.seconds is not None and time.monotonic() - self._last >= self.seconds

    def save(self, arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> None:
        """Write a checkpoint; the one before it is kept until the next."""
        self.folder.mkdir(parents=True, exist_ok=True)
        latest = self.folder / LATEST
        if latest.exists():
            latest.replace(self.folder / PREVIOUS)
        tensors.save(latest, arrays, {"kind": "checkpoint", "format": FORMAT, **record})
        self._last = time.monotonic()

    def load(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """The latest checkpoint that is whole, or None where there is none yet."""
        problems = []
        for name in (LATEST, PREVIOUS):
            path = self.folder / name
            if not path.exists():
                continue
            try:
                arrays, record = tensors.load(path, CheckpointError)
            except CheckpointError as error:
                problems.append(str(error))
                continue
            if record.get("kind") != "checkpoint" or record.get("format") != FORMAT:
                problems.append(f"{path}: this is no checkpoint that this version can read.")
                continue
            return arrays, record
        if problems:
            raise CheckpointError(" ".join(problems) + " Remove the folder to start from the beginning.")
        return None


def check_same(asked: Mapping[str, Any], found: Mapping[str, Any], folder: Path) -> None:
    """Refuse to continue another run's checkpoint."""
    differ = sorted(key for key in asked.keys() | found.keys() if asked.get(key) != found.get(key))
    if differ:
        what = "; ".join(f"{key} was {found.get(key)!r}, now {asked.get(key)!r}" for key in differ)
        raise CheckpointError(
            f"{folder}: the checkpoint belongs to another run: {what}. "
            "Resume with the same data and options, or choose another folder."
        )
