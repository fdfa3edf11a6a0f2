"""Experiment on schedules for asynchronous workers."""

from __future__ import annotations

from typing import Any

from hogwild import schedules
from hogwild.lab.experiment import Experiment, Point, Results, each, grid, lowest
from hogwild.lab.report_model import Chart, Finding, Part, Table
from hogwild.lab.synthetic_problems import classification
from hogwild.runtimes import Simulator, Threads
from hogwild.stopping import Budget
from hogwild.strategies import Hogwild, ParameterServer, Serial
from hogwild.training.minimise import minimise

EPOCHS, WORKERS = 6, 4
STRATEGIES = ("serial", "hogwild", "parameter server")
# All schedules but linear scaling, which depends on the size of a batch.
NAMES = [name for name in schedules.SCHEDULES if name != "linear-scaling"]


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train with the initial step size that short trials choose."""
    planted = classification(seed, l2=1e-3)
    adaptive = point["schedule"] == "adaptive"
    strategy, runtime = {
        "serial": (Serial(), Threads()),
        "hogwild": (Hogwild(WORKERS, buffer=0), Threads()),
        "parameter server": (ParameterServer(WORKERS), Simulator()),
    }[point["strategy"]]
    if adaptive and point["strategy"] == "parameter server":
        return {"excess": None}  # the schedule reacts to stalls, which only workers that share memory detect
    run = minimise(
        planted.problem, "sgd", schedules.named(point["schedule"]), strategy, runtime,
        Budget(EPOCHS, tolerance=1e-4 if adaptive else None, stall_epochs=1 if adaptive else 5),
        test=planted.test, seed=seed,
    )  # fmt: skip
    return {
        "excess": planted.excess(run.objective), "test_loss": run.result["test_loss"],
        "epochs": [record["epoch"] for record in run.history],
        "curve": [planted.excess(record["objective"]) for record in run.history],
    }  # fmt: skip


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Find the best schedule for each strategy, and compare it with a constant step size."""
    findings, names = [], results.values("schedule")
    best = {
        strategy: lowest(results.where(strategy=strategy), "excess", "schedule")
        for strategy in results.values("strategy")
    }
    for strategy, name in best.items():
        here = results.where(strategy=strategy)
        constant = here.mean("excess", schedule="constant")
        findings.append(Finding(
            f"{strategy}: {name} came nearest, {here.mean('excess', schedule=name)} of the distance at the start; a "
            f"constant step came to {constant}."
        ))  # fmt: skip
    same = len(set(best.values())) == 1
    findings.append(Finding(
        "One schedule is best for all three." if same else "Which schedule is best depends on the strategy: "
        + ", ".join(f"{name} ({strategy})" for strategy, name in best.items()) + "."
    ))  # fmt: skip
    parts: list[Part] = [
        Chart("Where each schedule comes to", "schedule", "distance to the optimum after the last epoch",
              each(results.values("strategy"), lambda strategy: results.over(
                  "schedule", "excess", strategy, "bars", strategy=strategy)),
              "Distance to the optimum at the end, by schedule and strategy.", log_y=True),
        *(_over_time(results.where(strategy=strategy), strategy) for strategy in results.values("strategy")),
        Table("Distance to the optimum", ("schedule", *results.values("strategy")), tuple(
            (name, *(str(results.mean("excess", schedule=name, strategy=strategy))
                     for strategy in results.values("strategy")))
            for name in names
        )),
    ]  # fmt: skip
    return findings, parts


def _over_time(results: Results, strategy: str) -> Chart:
    return Chart(
        f"Over time: {strategy}", "epoch", "distance to the optimum",
        each(results.values("schedule"), lambda name: results.curve("epochs", "curve", name, schedule=name)),
        f"Distance to the optimum over epochs for {strategy}.", log_y=True,
    )  # fmt: skip


experiment = Experiment(
    "schedules",
    "Schedules: which suits asynchronous SGD?",
    "How should the step fall over time, and is the answer the same for one worker, for workers in one memory and for "
    "workers with a server?",
    f"Logistic regression with a known optimum (1,000 rows, 20 features), {EPOCHS} epochs of SGD; each schedule with "
    "the "
    f"step that short trials choose for it; one worker, {WORKERS} threads without locks, and {WORKERS} asynchronous "
    "workers with a server in simulated time. LinearScaling goes by the size of a batch and is in the experiment "
    "batch-size.",
    grid(schedule=NAMES, strategy=STRATEGIES),
    grid(schedule=NAMES, strategy=STRATEGIES),
    trial,
    read,
    seconds=(80, 25),
    seeds=(8, 2),
)  # fmt: skip
