"""Findings say what the figures say, in both directions. The figures here are made up."""

from __future__ import annotations

import itertools

import pytest

from hogwild.lab.experiment import Mean, Results, reached, to_target
from hogwild.lab.experiments import batch_size, compare, delays, paper, schedules
from hogwild.lab.report_model import Table


def paper_results(round_robin: dict[str, float]) -> Results:
    return Results(tuple(
        {"data": data, "strategy": strategy, "workers": workers, "seed": 0, "cores": 2, "rows": 10, "coordinates": 5,
         "error": 0.1, "seconds": (round_robin[data] if strategy == "round-robin" else 1.0) / workers}
        for data in round_robin for strategy in paper.STRATEGIES for workers in (1, 2)
    ))  # fmt: skip


def test_as_in_the_paper_is_said_only_if_it_is():
    as_there = paper.read(paper_results({"RCV1": 3.0, "KDD": 2.0}))[0][0]
    assert as_there.holds
    assert as_there.text.endswith("on 2 of 2 data sets, as in the paper.")
    unlike = paper.read(paper_results({"RCV1": 3.0, "KDD": 0.5}))[0][0]
    assert unlike.holds is False
    assert "as in the paper" not in unlike.text
    assert "on 1 of 2 data sets; unlike in the paper it was not on KDD" in unlike.text


def test_data_sets_without_both_times_are_left_out():
    records = [record for record in paper_results({"RCV1": 3.0}).records if record["strategy"] != "round-robin"]
    findings, _ = paper.read(Results(tuple(records)))
    assert findings[0].holds is None


def schedule_record(schedule: str, strategy: str, losses: list[float], seed: int = 0, **more):
    return {
        "schedule": schedule, "strategy": strategy, "seed": seed, "diverged": 0, "excess": losses[-1], "objective": 1.0,
        "test_loss": losses[-1], "epochs": [*range(1, len(losses) + 1)], "curve": losses, "test_curve": losses,
        "times": [0.5 * (k + 1) for k in range(len(losses))], "smaller_steps": 0, **more,
    }  # fmt: skip


def test_schedules_by_the_epochs_to_a_held_out_loss():
    results = Results(tuple(
        record for seed in (0, 1) for record in (
            schedule_record("constant", "serial", [0.9, 0.8, 0.5], seed),
            schedule_record("cosine", "serial", [0.9, 0.5, 0.5], seed),
            schedule_record("adaptive", "serial", [0.9, 0.8, 0.7], seed, smaller_steps=2 * seed),
        )
    ))  # fmt: skip
    findings, parts = schedules.read(results)
    assert "serial: cosine needed the fewest epochs" in findings[0].text
    assert ": 2 (1 s); a constant step: 3." in findings[0].text
    assert "made its step smaller so many times in a run: 1.0 ± 1.0 (serial)." in findings[-1].text
    tables = {part.title: {row[0]: row[1] for row in part.rows} for part in parts if isinstance(part, Table)}
    assert tables["Epochs to a held-out loss 1% above the lowest"] == {
        "constant": "3", "cosine": "2", "adaptive": "never reached",
    }  # fmt: skip
    assert not any("nan" in cell for table in tables.values() for cell in table.values())


def test_a_schedule_that_never_stalled_was_a_constant_step():
    results = Results((schedule_record("adaptive", "serial", [0.9, 0.8]), schedule_record("constant", "serial", [0.9])))
    assert "Without a stall within 20 epochs it was a constant step: serial." in schedules.read(results)[0][-1].text


def test_diverged_runs_are_not_numbers_in_the_table():
    lost = {"schedule": "steps", "strategy": "serial", "seed": 0, "diverged": 1, "excess": None, "objective": None,
            "test_loss": None}  # fmt: skip
    mine = [schedule_record("constant", "serial", [0.9, 0.8]), lost]
    results = Results(tuple({**record, "excess": None} for record in mine))  # own data: no optimum is known
    findings, parts = schedules.read(results)
    assert "lowest held-out loss" in findings[1].text
    assert parts[-1].rows == (("constant", "0.8"), ("steps", "diverged"))


def test_a_target_can_be_given_and_missed_by_some():
    records = tuple(
        {"seed": seed, "name": "a", "test_curve": [0.6, 0.4 + 0.2 * seed], "epochs": [1, 2], "times": [1.0, 2.0],
         "target": 0.45}
        for seed in range(2)
    )  # fmt: skip
    found = to_target(Results(records))
    assert [record["seconds_to_target"] for record in found.records] == [2.0, None]
    assert reached(found, "seconds_to_target", name="a") == "2 (1 of 2 runs)"


def compare_record(strategy: str, schedule: str, losses: list[float]):
    return {
        "strategy": strategy, "workers": 1 if strategy == "serial" else 2, "schedule": schedule, "seed": 0,
        "target": None, "given_target": False, "objective": losses[-1], "test_loss": losses[-1], "seconds": 1.0,
        "score": None, "bytes": None, "staleness": None, "epochs": [1, 2], "times": [0.5, 1.0], "samples": [10, 20],
        "curve": losses, "test_curve": losses,
    }  # fmt: skip


def test_compare_by_strategy_and_schedule():
    losses = {("serial", "constant"): [0.5, 0.5], ("serial", "cosine"): [0.9, 0.6], ("hogwild", "constant"): [0.8, 0.7],
              ("hogwild", "cosine"): [0.8, 0.6]}  # fmt: skip
    results = Results(tuple(compare_record(*key, curve) for key, curve in losses.items()))
    findings, parts = compare.read(results)
    texts = [finding.text for finding in findings]
    assert texts[0] == "serial, constant came to the least held-out loss: 0.5."
    assert "serial, constant was the first" in texts[2]
    assert "never reached by: serial, cosine; hogwild, 2 workers, constant; hogwild, 2 workers, cosine." in texts[2]
    assert texts[4].startswith("hogwild, 2 workers: of the schedules cosine had the lowest held-out loss, 0.6")
    assert [row[5] for row in parts[-1].rows] == ["0.5", "never reached", "never reached", "never reached"]


@pytest.mark.parametrize(("seconds", "verdict"), [
    ({64: (4.0, 2.0), 1024: (1.0, 0.5)}, "More workers are faster with every batch"),
    ({64: (4.0, 5.0), 1024: (1.0, 0.5)}, "More workers are faster with a batch of 1024 only"),
    ({64: (4.0, 5.0), 1024: (1.0, 2.0)}, "Here no batch is large enough"),
])  # fmt: skip
def test_the_time_of_an_epoch_by_batch_and_workers(seconds, verdict):
    results = Results(tuple(
        {"batch": batch, "workers": workers, "seed": 0, "epoch_seconds": seconds[batch][workers - 1]}
        for batch in seconds for workers in (1, 2)
    ))  # fmt: skip
    findings, parts = batch_size.read(results)
    assert "4 times as fast, at equal arithmetic" in findings[0].text
    assert verdict in findings[1].text
    assert isinstance(parts[-1], Table)
    assert parts[-1].rows[0] == (64, "4", str(int(seconds[64][1])))


@pytest.mark.parametrize(("large", "holds"), [(50.0, True), (1.5, False)])
def test_more_harm_with_a_large_step_is_said_only_if_there_is(large, holds):
    def mean(value):
        return Mean(value, 0.0, 0.0, 1)

    found = delays._by_step({0.05: (mean(2.0), mean(1.0)), 0.9: (mean(large), mean(1.0))})
    assert found.holds is holds
    assert found.text.endswith("delay harms more when the step is large.") is holds


@pytest.mark.parametrize("harm", [1.0, 50.0])
def test_delays_simulated_and_on_real_threads(harm):
    results = Results(tuple(
        {"where": place, "delay": kind, "step": delays.LARGE, "seed": seed, "test_loss": 1.0, "seconds": 1.0,
         "excess": 0.01 * (harm if kind == "drawn" and place == "memory" else 1) + 0.0001 * seed,
         "staleness": None if place == "memory" and kind == "none" else 3.0, "staleness_p95": 5.0}
        for place, kind, seed in itertools.product(delays.PLACES, delays.INJECTED, range(3))
    ))  # fmt: skip
    told = delays._kinds(results, "memory").text
    assert "threads in one memory came to a distance of none 0.01" in told
    assert ("further from the optimum than without delay: drawn." in told) == (harm > 1)
    assert ("no kind of delay did harm" in told) == (harm == 1)
    table = delays._injected_parts(results)[-1]
    assert isinstance(table, Table)
    assert len(table.rows) == len(delays.PLACES) * len(delays.INJECTED)
