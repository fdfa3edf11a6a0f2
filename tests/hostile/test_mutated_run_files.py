"""Mutated checkpoints, configurations and logs of events: each is refused in a line, or the run goes on."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from mutations import MUTANTS, check_error, mutate_arrays, mutate_entries, mutate_text

from fuzz.damage import damage
from hogwild import Linear, array_file, minimise
from hogwild.cli import main
from hogwild.errors import CheckpointError
from hogwild.training.checkpoints import LATEST, PREVIOUS

pytestmark = pytest.mark.usefixtures("bounded_memory")


def problem() -> Linear:
    X = np.random.default_rng(0).standard_normal((60, 4))
    return Linear((X, np.sign(X[:, 0])), l2=1e-2)


@pytest.mark.filterwarnings("ignore::hogwild.errors.CheckpointWarning")
def test_mutated_checkpoints(tmp_path: Path) -> None:
    minimise(problem(), "adagrad", 0.1, "serial", budget=2, checkpoint=tmp_path / "given")
    arrays, record = array_file.load(tmp_path / "given" / LATEST, CheckpointError)
    folder, went_on = tmp_path / "points", 0
    for seed in range(MUTANTS):
        rng = random.Random(f"checkpoint {seed}")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "given", folder)
        if rng.random() < 0.5:
            (folder / PREVIOUS).unlink(missing_ok=True)
        mutant, entries = arrays, record
        for _ in range(rng.randint(1, 2)):
            if rng.random() < 0.5:
                mutant = mutate_arrays(mutant, rng)
            else:
                entries = mutate_entries(entries, rng)
        try:
            array_file.save(folder / LATEST, mutant, entries)
        except Exception:  # safetensors has no such type: the file cannot be made, and nothing is tried.
            continue
        if rng.random() < 0.2:
            (folder / LATEST).write_bytes(damage((folder / LATEST).read_bytes(), rng))
        try:
            run = minimise(problem(), "adagrad", 0.1, "serial", budget=3, checkpoint=folder, resume=True)
        except Exception as error:
            check_error(error, seed)
        else:
            assert np.isfinite(run.objective), f"mutant {seed}"
            went_on += 1
    assert 0 < went_on < MUTANTS


def rows(folder: Path) -> Path:
    path = folder / "a.svm"
    path.write_text("".join(f"{row % 2} {1 + row % 3}:1 {5 + row % 4}:{row % 7}\n" for row in range(40)))
    return path


def ended_well(code: int, capfd: pytest.CaptureFixture[str], mutant: object) -> bool:
    error = capfd.readouterr().err
    assert code in (0, 1, 2), f"mutant {mutant}: {code}"
    assert "Traceback" not in error, f"mutant {mutant}: {error}"
    assert "should not happen" not in error, f"mutant {mutant}: {error}"
    assert code == 0 or "error: " in error, f"mutant {mutant}: {code} without a reason"
    return code == 0


def test_mutated_configurations(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    given, path = tmp_path / "given.toml", tmp_path / "mutant.toml"
    assert main(["train", str(rows(tmp_path)), "--epochs", "1", "--workers", "1", "--save-config", str(given)]) == 0
    trained = 0
    for seed in range(MUTANTS // 4):
        rng = random.Random(f"configuration {seed}")
        path.write_bytes(mutate_text(given.read_bytes(), rng))
        words = ["train", "--config", str(path), "--epochs", "1", "--workers", "1", "--runtime", "threads"]
        trained += ended_well(main(words), capfd, seed)
    assert 0 < trained < MUTANTS // 4


def test_mutated_logs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder, mutant = tmp_path / "run", tmp_path / "mutant"
    words = ["train", str(rows(tmp_path)), "--epochs", "3", "--workers", "1", "--holdout", "0.2"]
    assert main([*words, "--folder", str(folder)]) == 0
    written = 0
    for seed in range(MUTANTS // 10):
        rng = random.Random(f"log {seed}")
        shutil.rmtree(mutant, ignore_errors=True)
        shutil.copytree(folder, mutant)
        if rng.random() < 0.7:
            lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
            at = rng.randrange(len(lines))
            lines[at] = mutate_entries(lines[at], rng)
            (mutant / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        else:
            name = rng.choice(["events.jsonl", "run.json"])
            (mutant / name).write_bytes(damage((mutant / name).read_bytes(), rng))
        written += ended_well(main(["report", str(mutant), "--out", str(tmp_path / "page.html")]), capfd, seed)
    assert written > 0
