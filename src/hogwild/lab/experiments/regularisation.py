"""Experiment on regularisation by SGD and by asynchronous SGD, where many solutions fit the training data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild import landscape
from hogwild.events import Event
from hogwild.lab.experiment import Experiment, Mean, Point, Results, each, grid, spelt, stable_run
from hogwild.lab.paired_difference import Difference, paired
from hogwild.lab.report_model import Chart, Finding, Map, Part, Series, Table
from hogwild.lazy import cached_property
from hogwild.runtimes import Simulator
from hogwild.schedules import Cosine
from hogwild.stopping import Budget
from hogwild.strategies import ParameterServer, Strategy, Synchronous
from hogwild.training.minimise import minimise

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from hogwild.lab.overparametrised_networks import Overparametrised

WORKERS = 8
STEPS = (0.16, 0.08, 0.04, 0.02, 0.01, 0.005, 0.0025)
FITTED = 0.1  # share of the training loss at the start, below which a run counts as fitted
# Size of the moves by which sharpness is measured, and the numbers of random points in balls and of coordinates.
RADIUS, SAMPLES, COORDINATES = 0.1, 16, 16


@dataclass(frozen=True, slots=True)
class Method:
    """Optimiser, its workers, and the last share of the run over which iterates are averaged."""

    rule: str = "sgd"
    workers: int = 1
    average: float = 0.0
    momentum: float = 0.0
    full_batch: bool = False

    @property
    def strategy(self) -> Strategy:
        """The strategy: one worker, or asynchronous workers with a server."""
        return Synchronous(1) if self.workers == 1 else ParameterServer(self.workers)

    def optimiser(self) -> Callable[..., Optimizer]:
        """Return a function that makes the optimiser; the schedule replaces its step."""
        import torch

        if self.rule == "sgd":
            return partial(torch.optim.SGD, lr=1.0, momentum=self.momentum)
        return {"adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam}[self.rule]


REFERENCE, SGD, ASYNCHRONOUS = "gradient descent", "SGD", "asynchronous SGD"
METHODS = {
    REFERENCE: Method(full_batch=True),
    SGD: Method(),
    ASYNCHRONOUS: Method(workers=WORKERS),
    "averaged asynchronous SGD": Method(workers=WORKERS, average=0.25),
    "momentum": Method(momentum=0.9),
    "AdaGrad": Method("adagrad"),
    "Adam": Method("adam"),
}
SMALL, LARGE, NOISY = "diagonal, small start", "diagonal, large start", "diagonal, label noise"
PERCEPTRON, SENSING = "perceptron", "matrix sensing"
PROBLEMS = (SMALL, LARGE, NOISY, PERCEPTRON, SENSING)
TRAJECTORIES = (REFERENCE, SGD, ASYNCHRONOUS)  # methods whose trajectories are drawn, on the problem with label noise


def made(problem: str, seed: int) -> Overparametrised:
    """Make a problem by its name."""
    from hogwild.lab import overparametrised_networks as networks

    if problem == PERCEPTRON:
        return networks.perceptron(seed)
    if problem == SENSING:
        return networks.sensing(seed, scale=0.5, label_noise=0.5)
    scale, noise = {SMALL: (0.01, 0.0), LARGE: (0.1, 0.0), NOISY: (0.3, 2.0)}[problem]
    return networks.diagonal(seed, scale, noise)


def trial(point: Point, seed: int) -> dict[str, Any]:
    """Train with one method and step, and describe the solution."""
    method, problem = METHODS[point["method"]], made(point["problem"], seed)
    epochs = max(1, round(point["updates"] / len(problem.training[1])))
    (start, _), path = problem.losses(), list[Any]()

    def record(event: Event) -> None:
        if event["event"] == "epoch":
            path.append(np.concatenate([part.ravel() for part in event.parameters]))

    run = stable_run(partial(
        minimise, problem.full_batch() if method.full_batch else problem.problem(), method.optimiser(),
        Cosine(point["step"]), method.strategy, Simulator(), Budget(epochs), average=method.average, seed=seed,
        callbacks=[record],
    ))  # fmt: skip
    if run is None:
        return {"diverged": 1.0, "fitted": 0.0}
    loss, held_out = problem.losses()
    return {
        "diverged": 0.0, "fitted": float(loss < FITTED * start), "train_loss": loss,
        "test_loss": held_out, "train_test_gap": held_out - loss,
        "staleness": run.staleness["mean"] if run.staleness else None,
        **problem.norms(problem.net), **_sharpness(problem),
        **(_trajectory(problem, path) if _drawn(point) and seed == 0 and len(path) > 2 else {}),
    }  # fmt: skip


def _drawn(point: Point) -> bool:
    return point["problem"] == NOISY and point["method"] in TRAJECTORIES


def _norms_by_step(results: Results, problem: str, method: str) -> Series:
    return results.over("step", "norm", method, problem=problem, method=method)


def _sharpness(problem: Overparametrised) -> dict[str, float]:
    """Measure sharpness in all three forms, and the trace of the Hessian."""
    from hogwild.landscape.module_surface import ModuleSurface

    surface = ModuleSurface(problem.problem(batch=len(problem.training[1])))
    at = surface.at(problem.net)
    return {
        **landscape.summary(surface, at, RADIUS, samples=SAMPLES, coordinates=COORDINATES),
        "trace": landscape.trace(surface, at, probes=8).value,
    }


def _trajectory(problem: Overparametrised, path: list[Any]) -> dict[str, Any]:
    """Return the trajectory of a run, on the plane that contains most of it."""
    from hogwild.landscape.module_surface import ModuleSurface

    surface = ModuleSurface(problem.problem(batch=len(problem.training[1])))
    seen = landscape.path_plane(surface, path, points=13)
    return {
        "way": {
            "across": seen.plane.xs.tolist(), "up": seen.plane.ys.tolist(), "losses": seen.plane.losses.tolist(),
            "xs": seen.x.tolist(), "ys": seen.y.tolist(), "explained": sum(seen.explained),
        }
    }  # fmt: skip


LARGEST, BEST = "largest step that fits", "least training loss"


@dataclass(frozen=True, eq=False)
class Tuned:
    """Results of all methods, each with the step that a rule has chosen for it on each problem.

    The rule sees the training loss of all seeds, and nothing else.
    """

    results: Results
    rule: str

    @cached_property
    def steps(self) -> dict[tuple[str, str], float | None]:
        """The chosen steps by problem and method."""
        return {
            (problem, method): self._chosen(self.results.where(problem=problem, method=method))
            for problem in self.results.values("problem") for method in self.methods(problem)
        }  # fmt: skip

    def step(self, problem: str, method: str) -> float | None:
        """Return the chosen step: the largest that fits with every seed, or that of the least training loss.

        Where no step fits, both rules choose the least training loss. None if with every step some seed diverged, or
        has no record because its trial failed: nothing is known about such a seed.
        """
        return self.steps.get((problem, method))

    def _chosen(self, some: Results) -> float | None:
        seeds = set(some.values("seed"))
        steps = [
            step for step in some.values("step")
            if some.mean("diverged", step=step).value == 0 and set(some.where(step=step).values("seed")) == seeds
        ]  # fmt: skip
        fitted = [step for step in steps if some.mean("fitted", step=step).value == 1]
        if self.rule == LARGEST and fitted:
            return float(max(fitted))
        losses = {step: loss.value for step in steps if (loss := some.mean("train_loss", step=step)).count}
        return float(min(losses, key=lambda step: losses[step])) if losses else None

    def methods(self, problem: str) -> list[str]:
        """Return the methods that were tried on a problem."""
        return self.results.where(problem=problem).values("method")

    def others(self, problem: str) -> list[str]:
        """Return the methods that are compared with gradient descent."""
        return [method for method in self.methods(problem) if method != REFERENCE]

    def settings(self, problem: str, method: str) -> dict[str, object]:
        """Return the settings of a method with its step."""
        return {"problem": problem, "method": method, "step": self.step(problem, method)}

    def mean(self, figure: str, problem: str, method: str) -> Mean:
        """Return the mean of a figure over seeds."""
        return self.results.mean(figure, **self.settings(problem, method))

    def difference(
        self, figure: str, problem: str, method: str, base: str = REFERENCE, comparisons: int = 1
    ) -> Difference:  # fmt: skip
        """Compare a figure of two methods, seed by seed."""
        one, other = self.settings(problem, method), self.settings(problem, base)
        return paired(self.results, figure, one, other, comparisons)


SHARPNESS = {
    "sharpness": "highest rise",
    "ball_1_loss": "1-ball: rise", "ball_1_gradient_norm": "1-ball: gradient",
    "ball_2_loss": "2-ball: rise", "ball_2_gradient_norm": "2-ball: gradient",
    "ball_inf_loss": "cube: rise", "ball_inf_gradient_norm": "cube: gradient",
    "coordinates_loss": "coordinates: rise", "coordinates_gradient_norm": "coordinates: gradient",
}  # fmt: skip
FIGURES = {
    "train_loss": "training loss", "test_loss": "held-out loss", "train_test_gap": "gap", "norm": "norm",
    "norm_2": "l2-norm", "distance": "distance to the truth", **SHARPNESS, "trace": "trace of the Hessian",
}  # fmt: skip
ENOUGH = 5  # methods from which a rank correlation over them is reported
COMPARED = ("test_loss", "norm", "distance", *SHARPNESS)
SHOWN = {
    "test_loss": ("Held-out loss", "held-out loss", "Held-out loss by method, for each problem."),
    "norm": (
        "Norm",
        "norm",
        "l1-norm of weights and of the perceptron's parameters, nuclear norm of matrices, by method.",
    ),
    "distance": ("Distance to the truth", "relative distance", "Distance to the planted solution, by method."),
    "sharpness": (
        "Sharpness",
        f"highest rise of the loss within {RADIUS:g}",
        "Highest rise of the training loss in a ball around the solution, by method.",
    ),
}


def read(results: Results) -> tuple[list[Finding], list[Part]]:
    """Compare the solutions of all methods with that of gradient descent, seed by seed."""
    problems, methods, tuned = results.values("problem"), results.values("method"), Tuned(results, LARGEST)
    findings = [finding for problem in problems for finding in _of_problem(tuned, problem)]
    if {SGD, ASYNCHRONOUS} <= set(methods):
        findings += _asynchrony(tuned, problems)
    findings += _flatness(tuned, problems)
    parts: list[Part] = [
        *(
            Chart(title, "method", label, tuple(
                _bars(tuned, figure, problem) for problem in problems if results.mean(figure, problem=problem).count
            ), words, log_y=True)
            for figure, (title, label, words) in SHOWN.items()
        ),
        *(
            Chart(f"Norm by step: {problem}", "step", "norm",
                  each(tuned.methods(problem), partial(_norms_by_step, results, problem)),
                  "Norm of the solution against the step, for each method; runs that diverged are left out.",
                  log_x=True, log_y=True)
            for problem in problems
        ),
        *(_table(tuned, problem) for problem in problems),
        *(_differences(Tuned(results, rule), problems) for rule in (LARGEST, BEST)),
    ]  # fmt: skip
    return findings, [*parts, *_maps(tuned)]


def _bars(tuned: Tuned, figure: str, problem: str) -> Series:
    """Return the mean of a figure for each method of a problem."""
    known = [method for method in tuned.methods(problem) if tuned.mean(figure, problem, method).count]
    means = [tuned.mean(figure, problem, method) for method in known]
    return Series(problem, known, [mean.value for mean in means], [mean.spread for mean in means], "bars")


# What the literature claims of the norm of SGD's solution against that of gradient descent, by problem.
CLAIMS = {
    LARGE: "SGD is biased towards sparser solutions than gradient descent (Pesme et al. 2021)",
    NOISY: "label noise makes SGD find a sparse solution from a large start (HaoChen et al. 2021)",
    SENSING: "label noise makes SGD find a matrix of small nuclear norm from a large start",
}


def _of_problem(tuned: Tuned, problem: str) -> list[Finding]:
    """Compare the held-out losses on one problem, and check what the literature claims of it."""
    findings = _held_out(tuned, problem)
    if lost := [method for method in tuned.methods(problem) if tuned.step(problem, method) is None]:
        findings.append(Finding(
            f"{problem}: with every step of the grid some seed diverged or failed, and there is no solution, for "
            f"{', '.join(lost)}."
        ))  # fmt: skip
    one = tuned.difference("norm", problem, SGD)
    if problem not in CLAIMS or not one.count:
        return findings
    verdict = "lower" if one.high < 0 else "higher" if one.low > 0 else "not seen to differ"
    power = (
        f"A difference of {one.size} would have been seen with a probability of 80%."
        if one.count > 1 else "With one seed, no difference can be told from chance."
    )  # fmt: skip
    return [
        *findings,
        Finding(
            f"{problem}: {CLAIMS[problem]}. Here the norm of SGD's solution is {verdict}: {one} from that of "
            f"gradient descent, {tuned.mean('norm', problem, REFERENCE)}. {power}",
            one.high < 0 if one.seen else None,
        ),
    ]


def _held_out(tuned: Tuned, problem: str) -> list[Finding]:
    """Return a sentence on the methods whose held-out loss differs from that of gradient descent."""
    others, base = tuned.others(problem), tuned.mean("test_loss", problem, REFERENCE)
    found = {method: tuned.difference("test_loss", problem, method, comparisons=len(others)) for method in others}
    compared = [method for method in others if found[method].count]
    if not base.count:
        return []
    words = [f"{problem}: gradient descent has a held-out loss of {base}."]
    several = [method for method in compared if found[method].count > 1]
    apart = [f"{method} by {found[method]}" for method in several if found[method].seen]
    unseen = [found[method].detectable for method in several if not found[method].seen]
    if compared and not several:
        words.append(f"With one seed, no difference can be told from chance: {', '.join(compared)}.")
    elif several:
        words.append(
            f"Different from it are {', '.join(apart)}." if apart
            else f"Not seen to differ from it are {', '.join(several)}."
        )  # fmt: skip
    if unseen:
        least, most = spelt(min(unseen)), spelt(max(unseen))
        size = f"differences of {least} to {most}" if least != most else f"a difference of {least}"
        words.append(f"{'Of the others, ' if apart else ''}{size} would have been seen with a probability of 80%.")
    return [Finding(" ".join(word[:1].upper() + word[1:] if k else word for k, word in enumerate(words)))]


def _asynchrony(tuned: Tuned, problems: list[str]) -> list[Finding]:
    """Compare asynchronous SGD with SGD on all problems on which both have a solution."""
    compared = {
        problem: tuned.difference("test_loss", problem, ASYNCHRONOUS, SGD, len(problems)) for problem in problems
    }
    found = {problem: difference for problem, difference in compared.items() if difference.count}
    if not found:
        return []
    better, worse = (
        [problem for problem, each in found.items() if each.seen and (each.value < 0) == lower]
        for lower in (True, False)
    )
    verdict = (
        f"With the step of each, asynchronous SGD generalises better on {len(better)} of {len(found)} problems and "
        f"worse on {len(worse)}." if better or worse
        else "With the step of each, no difference is seen." if any(each.count > 1 for each in found.values())
        else "With one seed, no difference can be told from chance."
    )  # fmt: skip
    words = "; ".join(f"{problem} {each.with_power}" for problem, each in found.items())
    return [Finding(f"Held-out loss of asynchronous SGD with {WORKERS} workers less that of SGD: {words}. {verdict}")]


@cache
def _by_chance(count: int) -> float:
    """Return a size that rank correlations over ``count`` methods exceed by chance in at most one case of twenty.

    Up to eight methods all orders are counted. More of them follow Student's t closely.

    >>> _by_chance(5), _by_chance(7)
    (0.9, 0.75)
    """
    if count > 8:
        from scipy.stats import t as student

        limit = float(student.ppf(0.975, count - 2))
        return round(limit / math.sqrt(count - 2 + limit**2), 2)
    orders = np.array(list(permutations(range(count))))
    squares = ((orders - np.arange(count)) ** 2).sum(axis=1)
    sizes = np.abs(1 - 6 * squares / (count * (count**2 - 1)))
    return round(float(np.quantile(sizes, 0.95)), 2)


def _flatness(tuned: Tuned, problems: list[str]) -> list[Finding]:
    """Relate sharpness to held-out loss over the methods of each problem that has enough of them."""
    words, counts = list[str](), set[int]()
    for problem in problems:
        found = {
            label: ranked for name, label in SHARPNESS.items()
            if (ranked := _with_held_out_loss(tuned, problem, name)) is not None
        }  # fmt: skip
        if not found:
            continue
        counts |= {count for _, count in found.values()}
        least, most = (choose(found, key=lambda label: found[label][0]) for choose in (min, max))
        words.append(f"{problem} from {found[least][0]:.2f} ({least}) to {found[most][0]:.2f} ({most})")
    if not words:
        return []
    chance = ", ".join(f"{_by_chance(count):g} ({count} methods)" for count in sorted(counts))
    return [
        Finding(
            "Do flat solutions generalise? Least and largest rank correlation, over the methods, of the held-out loss "
            f"with a figure of sharpness: {'; '.join(words)}. Chance alone gives at most one figure in twenty a "
            f"correlation that is by size above {chance}."
        )
    ]


def _with_held_out_loss(tuned: Tuned, problem: str, figure: str) -> tuple[float, int] | None:
    """Return the rank correlation of a figure with the held-out loss, and the number of methods that have both."""
    from scipy.stats import spearmanr

    means = [[tuned.mean(name, problem, method) for name in ("test_loss", figure)] for method in tuned.methods(problem)]
    known = [pair for pair in means if all(mean.count for mean in pair)]
    losses, values = ([pair[place].value for pair in known] for place in (0, 1))
    if len(known) < ENOUGH or min(len(set(losses)), len(set(values))) < 2:
        return None
    return float(spearmanr(losses, values)[0]), len(known)


def _table(tuned: Tuned, problem: str) -> Table:
    """Make a table of all figures of the solutions of one problem."""
    shown = [figure for figure in FIGURES if tuned.results.mean(figure, problem=problem).count]
    return Table(
        f"Solutions: {problem}",
        ("method", "step", "fitted", *(FIGURES[figure] for figure in shown)),
        tuple(
            (
                method,
                tuned.step(problem, method),
                tuned.mean("fitted", problem, method).value == 1,
                *("no step" if tuned.step(problem, method) is None else str(tuned.mean(figure, problem, method))
                  for figure in shown),
            )
            for method in tuned.methods(problem)
        ),
    )  # fmt: skip


def _differences(tuned: Tuned, problems: list[str]) -> Table:
    """Make a table of the differences to gradient descent, with their intervals and what could have been seen."""
    return Table(
        f"Differences to gradient descent, each method with the step by the rule: {tuned.rule}",
        ("problem", "figure", "method", "step", "difference (interval)", "could have been seen", "seen"),
        tuple(
            (problem, FIGURES[figure], method, tuned.step(problem, method), str(found), found.size,
             found.seen)
            for problem in problems for figure in COMPARED for method in tuned.others(problem)
            if (found := tuned.difference(figure, problem, method, comparisons=len(tuned.others(problem)))).count
        ),
    )  # fmt: skip


def _maps(tuned: Tuned) -> list[Part]:
    """Make maps of the trajectories on their planes."""
    found: list[Part] = []
    for method in TRAJECTORIES:
        for record in tuned.results.where(**tuned.settings(NOISY, method)).records:
            if "way" in record:
                path, shown = record["way"], f"{record['way']['explained']:.0%}"
                found.append(Map(
                    f"Trajectory of {method}", "along its longest side", "across", path["across"], path["up"],
                    path["losses"], "loss", f"The training loss of the diagonal network on the plane that shows "
                    f"{shown} of the trajectory, and the trajectory, epoch by epoch.", log=True, contours=True,
                    path=(path["xs"], path["ys"]),
                ))  # fmt: skip
    return found


experiment = Experiment(
    "regularisation",
    "Regularisation: do SGD and asynchronous SGD find solutions that generalise better?",
    "With more parameters than data many solutions fit exactly. Which of them do gradient descent, SGD, asynchronous "
    "SGD, its average, momentum, AdaGrad and Adam find: of what norm, how sharp, and how good on other data?",
    "Least squares with networks that have more parameters than rows: a diagonal linear network u^2 - v^2 (40 rows, 80 "
    "features, 5 of them planted) that starts at 0.01 and at 0.1, and at 0.3 with label noise (plus or minus 2, drawn "
    "anew at every use of a row); a perceptron with 64 hidden units on 60 rows, whose targets have noise that stays; "
    "30 random measurements of a matrix of rank one and side 10, as U U^T from 0.5 times the identity, with label "
    f"noise of 0.5. An update has one row; that of gradient descent has all rows and no label noise. Asynchronous SGD "
    f"has {WORKERS} workers with a server in simulated time; its average is over the last quarter of the run. All "
    "methods make the same number of updates, and the step falls to zero along half a cosine. The same rule chooses "
    f"the step of every method from {', '.join(f'{step:g}' for step in STEPS)} (in the quick form from three of "
    f"them): the largest with which every seed ends below {FITTED:g} of the training loss at the start, and for "
    "comparison the one with the least training loss at the end. Where no step fits, both rules take the least "
    "training loss of the steps with which no seed diverged. A method that diverges with some seed at every step has "
    "no solution there. Held-out data is never used. Norm is the l1-norm of the weights (nuclear norm of the matrix, "
    "l1-norm of all parameters of the perceptron). Sharpness has three forms: "
    f"the highest rise of the loss within {RADIUS:g} (SAM); mean changes of the loss and of the gradient's norm at "
    "random points of p-balls around the solution, for p of 1, 2 and infinity, of radii that agree on quadratic forms; "
    "and the same along single coordinates, in units of the root mean square of their tensor. Methods are compared "
    "with gradient descent seed by seed. Intervals are Student's, at 95% for all methods together (Bonferroni). What "
    "could have been seen is the true difference whose interval leaves out zero in 80% of experiments.",
    grid(problem=list(PROBLEMS), method=list(METHODS), step=list(STEPS), updates=[3000]),
    grid(problem=[NOISY], method=list(METHODS), step=[0.08, 0.02, 0.0025], updates=[800])
    + grid(problem=[PERCEPTRON], method=list(TRAJECTORIES), step=[0.16, 0.08], updates=[800]),
    trial,
    read,
    seconds=(4000, 80),
    seeds=(8, 3),
)  # fmt: skip
