"""Training that is killed at random moments and resumed ends in the same bits as training that is left in peace.

``HOGWILD_KILLS`` says how many kills; ``HOGWILD_SEED`` repeats a sequence of them.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hogwild import array_file, load
from hogwild.errors import CheckpointError
from hogwild.training.checkpoints import LATEST, PREVIOUS

KILLS = int(os.environ.get("HOGWILD_KILLS", "4"))
SEED = int(os.environ.get("HOGWILD_SEED", str(random.SystemRandom().randrange(10**6))))

# Epochs are short here; looking at the clock more often than once in 50 ms gives checkpoints within them too.
TRAIN = (
    "import sys; from hogwild.runtimes.shared_memory import thread_team; thread_team.TICK = 0.002; "
    "from hogwild.cli import main; sys.exit(main())"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("kill") / "rows.svm"
    truth = rng.standard_normal(3_000)
    with path.open("w") as file:
        for _ in range(12_000):
            columns = np.unique(rng.integers(0, 3_000, 40))
            values = rng.standard_normal(len(columns)).round(2)
            label = 1 if values @ truth[columns] + rng.standard_normal() > 0 else -1
            file.write(f"{label} " + " ".join(f"{c + 1}:{v}" for c, v in zip(columns, values, strict=True)) + "\n")
    return path


class Training:
    """``hogwild train`` in a folder of its own, which can be killed and goes on from its checkpoints."""

    def __init__(self, data: Path, folder: Path) -> None:
        self.points, self.model = folder / "points", folder / "model"
        self.command = [
            sys.executable, "-c", TRAIN, "train", str(data), "--strategy", "serial", "--step", "0.05", "--l2", "1e-5",
            "--epochs", "100", "--holdout", "0.1", "--patience", "100", "--average", "0.3", "--seed", "3",
            "--checkpoint", str(self.points), "--checkpoint-seconds", "0.003", "--resume", str(self.points),
            "--out", str(self.model), "--json",
        ]  # fmt: skip

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def finish(self) -> float:
        """Let it run to its end; returns the seconds it took."""
        started = time.perf_counter()
        process = self.start()
        _, err = process.communicate(timeout=200)
        assert process.returncode == 0, err.decode()
        return time.perf_counter() - started

    def kill(self, after: float, while_writing: bool) -> bool:
        """Run it and kill it, some time after its start, or when it next writes a checkpoint; False if it ended."""
        process = self.start()
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            while while_writing and process.poll() is None and not self.is_writing():
                pass
        ended = process.poll() is not None
        process.kill()
        _, err = process.communicate()
        assert process.returncode in (0, -9), err.decode()
        return not (ended and process.returncode == 0)

    def is_writing(self) -> bool:
        return self.points.is_dir() and any(path.name.startswith(".") for path in self.points.iterdir())

    def progress(self) -> int:
        """How many updates the checkpoints vouch for; whatever happened, one of them must be whole."""
        found = [self.points / name for name in (LATEST, PREVIOUS) if (self.points / name).exists()]
        updates = [array_file.load(path, CheckpointError)[1]["now"]["updates"] for path in found]
        return updates[0] if updates else 0


def test_killed_and_resumed(data: Path, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    peaceful = Training(data, tmp_path)
    seconds = peaceful.finish()
    expected = load(peaceful.model)

    kills, rounds = 0, 0
    while kills < KILLS:
        rounds += 1
        training, before = Training(data, tmp_path / str(rounds)), 0
        training.model.parent.mkdir()
        while kills < KILLS:
            # At any moment of its life, or, every third time, while a checkpoint is being written.
            writing = chance.random() < 1 / 3
            if not training.kill(chance.uniform(0.02, 0.8) * seconds, writing):
                break
            kills += 1
            now = training.progress()
            assert now >= before, f"seed {SEED}: a checkpoint was lost"
            before = now
        training.finish()
        found = load(training.model)
        assert np.array_equal(found.weights, expected.weights), f"seed {SEED}"
        assert np.array_equal(found.intercept, expected.intercept), f"seed {SEED}"
        assert sorted(path.name for path in training.points.iterdir()) == [LATEST, PREVIOUS], f"seed {SEED}"
        assert sorted(path.name for path in training.model.parent.iterdir()) == ["model", "points"], f"seed {SEED}"
