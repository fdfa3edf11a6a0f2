"""Choosing the step: the choice is a good one, costs little, and is the same on any machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from runs import Dying, Killed, arrays, problem, told

import references
from hogwild import Linear, minimise
from hogwild.data.open_dataset import as_dataset
from hogwild.rules import PassiveAggressive, named
from hogwild.schedules import Constant, Cosine, InverseTime, with_step
from hogwild.training import step_search
from hogwild.training.step_search import TrialRunner, choose_step, updates_of_trials
from hogwild.training.step_sizes import StepSizes


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """Every trial that is made: its step, and how many updates it takes."""
    found: list[tuple[float, int]] = []
    objective = TrialRunner.objective

    def noted(self: TrialRunner, step: float, updates: int) -> float:
        found.append((step, updates))
        return objective(self, step, updates)

    monkeypatch.setattr(TrialRunner, "objective", noted)
    return found


def chosen(given: Linear, rule: str = "adagrad", epochs: float = 20, **how: Any) -> step_search.ChosenStep:
    return choose_step(given, named(rule), Cosine(), epochs, **{"seed": 0, **how})


def with_a_large_column() -> Linear:
    X, y = arrays()
    return Linear((X * np.r_[1_000.0, np.ones(X.shape[1] - 1)].astype(np.float32), y), l2=1e-4, standardise=False)


@pytest.mark.parametrize("rule", ["adagrad", "sgd", "ftrl", "adam"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"] if references.ALL else ["logistic"])
def test_no_other_step_leads_much_further(loss: str, rule: str) -> None:
    X, y = arrays(loss)
    given = Linear((sp.csr_array(X), y), loss, l2=1e-4)  # sparse: the conformance tests have compiled that
    how = {"rule": rule, "strategy": "serial", "budget": 5}
    run = minimise(given, schedule="cosine", **how)
    (choice,) = told(run, "step chosen")
    others = [minimise(given, schedule=Cosine(choice["step"] * 4.0**k), **how).objective for k in (-3, -2, -1, 1, 2)]
    assert run.objective < (1.01 if getattr(named(rule), "tapers", False) else 1.02) * min(others)
    assert run.objective < 0.9 * max(others), "every step would do: this shows nothing"


@pytest.mark.parametrize("rule", ["adagrad", "sgd"])
def test_the_choice_does_not_depend_on_how_many_try(rule: str) -> None:
    alone, together = chosen(problem(l2=1e-4), rule), chosen(problem(l2=1e-4), rule, workers=3)
    assert alone == together
    assert alone != chosen(problem(l2=1e-4), rule, seed=1)


@pytest.mark.parametrize("rule", ["adagrad", "sgd"])
def test_it_costs_a_fraction_of_the_run(rule: str, made: list[tuple[float, int]]) -> None:
    given = problem(l2=1e-4)
    chosen(given, rule, epochs=100)
    assert 0 < sum(updates for _, updates in made) < 100 * given.data.n_rows / 4


def test_large_data_costs_no_more_than_middling() -> None:
    assert updates_of_trials(10**9, 10**11, 10, tapers=True) == updates_of_trials(10**7, 10**9, 10, tapers=True)


def test_a_trial_is_never_longer_than_the_run() -> None:
    for rows in (1, 50, 600, 10_000):
        for epochs in (1, 3, 1_000):
            for tapers in (True, False):
                usual, in_doubt = updates_of_trials(rows, 10 * rows, epochs, tapers)
                assert 1 <= usual <= in_doubt <= rows * epochs


def test_with_few_rows_a_trial_is_the_run_itself(made: list[tuple[float, int]]) -> None:
    X, y = arrays(rows=60)
    run = minimise(Linear((X, y), l2=1e-3), strategy="serial", budget=7)
    assert max(updates for _, updates in made) == 60 * 7
    (choice,) = told(run, "step chosen")
    assert run.objective == pytest.approx(dict(choice["trials"])[choice["step"]], rel=0.02)


def test_without_a_rule_that_tapers_longer_runs_get_smaller_steps() -> None:
    given = problem("hinge", l2=1e-4)
    assert chosen(given, "sgd", epochs=200).step < 0.7 * chosen(given, "sgd", epochs=2).step


def test_columns_of_very_different_size_are_worth_long_trials(made: list[tuple[float, int]]) -> None:
    given = with_a_large_column()
    usual, in_doubt = updates_of_trials(given.data.n_rows, given.data.nonzeros, 20, tapers=False)
    chosen(given, "sgd", epochs=20)
    assert max(updates for _, updates in made) == in_doubt > usual
    made.clear()
    chosen(given, "adagrad", epochs=20)
    assert max(updates for _, updates in made) <= usual


def test_where_nearly_every_step_explodes_one_is_found_that_does_not() -> None:
    X, y = arrays("squared")
    run = minimise(Linear((3e3 * X, y), "squared"), "sgd", strategy="serial", budget=5)
    (choice,) = told(run, "step chosen")
    assert choice["step"] < 1e-6
    assert not told(run, "diverged")
    assert run.result["r2"] > 0.8


def separable_rows(rows: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of 20 of 8,000 columns, of length one, with planted weights: a few of them are learnt by heart."""
    rng = np.random.default_rng(0)
    columns = rng.integers(8_000, size=20 * rows)
    values = np.full(20 * rows, 20**-0.5, np.float32)
    X = sp.csr_array((values, columns, np.arange(rows + 1) * 20), (rows, 8_000))
    X.sum_duplicates()
    return X, X @ rng.standard_normal(8_000) > 0


def test_held_out_rows_do_not_judge_a_trial_that_has_a_small_share_of_the_rows() -> None:
    X, y = separable_rows(215_000)
    given = Linear((X[:-5_000], y[:-5_000]), l2=1e-6)
    judge = given.encoded(as_dataset((X[-5_000:], y[-5_000:])))
    assert chosen(given, epochs=4, held_out=judge).step == chosen(given, epochs=4).step


def test_held_out_rows_exclude_steps_with_which_their_loss_rises_on_any_share_of_the_rows() -> None:
    X, y = separable_rows(215_000)
    noise = np.random.default_rng(1).random(len(y)) < 0.5  # labels that no model predicts
    given = Linear((X[:-5_000], noise[:-5_000]), l2=0.0)
    judge = given.encoded(as_dataset((X[-5_000:], noise[-5_000:])))
    assert chosen(given, epochs=4, held_out=judge).step < chosen(given, epochs=4).step / 4


def test_a_trial_that_held_out_rows_judge_has_half_of_the_rows(made: list[tuple[float, int]]) -> None:
    X, y = separable_rows(45_000)
    given = Linear((X[:-5_000], y[:-5_000]), l2=1e-6)
    judge = given.encoded(as_dataset((X[-5_000:], y[-5_000:])))
    chosen(given, epochs=10, held_out=judge)
    assert max(updates for _, updates in made) == 20_000


def test_a_rule_that_needs_no_step_is_not_searched_for_one(made: list[tuple[float, int]]) -> None:
    choose_step(problem("hinge"), PassiveAggressive(), Constant(), epochs=5, seed=0)
    assert len(made) < 20


def test_schedules_pass_in_a_trial_as_in_the_run() -> None:
    given, schedule, seen = problem(), InverseTime(decay=0.3), []
    trials = TrialRunner(given, named("sgd"), schedule, 20, 0, alone=True, judge=None, updates=800)

    def descend(chunk: Any, rates: Any, state: Any, sync: Any) -> float:
        seen.append(rates)
        return 0.0

    trials.descend = descend
    trials.objective(0.25, updates=800)
    rows = given.data.n_rows
    run = StepSizes(InverseTime(0.25, 0.3), rows, 20).rates(0, 20 * rows)
    assert seen[0] == pytest.approx(run[:: len(run) // 800], rel=1e-3)


def test_columns_that_a_sample_lacks_change_nothing() -> None:
    X = sp.random(3_000, 400, density=0.005, random_state=0, format="csr", dtype=np.float32)
    far = sp.csr_matrix((X.data, X.indices * 900, X.indptr), (len(X.indptr) - 1, 400 * 900))
    y = np.sign(X @ np.random.default_rng(0).standard_normal(400) + 0.1)
    near_choice, far_choice = chosen(Linear((X, y), l2=1e-4)), chosen(Linear((far, y), l2=1e-4))
    assert near_choice == far_choice


def test_a_narrow_sample_is_walked_by_the_same_loop() -> None:
    columns = np.random.default_rng(0).integers(300_000, size=10_000)
    X = sp.csr_matrix((np.ones(10_000, np.float32), (np.arange(10_000) % 1_000, columns)), (1_000, 300_000))
    given, rule = Linear((X, np.arange(1_000) % 2), l2=1e-4), named("adagrad")
    small = given.sample(500, 0, narrow=True)
    assert small.source.n_features < 20_000
    assert small.kernel(rule, "free", 1).kernel is given.kernel(rule, "free", 1).kernel


def test_a_class_that_the_sample_lacks_has_its_weight() -> None:
    X, y = arrays()
    y = np.where(np.arange(len(y)) == 17, 1.0, -1.0)
    given = Linear((X, y), class_weight="balanced")
    assert np.array_equal(given.sample(100, 0)._class_weights, given._class_weights)
    assert np.isfinite(chosen(given).step)


def test_a_class_of_which_a_short_trial_has_next_to_nothing_is_worth_long_ones(made: list[tuple[float, int]]) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 20)).astype(np.float32)
    rare = np.argsort(X[:, 0])[-6:]
    chosen(Linear((X, np.isin(np.arange(30_000), rare)), "hinge", l2=1e-4))
    long = max(updates for _, updates in made)
    made.clear()
    chosen(Linear((X, X[:, 0] > 1), "hinge", l2=1e-4))
    assert long > 10 * max(updates for _, updates in made)


def test_a_resumed_run_does_not_try_again(tmp_path: Any, made: list[tuple[float, int]]) -> None:
    how: dict[str, Any] = {"strategy": "serial", "budget": 3, "checkpoint": tmp_path}
    with pytest.raises(Killed):
        minimise(problem(), callbacks=[Dying()], **how)
    assert made
    made.clear()
    resumed = minimise(problem(), resume=True, **how)
    assert not made
    assert not told(resumed, "step chosen")


def found(tried: dict[float, float], updates: int = 1) -> step_search.StepSearch:
    return step_search.StepSearch(None, updates, tried=tried)  # type: ignore[arg-type]  # nothing is tried any more


def test_the_lowest_point_lies_between_the_steps_that_were_tried() -> None:
    assert found({0.5: 2.0, 1.0: 1.0, 2.0: 2.0}).bottom == 0.0
    assert found({0.5: 2.0, 1.0: 1.0, 2.0: 1.0, 4.0: 2.0}).bottom == pytest.approx(0.5)
    assert found({0.5: 2.0, 1.0: 1.0, 2.0: np.inf}).bottom == 0.0


def test_a_step_that_falls_with_the_square_root_of_length_has_a_slope_of_minus_a_half() -> None:
    short = found({1.0: 2.0, 2.0: 1.0, 4.0: 2.0}, updates=100)
    assert found({0.5: 2.0, 1.0: 1.0, 2.0: 2.0}, updates=400).slope(short) == pytest.approx(-0.5)


def test_a_cliff_is_where_twice_the_step_explodes() -> None:
    assert found({0.5: 2.0, 1.0: 1.0, 2.0: 50.0}).ends_at_a_cliff
    assert not found({0.5: 50.0, 1.0: 1.0, 2.0: 2.0}).ends_at_a_cliff


@pytest.mark.parametrize("schedule", [Cosine(), Cosine(floor=0.1), Constant(), InverseTime(0.5)], ids=str)
@pytest.mark.parametrize("step", [2.0**-12, 0.5, 1.0, 8.0])
def test_step_sizes_of_a_trial_are_those_of_its_schedule_to_the_last_bit(schedule: Any, step: float) -> None:
    trials = TrialRunner(Linear(arrays(rows=3_000)), named("adagrad"), schedule, 3.0, 0, True, None, 1_000)
    wanted = StepSizes(with_step(schedule, step), 1_000 / 3.0, 3.0, precision=np.float32).rates(0, 1_000)
    for _ in range(2):  # Those of a proportional schedule are kept.
        assert np.array_equal(trials._rates(step, 1_000), wanted)


@pytest.mark.parametrize("rows", [300, 30_000])
def test_the_loss_at_the_start_is_that_of_a_sample(rows: int) -> None:
    run = minimise(Linear(arrays(rows=rows)), strategy="serial", budget=1)
    found = [event["loss"] for event in run.events if event["event"] == "training"]
    assert found == [pytest.approx(np.log(2.0))]
