"""Experiment on topologies: the connectivity that a network of workers needs."""

from __future__ import annotations

from typing import Any

from scipy.stats import spearmanr

from hogwild import topologies
from hogwild.lab.experiment import Experiment, Point, Results, each, grid
from hogwild.lab.report_model import Chart, Finding, Part, Series, Table
from hogwild.lab.synthetic_problems import classification
from hogwild.runtimes import Simulator
from hogwild.runtimes.messaging.injected_faults import Link
from hogwild.schedules import Constant
from hogwild.stopping import Budget
from hogwild.strategies import Gossip
from hogwild.topologies.mixing_matrix import about
from hogwild.training.minimise import minimise

WORKERS, EPOCHS = 16, 4
# Latency of 1 ms and 100 kB per second: so slow that the size of messages matters.
LINK = Link(latency=1e-3, bandwidth=1e5)
NAMES = [
    "ring",
    "star",
    "grid",
    "torus",
    "random-regular:4",
    "hypercube",
    "exponential",
    "one-peer-exponential",
    "clique",
]


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train with workers that mix with their neighbours after every update."""
    planted = classification(seed, rows=960)
    topology = topologies.named(point["topology"])
    run = minimise(
        planted.problem, "sgd", Constant(0.5), Gossip(topology, workers=WORKERS), Simulator(link=LINK), Budget(EPOCHS),
        test=planted.test, seed=seed,
    )  # fmt: skip
    assert run.traffic is not None
    known = about(topology, tuple(range(WORKERS)))
    by_round = 1 - (1 - known["spectral_gap"]) ** (1 / known["rounds"])
    return {
        "gap": by_round, "changes": known["rounds"] > 1,
        "neighbours": known["neighbours"]["most"], "excess": planted.excess(run.objective),
        "test_loss": run.result["test_loss"], "gap_to_test": run.result["test_loss"] - run.loss,
        "consensus": run.history[-1]["consensus"], "bytes": run.traffic["bytes"], "simulated_seconds": run.seconds,
        "epochs": [record["epoch"] for record in run.history],
        "apart": [record["consensus"] for record in run.history],
        "curve": [planted.excess(record["objective"]) for record in run.history],
        "times": [record["seconds"] for record in run.history],
    }  # fmt: skip


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Relate agreement, loss and cost to the spectral gap."""
    names = sorted(
        results.values("topology"), key=lambda name: (results.mean("gap", topology=name).value, name == "clique")
    )

    def against(figure: str) -> Series:
        means = [results.mean(figure, topology=name) for name in names]
        return Series(figure, [results.mean("gap", topology=name).value for name in names],
                      [mean.value for mean in means], [mean.spread for mean in means], "points")  # fmt: skip

    fixed = [name for name in names if not results.where(topology=name).records[0]["changes"]]
    gaps, apart = ([results.mean(figure, topology=name).value for name in fixed] for figure in ("gap", "consensus"))
    agree = float(spearmanr(gaps, apart)[0])
    first, last = names[0], names[-1]
    findings = [
        Finding(
            f"The larger the spectral gap, the nearer workers are to each other: rank correlation {agree:.2f} over "
            f"{len(fixed)} topologies that stay as they are. {first} (gap "
            f"{results.mean('gap', topology=first).value:.2f}): {results.mean('consensus', topology=first)} apart, "
            f"{last} (gap {results.mean('gap', topology=last).value:.2f}): {results.mean('consensus', topology=last)}.",
            agree < -0.5,
        ),
        Finding(
            f"At equal work the loss hardly differs: {first} {results.mean('excess', topology=first)}, {last} "
            f"{results.mean('excess', topology=last)} of the distance at the start; held out "
            f"{results.mean('test_loss', topology=first)} and {results.mean('test_loss', topology=last)}."
        ),
        Finding(
            f"But {last} sends "
            f"{results.mean('bytes', topology=last).value / results.mean('bytes', topology=first).value:.1f} "
            f"times the bytes of {first}, and takes {results.mean('simulated_seconds', topology=last)} simulated "
            "seconds "
            f"where that takes {results.mean('simulated_seconds', topology=first)}."
        ),
    ]  # fmt: skip
    parts: list[Part] = [
        Chart("Agreement", "spectral gap", "how far apart workers are at the end", (against("consensus"),),
              "Workers of topologies with a larger spectral gap are nearer to each other.", log_x=True, log_y=True),
        Chart("Loss over simulated time", "simulated seconds", "distance to the optimum",
              each(names, lambda name: results.curve("times", "curve", name, topology=name)),
              "Distance to the optimum over simulated seconds, by topology.", log_y=True),
        Chart("How far apart over epochs", "epoch", "how far apart",
              each(names, lambda name: results.curve("epochs", "apart", name, topology=name)),
              "How far apart workers are, over epochs.", log_y=True),
        Table(
            "Topologies",
            ("topology", "spectral gap", "neighbours", "apart", "distance", "held-out loss", "MB", "seconds"),
            tuple(
                (name, round(results.mean("gap", topology=name).value, 4),
                 results.mean("neighbours", topology=name).value,
                 *(str(results.mean(figure, topology=name)) for figure in ("consensus", "excess", "test_loss")),
                 round(results.mean("bytes", topology=name).value / 1e6, 2),
                 str(results.mean("simulated_seconds", topology=name)))
                for name in names
            ),
        ),
    ]  # fmt: skip
    return findings, parts


experiment = Experiment(
    "topologies",
    "Topologies: how connected must a network be?",
    "Workers without a server mix their parameters with those of their neighbours. From a ring to a clique, at equal "
    "work: how well do they agree, where do they come to, how well does it generalise, and what does it cost?",
    f"{WORKERS} workers, each with its share of 960 rows, take one step of SGD and mix with their neighbours, {EPOCHS} "
    "epochs long, in simulated time on links of 1 ms and 100 kB/s. The spectral gap is that of the mixing matrix; of a "
    "topology that changes from round to round, the mean by round: it agrees exactly, but only at the end of a cycle.",
    grid(topology=NAMES),
    grid(topology=["ring", "torus", "hypercube", "one-peer-exponential", "clique"]),
    trial,
    read,
    seconds=(35, 12),
    seeds=(5, 2),
)  # fmt: skip
