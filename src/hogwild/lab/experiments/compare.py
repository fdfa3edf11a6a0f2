"""Experiment on the user's data: strategies, numbers of workers and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from hogwild import schedules, strategies
from hogwild.errors import DivergedError
from hogwild.lab.experiment import (
    NEAR_BEST,
    Experiment,
    Mean,
    OwnRows,
    Point,
    Results,
    budget_for,
    counted,
    diverged_runs,
    divergences,
    each,
    lowest,
    outcome,
    reached,
    to_target,
)
from hogwild.lab.report_model import Chart, Finding, Part, Table
from hogwild.problems.linear import Linear
from hogwild.runtimes import Local, Threads
from hogwild.training.minimise import minimise

opened = cache(OwnRows.open)


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train in real time. A run that went on with half the step is the one that the user would get, and is marked."""
    rows = opened(point["data"], point["holdout"])
    problem = Linear(rows.training, point["loss"], l2=point["l2"])
    strategy = strategies.named(point["strategy"], None if point["strategy"] == "serial" else point["workers"])
    schedule = schedules.named(point["schedule"])
    try:
        run = minimise(
            problem, point["rule"], schedule, strategy, Threads() if strategy.shares_memory else Local(),
            budget_for(schedule, point["epochs"], rows.scale), test=rows.held_out, seed=seed,
        )  # fmt: skip
    except DivergedError:
        return {"diverged": 1}
    score = next((name for name in run.result if name in ("test_accuracy", "test_r2")), None)
    return {
        "diverged": 0, "halvings": divergences(run), "objective": run.objective, "loss": run.loss,
        "test_loss": run.result["test_loss"], "seconds": run.seconds,
        "score": run.result[score] if score else None, "score_name": (score or "").removeprefix("test_"),
        "bytes": run.traffic["bytes"] if run.traffic else None,
        "staleness": run.staleness["mean"] if run.staleness else None,
        "epochs": [record["epoch"] for record in run.history],
        "times": [record["seconds"] for record in run.history],
        "samples": [record["updates"] for record in run.history],
        "curve": [record["objective"] for record in run.history],
        "test_curve": [record.get("test_loss") for record in run.history],
    }  # fmt: skip


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Find the combination with the lowest held-out loss, and those that reach the target first."""
    results = to_target(results)
    several = len(results.values("schedule")) > 1
    named = Results(tuple({**record, "label": _label(record, several)} for record in results.records))
    names = named.values("label")
    findings = _best(named) if named.mean("test_loss").count else []
    if several:
        findings += _by_schedule(named)
    findings += [*_halved(named), *diverged_runs(named, "label")]
    parts: list[Part] = [
        Chart("Objective against time", "seconds", "objective",
              each(names, lambda name: named.curve("times", "curve", name, label=name)),
              "Objective against seconds of training, for each combination.", log_x=True),
        Chart("Held-out loss against time", "seconds", "held-out loss",
              each(names, lambda name: named.curve("times", "test_curve", name, label=name)),
              "Held-out loss against seconds of training, for each combination.", log_x=True),
        Chart("Objective against samples", "samples", "objective",
              each(names, lambda name: named.curve("samples", "curve", name, label=name)),
              "Objective against samples, for each combination.", log_x=True),
        Table(
            "All of them",
            ("strategy", "workers", "schedule", "seconds", "epochs to target", "seconds to target", "objective",
             "held-out loss", "held-out score", "bytes", "staleness", "step halved"),
            tuple(
                (*(named.where(label=name).records[0][setting] for setting in ("strategy", "workers", "schedule")),
                 str(named.mean("seconds", label=name)), reached(named, "epochs_to_target", label=name),
                 reached(named, "seconds_to_target", label=name),
                 outcome(named, "objective", label=name),
                 *(str(named.mean(figure, label=name)) for figure in ("test_loss", "score", "bytes", "staleness")),
                 f"{_halvings(named.where(label=name))} of {len(named.where(label=name).records)} runs")
                for name in names
            ),
        ),
    ]  # fmt: skip
    return findings, parts


def _best(named: Results) -> list[Finding]:
    """Return sentences on the lowest held-out loss, the shortest run, and the first run at the target.

    These are three questions, whose answers may be three combinations: each sentence says which question it answers.
    """
    best, quick = lowest(named, "test_loss", "label"), lowest(named, "seconds", "label")
    return [
        Finding(
            f"Lowest held-out loss at the end: {best}, {outcome(named, 'test_loss', label=best)}"
            + _indistinct(named, "test_loss", best)
        ),
        Finding(
            f"Shortest run, whatever its loss: {quick}, {named.mean('seconds', label=quick)} s for all epochs"
            + _indistinct(named, "seconds", quick)
            + ("" if quick == best else f" {_capital(best)} took {named.mean('seconds', label=best)} s.")
        ),
        _first(named),
    ]


def _indistinct(named: Results, figure: str, best: object) -> str:
    """Return the end of a sentence on the lowest mean: the others that seeds do not tell apart from it."""
    mean = named.mean(figure, label=best)
    others = [(name, named.mean(figure, label=name)) for name in named.values("label") if name != best]
    close = [str(name) for name, other in others if other.count and not mean.below(other)]
    return f". Not to be told apart from it by these seeds: {'; '.join(close)}." if close else "."


def _capital(name: object) -> str:
    return str(name)[:1].upper() + str(name)[1:]


def _halvings(trials: Results) -> int:
    """Return the number of runs whose step was halved because they diverged."""
    return sum(bool(record.get("halvings")) for record in trials.records)


def _halved(named: Results) -> list[Finding]:
    """Return a sentence that names the combinations whose step was halved; none if no step was."""
    told = [
        f"{name} ({times} of {len(some.records)})"
        for name in named.values("label") if (times := _halvings(some := named.where(label=name)))
    ]  # fmt: skip
    text = f"Runs that diverged, and went on with a smaller step than their schedule has: {'; '.join(told)}."
    return [Finding(text)] if told else []


def _first(named: Results) -> Finding:
    """Return a sentence on which combination reaches the target first, by the clock and by epochs."""
    counts = {name: named.mean("seconds_to_target", label=name).count for name in named.values("label")}
    most = max(counts.values())
    if not most:
        return Finding(f"No combination came to the target, a held-out loss of {_target(named)}.")
    # A combination that came to the target with some seeds only is not before one that did with more of them.
    known = [name for name, count in counts.items() if count == most]
    reaching = Results(tuple(record for record in named.records if record["label"] in known))
    by_clock, by_epochs = (lowest(reaching, figure, "label") for figure in ("seconds_to_target", "epochs_to_target"))
    fewer = [name for name, count in counts.items() if 0 < count < most]
    never = [name for name, count in counts.items() if not count]
    return Finding(
        f"Soonest at a held-out loss of {_target(named)}: by the clock {by_clock}, after "
        f"{reached(named, 'seconds_to_target', label=by_clock)} s; by epochs {by_epochs}, after "
        f"{reached(named, 'epochs_to_target', label=by_epochs)}."
        + (f" In fewer runs: {'; '.join(fewer)}." if fewer else "")
        + (f" It was never reached by: {'; '.join(never)}." if never else "")
    )


def _target(named: Results) -> str:
    given = named.records[0].get("given_target")
    # All trials of one seed have the same target, which counts once.
    mean = Mean.of(list({record["seed"]: record["target"] for record in named.records}.values()))
    return str(mean) + ("" if given else f" ({NEAR_BEST:.0%} above the lowest)")


def _by_schedule(named: Results) -> list[Finding]:
    """Return sentences on the schedule with the lowest final held-out loss, for each strategy and number of workers."""
    groups = dict.fromkeys((record["strategy"], record["workers"]) for record in named.records)
    findings = []
    for strategy, workers in groups:
        here = named.where(strategy=strategy, workers=workers)
        if not here.mean("test_loss").count or len(here.values("schedule")) < 2:
            continue
        best = lowest(here, "test_loss", "schedule")
        others = ", ".join(
            f"{name} {outcome(here, 'test_loss', schedule=name)}" for name in here.values("schedule") if name != best
        )
        findings.append(Finding(
            f"{_workers(strategy, workers)}: of the schedules {best} had the lowest held-out loss, "
            f"{outcome(here, 'test_loss', schedule=best)} ({others})."
        ))  # fmt: skip
    return findings


def _workers(strategy: str, workers: int) -> str:
    return "serial" if strategy == "serial" else f"{strategy}, {counted(workers, 'worker')}"


def _label(record: Mapping[str, Any], with_schedule: bool) -> str:
    label = _workers(record["strategy"], record["workers"])
    return f"{label}, {record['schedule']}" if with_schedule else label


experiment = Experiment(
    "compare",
    "Strategies and schedules on your data",
    "Which strategy, how many workers and which schedule suit this data?",
    "Each combination trains the same linear model on the same rows, in real time, one after the other. The target "
    "is a held-out loss: the given one, or else 1% above the lowest that any run with the same seed came to. A run "
    "that diverges goes back and halves its step: the column 'step halved' says how many runs did.",
    (),
    (),
    trial,
    read,
    seconds=(60, 60),
    seeds=(1, 1),
    timed=True,
)
