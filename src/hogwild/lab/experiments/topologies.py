"""Experiment on topologies: the connectivity that a network of workers needs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from hogwild import landscape, topologies
from hogwild.lab.experiment import (
    Experiment,
    Mean,
    Point,
    Results,
    diverged_runs,
    each,
    finite,
    grid,
    outcome,
    ratio,
    stable_run,
)
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
# Topologies from which a rank correlation is reported, and its size from which it counts as clear.
ENOUGH, CLEAR = 3, 0.5
COST = ("bytes", "simulated_seconds")
COMPARED = {
    "train_loss": "training loss", "test_loss": "held-out loss", "gap_to_test": "gap between them", "norm": "norm",
    "sharpness": f"highest rise of the loss within {RADIUS:g}", "ball_2_loss": "mean rise there",
    "ball_2_gradient_norm": "mean change of the gradient's norm there",
}  # fmt: skip
RANKED = {"test_loss": "held-out loss", "gap_to_test": "gap", "norm": "norm", "sharpness": "highest rise"}
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
    found = (_linear if point["problem"] == LINEAR else _perceptron)(topology, seed)
    known = about(topology, tuple(range(WORKERS)))
    described = {
        "gap": 1 - (1 - known["spectral_gap"]) ** (1 / known["rounds"]), "changes": known["rounds"] > 1,
        "neighbours": known["neighbours"]["most"], "diverged": int(found is None),
    }  # fmt: skip
    if found is None:
        return described
    run, figures = found
    assert run.traffic is not None
    return {
        **described, "train_loss": run.loss, "test_loss": run.result["test_loss"],
        "gap_to_test": run.result["test_loss"] - run.loss, "consensus": run.history[-1]["consensus"],
        "bytes": run.traffic["bytes"], "simulated_seconds": run.seconds,
        "epochs": [record["epoch"] for record in run.history],
        "apart": [record["consensus"] for record in run.history],
        "times": [record["seconds"] for record in run.history],
        **figures,
    }  # fmt: skip


def _run(
    problem: Problem, rule: object, test: object, kind: str, topology: topologies.Topology, seed: int
) -> Run | None:
    return stable_run(partial(
        minimise, problem, rule, Constant(STEPS[kind]), Gossip(topology, workers=WORKERS), Simulator(link=LINK),
        Budget(EPOCHS[kind]), test=test, seed=seed,
    ))  # fmt: skip


def _linear(topology: topologies.Topology, seed: int) -> tuple[Run, dict[str, Any]] | None:
    """Train a convex problem with one optimum, which is known; None if the run diverged."""
    planted = classification(seed, rows=960)
    run = _run(planted.problem, "sgd", planted.test, LINEAR, topology, seed)
    if run is None:
        return None
    surface, weights = landscape.surface(planted.problem), np.ravel(run.model.weights).astype(float)
    return run, {
        "curve": [planted.excess(record["objective"]) for record in run.history],
        "excess": planted.excess(run.objective), "norm": float(np.abs(weights).sum()),
        "norm_2": float(np.linalg.norm(weights)),
        **landscape.summary(surface, surface.at(run), RADIUS, samples=SAMPLES, coordinates=COORDINATES),
    }  # fmt: skip


def _perceptron(topology: topologies.Topology, seed: int) -> tuple[Run, dict[str, Any]] | None:
    """Train a network with more parameters than rows, which has many minima; None if the run diverged."""
    import torch
    from torch.utils.data import TensorDataset

    from hogwild.lab.overparametrised_networks import perceptron
    from hogwild.landscape.module_surface import ModuleSurface

    made = perceptron(seed, rows=ROWS, width=WIDTH)
    problem, (start, _) = made.problem(BATCH), made.losses()
    run = _run(problem, torch.optim.SGD, TensorDataset(*made.held_out), PERCEPTRON, topology, seed)
    if run is None:
        return None
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
    findings += _cost(results.where(problem=problems[0]), problems[0], names)
    findings += diverged_runs(results, "problem", "topology")
    parts = [part for kind in problems for part in _figures(results.where(problem=kind), kind, names)]
    return findings, parts


def _cost(results: Results, kind: str, names: list[str]) -> list[Finding]:
    """Compare the bytes and the time of the least and of the best connected topology; none if there is one alone."""
    names = [name for name in names if results.mean("bytes", topology=name).count]
    if len(names) < 2:
        return []
    first, last = names[0], names[-1]
    sent, took = ({name: results.mean(figure, topology=name) for name in (first, last)} for figure in COST)
    return [Finding(
        f"{kind}: {last} sends {ratio(sent[last], sent[first])} times the bytes of {first}, and takes {took[last]} "
        f"simulated seconds where that takes {took[first]}."
    )]  # fmt: skip


def _rank_correlation(gaps: list[float], means: list[Mean]) -> float | None:
    """Return the rank correlation of a figure with the spectral gap; None for few values, or equal ones."""
    pairs = [(gap, mean.value) for gap, mean in zip(gaps, means, strict=True) if mean.count]
    xs, ys = [gap for gap, _ in pairs], [value for _, value in pairs]
    if len(pairs) < ENOUGH or min(len(set(xs)), len(set(ys))) < 2:
        return None
    return float(spearmanr(xs, ys)[0])


def _of_problem(results: Results, kind: str, names: list[str]) -> list[Finding]:
    """Compare the least with the best connected topology on one problem, and all of them by rank."""
    names = [name for name in names if results.mean("consensus", topology=name).count]
    if len(names) < 2:
        return []
    fixed = [name for name in names if not results.where(topology=name).records[0]["changes"]]
    gaps = [results.mean("gap", topology=name).value for name in fixed]
    first, last = names[0], names[-1]

    def against_gap(figure: str) -> float | None:
        return _rank_correlation(gaps, [results.mean(figure, topology=name) for name in fixed])

    pairs = {figure: paired(results, figure, {"topology": last}, {"topology": first}) for figure in COMPARED}
    compared = "; ".join(f"{COMPARED[name]} {found.with_power}" for name, found in pairs.items() if found.count)
    ranks = {label: against_gap(figure) for figure, label in RANKED.items()}
    ranked = ", ".join(f"{label} {rank:.2f}" for label, rank in ranks.items() if rank is not None)
    findings = [_agreement(results, kind, (first, last), len(fixed), against_gap("consensus"))]
    if compared:
        findings.append(Finding(
            f"{kind}: at equal work, {last} less {first}, with intervals of 95% and the difference that would have "
            f"been seen with a probability of 80%: {compared}."
            + (f" Rank correlation with the spectral gap: {ranked}." if ranked else "")
        ))  # fmt: skip
    return findings


def _agreement(results: Results, kind: str, ends: tuple[str, str], fixed: int, agree: float | None) -> Finding:
    """Return a sentence on how far apart workers are, by the spectral gap, as it was measured."""
    apart = "; ".join(
        f"{name} (gap {results.mean('gap', topology=name).value:.2f}): {outcome(results, 'consensus', topology=name)}"
        for name in ends
    )
    text = f"{kind}: how far apart workers are at the end: {apart}."
    if agree is None:
        return Finding(text)
    verdict = (
        "the larger the gap, the nearer workers are to each other" if agree < -CLEAR
        else "the larger the gap, the further apart workers are" if agree > CLEAR
        else "neither rises clearly with the other"
    )  # fmt: skip
    return Finding(
        f"{text} Rank correlation with the spectral gap, over {fixed} topologies that stay as they are: {agree:.2f}: "
        f"{verdict}.",
        True if agree < -CLEAR else False if agree > CLEAR else None,
    )


def _figures(results: Results, kind: str, names: list[str]) -> list[Part]:
    """Make the charts and tables of one problem."""
    names = [name for name in names if results.where(topology=name)]
    results = Results(tuple(
        {**record, "megabytes": record["bytes"] / 1e6 if record.get("bytes") is not None else None}
        for record in results.records
    ))  # fmt: skip

    def against(figure: str, label: str) -> Series:
        means = [results.mean(figure, topology=name) for name in names]
        return Series(label, [results.mean("gap", topology=name).value for name in names],
                      [finite(mean.value) for mean in means], [finite(mean.spread) or 0.0 for mean in means],
                      "points")  # fmt: skip

    left = "distance to the optimum" if kind == LINEAR else "training loss against the start"
    cost = ("consensus", "excess", "train_loss", "test_loss", "gap_to_test")
    solution = (
        "norm", "norm_2", "sharpness", "ball_1_loss", "ball_1_gradient_norm", "ball_2_loss", "ball_2_gradient_norm",
        "ball_inf_loss", "ball_inf_gradient_norm", "coordinates_loss", "coordinates_gradient_norm",
    )  # fmt: skip
    return [
        Chart(f"Agreement: {kind}", "spectral gap", "how far apart workers are at the end",
              (against("consensus", "apart"),),
              "How far apart workers are at the end, against the spectral gap.", log_x=True, log_y=True),
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
                 *(outcome(results, figure, topology=name) for figure in cost),
                 str(results.mean("megabytes", topology=name)),
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
    seconds=(330, 31),
    seeds=(5, 2),
)  # fmt: skip
