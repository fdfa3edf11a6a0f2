"""Experiment on topologies: the connectivity that a network of workers needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from hogwild import landscape, topologies
from hogwild.lab.experiment import Experiment, Point, Results, each, grid
from hogwild.lab.paired_difference import paired
from hogwild.lab.report_model import Chart, Finding, Part, Series, Table
from hogwild.lab.synthetic_problems import classification
from hogwild.problems.problem import Problem
from hogwild.run import Run
from hogwild.runtimes import Simulator
from hogwild.runtimes.messaging.injected_faults import Link
from hogwild.schedules import Constant
from hogwild.stopping import Budget
from hogwild.strategies import Gossip
from hogwild.topologies.mixing_matrix import about
from hogwild.training.minimise import minimise

WORKERS = 16
LINEAR, PERCEPTRON = "logistic regression", "perceptron"
EPOCHS = {LINEAR: 4, PERCEPTRON: 40}
STEPS = {LINEAR: 0.5, PERCEPTRON: 0.2}
ROWS, BATCH, WIDTH = 128, 2, 64  # of the perceptron: rows to train on, rows in an update, hidden units
RADIUS, SAMPLES, COORDINATES = 0.1, 32, 16  # of the balls and coordinates in which sharpness is measured
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
    topology = topologies.named(point["topology"])
    run, figures = (_linear if point["problem"] == LINEAR else _perceptron)(topology, seed)
    assert run.traffic is not None
    known = about(topology, tuple(range(WORKERS)))
    return {
        "gap": 1 - (1 - known["spectral_gap"]) ** (1 / known["rounds"]), "changes": known["rounds"] > 1,
        "neighbours": known["neighbours"]["most"], "train_loss": run.loss, "test_loss": run.result["test_loss"],
        "gap_to_test": run.result["test_loss"] - run.loss, "consensus": run.history[-1]["consensus"],
        "bytes": run.traffic["bytes"], "simulated_seconds": run.seconds,
        "epochs": [record["epoch"] for record in run.history],
        "apart": [record["consensus"] for record in run.history],
        "times": [record["seconds"] for record in run.history],
        **figures,
    }  # fmt: skip


def _run(problem: Problem, rule: object, test: object, kind: str, topology: topologies.Topology, seed: int) -> Run:
    return minimise(
        problem, rule, Constant(STEPS[kind]), Gossip(topology, workers=WORKERS), Simulator(link=LINK),
        Budget(EPOCHS[kind]), test=test, seed=seed,
    )  # fmt: skip


def _linear(topology: topologies.Topology, seed: int) -> tuple[Run, dict[str, Any]]:
    """Train a convex problem with one optimum, which is known."""
    planted = classification(seed, rows=960)
    run = _run(planted.problem, "sgd", planted.test, LINEAR, topology, seed)
    surface, weights = landscape.surface(planted.problem), np.ravel(run.model.weights).astype(float)
    return run, {
        "curve": [planted.excess(record["objective"]) for record in run.history],
        "excess": planted.excess(run.objective), "norm": float(np.abs(weights).sum()),
        "norm_2": float(np.linalg.norm(weights)),
        **landscape.summary(surface, surface.at(run), RADIUS, samples=SAMPLES, coordinates=COORDINATES),
    }  # fmt: skip


def _perceptron(topology: topologies.Topology, seed: int) -> tuple[Run, dict[str, Any]]:
    """Train a network with more parameters than rows, which has many minima."""
    import torch
    from torch.utils.data import TensorDataset

    from hogwild.lab.overparametrised_networks import perceptron
    from hogwild.landscape.module_surface import ModuleSurface

    made = perceptron(seed, rows=ROWS, width=WIDTH)
    problem, (start, _) = made.problem(BATCH), made.losses()
    run = _run(problem, torch.optim.SGD, TensorDataset(*made.held_out), PERCEPTRON, topology, seed)
    surface = ModuleSurface(made.problem(ROWS))
    return run, {
        "curve": [record["loss"] / start for record in run.history], "excess": run.loss / start,
        **made.norms(made.net),
        **landscape.summary(surface, surface.at(made.net), RADIUS, samples=SAMPLES, coordinates=COORDINATES),
    }  # fmt: skip


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Relate agreement, loss, norms, sharpness and cost to the spectral gap, on each problem."""
    names = sorted(
        results.values("topology"), key=lambda name: (results.mean("gap", topology=name).value, name == "clique")
    )
    problems = results.values("problem")
    findings = [finding for kind in problems for finding in _of_problem(results.where(problem=kind), kind, names)]
    first, last = names[0], names[-1]
    sent = {name: results.mean("bytes", topology=name, problem=problems[0]).value for name in (first, last)}
    took = {name: results.mean("simulated_seconds", topology=name, problem=problems[0]) for name in (first, last)}
    findings.append(Finding(
        f"But {last} sends {sent[last] / sent[first]:.1f} times the bytes of {first}, and takes {took[last]} simulated "
        f"seconds where that takes {took[first]} ({problems[0]})."
    ))  # fmt: skip
    parts = [part for kind in problems for part in _figures(results.where(problem=kind), kind, names)]
    return findings, parts


def _of_problem(results: Results, kind: str, names: list[str]) -> list[Finding]:
    """Compare the least with the best connected topology on one problem, and all of them by rank."""
    names = [name for name in names if results.where(topology=name)]
    fixed = [name for name in names if not results.where(topology=name).records[0]["changes"]]
    first, last = names[0], names[-1]

    def against_gap(figure: str) -> float:
        gaps, values = (
            [results.mean(each, topology=name).value for name in fixed] for each in ("gap", figure)
        )  # fmt: skip
        return float(spearmanr(gaps, values)[0])

    def compared(figure: str) -> str:
        found = paired(results, figure, {"topology": last}, {"topology": first})
        return f"{found}, seen from {found.size}"

    agree = against_gap("consensus")
    return [
        Finding(
            f"{kind}: the larger the spectral gap, the nearer workers are to each other: rank correlation {agree:.2f} "
            f"over {len(fixed)} topologies that stay as they are. {first} (gap "
            f"{results.mean('gap', topology=first).value:.2f}): {results.mean('consensus', topology=first)} apart, "
            f"{last} (gap {results.mean('gap', topology=last).value:.2f}): "
            f"{results.mean('consensus', topology=last)}.",
            agree < -0.5,
        ),
        Finding(
            f"{kind}: at equal work, {last} less {first}, with intervals of 95% and the difference that would have "
            f"been seen with a probability of 80%: training loss {compared('train_loss')}; held-out loss "
            f"{compared('test_loss')}; gap between them {compared('gap_to_test')}; norm {compared('norm')}; highest "
            f"rise of the loss within {RADIUS:g} {compared('sharpness')}; mean rise there {compared('ball_2_loss')}; "
            f"mean change of the gradient's norm there {compared('ball_2_gradient_norm')}. Rank correlation with the "
            f"spectral gap: held-out loss {against_gap('test_loss'):.2f}, gap {against_gap('gap_to_test'):.2f}, norm "
            f"{against_gap('norm'):.2f}, highest rise {against_gap('sharpness'):.2f}."
        ),
    ]


def _figures(results: Results, kind: str, names: list[str]) -> list[Part]:
    """Make the charts and tables of one problem."""
    names = [name for name in names if results.where(topology=name)]

    def against(figure: str, label: str) -> Series:
        means = [results.mean(figure, topology=name) for name in names]
        return Series(label, [results.mean("gap", topology=name).value for name in names],
                      [mean.value for mean in means], [mean.spread for mean in means], "points")  # fmt: skip

    left = "distance to the optimum" if kind == LINEAR else "training loss against the start"
    cost = ("consensus", "excess", "train_loss", "test_loss", "gap_to_test")
    solution = (
        "norm", "norm_2", "sharpness", "ball_1_loss", "ball_1_gradient_norm", "ball_2_loss", "ball_2_gradient_norm",
        "ball_inf_loss", "ball_inf_gradient_norm", "coordinates_loss", "coordinates_gradient_norm",
    )  # fmt: skip
    return [
        Chart(f"Agreement: {kind}", "spectral gap", "how far apart workers are at the end",
              (against("consensus", "apart"),),
              "Workers of topologies with a larger spectral gap are nearer to each other.", log_x=True, log_y=True),
        Chart(f"Train and test: {kind}", "spectral gap", "loss",
              (against("train_loss", "training"), against("test_loss", "held out")),
              "Training and held-out loss against the spectral gap.", log_x=True),
        Chart(f"Sharpness: {kind}", "spectral gap", f"rise of the loss within {RADIUS:g}",
              (against("sharpness", "highest"), against("ball_2_loss", "mean in the ball"),
               against("coordinates_loss", "mean along coordinates")),
              "Three forms of sharpness against the spectral gap.", log_x=True, log_y=True),
        Chart(f"Loss over simulated time: {kind}", "simulated seconds", left,
              each(names, lambda name: results.curve("times", "curve", name, topology=name)),
              f"The {left} over simulated seconds, by topology.", log_y=True),
        Chart(f"How far apart over epochs: {kind}", "epoch", "how far apart",
              each(names, lambda name: results.curve("epochs", "apart", name, topology=name)),
              "How far apart workers are, over epochs.", log_y=True),
        Table(
            f"Topologies: {kind}",
            ("topology", "spectral gap", "neighbours", "apart", left, "training loss", "held-out loss", "gap", "MB",
             "seconds"),
            tuple(
                (name, round(results.mean("gap", topology=name).value, 4),
                 results.mean("neighbours", topology=name).value,
                 *(str(results.mean(figure, topology=name)) for figure in cost),
                 round(results.mean("bytes", topology=name).value / 1e6, 2),
                 str(results.mean("simulated_seconds", topology=name)))
                for name in names
            ),
        ),
        Table(
            f"Norms and sharpness of the solutions: {kind}",
            ("topology", "l1-norm", "l2-norm", "highest rise", "1-ball: rise", "1-ball: gradient", "2-ball: rise",
             "2-ball: gradient", "cube: rise", "cube: gradient", "coordinates: rise", "coordinates: gradient"),
            tuple((name, *(str(results.mean(figure, topology=name)) for figure in solution)) for name in names),
        ),
    ]  # fmt: skip


experiment = Experiment(
    "topologies",
    "Topologies: how connected must a network be?",
    "Workers without a server mix their parameters with those of their neighbours. From a ring to a clique, at equal "
    "work: how well do they agree, where do they come to, how well does it generalise, and what does it cost?",
    f"{WORKERS} workers take one step of SGD and mix with their neighbours, on two problems: logistic regression with "
    f"a known optimum (960 rows, {EPOCHS[LINEAR]} epochs, a step of {STEPS[LINEAR]:g}), and a perceptron of {WIDTH} "
    f"hidden units with more parameters than rows, and so with many minima ({ROWS} rows with noise, {BATCH} in an "
    f"update, {EPOCHS[PERCEPTRON]} epochs, a step of {STEPS[PERCEPTRON]:g}), in simulated time on links of 1 ms and "
    "100 kB/s. The loss is that of the workers' mean; 'apart' is the root mean square of their distances to it, "
    "against its norm. The spectral gap is one less the second largest eigenvalue of the mixing matrix by size, for a "
    "round. A topology that changes from round to round agrees exactly, but only at the end of a cycle. Norms are "
    "those of the parameters of the mean, and sharpness is that of the training loss around it: the highest rise "
    f"within {RADIUS:g}, mean changes of the loss and of the gradient's norm in p-balls, and along single coordinates "
    "in their units (see the documentation of the landscape).",
    grid(problem=[LINEAR, PERCEPTRON], topology=NAMES),
    grid(problem=[LINEAR], topology=["ring", "torus", "hypercube", "one-peer-exponential", "clique"])
    + grid(problem=[PERCEPTRON], topology=["ring", "torus", "clique"]),
    trial,
    read,
    seconds=(330, 45),
    seeds=(5, 2),
)  # fmt: skip
