"""Files that are cut short at random moments while a command reads them: one line names the file, or nothing happened.

``HOGWILD_HOSTILE`` is five times the number of moments per command and format; ``HOGWILD_SEED`` repeats them.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import pytest
from commands import ended, leftovers, run, start

MOMENTS = max(2, int(os.environ.get("HOGWILD_HOSTILE", "2")) // 5)
SEED = int(os.environ.get("HOGWILD_SEED", str(random.SystemRandom().randrange(10**6))))
SECONDS = 2.0  # in which a file is cut
ARRAYS = ("indices.u32", "values.f32", "labels.f64", "indptr.i64", "frequencies.i64", "meta.json", "checksums.u32")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    for name in ("a.svm", "a.svm.gz", "a.vw", "a.npz"):
        assert run("generate", "rcv1", folder / name, "--rows", "20k")[0] == 0
    assert run("pack", folder / "a.svm", folder / "packed")[0] == 0
    assert run("train", folder / "a.svm", "--epochs", "1", "--out", folder / "model")[0] == 0
    return folder


CASES = [
    (command, name) for command in ("train", "inspect", "predict", "pack", "pack by two")
    for name in ("a.svm", "a.svm.gz", "a.vw", "a.npz", "packed") if name != "packed" or "pack" not in command
]  # fmt: skip


@pytest.mark.parametrize(("command", "name"), CASES)
def test_files_that_are_cut(command: str, name: str, given: Path, tmp_path: Path) -> None:
    dice = random.Random(f"{SEED} {command} {name}")
    for moment in range(MOMENTS):
        data, out = tmp_path / f"{moment}" / name, tmp_path / f"{moment}" / "out"
        data.parent.mkdir()
        (shutil.copytree if name == "packed" else shutil.copy)(given / name, data)
        words = {
            "train": ("train", data, "--epochs", "300", "--step", "0.1", "--out", out),
            "inspect": ("inspect", data),
            "predict": ("predict", given / "model", data, "--out", out),
            "pack": ("pack", data, out),
            "pack by two": ("pack", data, out, "--workers", "2"),
        }[command]
        process = start(*words)
        time.sleep(dice.random() * SECONDS)
        path = data / dice.choice(ARRAYS) if name == "packed" else data
        os.truncate(path, int(dice.choice([0.0, dice.random()]) * path.stat().st_size))
        code, _, err = ended(process)
        assert code in (0, 1), f"seed {SEED}: {code}: {err}"
        assert leftovers(tmp_path) == []
        if code:
            told = [line for line in err.splitlines() if line.startswith("error: ")]
            assert len(told) == 1, err
            assert str(data) in told[0], f"seed {SEED}: {told[0]}"
            assert not out.exists()
