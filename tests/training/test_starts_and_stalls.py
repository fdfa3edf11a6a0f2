"""Beginning from another run, stopping when the objective stalls, walking in order, passive-aggressive steps."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild import Adaptive, Budget, Checkpoints, Constant, Linear, PassiveAggressive, WarmStart, minimise
from hogwild.errors import ParameterError
from hogwild.stopping import Stall

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 5)).astype(np.float32)
Y = X @ np.array([1.0, -2.0, 0.5, 0.0, 3.0])
HOW = {"rule": "sgd", "strategy": "serial"}


def test_two_runs_of_one_epoch_are_one_of_two():
    problem, step = Linear((X, Y), "squared"), Constant(0.01)
    whole = minimise(problem, schedule=step, budget=2, shuffle=False, **HOW)
    first = minimise(problem, schedule=step, budget=1, shuffle=False, **HOW)
    then = WarmStart(first.state, updates=200)
    second = minimise(problem, schedule=step, budget=1, shuffle=False, init=then, **HOW)
    assert np.array_equal(whole.model.weights, second.model.weights)


def test_the_schedule_counts_on_from_earlier_updates():
    problem = Linear((X, Y), "squared")
    first = minimise(problem, schedule="inverse-scaling", budget=1, **HOW)
    again = minimise(problem, schedule="inverse-scaling", budget=1, init=WarmStart(first.state, 10**6), **HOW)
    assert again.history[0]["step"] < first.history[0]["step"] / 5


def test_values_alone_are_a_start_too():
    values = (np.arange(5.0).reshape(5, 1), np.ones((1, 1)))
    run = minimise(Linear((X, Y), "squared"), "adagrad", Constant(1e-12), "serial", budget=1, init=WarmStart(values))
    assert run.model.weights.ravel() == pytest.approx(np.arange(5), abs=1e-6)
    with pytest.raises(ParameterError, match="'init' parameter must be of shape"):
        minimise(Linear((X, Y), "squared"), init=WarmStart((np.ones((4, 1)), np.ones((1, 1)))))


def test_a_stalled_objective_ends_the_run():
    problem, budget = Linear((X, Y), "squared"), Budget(epochs=500, tolerance=1e-4, stall_epochs=3)
    run = minimise(problem, schedule=Constant(0.01), budget=budget, **HOW)
    assert run.stop_reason == "tolerance"
    objectives = [record["objective"] for record in run.history]
    assert all(late > min(objectives[:-3]) - 1e-4 for late in objectives[-3:])
    assert len(objectives) < 500


def test_an_adaptive_step_falls_before_the_run_ends():
    y = Y + RNG.standard_normal(200)
    budget = Budget(epochs=1_000, tolerance=1e-3, stall_epochs=2)
    run = minimise(Linear((X, y), "squared"), schedule=Adaptive(0.05), budget=budget, **HOW)
    steps = [record["step"] for record in run.history]
    assert run.stop_reason == "tolerance"
    assert steps[0] == 0.05
    assert steps[-1] <= 1e-6
    constant = minimise(Linear((X, y), "squared"), schedule=Constant(0.05), budget=budget, **HOW)
    assert run.objective < constant.objective


def test_stalls_survive_a_checkpoint(tmp_path):
    problem, budget = Linear((X, Y), "squared"), Budget(epochs=500, tolerance=1e-4, stall_epochs=3)
    whole = minimise(problem, schedule=Adaptive(0.01), budget=budget, **HOW)
    short = Budget(epochs=len(whole.history) // 2, tolerance=1e-4, stall_epochs=3)
    minimise(problem, schedule=Adaptive(0.01), budget=short, checkpoint=Checkpoints(tmp_path), **HOW)
    resumed = minimise(problem, schedule=Adaptive(0.01), budget=budget, checkpoint=tmp_path, resume=True, **HOW)
    assert len(resumed.history) == len(whole.history)
    assert np.array_equal(resumed.model.weights, whole.model.weights)


def test_the_first_objective_is_no_stall():
    assert Stall().after(5.0, 1e9).epochs == 0


@pytest.mark.parametrize("variant", [1, 2])
@pytest.mark.parametrize("loss", ["hinge", "epsilon-insensitive:0.1"])
def test_passive_aggressive_steps_are_those_of_the_paper(variant, loss):
    y = np.sign(Y) if loss == "hinge" else Y
    problem = Linear((X, y), loss, l2=0, intercept=False)
    run = minimise(problem, PassiveAggressive(variant), Constant(0.3), "serial", budget=1, shuffle=False)
    w = np.zeros(5)
    for x, label in zip(X.astype(float), y, strict=True):
        z = w @ x
        cost = max(0, 1 - z * label) if loss == "hinge" else max(0, abs(z - label) - 0.1)
        size = min(0.3, cost / (x @ x)) if variant == 1 else cost / (x @ x + 0.5 / 0.3)
        w += size * (label if loss == "hinge" else np.sign(label - z)) * x
    assert run.model.weights.ravel() == pytest.approx(w, rel=1e-4, abs=1e-5)


def test_passive_aggressive_refuses_other_losses():
    with pytest.raises(ParameterError, match="goes with the losses 'hinge' and 'epsilon-insensitive'"):
        minimise(Linear((X, Y), "squared"), PassiveAggressive())


def test_a_tilt_is_part_of_the_objective_and_moves_the_intercept():
    problem = Linear((X, np.sign(Y)), "logistic", l2=1e-2, intercept_gradient=0.3)
    run = minimise(problem, strategy="serial")
    straight = minimise(Linear((X, np.sign(Y)), "logistic", l2=1e-2), strategy="serial")
    assert run.model.intercept[0] < straight.model.intercept[0]
    penalty = 0.01 / 2 * float((run.model.weights**2).sum()) + 0.3 * float(run.model.intercept[0])
    assert run.objective == pytest.approx(run.loss + penalty, rel=1e-6)


def test_the_intercept_may_take_smaller_steps():
    runs = [
        minimise(Linear((X, Y + 5), "squared", intercept_lr_multiplier=size), schedule=Constant(1e-3), budget=1, **HOW)
        for size in (1.0, 0.01)
    ]
    assert abs(runs[1].model.intercept[0]) < 0.02 * abs(runs[0].model.intercept[0])


def test_an_adaptive_step_needs_a_tolerance():
    with pytest.raises(ParameterError, match="give the budget a tolerance"):
        minimise(Linear((X, Y), "squared"), schedule="adaptive", budget=3)


def test_what_is_met_on_the_way_can_stand_for_the_loss_of_an_epoch():
    how = {"schedule": Constant(0.01), "budget": 1, "shuffle": False, **HOW}
    measured = minimise(Linear((X, Y), "squared", l2=0), **how)
    met = minimise(Linear((X, Y), "squared", l2=0), evaluate_every_epoch=False, **how)
    w, b, losses = np.zeros(5), 0.0, []
    for x, y in zip(X, Y, strict=True):
        error = w @ x + b - y
        losses.append(error**2 / 2)
        w, b = w - 0.01 * error * x, b - 0.01 * error
    assert np.array_equal(measured.model.weights, met.model.weights)
    assert met.history[0]["loss"] == pytest.approx(np.mean(losses), rel=1e-4)
    assert measured.history[0]["loss"] == pytest.approx(np.mean((X @ w + b - Y) ** 2) / 2, rel=1e-4)
    assert "r2" not in met.history[0]


def test_the_score_of_held_out_rows_can_end_a_run():
    budget = Budget(epochs=500, tolerance=1e-3, stall_epochs=4, monitor="score")
    problem, test = Linear((X[:150], Y[:150]), "squared"), (X[150:], Y[150:])
    run = minimise(problem, schedule=Constant(0.01), budget=budget, test=test, **HOW)
    scores = [record["test_r2"] for record in run.history]
    rose = [k == 0 or score >= max(scores[:k]) + 1e-3 for k, score in enumerate(scores)]
    assert run.stop_reason == "tolerance"
    assert rose[-5:] == [True, False, False, False, False]
    with pytest.raises(ParameterError, match="monitor the score"):
        minimise(Linear((X, Y), "squared"), budget=budget)
    with pytest.raises(ParameterError, match="'monitor'"):
        Budget(monitor="the clock")


def test_several_outputs_and_passive_aggressive_steps_are_refused():
    with pytest.raises(ParameterError, match="one output"):
        minimise(Linear((X, np.arange(200) % 3), "hinge"), PassiveAggressive(), Constant(0.1), "serial", budget=1)
