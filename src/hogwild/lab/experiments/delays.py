"""Experiment on delays: their harm, the worker that is late, and corrections."""

from __future__ import annotations

from typing import Any

from hogwild.delays import Always, HeavyTail, Normal
from hogwild.errors import DivergedError
from hogwild.events import Record
from hogwild.lab.experiment import Experiment, Mean, Point, Results, each, gain, grid
from hogwild.lab.report_model import Chart, Finding, Part, Table
from hogwild.lab.synthetic_problems import regression
from hogwild.runtimes import Local, Simulator
from hogwild.schedules import Constant
from hogwild.stopping import Budget
from hogwild.strategies import ParameterServer
from hogwild.strategies.delay_correction import named as correction_named
from hogwild.training.minimise import minimise

WORKERS, EPOCHS, USUAL = 8, 6, 1e-3
TIMES: dict[str, Any] = {
    "constant": Always(USUAL), "normal": Normal(USUAL, USUAL / 3), "heavy tail": HeavyTail(USUAL / 6,
    1.2),
}  # fmt: skip
WHOSE = {"none": {}, "equal": {}, "different": {k: 1.0 + k for k in range(WORKERS)}, "one slow": {0: 20.0}}
SMALL, LARGE = 0.05, 0.9


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train with asynchronous workers and a server."""
    planted = regression(seed)
    workers = 1 if point["whose"] == "none" else WORKERS
    slow = {} if workers == 1 else WHOSE[point["whose"]]
    if point["where"] == "simulated":
        runtime: Any = Simulator(TIMES[point["time"]], slowdown=slow)
    else:
        runtime = Local(extra_seconds={worker: USUAL * times / 4 for worker, times in slow.items()})
    correction = None if point["correction"] == "none" else correction_named(point["correction"])
    try:
        run = minimise(
            planted.problem, "sgd", Constant(point["step"]), ParameterServer(workers, correction=correction), runtime,
            Budget(EPOCHS), test=planted.test, seed=seed,
        )  # fmt: skip
    except DivergedError:
        return {"excess": 1e6, "diverged": 1, "staleness": None, "curve": None}
    stale: Record = run.staleness or {}
    return {
        "excess": planted.excess(run.objective), "diverged": 0, "test_loss": run.result["test_loss"],
        "staleness": stale.get("mean"), "staleness_p95": stale.get("p95"), "staleness_most": stale.get("most"),
        "epochs": [record["epoch"] for record in run.history],
        "curve": [planted.excess(record["objective"]) for record in run.history],
    }  # fmt: skip


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Compare distributions of delay, the workers that are late, and corrections."""
    plain = results.where(where="simulated", correction="none")
    steps = sorted(results.values("step"))
    small, large = steps[0], steps[-1]

    def at(step: float, whose: str, time: str, **more: str) -> Mean:
        return results.mean(
            "excess", **({"where": "simulated", "correction": "none"} | more), step=step, whose=whose, time=time
        )

    harm = {step: (at(step, "equal", "constant"), at(step, "none", "constant")) for step in (small, large)}
    findings = [
        Finding(
            f"With a step of {large:g}, {WORKERS} workers alike were {gain(*harm[large])} times as far from the "
            "optimum "
            f"as one without delay; with a step of {small:g}, {gain(*harm[small])} times: delay harms more when the "
            "step "
            "is large.",
            harm[small][0].value / harm[small][1].value < harm[large][0].value / harm[large][1].value,
        )
    ]
    helped, alone = at(large, "equal", "heavy tail", correction="delay-adaptive"), at(large, "equal", "heavy tail")
    if helped.count:
        findings.append(Finding(
            f"Under times with a heavy tail and the large step, delay-adaptive steps came to {helped} of the "
            "distance at "
            f"the start, where without they came to {alone}: "
            f"{'they help' if helped.below(alone) else 'no difference that is more than chance'}.",
            helped.below(alone),
        ))  # fmt: skip
    one, all_alike = at(large, "one slow", "constant"), at(large, "equal", "constant")
    if one.count:
        little = one.value < 3 * all_alike.value
        findings.append(Finding(
            f"One worker 20 times as slow: {one}; all alike: {all_alike}. It matters whose delay it is: "
            + ("the slow one does less harm than its longest delay suggests, because its changes are few."
               if little else "one slow worker spoils it for all.")
        ))  # fmt: skip
    real = results.where(where="real", correction="none", step=large)
    if real and real.mean("excess", whose="one slow").count:
        findings.append(Finding(
            f"On real threads, a mean staleness of {real.mean('staleness', whose='one slow')} with one slow worker: "
            f"{real.mean('excess', whose='one slow')}; without: {real.mean('excess', whose='equal')}."
        ))  # fmt: skip
    curves = tuple(
        plain.curve("epochs", "curve", f"{whose}, step {step:g}", "line" if step == large else "dashed", whose=whose,
                    step=step, time="constant")
        for step in steps for whose in plain.values("whose")
    )  # fmt: skip
    corrections = results.values("correction")
    parts: list[Part] = [
        Chart("Whose delay, and how large a step", "epoch", "distance to the optimum (1 at the start)",
              tuple(series for series in curves if series.x),
              "Distance to the optimum over epochs, by whose delay there is and by the step.", log_y=True),
        Chart("Distributions of time, and what is done about delay (large step, workers alike)", "correction",
              "distance to the optimum after the last epoch",
              each(results.values("time"), lambda time: results.over(
                  "correction", "excess", time, "bars", where="simulated", whose="equal", step=large, time=time)),
              "Distance to the optimum at the end for each distribution of times and each correction.", log_y=True),
        Table(
            "All of it", ("where", "step", "whose delay", "times", "correction", "distance", "mean staleness", "p95"),
            tuple(
                (where, step, whose, time, correction, str(results.mean("excess", **key)),
                 str(results.mean("staleness", **key)), str(results.mean("staleness_p95", **key)))
                for where in results.values("where") for step in steps for whose in results.values("whose")
                for time in results.values("time") for correction in corrections
                if results.where(**(key := {"where": where, "step": step, "whose": whose, "time": time,
                                            "correction": correction}))
            ),
        ),
    ]  # fmt: skip
    return findings, parts


CORRECTIONS = ["none", "delay-adaptive", "delay-compensation"]
experiment = Experiment(
    "delays",
    "Delays: do they hurt, and does it matter whose?",
    "Asynchronous workers train on parameters that are a little old. When does that do harm, does it matter whether "
    "all "
    "are late or one of them, and do delay-adaptive steps and delay compensation help?",
    f"Least squares with a known optimum (600 rows of length one, 8 features), {EPOCHS} epochs of SGD at a constant "
    f"step by {WORKERS} asynchronous workers and a server, in simulated time (and on real threads): how long an update "
    "takes is constant, normal, or has a heavy tail; all workers are alike, each is different, or one takes 20 times "
    "as "
    "long; 'none' is one worker alone. Distance is the objective above its optimum, against that at the start; runs "
    "that diverged count as a million.",
    grid(where=["simulated"], step=[SMALL, LARGE], whose=list(WHOSE), time=list(TIMES), correction=CORRECTIONS)
    + grid(where=["real"], step=[SMALL, LARGE], whose=["none", "equal", "one slow"], time=["constant"],
           correction=CORRECTIONS[:2]),
    grid(where=["simulated"], step=[SMALL, LARGE], whose=list(WHOSE), time=["constant"], correction=["none"])
    + grid(where=["simulated"], step=[LARGE], whose=["equal"], time=["constant", "heavy tail"], correction=CORRECTIONS)
    + grid(where=["real"], step=[LARGE], whose=["equal", "one slow"], time=["constant"], correction=["none"]),
    trial,
    read,
    seconds=(250, 35),
    seeds=(5, 3),
)  # fmt: skip
