"""Experiment on regularisation by asynchronous SGD."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild import landscape
from hogwild.lab.experiment import Experiment, Mean, Point, Results, grid
from hogwild.lab.report_model import Chart, Finding, Map, Part, Series, Table
from hogwild.problems.linear import Linear
from hogwild.rules import SGD, Adam
from hogwild.runtimes import Simulator, Threads
from hogwild.schedules import Constant
from hogwild.stopping import Budget
from hogwild.strategies import Hogwild, ParameterServer, Serial, Synchronous
from hogwild.training.minimise import minimise

ROWS, FEATURES, NOISE, EPOCHS, WORKERS = 60, 240, 0.3, 150, 8
METHODS: dict[str, tuple[Any, float, Any, Any, float]] = {  # rule, step size, strategy, runtime, averaged share
    "gradient descent": (SGD(), 1.0, Synchronous(1, accumulate=ROWS), Simulator(), 0.0),
    "SGD": (SGD(), 0.5, Serial(), Threads(), 0.0),
    "asynchronous SGD": (SGD(), 0.1, ParameterServer(WORKERS), Simulator(), 0.0),
    "Hogwild!": (SGD(), 0.5, Hogwild(4, buffer=0), Threads(), 0.0),
    "averaged SGD": (SGD(), 0.5, Serial(), Threads(), 0.5),
    "Adam": (Adam(), 0.02, Serial(), Threads(), 0.0),
}
TRAJECTORIES = ("SGD", "asynchronous SGD", "Adam")  # methods whose trajectories are drawn
# Factor on the number of epochs, because an epoch of gradient descent is a single step.
LONGER = {"gradient descent": 20}


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train from zero on fewer rows than features, and describe the solution."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((ROWS + 1000, FEATURES)) / np.sqrt(FEATURES)
    weights = random.standard_normal(FEATURES)
    y = X @ weights + NOISE * random.standard_normal(len(X))
    problem = Linear((X[:ROWS], y[:ROWS]), "squared", intercept=False)
    shortest = np.linalg.lstsq(X[:ROWS], y[:ROWS], rcond=None)[0]  # exact solution of least norm
    rule, step, strategy, runtime, average = METHODS[point["method"]]
    run = minimise(
        problem, rule, Constant(step), strategy, runtime, Budget(EPOCHS * LONGER.get(point["method"], 1)),
        test=(X[ROWS:], y[ROWS:]), average=average, seed=seed,
    )  # fmt: skip
    found = run.model.weights.ravel().astype(float)
    surface = landscape.surface(problem)
    at = surface.at(run)
    return {
        "train_loss": run.loss, "test_loss": run.result["test_loss"],
        "train_test_gap": run.result["test_loss"] - run.loss, "norm": float(np.linalg.norm(found)),
        "norm_1": float(np.abs(found).sum()), "norm_max": float(np.abs(found).max()),
        "from_the_shortest": float(np.linalg.norm(found - shortest) / np.linalg.norm(shortest)),
        "from_the_planted": float(np.linalg.norm(found - weights) / np.linalg.norm(weights)),
        "sharpness": float(landscape.sharpness(surface, at, rho=0.5, steps=5).rise),
        "largest_eigenvalue": float(landscape.spectrum(surface, at, k=1).values[0]),
        "least_norm": float(np.linalg.norm(shortest)),
        **(_trajectory(problem, surface, point["method"]) if seed == 0 and point["method"] in TRAJECTORIES else {}),
    }  # fmt: skip


def _trajectory(problem: Linear, surface: landscape.Surface, method: str) -> dict[str, Any]:
    """Return the trajectory of the first epochs, on the plane that contains most of it."""
    rule, step, strategy, runtime, _ = METHODS[method]
    path = landscape.trajectory(problem, rule, Constant(step), strategy, runtime, Budget(EPOCHS // 5))
    seen = landscape.path_plane(surface, path)
    return {
        "way": {
            "across": seen.plane.xs.tolist(), "up": seen.plane.ys.tolist(), "losses": seen.plane.losses.tolist(),
            "xs": seen.x.tolist(), "ys": seen.y.tolist(), "explained": sum(seen.explained),
        }
    }  # fmt: skip


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Compare the solutions of all methods."""
    methods = results.values("method")

    def of(figure: str, method: str) -> Mean:
        return results.mean(figure, method=method)

    plain, late, adam = "SGD", "asynchronous SGD", "Adam"
    findings = []
    if {plain, late, adam} <= set(methods):
        alike = abs(of("test_loss", late).value - of("test_loss", plain).value)
        noise = 2 * (of("test_loss", late).error + of("test_loss", plain).error)
        findings = [
            Finding(
                f"From zero, SGD ended {of('from_the_shortest', plain)} of its length from the shortest exact "
                "solution, "
                f"asynchronous SGD {of('from_the_shortest', late)}, Adam {of('from_the_shortest', adam)}: SGD finds "
                "the "
                "solution of least norm with or without delay, Adam another one.",
                of("from_the_shortest", plain).below(of("from_the_shortest", adam))
                and of("from_the_shortest", late).below(of("from_the_shortest", adam)),
            ),
            Finding(
                f"The held-out loss of SGD is {of('test_loss', plain)}, of asynchronous SGD {of('test_loss', late)}: "
                + ("asynchrony by itself does not regularise here; the difference is within chance."
                   if alike <= noise else "there is a difference that is more than chance."),
            ),
            Finding(
                "The sharpness of a quadratic is the same everywhere: what differs in the largest change of the loss "
                "within 0.5 of the solution is how well it fits. Largest eigenvalue "
                f"{of('largest_eigenvalue', plain)} for all."
            ),
        ]  # fmt: skip
    parts: list[Part] = [
        Chart("Norm and distance", "method", "of the planted weights' kind",
              tuple(Series(label, methods, [of(figure, method).value for method in methods],
                           [of(figure, method).spread for method in methods], "bars")
                    for figure, label in (("from_the_shortest", "from the shortest solution"),
                                          ("from_the_planted", "from the planted weights"))),
              "How far each method's solution is from the shortest exact one and from the planted weights."),
        Chart("Train and test", "method", "loss",
              tuple(Series(label, methods, [of(figure, method).value for method in methods],
                           [of(figure, method).spread for method in methods], "bars")
                    for figure, label in (("train_loss", "training"), ("test_loss", "held out"))),
              "Losses on training and held-out rows, by method.", log_y=True),
        Table("Solutions", ("method", "train", "test", "|w|", "|w| of order 1", "largest", "from shortest",
                            "from planted", "sharpness"),
              tuple((method, *(str(of(figure, method)) for figure in
                               ("train_loss", "test_loss", "norm", "norm_1", "norm_max", "from_the_shortest",
                                "from_the_planted", "sharpness"))) for method in methods)),
    ]  # fmt: skip
    return findings, [*parts, *_maps(results)]


def _maps(results: Results) -> list[Part]:
    """Make maps of the trajectories on their planes."""
    found: list[Part] = []
    for record in results.records:
        if "way" in record:
            path, shown = record["way"], f"{record['way']['explained']:.0%}"
            found.append(Map(
                f"Trajectory of {record['method']}", "along its longest side", "across", path["across"], path["up"],
                path["losses"], "loss", f"The loss on the plane that shows {shown} of the trajectory, and the "
                "trajectory from its start to its end, epoch by epoch.", log=True, contours=True,
                path=(path["xs"], path["ys"]),
            ))  # fmt: skip
    return found


experiment = Experiment(
    "regularisation",
    "Regularisation: does asynchrony help to generalise?",
    "With fewer rows than features many solutions fit exactly. Which one do gradient descent, SGD, asynchronous SGD, "
    "averaged SGD and Adam find, and how well does it do on other rows?",
    f"Least squares with {ROWS} rows, {FEATURES} features and planted weights; all start from zero, {EPOCHS} epochs "
    "at a "
    "constant step (gradient descent 20 times as many, each of one step). Of all exact solutions the shortest is "
    "known. "
    f"Asynchronous SGD has {WORKERS} workers with a server in simulated time, Hogwild! four threads. Sharpness is the "
    "largest rise of the loss within a distance of 0.5.",
    grid(method=list(METHODS)),
    grid(method=list(METHODS)),
    trial,
    read,
    seconds=(240, 65),
    seeds=(8, 2),
)  # fmt: skip
