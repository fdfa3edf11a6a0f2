"""Checkpoint files of a module in training: loadable by PyTorch with ``weights_only=True``, and the weights alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from hogwild.errors import CheckpointError
from hogwild.files import clear_leftovers, replacing
from hogwild.models.module import ModuleModel
from hogwild.training.checkpoints import Checkpoints

LATEST, PREVIOUS, WEIGHTS = "latest.pt", "previous.pt", "model.safetensors"
FORMAT = 1

State = dict[str, Any]
Record = dict[str, Any]


def save(checkpoints: Checkpoints, state: State, record: Record, model: ModuleModel) -> None:
    """Write the latest checkpoint, keep the one before it, and write the weights as safetensors."""
    content = {**state, "record": json.dumps({"format": FORMAT, **record})}

    def write(path: Path) -> None:
        clear_leftovers(path)
        with replacing(path) as file:
            torch.save(content, file)

    checkpoints.replace(LATEST, PREVIOUS, write)
    save_weights(checkpoints, model)


def save_weights(checkpoints: Checkpoints, model: ModuleModel) -> None:
    """Write the weights alone, as safetensors."""
    model.save(checkpoints.folder / WEIGHTS)


def load(checkpoints: Checkpoints) -> tuple[State, Record] | None:
    """Return the latest intact checkpoint; None if there is none."""
    return checkpoints.first_whole((LATEST, PREVIOUS), _read)


def _read(path: Path) -> tuple[State, Record]:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        record = json.loads(state.pop("record"))
        if record["format"] != FORMAT:
            raise ValueError(f"its format is {record['format']}")
    except Exception as reason:  # a damaged file can raise any exception
        raise CheckpointError(f"{path}: this is no checkpoint that can be read ({reason}).") from None
    return state, record
