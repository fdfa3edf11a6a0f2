"""Checkpoints of a model in training: what PyTorch can load with ``weights_only=True``, and the weights alone."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from hogwild.errors import CheckpointError
from hogwild.files import clear_leftovers, replacing
from hogwild.naming import must
from hogwild.problems.module_model import ModuleModel

LATEST, PREVIOUS, WEIGHTS = "latest.pt", "previous.pt", "model.safetensors"
FORMAT = 1


@dataclass(slots=True)
class ModuleCheckpoints:
    """A folder with the latest checkpoint, the one before it, and the latest weights as safetensors.

    One is written after every epoch, and, with ``seconds``, that often.
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

    def save(self, state: dict[str, Any], record: dict[str, Any], model: ModuleModel) -> None:
        """Write a checkpoint; the one before it is kept until the next."""
        self.folder.mkdir(parents=True, exist_ok=True)
        latest = self.folder / LATEST
        clear_leftovers(latest)
        if latest.exists():
            latest.replace(self.folder / PREVIOUS)
        with replacing(latest) as file:
            torch.save({**state, "record": json.dumps({"format": FORMAT, **record})}, file)
        self.save_weights(model)
        self._last = time.monotonic()

    def save_weights(self, model: ModuleModel) -> None:
        """Write the weights alone."""
        model.save(self.folder / WEIGHTS)

    def load(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The latest checkpoint that is whole, or None where there is none yet."""
        problems = []
        for name in (LATEST, PREVIOUS):
            path = self.folder / name
            if not path.exists():
                continue
            try:
                state = torch.load(path, map_location="cpu", weights_only=True)
                record = json.loads(state.pop("record"))
                if record["format"] != FORMAT:
                    raise ValueError(f"its format is {record['format']}")
            except Exception as reason:  # a damaged file fails in whatever way its bytes lead to
                problems.append(f"{path}: this is no checkpoint that can be read ({reason}).")
                continue
            return state, record
        if problems:
            raise CheckpointError(" ".join(problems) + " Remove the folder to start from the beginning.")
        return None
