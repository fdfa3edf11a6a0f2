"""A run says how many of its workers really trained."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild import SGD, Averaging, Budget, Hogwild, Linear, RoundRobin, Run, Serial, minimise
from hogwild.cli import main
from hogwild.runtimes.shared_memory import epoch_runner, threads
from hogwild.runtimes.shared_memory.epoch_runner import replicas
from hogwild.training.thread_driver import useful_workers

ROWS = 4_000


@pytest.fixture
def not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop with hot replicas is not on disk, and no run is long enough to compile it."""
    monkeypatch.setattr(threads, "is_cached", lambda kernel: False)
    monkeypatch.setattr(threads, "LONG", math.inf)


def data() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    X = random.standard_normal((ROWS, 20)).astype(np.float32)
    return X, np.where(X @ random.standard_normal(20) > 0, 1.0, -1.0)


def train(strategy: Any, rows: int = ROWS, budget: Any = 3, **options: Any) -> Run:
    X, y = data()
    return minimise(Linear((X[:rows], y[:rows]), "logistic", l2=1e-4), "sgd", 0.05, strategy, budget=budget, **options)


@pytest.mark.usefixtures("not_compiled")
def test_a_run_that_ends_before_its_loop_is_compiled_says_that_one_worker_trained() -> None:
    alone, two = train(Serial()), train(Hogwild(2))
    assert two.objective == pytest.approx(alone.objective, rel=1e-3)  # they are the same algorithm
    assert two.config["workers"] == 2
    assert [record["workers_used"] for record in two.history] == [1, 1, 1]
    (event,) = (event for event in two.events if event["event"] == "workers")
    assert event["workers"] == 1
    assert event["message"].startswith("1 of 2 workers trained")
    assert "Hogwild(2, buffer=0)" in event["message"]
    assert [record["workers_used"] for record in alone.history] == [1, 1, 1]
    assert not any(event["event"] == "workers" for event in alone.events)


def test_workers_in_turns_all_train() -> None:
    run = train(RoundRobin(2))
    assert [record["workers_used"] for record in run.history] == [2, 2, 2]
    assert run.result["workers_used"] == 2


@pytest.mark.parametrize("every", [100, 10, 1_500])
def test_records_within_epochs_leave_all_workers_at_work(every: int) -> None:
    run = train(Hogwild(2, buffer=0), every=every, budget=2)
    assert [record["updates"] for record in run.history] == sorted({*range(every, 8_000, every), 4_000, 8_000})
    assert {record["workers_used"] for record in run.history} == {2}
    assert not any(event["event"] == "workers" for event in run.events)


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        (Hogwild(2, buffer=0), {"average": 0.5}),
        (Hogwild(2, buffer=0), {"budget": Budget(epochs=2, seconds=600)}),
        (Hogwild(2, buffer=0), {"count_conflicts": True}),
        (Averaging(2), {}),
    ],
    ids=["average of iterates", "steps that depend on time", "conflicts", "replicas"],
)
def test_all_workers_train_between_records_however_they_train(strategy: Any, options: dict[str, Any]) -> None:
    run = train(strategy, every=200, **{"budget": 2, **options})
    assert [record["updates"] for record in run.history] == list(range(200, 8_001, 200))
    assert {record["workers_used"] for record in run.history} == {2}


def test_each_worker_has_half_of_the_rows_between_two_records() -> None:
    run = train(Hogwild(2, buffer=0), every=100, budget=1, count_conflicts=True)
    counts = [figures["count"] for figures in run.conflicts["staleness"]["workers"].values()]
    assert sum(counts) == ROWS
    assert min(counts) >= ROWS // 4


def test_replicas_are_averaged_once_an_epoch_whatever_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(epoch_runner, "replicas", lambda session: made.append(1) or replicas(session))
    train(Averaging(2), every=200, budget=2)
    assert len(made) == 2


def test_too_few_rows_for_several_workers_are_counted_in_epochs_and_not_in_records() -> None:
    run = train(Hogwild(2, buffer=0), rows=200, every=50)
    assert len(run.history) == 12
    assert {record["workers_used"] for record in run.history} == {1}
    (event,) = (event for event in run.events if event["event"] == "workers")
    assert event["message"].startswith("1 of 2 workers trained: the others found no rows left in 3 epochs;")


@pytest.mark.parametrize(("rows", "expected"), [(4_000, 4), (20_000, 16)])
def test_no_more_workers_are_used_than_replicas_pay_for(rows: int, expected: int) -> None:
    """More workers would have none, and delay each other."""
    problem = Linear((np.ones((rows, 256), np.float32), np.arange(rows) % 2), "logistic")
    assert useful_workers(16, problem, SGD(), Hogwild(), Budget(epochs=100))[0] == expected
    assert useful_workers(16, problem, SGD(), Hogwild(buffer=0), Budget(epochs=100))[0] > 4


@pytest.mark.usefixtures("not_compiled")
def test_the_command_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = data()
    rows = (" ".join(f"{k + 1}:{value:.3f}" for k, value in enumerate(row)) for row in X)
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{label:g} {row}\n" for label, row in zip(y, rows, strict=True)))
    asked = ["train", str(path), "--workers", "2", "--epochs", "2", "--rule", "sgd", "--step", "0.05"]
    assert main([*asked, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["workers"], record["workers_used"]) == (2, 1)
    assert main(asked) == 0
    assert "1 of 2 workers trained" in capsys.readouterr().out
