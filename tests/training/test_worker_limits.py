"""Numbers of workers that no machine can start: an error before anything is made for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hogwild
from hogwild.cli import main
from hogwild.errors import ParameterError
from hogwild.machine import MOST_SIMULATED_WORKERS, MOST_WORKERS, usable_cores

X, Y = np.eye(4), np.array([0.0, 1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("strategy", "runtime"),
    [
        ("Hogwild", None),
        ("Locked", "threads"),
        ("RoundRobin", "threads"),
        ("Averaging", "threads"),
        ("Averaging", "simulator"),
        ("ParameterServer", "simulator"),
        ("ParameterServer", "local"),
        ("LocalSGD", "ray"),
        ("Synchronous", None),
    ],
)
@pytest.mark.parametrize("workers", [1_000_000, 10**20])
def test_a_million_workers_are_refused(strategy: str, runtime: str | None, workers: int) -> None:
    with pytest.raises(ParameterError, match="'workers' parameter must be at most"):
        hogwild.minimise(hogwild.Linear((X, Y)), strategy=getattr(hogwild, strategy)(workers=workers), runtime=runtime)


def test_threads_are_bounded_by_the_machine() -> None:
    most = min(MOST_WORKERS, max(128, 32 * usable_cores()))
    with pytest.raises(ParameterError, match=f"at most {most:,} on this machine. Got {most + 1}"):
        hogwild.minimise(hogwild.Linear((X, Y)), strategy=hogwild.Averaging(workers=most + 1), runtime="threads")


def test_a_simulator_has_more() -> None:
    assert hogwild.Simulator().most_workers == MOST_SIMULATED_WORKERS > 10_000


def test_estimators_pack_and_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ParameterError, match="at most 4,096"):
        hogwild.HogwildClassifier(n_jobs=10**6, strategy="hogwild").fit(X, Y)
    hogwild.HogwildClassifier(n_jobs=10**6).fit(X, Y)  # a number of jobs is what may be used, as in scikit-learn
    file = tmp_path / "a.svm"
    file.write_text("1 1:1\n0 2:1\n")
    for words in (["train", str(file)], ["pack", str(file), str(tmp_path / "packed")]):
        assert main([*words, "--workers", "1000000"]) == 2
        assert "must be at most 4,096. Got 1000000 instead." in capsys.readouterr().err
