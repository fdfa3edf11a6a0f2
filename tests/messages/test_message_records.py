"""Records and limits of runs by messages: steps, intervals, stalls, and budgets in seconds."""

from __future__ import annotations

import math

import pytest
from talkers import TALKERS, train

from hogwild import Adaptive, Budget, Constant, Cosine, Local, ParameterServer, Simulator, Synchronous
from hogwild.errors import ParameterError
from hogwild.stopping import RecordInterval

STALLS = Budget(epochs=40, tolerance=0.02, stall_epochs=2)


@pytest.mark.parametrize("name", sorted(TALKERS))
def test_every_record_has_its_step(name):
    run = train(TALKERS[name], Simulator(), budget=3, schedule=Constant(0.125))
    assert [record["step"] for record in run.history] == [0.125] * len(run.history)


@pytest.mark.parametrize("name", sorted(set(TALKERS) - {"averaging"}))
def test_a_budget_in_seconds_ends_a_run_of_any_strategy(name):
    run = train(TALKERS[name], Simulator(0.001), budget=Budget(seconds=0.3))
    assert run.stop_reason == "seconds"
    assert 0.3 <= run.seconds < 0.4
    assert run.history[-1]["epoch"] >= 1


@pytest.mark.parametrize("name", sorted(set(TALKERS) - {"averaging"}))
def test_a_schedule_follows_the_seconds_of_a_budget(name):
    run = train(TALKERS[name], Simulator(0.001), budget=Budget(seconds=0.4), schedule=Cosine(0.2))
    steps = [record["step"] for record in run.history]
    assert steps == sorted(steps, reverse=True)
    assert steps[-1] < 0.02 < 0.1 < steps[0]


@pytest.mark.parametrize("runtime", [Simulator(), Local()], ids=["simulator", "local"])
@pytest.mark.parametrize("strategy", [ParameterServer(2), Synchronous(2)], ids=["server", "synchronous"])
def test_the_adaptive_schedule_makes_smaller_steps_after_stalls(strategy, runtime):
    run = train(strategy, runtime, budget=STALLS, schedule=Adaptive(0.1, factor=5.0, least=0.003))
    assert run.stop_reason == "tolerance"
    steps = sorted({round(record["step"], 6) for record in run.history}, reverse=True)
    assert steps == [0.1, 0.02, 0.004, 0.0008]


def test_workers_that_meet_once_at_the_end_need_a_number_of_epochs():
    with pytest.raises(ParameterError, match="epochs"):
        train(TALKERS["averaging"], Simulator(), budget=Budget(seconds=0.3))


def test_the_adaptive_schedule_needs_a_tolerance_by_messages_too():
    with pytest.raises(ParameterError, match="tolerance"):
        train(ParameterServer(2), Simulator(), budget=3, schedule=Adaptive(0.1))


@pytest.mark.parametrize("every", [None, 30])
@pytest.mark.parametrize("name", sorted(TALKERS))
def test_no_moment_is_recorded_twice(name, every):
    run = train(TALKERS[name], Simulator(), budget=3, every=every)
    updates = [record["updates"] for record in run.history]
    assert updates == sorted(set(updates))
    assert [record["epoch"] for record in run.history].count(3) == 1
    assert all(math.isfinite(record["met"]) for record in run.history)
    assert [event["updates"] for event in run.events if event["event"] == "epoch"] == updates
    assert run.result["updates"] == updates[-1]


@pytest.mark.parametrize("strategy", [ParameterServer(2), Synchronous(2)], ids=["server", "synchronous"])
def test_a_target_that_the_last_epoch_reaches_is_the_reason(strategy):
    lost = [record["loss"] for record in train(strategy, Simulator(), budget=3, step=0.01).history]
    assert lost[2] < min(lost[:2])
    run = train(strategy, Simulator(), budget=Budget(epochs=3, target=lost[2]), step=0.01)
    assert (run.stop_reason, len(run.history)) == ("target", 3)


def test_records_every_so_many_updates():
    run = train(ParameterServer(2), Simulator(), budget=2, every=30)
    updates = [record["updates"] for record in run.history]
    assert updates == sorted(updates)
    assert len(updates) >= 7
    assert [record["epoch"] for record in run.history] == sorted(record["epoch"] for record in run.history)
    assert all("objective" in record for record in run.history)


def test_records_every_so_many_seconds():
    run = train(ParameterServer(2), Simulator(0.001), budget=2, every="0.02s")
    between = [record["seconds"] for record in run.history]
    assert between[:2] == pytest.approx([0.02, 0.04], abs=0.005)


def test_records_between_epochs_do_not_count_as_epochs_without_improvement():
    budget = Budget(epochs=4, tolerance=10.0, stall_epochs=3)
    run = train(ParameterServer(2), Simulator(), budget=budget, every=10)
    assert run.stop_reason == "epochs" or run.history[-1]["epoch"] == 4


def test_a_window_without_a_better_loss_ends_a_run():
    run = train(ParameterServer(2), Simulator(), budget=Budget(epochs=60, window=3), schedule=Constant(0.3))
    assert run.stop_reason == "tolerance"
    values = [record["objective"] for record in run.history]
    assert min(values[-3:]) >= min(values[-6:-3])


@pytest.mark.parametrize("every", [0, -1, "x", "0s", True, "s", 2.5])
def test_other_intervals_are_refused(every):
    with pytest.raises(ParameterError, match="every"):
        RecordInterval.parse(every)
