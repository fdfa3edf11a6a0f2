"""Experiment on the user's data: strategies and numbers of workers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from hogwild import strategies
from hogwild.data import Dataset
from hogwild.data import open as open_data
from hogwild.lab.experiment import Experiment, Point, Results, each, lowest
from hogwild.lab.report_model import Chart, Finding, Part, Table
from hogwild.problems.linear import Linear
from hogwild.runtimes import Local, Threads
from hogwild.stopping import Budget
from hogwild.training.minimise import minimise


@cache
def _opened(path: str, holdout: float, seed: int) -> tuple[Dataset, Dataset]:
    return open_data(path).split(holdout, seed)


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train in real time."""
    training, held_out = _opened(point["data"], point["holdout"], 0)
    problem = Linear(training, point["loss"], l2=point["l2"])
    strategy: Any = strategies.named(point["strategy"], None if point["strategy"] == "serial" else point["workers"])
    in_memory = strategy.shares_memory
    options = {"rule": point["rule"], "schedule": "cosine", "runtime": Threads() if in_memory else Local()}
    run = minimise(problem, strategy=strategy, budget=Budget(point["epochs"]), test=held_out, seed=seed, **options)
    score = next((name for name in run.result if name in ("test_accuracy", "test_r2")), None)
    return {
        "objective": run.objective, "loss": run.loss, "test_loss": run.result["test_loss"], "seconds": run.seconds,
        "score": run.result[score] if score else None, "score_name": (score or "").removeprefix("test_"),
        "bytes": run.traffic["bytes"] if run.traffic else None,
        "staleness": run.staleness["mean"] if run.staleness else None,
        "times": [record["seconds"] for record in run.history],
        "samples": [record["updates"] for record in run.history],
        "curve": [record["objective"] for record in run.history],
    }  # fmt: skip


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Find the fastest combination and the one with the lowest held-out loss."""
    named = Results(tuple({**record, "label": _label(record)} for record in results.records))
    names = named.values("label")
    best, quick = lowest(named, "test_loss", "label"), lowest(named, "seconds", "label")
    findings = [
        Finding(f"{best} came to the least held-out loss: {named.mean('test_loss', label=best)}."),
        Finding(f"{quick} was done first, after {named.mean('seconds', label=quick)} s; {best} took "
                f"{named.mean('seconds', label=best)} s."),
    ]  # fmt: skip
    parts: list[Part] = [
        Chart("Objective against time", "seconds", "objective",
              each(names, lambda name: named.curve("times", "curve", name, label=name)),
              "Objective against seconds of training, by strategy and workers.", log_x=True),
        Chart("Objective against samples", "samples", "objective",
              each(names, lambda name: named.curve("samples", "curve", name, label=name)),
              "Objective against samples, by strategy and workers.", log_x=True),
        Table("All of them", ("strategy", "workers", "seconds", "objective", "held-out loss", "held-out score", "bytes",
                              "staleness"),
              tuple((named.where(label=name).records[0]["strategy"], named.where(label=name).records[0]["workers"],
                     *(str(named.mean(figure, label=name)) for figure in
                       ("seconds", "objective", "test_loss", "score", "bytes", "staleness"))) for name in names)),
    ]  # fmt: skip
    return findings, parts


def _label(record: Mapping[str, object]) -> str:
    return "serial" if record["strategy"] == "serial" else f"{record['strategy']}, {record['workers']} workers"


experiment = Experiment(
    "compare",
    "Strategies on your data",
    "Which strategy, and how many workers, suits this data?",
    "Each strategy trains the same linear model on the same rows, in real time, one after the other.",
    (),
    (),
    trial,
    read,
    seconds=(60, 60),
    seeds=(1, 1),
    timed=True,
)
