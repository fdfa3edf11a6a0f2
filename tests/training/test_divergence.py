"""The divergence guard: back to the last good parameters with half the step, five times, and then an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import Dying, Killed, arrays, in_legs, problem, slowed, told

from hogwild import Budget, Checkpoints, Constant, Linear, minimise
from hogwild.errors import DivergedError
from hogwild.stopping import MOST_HALVINGS, DivergenceGuard

SGD: dict[str, Any] = {"rule": "sgd", "strategy": "serial"}


def test_a_far_too_large_step_is_halved_until_it_works() -> None:
    heard: list[Any] = []
    run = minimise(problem("squared"), schedule=Constant(0.1), budget=3, callbacks=[heard.append], **SGD)
    diverged = told(run, "diverged")
    assert [event["scale"] for event in diverged] == [0.5, 0.25]
    assert all("exploded in epoch 1" in event["message"] for event in diverged)
    assert all("half the step" in event["message"] for event in diverged)
    assert [event for event in heard if event["event"] == "diverged"] == diverged
    assert {record["step"] for record in run.history} == {0.025}
    right = minimise(problem("squared"), schedule=Constant(0.025), budget=3, **SGD)
    assert np.array_equal(run.model.weights, right.model.weights)  # nothing of the bad attempts is left


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_a_hopeless_step_ends_in_an_error_that_says_what_to_do(loss: str) -> None:
    heard: list[Any] = []
    with pytest.raises(DivergedError, match=r"exploded .* smaller step \(or step='auto'\), scale the features"):
        minimise(problem(loss), schedule=Constant(1e30), budget=3, callbacks=[heard.append], **SGD)
    assert sum(event["event"] == "diverged" for event in heard) == MOST_HALVINGS
    assert not any(event["event"] in ("epoch", "result") for event in heard)


def test_infinite_weights_are_noticed_where_the_loss_looks_well() -> None:
    """A hinge takes a NaN margin for a good one, so the loss alone would not tell."""
    X = np.array([[1e30, 1e30], [1e30, -1e30]] * 40, np.float32)
    with pytest.raises(DivergedError):
        minimise(Linear((X, [1, -1] * 40), "hinge"), schedule=Constant(1e30), budget=2, **SGD)


def with_an_outlier() -> Linear:
    """One row is fifty times as long as the others; in the first epoch of seed 0 it is in the eighth chunk."""
    X, y = arrays("squared")
    X[7] *= 50
    return Linear((X, y), "squared")


def test_an_explosion_in_mid_epoch_leads_back_to_its_beginning() -> None:
    run = minimise(with_an_outlier(), schedule=Constant(0.01), budget=2, **SGD)
    assert len(told(run, "diverged")) == 2
    right = minimise(with_an_outlier(), schedule=Constant(0.0025), budget=2, **SGD)
    assert np.array_equal(run.model.weights, right.model.weights)


def test_so_it_does_from_a_checkpoint_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"problem": with_an_outlier(), "schedule": Constant(0.01), "budget": 2, **SGD}
    undisturbed = minimise(**asked)
    in_legs(monkeypatch, 3)
    with pytest.raises(Killed):  # before the outlier was met
        minimise(checkpoint=Checkpoints(tmp_path, 1e-9), callbacks=[Dying(times=2)], **asked)
    resumed = minimise(checkpoint=tmp_path, resume=True, **asked)
    assert told(resumed, "resumed")[0]["chunk"] == 6
    assert len(told(resumed, "diverged")) == 2
    assert np.array_equal(undisturbed.model.weights, resumed.model.weights)


def test_out_of_time_and_exploded() -> None:
    """There is no time for another attempt: the last good parameters are kept, here those of the start."""
    run = minimise(slowed(problem("squared"), 0.02), schedule=Constant(1e6), budget=Budget(seconds=0.05), **SGD)
    assert run.stop_reason == "seconds"
    assert told(run, "diverged")[-1]["message"].endswith("back to the last good parameters")
    assert not run.model.weights.any()
    assert run.result["updates"] == 0
    assert len(run.history) == 1


def test_the_mean_of_iterates_goes_back_too() -> None:
    asked: dict[str, Any] = {"budget": 4, "average": 1.0, **SGD}
    run = minimise(problem("squared"), schedule=Constant(0.1), **asked)
    right = minimise(problem("squared"), schedule=Constant(0.025), **asked)
    assert np.array_equal(run.model.weights, right.model.weights)


def test_the_guard_counts() -> None:
    guard = DivergenceGuard(start=5.0)
    assert not guard.has_diverged(4_999.0)
    assert guard.has_diverged(5_001.0)
    assert guard.has_diverged(0.1, float("inf"))
    assert [guard.halve() for _ in range(MOST_HALVINGS)] == [0.5, 0.25, 0.125, 0.0625, 0.03125]
    with pytest.raises(DivergedError):
        guard.halve()
