"""Findings say what the figures say, in both directions. The figures here are made up."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace

import pytest

from hogwild.errors import DivergedError
from hogwild.lab.experiment import Mean, Results, lowest, reached, to_target
from hogwild.lab.experiments import (
    batch_size,
    collisions,
    compare,
    delays,
    hardware,
    one_pass,
    paper,
    scale_out,
    schedules,
    sparse_networks,
    strategies,
    topologies,
)
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
    assert texts[0] == "Lowest held-out loss at the end: serial, constant, 0.5."
    assert "by the clock serial, constant, after 0.5 s; by epochs serial, constant, after 1." in texts[2]
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


def delay_records(whose: str, step: float, excesses: list[float | None]) -> tuple[dict[str, object], ...]:
    return tuple(
        {"whose": whose, "step": step, "time": "constant", "correction": "none", "seed": seed, "excess": excess,
         "diverged": int(excess is None)}
        for seed, excess in enumerate(excesses)
    )  # fmt: skip


@pytest.mark.parametrize(("late", "holds", "words"), [
    ([50.0, 50.1], True, ": delay harms more when the step is large."),
    ([1.5, 1.5], False, "not to be seen here."),
    ([None, None], True, "they came to diverged, where one without delay came to 1"),
    ([2.0, 2.0], None, "not to be seen here."),
    ([50.0], None, "delay harms more"),  # one seed is no evidence
])  # fmt: skip
def test_more_harm_with_a_large_step_is_said_only_if_there_is(late, holds, words):
    trials = [*delay_records("equal", 0.5, late), *delay_records("none", 0.5, [1.0] * len(late))]
    trials += [*delay_records("equal", 0.05, [2.0] * len(late)), *delay_records("none", 0.05, [1.0] * len(late))]
    found = delays.read(Results(tuple(trials)))[0][0]
    assert found.holds is holds
    assert words in found.text


def test_without_a_single_worker_that_ends_nothing_is_said_of_the_step():
    trials = [*delay_records("equal", 0.5, [1.0, 1.0]), *delay_records("none", 0.5, [None, None])]
    trials += [*delay_records("equal", 0.05, [2.0, 2.0]), *delay_records("none", 0.05, [1.0, 1.0])]
    findings = delays.read(Results(tuple(trials)))[0]
    assert [finding.text for finding in findings] == ["Diverged, and left out of all means: none, step 0.5 (2 of 2)."]


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


# Divergence


def went_on_with_half_the_step(*args, **kwargs):
    return SimpleNamespace(events=[{"event": "started"}, {"event": "diverged", "epoch": 1, "scale": 0.5}])


def gave_up(*args, **kwargs):
    raise DivergedError("The loss exploded.")


POINTS = [
    (delays, {"step": 0.5, "whose": "equal", "time": "constant", "correction": "none"}),
    (delays, {"step": 0.5, "where": "memory", "delay": "none"}),
    (schedules, {"schedule": "cosine", "strategy": "serial"}),
    (strategies, {"strategy": "DiLoCo"}),
    (topologies, {"problem": topologies.LINEAR, "topology": "ring"}),
    (one_pass, {"problem": "least squares", "method": one_pass.ONE, "rows": 100}),
    (paper, {"data": "DBLife", "strategy": "hogwild", "workers": 1, "scale": 1e-4}),
]


@pytest.mark.parametrize("ends", [went_on_with_half_the_step, gave_up])
@pytest.mark.parametrize(("module", "point"), POINTS)
def test_a_run_with_half_the_step_is_no_measurement_of_the_step_that_was_given(module, point, ends, monkeypatch):
    monkeypatch.setattr(module, "minimise", ends)
    figures = module.trial(point, 0)
    assert figures["diverged"] == 1
    assert figures.get("excess") is None


@pytest.mark.parametrize("ends", [went_on_with_half_the_step, gave_up])
@pytest.mark.parametrize("point", [{"mode": "scaled", "times": 16}, {"batch": 64, "workers": 1}])
def test_large_batches_that_diverge_count_as_guessing(point, ends, monkeypatch):
    pytest.importorskip("torch", reason="pip install 'hogwild[torch]'")
    monkeypatch.setattr(batch_size, "minimise", ends)
    figures = batch_size.trial(point, 0)
    assert figures["diverged"] == 1
    assert figures.get("test_error", batch_size.GUESSING) == pytest.approx(0.9)


def test_delays_with_a_step_of_nine_tenths_diverge():
    point = {"step": 0.9, "whose": "equal", "time": "constant", "correction": "none"}
    assert delays.trial(point, 0)["diverged"] == 1
    assert delays.trial({**point, "step": delays.LARGE, "whose": "none"}, 0)["diverged"] == 0


def test_a_setting_that_diverges_is_not_the_best():
    records = ({"w": 1, "loss": 2.0, "diverged": 0}, {"w": 2, "loss": 1.0, "diverged": 0}, {"w": 2, "diverged": 1})
    assert lowest(Results(records), "loss", "w") == 1


# Fabricated outcomes: some or all diverged, one seed, settings without trials, figures without values

SHARPNESS = ("sharpness", "ball_2_loss", "ball_2_gradient_norm")


def fabricated(name: str, seeds: int):
    """Return records of each experiment with all figures, in which nothing has gone wrong."""
    curve = {"epochs": [1, 2], "times": [0.5, 1.0], "curve": [0.5, 0.4], "test_curve": [0.6, 0.5]}
    figures = {
        "delays": {"excess": 0.1, "test_loss": 1.0, "staleness": 3.0, "staleness_p95": 5.0, "seconds": 1.0},
        "batch_size": {"test_error": 0.05, "loss": 0.1, "epoch_seconds": 1.0},
        "schedules": {"objective": 0.4, "test_loss": 0.5, "excess": 0.1, "smaller_steps": 1, **curve},
        "scale_out": {
            "seconds": 1.0, "node_seconds": 4.0, "bytes": 1e4, "epochs": 1.5, "idle": 0.2, "interval": 100.0,
        },
        "hardware": {"objective": 0.4, "epochs_a_second": 10.0, "step": 0.5, "workers": 2, "density": 0.1, **curve},
        "strategies": {"excess": 0.1, "test_loss": 0.5, "seconds": 1.0, "bytes": 1e4, "idle": 0.2, "staleness": 1.0},
        "topologies": {
            "consensus": 0.1, "bytes": 1e4, "simulated_seconds": 1.0, "train_loss": 0.2, "test_loss": 0.3,
            "gap_to_test": 0.1, "norm": 5.0, "excess": 0.1, **dict.fromkeys(SHARPNESS, 0.5),
        },
        "one_pass": {"times": 1.2, "seconds": 1.0, "samples": 100, "step": 1.0, "train_loss": 0.1, "staleness": 1.0},
        "paper": {"seconds": 1.0, "error": 0.1, "objective": 0.1, "rows": 10, "coordinates": 5},
        "sparse_networks": {
            "samples_a_second": 100.0, "train_loss": 0.5, "test_loss": 0.6, "test_accuracy": 0.7, "parameters": 10,
        },
        "compare": {
            "objective": 0.4, "test_loss": 0.5, "seconds": 1.0, "score": 0.9, "samples": [1, 2], "halvings": 0, **curve,
        },
    }  # fmt: skip
    own = [
        {"strategy": strategy, "workers": 1, "schedule": schedule, "target": None, "given_target": False}
        for strategy in ("serial", "hogwild") for schedule in ("constant", "cosine")
    ]  # fmt: skip
    module = {module.__name__.rpartition(".")[2]: module for module in READ}[name]
    points = own if module is compare else module.experiment.points
    fixed = {
        "strategies": lambda point: {
            "kind": "by messages" if point["strategy"] in strategies.BY_MESSAGES else "in one memory"
        },
        "topologies": lambda point: {"gap": 0.1 + 0.1 * topologies.NAMES.index(point["topology"]), "changes": False,
                                     "neighbours": 2},
        "hardware": lambda point: {"cell": hardware.CELLS[point["hardware"], point["method"]], "cores": 2},
        "paper": lambda point: {"cores": 2}, "sparse_networks": lambda point: {"cores": 2},
    }.get(name, lambda point: {})  # fmt: skip
    return module, [
        ({**point, "seed": seed, **fixed(point)},
         {key: value * (1 + 0.01 * seed + 0.001 * place) if isinstance(value, float) else value
          for key, value in figures[name].items()})
        for place, point in enumerate(points) for seed in range(seeds)
    ]  # fmt: skip


READ = (
    delays, batch_size, hardware, scale_out, schedules, strategies, topologies, one_pass, paper, sparse_networks,
    compare,
)  # fmt: skip
WRONG = re.compile(r"\bnan\b|\binf\b|unknown|\b1 workers|\b1 cores|: \.|\(\)| less \.|ring less ring|: unknown")


def outcomes(name: str, case: str):
    module, trials = fabricated(name, 1 if case == "one seed" else 3)
    guessing = {"test_error": batch_size.GUESSING} if module is batch_size else {}

    def record(place: int, settings, figures):
        if case == "all diverged" or (case == "all but one diverged" and place) or (case == "some" and place % 3 == 1):
            return {**settings, "diverged": 1, **guessing}
        if case == "no values":
            return {**settings, "diverged": 0, **dict.fromkeys(figures), **guessing}
        return {**settings, "diverged": 0, **figures}

    records = [record(place, *trial) for place, trial in enumerate(trials)]
    kept = {"every third setting": records[::3], "the first half": records[: len(records) // 2]}
    return module, Results(tuple(kept.get(case, records)))


@pytest.mark.parametrize("case", ["all", "all diverged", "all but one diverged", "some", "one seed", "no values",
                                  "every third setting", "the first half"])  # fmt: skip
@pytest.mark.parametrize("name", [module.__name__.rpartition(".")[2] for module in READ])
def test_findings_are_sentences_whatever_the_outcome(name, case):
    module, results = outcomes(name, case)
    findings, parts = module.read(results)
    assert not [finding.text for finding in findings if WRONG.search(finding.text)]
    assert parts
    if case == "all":
        assert findings
    if "diverged" in case and module is not sparse_networks:
        assert any("iverged, and " in finding.text for finding in findings)
    if case == "all diverged":
        assert all(finding.holds is None for finding in findings if "iverged" not in finding.text
                   and "failed" not in finding.text)  # fmt: skip


@pytest.mark.parametrize(("order", "holds", "words"), [
    (-1, True, "the larger the gap, the nearer workers are to each other"),
    (1, False, "the larger the gap, the further apart workers are"),
])  # fmt: skip
def test_agreement_by_the_spectral_gap_is_what_was_measured(order, holds, words):
    module, trials = fabricated("topologies", 2)
    records = tuple(
        {**settings, **figures, "diverged": 0, "consensus": 1.0 + order * settings["gap"]}
        for settings, figures in trials
    )
    findings, parts = module.read(Results(records))
    assert findings[0].holds is holds
    assert words in findings[0].text
    assert "nearer" not in parts[0].words


def test_one_topology_is_compared_with_none():
    module, trials = fabricated("topologies", 2)
    records = tuple({**settings, **figures} for settings, figures in trials if settings["topology"] == "torus")
    assert module.read(Results(records))[0] == []


def test_the_choice_of_the_best_of_many_passes_widens_the_interval():
    losses = {one_pass.ONE: [1.0, 1.2, 0.9, 1.1], **{name: [1.15, 1.21, 1.07, 1.17] for name in one_pass.MANY}}
    records = tuple(
        {"problem": "least squares", "method": name, "seed": seed, "times": loss, "seconds": 1.0, "samples": 10}
        for name, values in losses.items() for seed, loss in enumerate(values)
    )  # fmt: skip
    three = one_pass.read(Results(records))[0][0]
    one = one_pass.read(Results(tuple(record for record in records if record["method"] != one_pass.MANY[0]
                                      and record["method"] != one_pass.MANY[1])))[0][0]  # fmt: skip
    assert "corrected for a choice among 3" in three.text
    assert "corrected" not in one.text

    def width(text):
        low, high = map(float, re.search(r"Difference \S+ \((\S+) to (\S+)\)", text).groups())
        return high - low

    assert width(three.text) > width(one.text)


def test_one_thread_is_not_asynchronous():
    records = tuple(
        {"problem": one_pass.OWN, "method": name, "seed": 0, "test_loss": 0.5, "seconds": 1.0, "samples": 10,
         "workers_used": used}
        for name in one_pass.METHODS for used in [1]
    )  # fmt: skip
    texts = [finding.text for finding in one_pass.read(Results(records))[0]]
    assert any("nothing was asynchronous about" in text for text in texts)
    several = Results(tuple({**record, "workers_used": 2} for record in records))
    assert not any("nothing was asynchronous" in finding.text for finding in one_pass.read(several)[0])


def test_compare_shows_which_runs_had_their_step_halved():
    records = [compare_record("serial", "constant", [0.6, 0.5]), compare_record("hogwild", "constant", [0.7, 0.6])]
    records[1]["halvings"] = 2
    findings, parts = compare.read(Results(tuple(records)))
    assert findings[-1].text.endswith("a smaller step than their schedule has: hogwild, 2 workers (1 of 1).")
    assert [row[-1] for row in parts[-1].rows] == ["0 of 1 runs", "1 of 1 runs"]


def test_compare_says_nothing_twice_and_has_no_error_of_one_seed():
    records = [compare_record(strategy, "constant", [0.7, 0.59]) for strategy in ("serial", "hogwild", "averaging")]
    records[1]["workers"] = 1
    texts = [finding.text for finding in compare.read(Results(tuple(records)))[0]]
    assert texts[0] == (
        "Lowest held-out loss at the end: serial, 0.59. Not to be told apart from it by these seeds: "
        "hogwild, 1 worker; averaging, 2 workers."
    )
    assert texts[1].startswith("Shortest run, whatever its loss: serial, 1 s for all epochs. Not to be told apart")
    assert "±" not in "".join(texts)
    several = compare.read(Results(tuple({**record, "test_loss": 0.6 - 0.01 * place}
                                         for place, record in enumerate(records[:2]))))[0]  # fmt: skip
    assert several[0].text == "Lowest held-out loss at the end: hogwild, 1 worker, 0.59."


def test_compare_does_not_call_first_what_came_to_the_target_by_chance():
    def record(strategy: str, seed: int, losses: list[float], second: float):
        return {**compare_record(strategy, "constant", losses), "seed": seed, "target": 0.5, "given_target": True,
                "times": [second, 2 * second], "seconds": 2 * second}  # fmt: skip

    often = [record("serial", seed, [0.6, 0.45], 1.0) for seed in range(2)]
    seldom = [record("averaging", seed, losses, 0.1) for seed, losses in enumerate(([0.6, 0.4], [0.6, 0.55]))]
    text = compare.read(Results((*often, *seldom)))[0][2].text
    assert "by the clock serial, after 2 s" in text
    assert "In fewer runs: averaging, 2 workers." in text


def test_collisions_without_some_trials():
    records = tuple(
        {"features": features, "exponent": 0.0, "workers": workers, "seed": seed, "cores": 2, "seconds": 1.0 / workers,
         "observed_seconds": 3.0, "missed": 0.1, "predicted_missed_by_staleness": 0.1, "collided": 0.5,
         "lost_of_a_million": 10.0 / features, "staleness": 1.0 * workers}
        for features in (16, 1024) for workers in (1, 2, 4) for seed in range(2)
    )  # fmt: skip
    assert len(collisions.read(Results(records))[0]) == 5
    for kept in (records[:1], records[:6], records[6:], records[2:], [r for r in records if r["workers"] > 1],
                 [r for r in records if r["workers"] == 1]):  # fmt: skip
        findings, _ = collisions.read(Results(tuple(kept)))
        assert not [finding.text for finding in findings if WRONG.search(finding.text)]


def test_equal_values_have_no_spread():
    assert str(Mean.of([0.1 * 1.01] * 3)) == "0.101"
