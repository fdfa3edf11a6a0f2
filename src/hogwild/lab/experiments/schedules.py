"""Experiment on schedules for asynchronous workers."""

from __future__ import annotations

from functools import cache, partial
from itertools import pairwise
from typing import Any

from hogwild import schedules
from hogwild.data import Dataset
from hogwild.lab.experiment import (
    NEAR_BEST,
    STALL,
    Experiment,
    OwnRows,
    Point,
    Results,
    budget_for,
    diverged_runs,
    each,
    grid,
    lowest,
    outcome,
    reached,
    stable_run,
    to_target,
    with_file,
)
from hogwild.lab.report_model import Chart, Finding, Part, Table
from hogwild.lab.synthetic_problems import Array, classification
from hogwild.problems.linear import Linear
from hogwild.runtimes import Local, Runtime, Simulator, Threads
from hogwild.strategies import Hogwild, ParameterServer, Serial, Strategy
from hogwild.training.minimise import minimise

EPOCHS, WORKERS, PERIOD, HELD_OUT = 20, 4, 4, 0.2
# Seconds that a thread waits between the read and the write of an update. Without them one thread would have trained
# on all of these few rows before the next one has begun.
DELAY = 1e-4
STRATEGIES = ("serial", "hogwild", "parameter server")
# All schedules but linear scaling, which depends on the size of a batch.
NAMES = [name for name in schedules.SCHEDULES if name != "linear-scaling"]


@cache
def _own(file: str) -> tuple[OwnRows, Linear]:
    rows = OwnRows.open(file, HELD_OUT)
    return rows, Linear(rows.training, rows.loss)


def _workers(name: str, own: bool) -> tuple[Strategy, Runtime]:
    """Return strategy and runtime: real time on the user's data, delayed or simulated workers on generated rows."""
    if name == "serial":
        return Serial(), Threads()
    if name == "hogwild":
        return Hogwild(WORKERS, buffer=0), Threads() if own else Threads(delay=DELAY)
    return ParameterServer(WORKERS, push_every=PERIOD), Local() if own else Simulator()


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train with the initial step size that short trials choose."""
    file = point.get("file")
    planted = None if file else classification(seed, l2=1e-3)
    held_out: Dataset | tuple[Array, Array]
    if planted is not None:
        problem, held_out, scale = planted.problem, planted.test, planted.start
    else:
        rows, problem = _own(file)
        held_out, scale = rows.held_out, rows.scale
    strategy, runtime = _workers(point["strategy"], own=bool(file))
    schedule = schedules.named(point["schedule"])
    budget = budget_for(schedule, EPOCHS, scale)
    run = stable_run(partial(
        minimise, problem, "sgd", schedule, strategy, runtime, budget, test=held_out, seed=seed
    ))  # fmt: skip
    if run is None:
        return {"diverged": 1, "objective": None, "test_loss": None, "excess": None}
    return {
        "diverged": 0, "objective": run.objective, "test_loss": run.result["test_loss"],
        "excess": planted.excess(run.objective) if planted else None,
        "smaller_steps": _falls([record["step"] for record in run.history]),
        "epochs": [record["epoch"] for record in run.history],
        "times": [record["seconds"] for record in run.history],
        "curve": [record["objective"] for record in run.history],
        "test_curve": [record.get("test_loss") for record in run.history],
    }  # fmt: skip


def _falls(steps: list[float]) -> int:
    """Count the epochs whose step is smaller than that of the epoch before.

    >>> _falls([1.0, 1.0, 0.2, 0.2])
    1
    """
    return sum(later < 0.999 * earlier for earlier, later in pairwise(steps))


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Find the schedule that reaches a held-out loss first, for each strategy, and the one that comes furthest."""
    results = to_target(results)
    strategies, names = results.values("strategy"), results.values("schedule")
    findings = [_first(results, strategy) for strategy in strategies]
    end = "excess" if results.mean("excess").count else "test_loss"
    findings += _at_the_end(results, end)
    if "adaptive" in names:
        findings += _stalls(results)
    findings += diverged_runs(results, "schedule", "strategy")
    label = "distance to the optimum" if end == "excess" else "held-out loss"
    parts: list[Part] = [
        Chart(f"{label.capitalize()} after the last epoch", "schedule", f"{label} after the last epoch",
              each(strategies, lambda strategy: results.over("schedule", end, strategy, "bars", strategy=strategy)),
              f"The {label} at the end, by schedule and strategy.", log_y=end == "excess"),
        *(_over_time(results.where(strategy=strategy), strategy) for strategy in strategies),
        _table(f"Epochs to a held-out loss {NEAR_BEST:.0%} above the lowest", "epochs_to_target", results),
        _table(f"Seconds to a held-out loss {NEAR_BEST:.0%} above the lowest", "seconds_to_target", results),
        Table(label.capitalize(), ("schedule", *strategies), tuple(
            (name, *(outcome(results, end, schedule=name, strategy=strategy) for strategy in strategies))
            for name in names
        )),
    ]  # fmt: skip
    return findings, parts


def _at_the_end(results: Results, end: str) -> list[Finding]:
    """Return a sentence on the schedule with the lowest figure at the end, for each strategy with runs that ended."""
    known = [name for name in results.values("strategy") if results.mean(end, strategy=name).count]
    best = {strategy: lowest(results.where(strategy=strategy), end, "schedule") for strategy in known}
    if not best:
        return []
    what = "came nearest to the optimum" if end == "excess" else "had the lowest held-out loss"

    def told(strategy: str, name: object) -> str:
        here = results.where(strategy=strategy)
        beside = f"; constant {outcome(here, end, schedule='constant')}" if here.where(schedule="constant") else ""
        return f"{name} ({outcome(here, end, schedule=name)}{beside if name != 'constant' else ''}) with {strategy}"

    if len(best) > 1 and len(set(best.values())) == 1:
        return [Finding(f"At the end {best[known[0]]} {what} with every strategy.")]
    depends = "; that depends on the strategy" if len(best) > 1 else ""
    words = ", ".join(told(strategy, name) for strategy, name in best.items())
    return [Finding(f"The schedule that {what} at the end{depends}: {words}.")]


def _first(results: Results, strategy: str) -> Finding:
    """Return a sentence on which schedule needs the fewest epochs to the target, beside a constant step."""
    here = results.where(strategy=strategy)
    known = [name for name in here.values("schedule") if here.mean("epochs_to_target", schedule=name).count]
    if not known:
        return Finding(f"{strategy}: no schedule reached the target.")

    def rank(name: str) -> tuple[int, float]:
        mean = here.mean("epochs_to_target", schedule=name)
        return -mean.count, mean.value  # a schedule that reaches the target with more seeds is better

    name = min(known, key=rank)
    text = (
        f"{strategy}: {name} needed the fewest epochs to a held-out loss {NEAR_BEST:.0%} above the lowest: "
        f"{reached(here, 'epochs_to_target', schedule=name)} ({reached(here, 'seconds_to_target', schedule=name)} s)"
    )
    if name != "constant" and "constant" in here.values("schedule"):
        text += f"; a constant step: {reached(here, 'epochs_to_target', schedule='constant')}"
    return Finding(f"{text}.")


def _stalls(results: Results) -> list[Finding]:
    """Return a sentence on how often the adaptive schedule has made its step smaller: without a stall, never."""
    adaptive = results.where(schedule="adaptive")
    means = {name: adaptive.mean("smaller_steps", strategy=name) for name in adaptive.values("strategy")}
    falls = {name: mean for name, mean in means.items() if mean.count}
    if not falls:
        return []
    told = ", ".join(f"{mean} ({name})" for name, mean in falls.items())
    never = [name for name, mean in falls.items() if not mean.value]
    return [Finding(
        f"The adaptive schedule made its step smaller so many times in a run: {told}."
        + (f" Without a stall within {EPOCHS} epochs it was a constant step: {', '.join(never)}." if never else "")
    )]  # fmt: skip


def _over_time(results: Results, strategy: str) -> Chart:
    return Chart(
        f"Over time: {strategy}", "epoch", "held-out loss",
        each(results.values("schedule"), lambda name: results.curve("epochs", "test_curve", name, schedule=name)),
        f"Held-out loss over epochs for {strategy}.", log_y=True,
    )  # fmt: skip


def _table(title: str, figure: str, results: Results) -> Table:
    strategies = results.values("strategy")
    return Table(title, ("schedule", *strategies), tuple(
        (name, *(reached(results, figure, schedule=name, strategy=strategy) for strategy in strategies))
        for name in results.values("schedule")
    ))  # fmt: skip


experiment = Experiment(
    "schedules",
    "Schedules: which suits asynchronous SGD?",
    "How should the step fall over time, and is the answer the same for one worker, for workers in one memory and for "
    "workers with a server?",
    "Logistic regression with a known optimum (1,000 rows, 20 features), or a linear model of your own rows "
    f"(--data FILE, {HELD_OUT:.0%} held out); {EPOCHS} epochs of SGD, each schedule with the step that short trials "
    f"choose for it. One worker, {WORKERS} threads without locks, and {WORKERS} asynchronous workers that exchange "
    f"changes with a server after {PERIOD} updates. On generated rows, threads wait {DELAY:g} s with each update, so "
    "that they overlap, and the server's seconds are simulated. On your own rows all seconds are real, and trials run "
    f"one after the other. Adaptive divides its step when the objective improves in an epoch by less than {STALL:g} of "
    "that at the start. LinearScaling goes by the size of a batch and is in the experiment batch-size.",
    grid(schedule=NAMES, strategy=STRATEGIES),
    grid(schedule=NAMES, strategy=STRATEGIES),
    trial,
    read,
    seconds=(135, 24),
    seeds=(8, 2),
    timed=lambda point: "file" in point,
    on_data=with_file,
)  # fmt: skip
