"""Checkpoint files: whole or not there, whenever the process ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.errors import CheckpointWarning, ParameterError
from hogwild.training.checkpoints import LATEST, PREVIOUS, Checkpoints

GIVES_WAY = r"latest.safetensors: .* goes on from the checkpoint before it, .*previous.safetensors\.$"


def save(folder: Path, number: int) -> None:
    Checkpoints(folder).save({"w": np.full(1000, number, np.float32)}, {"number": number})


def loaded(folder: Path) -> Any:
    found = Checkpoints(folder).load()
    if found is None:
        return None
    arrays, record = found
    assert (arrays["w"] == record["number"]).all()
    return record["number"]


def test_the_latest_and_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "down"
    assert loaded(folder) is None
    for number in range(4):
        save(folder, number)
        assert loaded(folder) == number
    assert sorted(path.name for path in folder.iterdir()) == [LATEST, PREVIOUS]
    (folder / LATEST).unlink()
    assert loaded(folder) == 2


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), True, "60", [60]])
def test_wrong_seconds(seconds: Any, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="'seconds' parameter must be a positive number"):
        Checkpoints(tmp_path, seconds)


def test_due_only_if_asked_for(tmp_path: Path) -> None:
    assert not Checkpoints(tmp_path).due
    assert not Checkpoints(tmp_path, 1000).due
    assert Checkpoints(tmp_path, 1e-9).due


DYING = """
import os, signal, sys
from pathlib import Path
import numpy as np
from hogwild import files
from hogwild.training.checkpoints import Checkpoints

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

folder, where = Path(sys.argv[1]), sys.argv[2]
checkpoints = Checkpoints(folder)
if where == "writing":
    files.flush = die
elif where == "naming":
    replaces = []
    real = Path.replace
    def replace(self, target):
        replaces.append(target)
        return real(self, target) if len(replaces) == 1 else die()
    Path.replace = replace
checkpoints.save({"w": np.full(1000, 7, np.float32)}, {"number": 7})
"""


def damage(folder: Path) -> None:
    (folder / LATEST).write_bytes((folder / LATEST).read_bytes()[:-100])


@pytest.mark.parametrize("resumed", [True, False])
def test_a_damaged_one_does_not_replace_the_one_before(resumed: bool, tmp_path: Path) -> None:
    """It was renamed, so that nothing intact was left if the next one was not written or damaged too."""
    save(tmp_path, 5)
    save(tmp_path, 6)
    damage(tmp_path)
    checkpoints = Checkpoints(tmp_path)
    if resumed:
        with pytest.warns(CheckpointWarning, match=GIVES_WAY):
            found = checkpoints.load()
        assert found is not None
        assert found[1]["number"] == 5
    checkpoints.save({"w": np.full(1000, 7, np.float32)}, {"number": 7})
    assert loaded(tmp_path) == 7
    damage(tmp_path)
    with pytest.warns(CheckpointWarning, match=GIVES_WAY):
        assert loaded(tmp_path) == 5


def test_a_damaged_one_is_told_once(tmp_path: Path) -> None:
    save(tmp_path, 5)
    save(tmp_path, 6)
    damage(tmp_path)
    checkpoints = Checkpoints(tmp_path)
    with pytest.warns(CheckpointWarning, match=GIVES_WAY) as told:
        assert [checkpoints.load() is not None for _ in range(2)] == [True, True]
    assert len(told) == 1


def test_killed_while_one_is_written_after_a_damaged_one(tmp_path: Path) -> None:
    save(tmp_path, 5)
    save(tmp_path, 6)
    damage(tmp_path)
    ended = subprocess.run([sys.executable, "-c", DYING, tmp_path, "writing"], check=False, env={**os.environ})
    assert ended.returncode == -9
    with pytest.warns(CheckpointWarning, match=GIVES_WAY):
        assert loaded(tmp_path) == 5


@pytest.mark.parametrize("where", ["writing", "naming"])
def test_killed_while_one_is_written(where: str, tmp_path: Path) -> None:
    save(tmp_path, 5)
    save(tmp_path, 6)
    ended = subprocess.run([sys.executable, "-c", DYING, tmp_path, where], check=False, env={**os.environ})
    assert ended.returncode == -9
    assert any(path.name.startswith(".") for path in tmp_path.iterdir())
    assert loaded(tmp_path) == 6
    save(tmp_path, 8)
    assert loaded(tmp_path) == 8
    assert sorted(path.name for path in tmp_path.iterdir()) == [LATEST, PREVIOUS]
