"""Experiment on all strategies with one problem: loss against time, samples and bytes."""

from __future__ import annotations

from functools import partial
from typing import Any

from hogwild.lab.experiment import Experiment, Point, Results, diverged_runs, each, grid, lowest, outcome, stable_run
from hogwild.lab.report_model import Chart, Finding, Part, Table
from hogwild.lab.synthetic_problems import classification
from hogwild.runtimes import Simulator, Threads
from hogwild.runtimes.messaging.injected_faults import Link
from hogwild.schedules import Cosine
from hogwild.stopping import Budget
from hogwild.strategies import (
    AllToAll,
    Averaging,
    DiLoCo,
    ElasticAveraging,
    Gossip,
    Hogwild,
    LocalSGD,
    Locked,
    ParameterServer,
    RoundRobin,
    Serial,
    Synchronous,
)
from hogwild.training.minimise import minimise

WORKERS, EPOCHS = 4, 6
LINK = Link(latency=5e-4, bandwidth=1e6)
IN_MEMORY = {
    "serial": Serial(), "hogwild": Hogwild(WORKERS, buffer=0), "locked": Locked(WORKERS),
    "round-robin": RoundRobin(WORKERS), "averaging": Averaging(WORKERS),
}  # fmt: skip
BY_MESSAGES = {
    "synchronous": Synchronous(WORKERS),
    "parameter server": ParameterServer(WORKERS),
    "bounded staleness": ParameterServer(WORKERS, staleness=4),
    "local SGD": LocalSGD(WORKERS, period=8),
    "DiLoCo": DiLoCo(WORKERS, period=16),
    "elastic averaging": ElasticAveraging(WORKERS),
    "all to all": AllToAll(WORKERS, period=4),
    "gossip, in step": Gossip("ring", workers=WORKERS),
    "gossip, in pairs": Gossip("ring", synchronous=False, workers=WORKERS),
}  # fmt: skip


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train in shared memory, or by messages in simulated time."""
    planted, name = classification(seed), point["strategy"]
    by_messages = name in BY_MESSAGES
    strategy = BY_MESSAGES[name] if by_messages else IN_MEMORY[name]
    run = stable_run(partial(
        minimise, planted.problem, "sgd", Cosine(1.0), strategy, Simulator(link=LINK) if by_messages else Threads(),
        Budget(EPOCHS), test=planted.test, seed=seed,
    ))  # fmt: skip
    kind = "by messages" if by_messages else "in one memory"
    if run is None:
        return {"kind": kind, "diverged": 1}
    return {
        "kind": kind, "diverged": 0, "excess": planted.excess(run.objective),
        "test_loss": run.result["test_loss"], "seconds": run.seconds,
        "bytes": run.traffic["bytes"] if run.traffic else None,
        "idle": run.idle["idle_share"] if run.idle else None,
        "staleness": run.staleness["mean"] if run.staleness else None,
        "samples": [record["updates"] for record in run.history],
        "times": [record["seconds"] for record in run.history],
        "sent": [record.get("bytes") for record in run.history] if by_messages else None,
        "curve": [planted.excess(record["objective"]) for record in run.history],
    }  # fmt: skip


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Compare the strategies by three costs: samples, time and bytes."""
    message_passing, shared = results.where(kind="by messages"), results.where(kind="in one memory")
    findings = []
    for what, some in (("In one memory", shared), ("By messages", message_passing)):
        if some.mean("excess").count:
            best = lowest(some, "excess", "strategy")
            findings.append(
                Finding(
                    f"{what}, {best} came nearest to the optimum: {outcome(some, 'excess', strategy=best)} of the "
                    "distance at the start."
                )
            )
    if message_passing.mean("seconds").count:
        fastest, leanest = lowest(message_passing, "seconds", "strategy"), lowest(message_passing, "bytes", "strategy")
        findings.append(Finding(
            f"For the same number of samples {fastest} took the least simulated time "
            f"({message_passing.mean('seconds', strategy=fastest)} s), "
            f"and {leanest} sent the fewest bytes ({message_passing.mean('bytes', strategy=leanest).value:,.0f})."
        ))  # fmt: skip
        step, free = (message_passing.mean("idle", strategy=name) for name in ("synchronous", "parameter server"))
        if step.count and free.count:
            findings.append(Finding(
                f"Synchronous workers waited for {step.value:.0%} of their time, asynchronous ones with a server for "
                f"{free.value:.0%}.", True if free.below(step) else False if step.below(free) else None,
            ))  # fmt: skip
    findings += diverged_runs(results, "strategy")
    names = message_passing.values("strategy")
    parts: list[Part] = [
        Chart("By messages: against samples", "samples", "distance to the optimum",
              each(names, lambda name: message_passing.curve("samples", "curve", name, strategy=name)),
              "Distance to the optimum against samples for strategies by messages.", log_y=True),
        Chart("By messages: against simulated time", "simulated seconds", "distance to the optimum",
              each(names, lambda name: message_passing.curve("times", "curve", name, strategy=name)),
              "Distance to the optimum against simulated seconds.", log_y=True),
        Chart("By messages: against bytes", "bytes sent", "distance to the optimum",
              each(names, lambda name: message_passing.curve("sent", "curve", name, strategy=name)),
              "Distance to the optimum against bytes sent by all.", log_x=True, log_y=True),
        Chart("In one memory: against samples", "samples", "distance to the optimum",
              each(shared.values("strategy"), lambda name: shared.curve("samples", "curve", name, strategy=name)),
              "Distance to the optimum against samples for strategies in one memory.", log_y=True),
        Table(
            "All strategies",
            ("strategy", "where", "distance", "held-out loss", "seconds", "bytes", "idle", "staleness"),
            tuple(
                (name, results.where(strategy=name).records[0]["kind"],
                 outcome(results, "excess", strategy=name),
                 *(str(results.mean(figure, strategy=name)) for figure in
                   ("test_loss", "seconds", "bytes", "idle", "staleness")))
                for name in results.values("strategy")
            ),
        ),
    ]  # fmt: skip
    return findings, parts


experiment = Experiment(
    "strategies",
    "Strategies: all of them on one problem",
    "Workers can share one memory or send each other messages, wait for each other or not. On the same problem, what "
    "does each come to for its time, its samples and its bytes?",
    f"Logistic regression with a known optimum (1,000 rows, 20 features), {EPOCHS} epochs of SGD by {WORKERS} "
    "workers. By "
    "messages in simulated time, on links of 0.5 ms and 1 MB/s where an update takes about 1 ms; in one memory on real "
    "threads, whose seconds are real, and too short here to mean anything.",
    grid(strategy=[*IN_MEMORY, *BY_MESSAGES]),
    grid(strategy=[*IN_MEMORY, *BY_MESSAGES]),
    trial,
    read,
    seconds=(30, 8),
    seeds=(5, 2),
)  # fmt: skip
