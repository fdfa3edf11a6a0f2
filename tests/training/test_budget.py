"""When runs stop, and what they leave behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runs import FEATURES, ROWS, arrays, problem, slowed, told

from hogwild import Budget, Constant, Cosine, Linear, Optimal, Serial, minimise
from hogwild.errors import DataError, ParameterError
from hogwild.runtimes.shared_memory.threads import Session
from hogwild.training.step_sizes import StepSizes

HOW: dict[str, Any] = {"schedule": Cosine(0.1), "strategy": "serial"}


def test_epochs() -> None:
    run = minimise(problem(), budget=4, **HOW)
    assert run.stop_reason == "epochs"
    assert [record["epoch"] for record in run.history] == [1, 2, 3, 4]
    assert [record["updates"] for record in run.history] == [ROWS, 2 * ROWS, 3 * ROWS, 4 * ROWS]
    assert run.history[-1]["loss"] < run.history[0]["loss"] < 0.7


def test_every_record_has_its_figures() -> None:
    run = minimise(problem(l2=0.01), budget=3, test=arrays(seed=1), **HOW)
    for record in run.history:
        assert record.keys() == {
            "epoch", "updates", "seconds", "workers_used", "step", "loss", "accuracy", "objective", "test_loss",
            "test_accuracy",
        }  # fmt: skip
    last, weights = run.history[-1], run.model.weights
    X, y = arrays()
    margins = y * (X @ weights[:, 0] + run.model.intercept[0])
    assert last["loss"] == pytest.approx(np.logaddexp(0, -margins).mean(), rel=1e-5)
    assert last["objective"] == pytest.approx(last["loss"] + 0.005 * float((weights**2).sum()), rel=1e-5)
    assert last["accuracy"] == pytest.approx((margins > 0).mean())
    assert (run.loss, run.objective) == (last["loss"], last["objective"])
    assert run.result == told(run, "result")[0]
    seconds = [record["seconds"] for record in run.history]
    assert seconds == sorted(seconds)
    assert run.seconds == pytest.approx(seconds[-1], abs=1e-5)


def test_without_any_limit_the_size_of_the_data_decides() -> None:
    assert Budget().for_data(1_000).epochs == 1_000
    assert Budget().for_data(10**10).epochs == 10
    assert Budget(seconds=1).for_data(1_000).epochs is None
    assert Budget(epochs=3).for_data(1_000) == Budget(epochs=3)


def test_seconds_shorter_than_an_epoch() -> None:
    run = minimise(slowed(problem(), 0.05), budget=Budget(seconds=0.1), **HOW)
    assert run.stop_reason == "seconds"
    (record,) = run.history
    assert record["epoch"] == 0
    assert 0 < record["updates"] < ROWS
    assert record["loss"] < 0.7
    assert run.seconds >= 0.1


@pytest.mark.parametrize("rule", ["sgd", "momentum", "adagrad", "ftrl", "adam"])
def test_running_out_of_time_harms_no_rule(rule: str) -> None:
    """Chunks that begin when all time is gone have the last and smallest step of the schedule."""
    run = minimise(slowed(problem(), 0.001), rule, Cosine(0.02), "serial", budget=Budget(seconds=0.06))
    assert run.stop_reason == "seconds"
    assert not told(run, "diverged")
    assert np.isfinite(run.model.weights).all()
    assert run.loss < 0.694


def test_no_step_is_zero_when_the_time_is_over() -> None:
    rates = StepSizes(Cosine(0.1), rows=10, epochs=None, spent=lambda: 1.5).rates(0, 3)
    assert (rates > 0).all()
    assert (rates < 1e-9).all()


def test_whatever_comes_first() -> None:
    assert minimise(problem(), budget=Budget(epochs=2, seconds=1000), **HOW).stop_reason == "epochs"
    run = minimise(slowed(problem(), 0.01), budget=Budget(epochs=1000, seconds=0.2), **HOW)
    assert run.stop_reason == "seconds"


def test_target_on_training_and_on_held_out_loss() -> None:
    whole = minimise(problem(), budget=6, test=arrays(seed=1), **HOW)
    for name, test in (("loss", None), ("test_loss", arrays(seed=1))):
        target = whole.history[2][name]
        run = minimise(problem(), budget=Budget(epochs=6, target=target), test=test, **HOW)
        assert run.stop_reason == "target"
        assert len(run.history) == 3
        assert run.result[name] == target


def test_patience_keeps_the_best() -> None:
    few = Linear(arrays(rows=60), "logistic")  # few rows are soon learnt by heart, and then unlearnt
    test = arrays(rows=2_000, seed=1)
    run = minimise(few, "sgd", Constant(0.3), "serial", budget=Budget(epochs=500, patience=4), test=test)
    losses = [record["test_loss"] for record in run.history]
    best = int(np.argmin(losses))
    assert run.stop_reason == "patience"
    assert len(losses) == best + 5 < 500
    assert run.result["test_loss"] == min(losses) < losses[-1]
    assert run.result["epoch"] == best + 1
    X, y = test
    margins = y * run.model.decide(X)[:, 0]
    assert np.logaddexp(0, -margins).mean() == pytest.approx(min(losses), rel=1e-6)


def test_without_patience_the_last_are_kept() -> None:
    run = minimise(Linear(arrays(rows=60)), "sgd", Constant(0.3), "serial", budget=40, test=arrays(seed=1))
    assert min(record["test_loss"] for record in run.history) < run.history[-1]["test_loss"]
    assert run.result["epoch"] == 40


@pytest.mark.parametrize("name", ["epochs", "seconds", "patience"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), "3", True, [1]])
def test_wrong_limits(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"'{name}' parameter must be a positive"):
        Budget(**{name: value})


@pytest.mark.parametrize("value", [float("nan"), "low", None, 0.5])
def test_targets(value: Any) -> None:
    if isinstance(value, str) or value != value:
        with pytest.raises(ParameterError, match="'target' parameter must be a number"):
            Budget(target=value)
    else:
        assert Budget(target=value).target == value


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"budget": Budget(epochs=3, patience=2)}, "'patience' of a budget .* give test data"),
        ({"budget": 2.5}, r"'budget' parameter must be a number of epochs.* Got 2\.5"),
        ({"average": 1.5}, "'average' parameter must be between 0 and 1"),
        ({"resume": True}, "say where the checkpoints are"),
        ({"strategy": object()}, "'strategy' parameter must be a strategy such as"),
        ({"strategy": "hogwlid"}, "Did you mean 'hogwild'"),
        ({"rule": "adagard"}, "Did you mean 'adagrad'"),
        ({"schedule": "cosin"}, "Did you mean 'cosine'"),
        ({"runtime": "thread"}, "Did you mean 'threads'"),
        ({"schedule": Optimal()}, "is for penalised problems: give l2"),
    ],
)
def test_what_cannot_work_fails_before_anything_starts(wrong: dict[str, Any], message: str) -> None:
    heard: list[Any] = []
    with pytest.raises(ParameterError, match=message):
        minimise(problem(l2=0), callbacks=[heard.append], **{"strategy": Serial(), "budget": 1, **wrong})
    assert "epoch" not in {event["event"] for event in heard}


def test_held_out_labels_that_training_did_not_have() -> None:
    X, y = arrays(rows=50)
    with pytest.raises(DataError, match="the label 3 is not one of the classes the model knows"):
        minimise(problem(), budget=1, test=(X, np.where(y > 0, 3, y)), **HOW)


def test_held_out_data_with_more_features() -> None:
    with pytest.raises(ParameterError, match="has 51 features"):
        minimise(problem(), budget=1, test=(np.ones((2, FEATURES + 1)), [1, -1]), **HOW)


def test_a_held_out_file_is_read_as_the_training_file_was(tmp_path: Any) -> None:
    """Alone, the second file looks as if it counted from 1, and it has a feature that training did not see."""
    (tmp_path / "a.svm").write_text("1 0:1 1:1\n-1 1:2 2:1\n" * 20)
    (tmp_path / "b.svm").write_text("1 1:1 2:1\n-1 2:2 9:1\n")
    given = minimise(Linear(tmp_path / "a.svm"), budget=2, test=tmp_path / "b.svm", **HOW)
    X = np.array([[0, 1, 1], [0, 0, 2]], np.float32)
    meant = minimise(Linear(tmp_path / "a.svm"), budget=2, test=(X, [1, -1]), **HOW)
    assert given.result["test_loss"] == pytest.approx(meant.result["test_loss"], rel=1e-6)


def test_events_in_order() -> None:
    heard: list[Any] = []
    run = minimise(problem(), strategy="serial", budget=2, callbacks=[heard.append])
    kinds = [event["event"] for event in heard if event["event"] != "progress"]
    assert kinds == ["started", "compiled", "step chosen", "training", "epoch", "epoch", "result"]
    assert [event for event in heard if event["event"] != "progress"] == run.events
    at = [event["at"] for event in heard]
    assert at == sorted(at)
    chosen = told(run, "step chosen")[0]
    tried = [step for step, _ in chosen["trials"]]
    assert min(tried) <= chosen["step"] <= max(tried)
    assert f"step={chosen['step']}" in run.config["schedule"]


def test_progress_is_told_however_short_the_epochs() -> None:
    heard: list[Any] = []
    minimise(problem(), budget=4, callbacks=[heard.append], **HOW)
    fractions = [event["fraction"] for event in heard if event["event"] == "progress"]
    assert fractions == sorted(fractions)
    assert {0.25, 0.5, 0.75, 1.0} <= set(fractions)


def test_a_failing_callback_ends_the_run_with_its_error() -> None:
    def fail(event: Any) -> None:
        if event["event"] == "epoch":
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        minimise(problem(), budget=2, callbacks=[fail], **HOW)


def test_numpy_numbers_are_numbers(tmp_path: Any) -> None:
    """What a user gives may come out of an array; the records of a run hold plain values all the same."""
    weighted = problem(l2=np.float32(0.01), class_weight={np.int64(1): np.float32(2)})
    budget = Budget(epochs=np.int64(2), seconds=np.float32(100), target=np.float64(0.01))  # type: ignore[arg-type]
    run = minimise(weighted, budget=budget, seed=np.int64(5), checkpoint=tmp_path, **HOW)  # type: ignore[arg-type]
    run.save(tmp_path / "model")
    again = minimise(weighted, budget=budget, seed=5, checkpoint=tmp_path, resume=True, **HOW)
    assert np.array_equal(run.model.weights, again.model.weights)


def test_the_seed_chooses_the_order() -> None:
    first, same, other = (minimise(problem(), budget=2, seed=seed, **HOW) for seed in (1, 1, 2))
    assert np.array_equal(first.model.weights, same.model.weights)
    assert not np.array_equal(first.model.weights, other.model.weights)


def test_averaged_iterates() -> None:
    """A step that never falls leaves noise, which the mean of the last half is nearly free of."""
    noisy = minimise(problem("squared"), "sgd", Constant(0.02), "serial", budget=8)
    means = {
        share: minimise(problem("squared"), "sgd", Constant(0.02), "serial", budget=8, average=share)
        for share in (0.05, 0.5, 1.0)
    }
    assert means[0.5].loss < means[0.05].loss < noisy.loss
    assert means[0.5].history[3]["loss"] == noisy.history[3]["loss"]
    assert means[1.0].history[0]["loss"] != noisy.history[0]["loss"]


def test_averaging_the_last_share_of_a_time() -> None:
    how: dict[str, Any] = {"rule": "sgd", "schedule": Constant(0.02), "strategy": "serial"}
    run = minimise(slowed(problem("squared"), 0.004), budget=Budget(seconds=0.3), average=0.5, **how)
    noisy = minimise(problem("squared"), budget=8, **how)
    assert run.stop_reason == "seconds"
    assert run.loss < min(record["loss"] for record in noisy.history)


def test_steps_that_fall_with_time_are_worked_out_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    advance, known = Session.advance, []

    def told(self: Session, walk: Any, *what: Any) -> Any:
        known.append(walk.whole() is not None)
        return advance(self, walk, *what)

    monkeypatch.setattr(Session, "advance", told)
    minimise(problem(), budget=Budget(epochs=1), **HOW)
    minimise(problem(), budget=Budget(epochs=1, seconds=60), **HOW)
    assert known == [True, False]


def test_steps_worked_out_ahead_are_those_of_each_chunk() -> None:
    clock = StepSizes(Cosine(1.0), rows=1_000, epochs=3)
    ahead = clock.ahead(500, 500)
    assert ahead is not None
    assert np.array_equal(ahead(600, 100), clock.rates(600, 100))
    large = StepSizes(Cosine(1.0), rows=10**6, epochs=3)
    ahead = large.ahead(0, 10**6)
    assert ahead is not None
    for first in (0, 300_000):
        assert np.array_equal(ahead(first, 1_000), large.rates(first, 1_000))
    assert large.ahead(0, 10**9) is None
