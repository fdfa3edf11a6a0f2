"""Experiment on clusters: seconds, bytes and node-seconds to the same loss, from one node to a thousand."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from hogwild.data.generate import kind
from hogwild.data.in_memory import InMemoryDataset
from hogwild.delays import Slowed
from hogwild.lab.experiment import Experiment, Point, Results, counted, diverged_runs, each, grid, reached, stable_run
from hogwild.lab.report_model import Chart, Finding, Part, Table
from hogwild.problems.linear import Linear
from hogwild.runtimes import Simulator
from hogwild.runtimes.messaging.injected_faults import Crashes, Link
from hogwild.schedules import Constant
from hogwild.stopping import Budget
from hogwild.strategies import ElasticAveraging, Gossip, LocalSGD, ParameterServer, Serial, Strategy
from hogwild.training.minimise import minimise

ROWS, FEATURES, NONZEROS, STEP, L2 = 262_144, 4_000, 20, 0.5, 1e-5
TARGET = 1.02  # loss at which a run ends, as a multiple of that of one core after an epoch
MOST_EPOCHS = 8
RECORDS = 8  # records in an epoch
# A row stands for one that is this many times as wide, 10,000 non-zeros, and for a loss that takes 1 ms.
WIDER, ROW_SECONDS = 500, 1e-3
LATENCY, HANDLING = 5e-5, 2e-5  # seconds of a message on its way, and of a node that handles one
GIGABIT = 1.25e8  # bytes a second
SLOW_NODES, SLOW = 50, 4.0  # nodes among which one is a straggler, and the factor of its time
NODES_PER_SERVER = 64
# Mean node-seconds between two crashes. Large clusters have one in some thousand node-hours; a run here is short, and
# would see none.
CRASH_EVERY, BACK_AFTER = 100.0, 1.0
NODES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024)
USUAL_GIGABITS = 25
PARAMETER_SERVER = "parameter server"


def strategy(name: str, nodes: int) -> Strategy:
    """Return a strategy with its default options."""
    if name == PARAMETER_SERVER:
        return ParameterServer(nodes, shards=max(1, nodes // NODES_PER_SERVER))
    return {
        "local SGD": LocalSGD(nodes),
        "elastic averaging": ElasticAveraging(nodes),
        "gossip": Gossip("one-peer-exponential", workers=nodes),
    }[name]


STRATEGIES = (PARAMETER_SERVER, "local SGD", "elastic averaging", "gossip")


@lru_cache(maxsize=2)
def task(seed: int) -> tuple[Linear, float]:
    """Return a problem with sparse rows, and the loss at which runs end."""
    made = kind("rcv1", rows=ROWS, features=FEATURES, nonzeros=NONZEROS, seed=seed).rows
    problem = Linear(InMemoryDataset(made, shuffled=True, name="generated rows"), "logistic", l2=L2)
    run = minimise(problem, "adagrad", Constant(STEP), Serial(), budget=Budget(1), seed=seed)
    return problem, TARGET * run.history[-1]["loss"]


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train on a simulated cluster until the loss is low enough."""
    problem, target = task(seed)
    nodes, crashes = point["nodes"], point["crashes"]
    slow = dict.fromkeys(range(SLOW_NODES - 1, nodes, SLOW_NODES), SLOW)
    runtime = Simulator(
        Slowed(f"log-normal:{ROW_SECONDS}:0.1", slow), Link(LATENCY, point["gigabits"] * GIGABIT / WIDER),
        faults=(Crashes(CRASH_EVERY, BACK_AFTER),) if crashes else (), detection_delay=0.1, handling_time=HANDLING,
        intervals="chosen",
    )  # fmt: skip
    run = stable_run(partial(
        minimise, problem, "adagrad", Constant(STEP), strategy(point["strategy"], nodes), runtime,
        Budget(MOST_EPOCHS, target=target), seed=seed, every=ROWS // RECORDS,
    ))  # fmt: skip
    if run is None:
        return {"diverged": 1}
    came = run.stop_reason == "target"
    interval = next((event["updates"] for event in run.events if event["event"] == "exchanges"), None)
    return {
        "diverged": 0, "reached": int(came), "interval": interval, "loss": run.history[-1]["loss"],
        "seconds": run.seconds if came else None, "node_seconds": nodes * run.seconds if came else None,
        "bytes": run.traffic["bytes"] * WIDER if came and run.traffic else None,
        "epochs": run.history[-1]["updates"] / ROWS if came else None,
        "idle": run.idle["idle_share"] if run.idle else None,
    }  # fmt: skip


def best_nodes(results: Results, **settings: object) -> int | None:
    """Return the number of nodes that come to the loss soonest; None if none does."""
    some = results.where(**settings)
    times = {nodes: some.mean("seconds", nodes=nodes) for nodes in some.values("nodes")}
    known = {nodes: mean.value for nodes, mean in times.items() if mean.count}
    return min(known, key=lambda nodes: known[nodes]) if known else None


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Find for each strategy the number of nodes above which more of them do not pay."""
    usual = results.where(crashes=False)
    plain = usual.where(gigabits=USUAL_GIGABITS)
    findings = []
    for name in plain.values("strategy"):
        best = best_nodes(plain, strategy=name)
        if best is None:
            findings.append(Finding(f"{_title(name)}: no number of nodes came to the loss in {MOST_EPOCHS} epochs."))
            continue
        alone, many = (plain.mean("seconds", strategy=name, nodes=nodes) for nodes in (1, best))
        told = f"{_title(name)}: {counted(best, 'node')} came to the loss soonest, in {many} s"
        if alone.count and best > 1:
            times = alone.value / many.value
            told += f", {times:.1f} times as fast as one, for {best / times:.1f} times the node-seconds"
        findings.append(Finding(told + "."))
    findings += _of_networks(usual) + _of_crashes(results) + diverged_runs(results, "strategy", "nodes")
    parts: list[Part] = [
        Chart(
            f"Seconds to the same loss, {USUAL_GIGABITS} Gbit/s", "nodes", "simulated seconds",
            each(plain.values("strategy"), lambda name: plain.over("nodes", "seconds", name, strategy=name)),
            "Simulated seconds to the same loss against the number of nodes.", log_x=True, log_y=True,
        ),
        Chart(
            "Cost of the same loss", "nodes", "node-seconds",
            each(plain.values("strategy"), lambda name: plain.over("nodes", "node_seconds", name, strategy=name)),
            "Node-seconds to the same loss against the number of nodes.", log_x=True, log_y=True,
        ),
        Chart(
            "Bytes to the same loss", "nodes", "bytes",
            each(plain.values("strategy"), lambda name: plain.over("nodes", "bytes", name, strategy=name)),
            "Bytes that all nodes sent to the same loss against the number of nodes.", log_x=True, log_y=True,
        ),
        Table(
            f"All strategies, {USUAL_GIGABITS} Gbit/s",
            ("strategy", "nodes", "updates between exchanges", "epochs", "seconds", "node-seconds", "bytes", "idle"),
            tuple(
                (name, str(nodes), str(plain.mean("interval", strategy=name, nodes=nodes)),
                 *(reached(plain, figure, strategy=name, nodes=nodes) for figure in
                   ("epochs", "seconds", "node_seconds", "bytes")),
                 str(plain.mean("idle", strategy=name, nodes=nodes)))
                for name in plain.values("strategy") for nodes in plain.where(strategy=name).values("nodes")
            ),
        ),
    ]  # fmt: skip
    return findings, parts


def _title(name: str) -> str:
    return name[0].upper() + name[1:]


def _of_networks(results: Results) -> list[Finding]:
    """Compare networks with a parameter server."""
    found = []
    for gigabits in results.values("gigabits"):
        best = best_nodes(results, gigabits=gigabits, strategy=PARAMETER_SERVER)
        if best is not None:
            mean = results.mean("seconds", gigabits=gigabits, strategy=PARAMETER_SERVER, nodes=best)
            found.append(f"{counted(best, 'node')} and {mean} s at {gigabits} Gbit/s")
    return [Finding(f"By network, a parameter server is fastest with {'; '.join(found)}.")] if len(found) > 1 else []


def _of_crashes(results: Results) -> list[Finding]:
    """Compare runs with and without crashes at the same number of nodes."""
    found = []
    crashed = results.where(crashes=True)
    for name in crashed.values("strategy"):
        for nodes in crashed.where(strategy=name).values("nodes"):
            settings = {"strategy": name, "nodes": nodes, "gigabits": USUAL_GIGABITS}
            usual, hurt = (results.mean("seconds", crashes=crashes, **settings) for crashes in (False, True))
            if usual.count and hurt.count:
                found.append(f"{name} {hurt.value / usual.value:.2f}")
    if not found:
        return []
    return [
        Finding(
            f"With a crash in {CRASH_EVERY:g} node-seconds and restarts after {BACK_AFTER:g} s, the same number of "
            f"nodes took this many times as long: {', '.join(found)}."
        )
    ]


def settings(nodes: tuple[int, ...], gigabits: tuple[int, ...], crashed: int) -> list[dict[str, Any]]:
    """Return the settings of the study: other networks for the parameter server alone, crashes at one size."""
    usual = grid(strategy=STRATEGIES, nodes=nodes, gigabits=[USUAL_GIGABITS], crashes=[False])
    networks = grid(
        strategy=[PARAMETER_SERVER], nodes=nodes, gigabits=[each for each in gigabits if each != USUAL_GIGABITS],
        crashes=[False],
    )  # fmt: skip
    return usual + networks + grid(strategy=STRATEGIES, nodes=[crashed], gigabits=[USUAL_GIGABITS], crashes=[True])


experiment = Experiment(
    "scale-out",
    "Scale-out: how many nodes pay",
    "More nodes share the work, and wait, send and repeat more. For each strategy, up to how many nodes does the time "
    "to the same loss fall, and what does it cost?",
    f"Logistic regression on {ROWS:,} sparse rows by AdaGrad with default options, on a simulated cluster: a row takes "
    f"1 ms and stands for one with {WIDER * NONZEROS:,} non-zeros, messages take 0.05 ms and 0.02 ms to handle, one "
    f"node in {SLOW_NODES} is {SLOW:g} times as slow, and a parameter server has a server for every "
    f"{NODES_PER_SERVER} nodes. "
    f"Gradients are computed, only time is simulated. A run ends at {TARGET} times the loss that one core has after an "
    f"epoch, or after {MOST_EPOCHS} epochs.",
    settings(NODES, (10, 25, 100), 64),
    settings((1, 4, 16), (USUAL_GIGABITS,), 4),
    trial,
    read,
    seconds=(3_600, 40),
    seeds=(3, 2),
)  # fmt: skip
