"""Experiment on one pass of averaged asynchronous SGD in place of many passes of SGD."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from hogwild.lab.experiment import (
    Experiment,
    Mean,
    OwnRows,
    Point,
    Results,
    diverged_runs,
    gain,
    grid,
    lowest,
    outcome,
    stable_run,
    with_file,
)
from hogwild.lab.paired_difference import Difference, paired
from hogwild.lab.report_model import Chart, Finding, Part, Series, Table
from hogwild.lab.synthetic_problems import Population, population
from hogwild.machine import usable_cores
from hogwild.problems.linear import Linear
from hogwild.run import Run
from hogwild.runtimes import Runtime, Simulator, Threads
from hogwild.schedules import Constant, Cosine, Schedule
from hogwild.schedules.schedule import Step
from hogwild.stopping import Budget
from hogwild.strategies import Hogwild, ParameterServer, Serial, Strategy, Synchronous
from hogwild.training.minimise import minimise

WORKERS, AVERAGED, HELD_OUT = 8, 0.5, 0.2
UPDATE = 1e-3  # seconds of one update by one worker, in simulated time
STEPS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)
PROBLEMS: dict[str, dict[str, Any]] = {
    "least squares": {"loss": "squared", "features": 20},
    "least squares, ill-conditioned": {"loss": "squared", "features": 50, "decay": 1.0},
    "logistic regression": {"loss": "logistic", "features": 20},
}
OWN = "your data"


@dataclass(frozen=True, slots=True)
class Method:
    """Workers, passes over the data, whether iterates are averaged, and the share of the rows that is used."""

    workers: int = 1
    passes: int = 1
    averaged: bool = False
    share: float = 1.0

    def schedule(self, step: Step) -> Schedule:
        """Return a constant step for an average, and else one that falls to zero along half a cosine."""
        return Constant(step) if self.averaged else Cosine(step)

    def workers_on(self, own: bool) -> tuple[Strategy, Runtime]:
        """Return strategy and runtime: threads in real time on the user's data, else simulated workers.

        A single worker without an average is the same on a thread as in the simulator, and much faster. An average of
        the simulator is over every iterate, one on threads over the iterates at the ends of chunks.
        """
        if own:
            return (Serial() if self.workers == 1 else Hogwild(min(self.workers, usable_cores()))), Threads()
        if self.workers == 1:
            return (Synchronous(1), Simulator()) if self.averaged else (Serial(), Threads())
        return ParameterServer(self.workers), Simulator(compute_time=UPDATE)


PASSES = (1, 4, 16, 64)
ONE = "averaged asynchronous SGD, 1 pass"
EQUAL_SAMPLES, EQUAL_TIME = "SGD, 16 passes over 1/16 of the rows", f"SGD, 1 pass over 1/{WORKERS} of the rows"
METHODS = {
    ONE: Method(WORKERS, averaged=True),
    "asynchronous SGD, 1 pass": Method(WORKERS),
    "averaged SGD, 1 pass": Method(averaged=True),
    **{f"SGD, {count} pass{'es' if count > 1 else ''}": Method(passes=count) for count in PASSES},
    EQUAL_SAMPLES: Method(passes=16, share=1 / 16),
    EQUAL_TIME: Method(share=1 / WORKERS),
}
MANY = [f"SGD, {count} passes" for count in PASSES if count > 1]


@cache
def _own(file: str) -> tuple[OwnRows, Linear]:
    rows = OwnRows.open(file, HELD_OUT)
    return rows, Linear(rows.training, rows.loss)


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train with the step of the least training loss."""
    method, file = METHODS[point["method"]], point.get("file")
    if file:
        rows, problem = _own(file)
        trained = stable_run(partial(_run, problem, method, "auto", seed, rows.held_out))
        if trained is None:
            return {"diverged": 1.0, "test_loss": None}
        return {
            "diverged": 0.0, "test_loss": trained.result["test_loss"], "train_loss": trained.loss,
            "seconds": trained.seconds, "samples": method.passes * problem.data.n_rows,
            "workers_used": max(record["workers_used"] for record in trained.history),
        }  # fmt: skip
    planted = population(seed, rows=point["rows"], **PROBLEMS[point["problem"]])
    used = max(1, round(point["rows"] * method.share))
    found = _tuned(planted, method, used, seed)
    if found is None:
        return {"diverged": 1.0, "excess": None}
    step, run = found
    samples = method.passes * used
    excess, attainable = planted.excess(run.model.weights), planted.attainable(point["rows"])
    return {
        "diverged": 0.0, "step": step, "excess": excess, "attainable": attainable, "times": excess / attainable,
        "train_loss": run.loss, "samples": samples,
        "seconds": run.seconds if method.workers > 1 else samples * UPDATE,
        "staleness": run.staleness["mean"] if run.staleness else None,
    }  # fmt: skip


def _run(problem: Linear, method: Method, step: Step, seed: int, test: object = None) -> Run:
    strategy, runtime = method.workers_on(own=test is not None)
    return minimise(
        problem, "sgd", method.schedule(step), strategy, runtime, Budget(method.passes), test=test,
        average=AVERAGED if method.averaged else 0.0, seed=seed,
    )  # fmt: skip


def _tuned(planted: Population, method: Method, rows: int, seed: int) -> tuple[float, Run] | None:
    """Return the step with the least training loss at the end, and its run; None if every run diverged."""
    found: tuple[float, Run] | None = None
    problem, least = planted.problem(rows), math.inf
    for step in STEPS:
        run = stable_run(partial(_run, problem, method, step, seed))
        if run is not None and run.loss < least:
            found, least = (step, run), run.loss
    return found


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Compare one pass with many, for equal samples and for equal time."""
    problems = results.values("problem")
    figure = "times" if results.mean("times").count else "test_loss"
    findings = [
        finding for problem in problems for finding in _of_problem(results.where(problem=problem), problem, figure)
    ]
    findings += [*_alone(results.where(problem=OWN)), *diverged_runs(results, "problem", "method")]
    label = "held-out loss" if figure == "test_loss" else "expected excess loss, in units of the exact minimiser's"
    parts: list[Part] = []
    for problem in problems:
        some = results.where(problem=problem)
        methods = [method for method in some.values("method") if some.mean(figure, method=method).count]
        parts += [
            *(
                Chart(f"Against {what}: {problem}", axis, label, tuple(
                    Series(method, [some.mean(what, method=method).value], [some.mean(figure, method=method).value],
                           [some.mean(figure, method=method).spread], "points")
                    for method in methods
                ), f"Each method at its {axis}, and the loss that it comes to.", log_x=True,
                    log_y=figure == "times")
                for what, axis in (("samples", "samples"), ("seconds", "seconds"))
            ),
            Table(f"One pass and many: {problem}",
                  ("method", "samples", "seconds", "step", label, "training loss", "staleness"),
                  tuple((method, *(outcome(some, name, method=method) for name in
                                   ("samples", "seconds", "step", figure, "train_loss", "staleness")))
                        for method in some.values("method"))),
        ]  # fmt: skip
    return findings, parts


def _of_problem(results: Results, problem: str, figure: str) -> list[Finding]:
    """Compare one pass of averaged asynchronous SGD with the best of many passes, and at equal samples and time."""

    def of(method: str, name: str = figure) -> Mean:
        return results.mean(name, method=method)

    def against(method: str) -> Difference:
        return paired(results, figure, {"method": ONE}, {"method": method})

    many = [method for method in MANY if of(method).count]
    if not many or not of(ONE).count:
        return []
    best = str(lowest(Results(tuple(r for r in results.records if r["method"] in many)), figure, "method"))
    what = (
        "a held-out loss of"
        if figure == "test_loss"
        else "an excess over the best loss that is, in units of the exact minimiser's,"
    )
    # The best is chosen by the figure that is compared, so the interval holds for all that it was chosen from.
    difference = paired(results, figure, {"method": ONE}, {"method": best}, comparisons=len(many))
    verdict = (
        "with fewer than two seeds of both, no difference can be told from chance" if difference.count < 2
        else "one pass is not seen to differ" if not difference.seen
        else "one pass is better" if difference.value < 0 else "one pass is worse"
    )  # fmt: skip
    corrected = f", corrected for a choice among {len(many)}" if len(many) > 1 else ""
    told = f" Difference {difference.with_power}" + (f" (95%{corrected}; 80%)." if difference.count > 1 else ".")
    told = told if difference.count else ""
    findings = [
        Finding(
            f"{problem}: {ONE} has {what} {outcome(results, figure, method=ONE)}; the best of many passes, {best}, "
            f"{outcome(results, figure, method=best)}.{told} {best} takes "
            f"{gain(of(best, 'seconds'), of(ONE, 'seconds'))} times the time "
            f"and {gain(of(best, 'samples'), of(ONE, 'samples'))} times the samples: {verdict}.",
            difference.value < 0 if difference.seen else None,
        )
    ]  # fmt: skip
    fair = [
        f"{title} {method} ({of(method)}): {against(method).with_power}"
        for title, method in (("for equal samples", EQUAL_SAMPLES), ("for about equal time", EQUAL_TIME),
                              ("without delay", "averaged SGD, 1 pass"), ("without the average",
                                                                          "asynchronous SGD, 1 pass"))
        if against(method).count
    ]  # fmt: skip
    if fair:
        findings.append(Finding(f"{problem}: {ONE} ({of(ONE)}) less " + "; ".join(fair) + "."))
    return findings


def _alone(own: Results) -> list[Finding]:
    """Return a sentence if the asynchronous methods had one thread on the user's data, and so no delay at all."""
    alone = [
        name for name in own.values("method") if METHODS[name].workers > 1
        and own.mean("workers_used", method=name).value == 1
    ]  # fmt: skip
    text = "One thread made all updates, because there is one core or few rows: nothing was asynchronous about "
    return [Finding(f"{OWN}: {text}{'; '.join(alone)}.")] if alone else []


def _on_data(points: Sequence[Point], given: Sequence[str]) -> list[Point]:
    """Return the settings with the user's file, of the methods that use all rows."""
    methods = [name for name, method in METHODS.items() if method.share == 1.0]
    return with_file(grid(problem=[OWN], method=methods), given)


experiment = Experiment(
    "one-pass",
    "One pass: does averaged asynchronous SGD replace many passes of SGD?",
    "Theory gives the average of SGD's iterates over a single pass the rate of the exact minimiser, and asynchronous "
    "workers make that pass quickly. How near does it come to many passes of SGD, for the samples and the time?",
    f"Linear problems with planted weights, so that the expected excess loss of a solution is known: isotropic least "
    f"squares, least squares with variances that fall as 1/k, and logistic regression. Averaged SGD has a constant "
    f"step and averages the iterates of the last half of its pass (Polyak and Ruppert; Bach and Moulines 2013); SGD "
    f"without an average has a step that falls to zero along half a cosine. Of {', '.join(f'{s:g}' for s in STEPS)} "
    f"each method has the step with the least training loss at the end. Asynchronous SGD has {WORKERS} workers with a "
    f"server in simulated time, where an update takes {UPDATE * 1e3:g} ms and a message 0.1 ms; the seconds of one "
    "worker are its updates times as long. Excess is in units of that of the exact minimiser of all rows, to which "
    "many passes converge. The best of many passes is chosen by the figure that is then compared: its interval is "
    "corrected for the choice (Bonferroni). With equal samples, SGD makes 16 passes over a sixteenth of the rows; with "
    f"about equal time, one pass over 1/{WORKERS} of them. On a file of your own (--data FILE, a fifth held out) "
    f"workers are threads in one memory, one per core and at most {WORKERS}, seconds are real, and short trials choose "
    "every step.",
    grid(problem=list(PROBLEMS), method=list(METHODS), rows=[4000]),
    grid(problem=["least squares"], method=list(METHODS), rows=[1000]),
    trial,
    read,
    seconds=(320, 14),
    seeds=(10, 4),
    timed=lambda point: "file" in point,
    on_data=_on_data,
)  # fmt: skip
