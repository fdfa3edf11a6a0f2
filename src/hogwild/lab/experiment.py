"""Experiment: settings, a trial for each setting, their results with the machine they ran on, and an analysis."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hogwild.data import Dataset
from hogwild.data import open as open_data
from hogwild.errors import DivergedError, ParameterError
from hogwild.lab.report_model import Finding, Part, Series, Style
from hogwild.machine import this_machine
from hogwild.run import Run
from hogwild.schedules import Schedule
from hogwild.stopping import Budget

PACKAGES = ("hogwild", "numpy", "numba", "scipy", "scikit-learn", "torch")
MOST_CLASSES = 100  # number of different labels above which integers are taken for numbers
STALL = 3e-4  # share of the initial loss; an objective that improves by less in an epoch has stalled
NEAR_BEST = 0.01  # share above the lowest held-out loss at which a run counts as having reached it


def about() -> dict[str, dict[str, str]]:
    """Return a description of the machine and the versions of packages, in words."""
    here = this_machine()
    return {
        "machine": {
            "processor": here.processor,
            "cores": f"{here.usable_cores} of {here.logical_cores}",
            "memory": f"{here.memory / 2**30:.0f} GiB",
            "system": here.system,
        },
        "versions": {
            "Python": platform.python_version(),
            **{name: found for name in PACKAGES if (found := _version(name))},
        },
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean over seeds, with the standard deviation of the values and the standard error of the mean.

    >>> Mean.of([1.0, 2.0, 3.0])
    Mean(value=2.0, spread=1.0, error=0.58, count=3)
    >>> str(Mean.of([1.0, 2.0, 3.0])), str(Mean.of([0.5])), str(Mean(19_123.4, 0, 812, 2)), str(Mean(3e-3, 0, 5e-5, 2))
    ('2.00 ± 0.58', '0.5', '19,120 ± 810', '0.003000 ± 0.000050')
    >>> str(Mean.of([None])), str(Mean.of([0.1] * 3))
    ('unknown', '0.1')
    """

    value: float
    spread: float  # standard deviation of the values
    error: float  # standard error of the mean
    count: int

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Mean:
        """Compute the mean of all values that are finite and not None."""
        known = [float(value) for value in values if value is not None and math.isfinite(value)]
        if not known:
            return cls(math.nan, math.nan, math.nan, 0)
        mean, count = sum(known) / len(known), len(known)
        if min(known) == max(known):  # the sum of equal values is rounded, and would leave a spread
            return cls(known[0], 0.0, 0.0, count)
        spread = math.sqrt(sum((value - mean) ** 2 for value in known) / (count - 1)) if count > 1 else 0.0
        return cls(mean, spread, spread / math.sqrt(count), count)

    def __str__(self) -> str:
        if not self.count:
            return "unknown"
        if self.count < 2 or not self.error > 0:
            return spelt(self.value)
        # The error gets two significant digits, and the value as many decimals.
        digits = 1 - math.floor(math.log10(self.error))
        if digits > 7 or abs(self.value) >= 1e7:
            return f"{self.value:.3g} ± {self.error:.2g}"
        places = max(0, digits)
        return f"{round(self.value, digits):,.{places}f} ± {round(self.error, digits):,.{places}f}"

    def below(self, other: Mean) -> bool:
        """Return whether this mean is below another by more than two standard errors of the difference.

        >>> Mean(1.0, 0.1, 0.05, 4).below(Mean(2.0, 0.1, 0.05, 4)), Mean(1.0, 1, 0.5, 4).below(Mean(1.5, 1, 0.5, 4))
        (True, False)
        """
        return self.value + 2 * math.hypot(self.error, other.error) < other.value


@dataclass(frozen=True, slots=True)
class Results:
    """Records of trials. Each record has its settings, its ``seed`` and its figures."""

    records: tuple[Record, ...]

    def where(self, /, **settings: object) -> Results:
        """Return the records with these settings.

        >>> Results(({"w": 1, "loss": 2.0}, {"w": 2, "loss": 1.0})).where(w=2).records
        ({'w': 2, 'loss': 1.0},)
        """
        return Results(tuple(
            record for record in self.records if all(record.get(name) == value for name, value in settings.items())
        ))  # fmt: skip

    def values(self, name: str) -> list[Any]:
        """Return the distinct values of a setting, in the order in which they were tried."""
        return list(dict.fromkeys(record[name] for record in self.records if name in record))

    def mean(self, figure: str, /, **settings: object) -> Mean:
        """Compute the mean of a figure over the trials with these settings."""
        return Mean.of([record.get(figure) for record in self.where(**settings).records])

    def over(self, setting: str, figure: str, name: str, style: Style = "line", /, **settings: object) -> Series:
        """Return the mean of a figure as a curve over the values of a setting."""
        chosen = self.where(**settings)
        xs = sorted(chosen.values(setting), key=lambda value: (isinstance(value, str), value))
        means = [chosen.mean(figure, **{setting: x}) for x in xs]
        return Series(name, xs, [finite(mean.value) for mean in means], [_zero(mean.spread) for mean in means], style)

    def curve(self, x: str, y: str, name: str, style: Style = "line", /, **settings: object) -> Series:
        """Return the pointwise mean of recorded curves, cut to the length of the shortest curve."""
        records = [record for record in self.where(**settings).records if record.get(y)]
        if not records:
            return Series(name, [], [])
        points = min(len(record[y]) for record in records)
        means = [Mean.of([record[y][k] for record in records]) for k in range(points)]
        across = [Mean.of([record[x][k] for record in records]).value for k in range(points)]
        return Series(
            name, across, [finite(mean.value) for mean in means], [_zero(mean.spread) for mean in means], style
        )

    def __bool__(self) -> bool:
        return bool(self.records)


def lowest(results: Results, figure: str, by: str) -> object:
    """Return the value of a setting at which the mean of a figure is lowest, among those with the fewest divergences.

    A mean leaves out the trials that diverged. By the mean alone, a setting that diverges with most seeds could win.

    >>> lowest(Results(({"w": 1, "loss": 2.0}, {"w": 2, "loss": 1.0}, {"w": 2, "diverged": 1})), "loss", "w")
    1
    """

    def rank(value: object) -> tuple[float, float]:
        return _zero(results.mean("diverged", **{by: value}).value), _or_inf(results.mean(figure, **{by: value}).value)

    return min(results.values(by), key=rank)


def divergences(run: Run) -> int:
    """Return how many times a run diverged and went on with a smaller step."""
    return sum(event["event"] == "diverged" for event in run.events)


def stable_run(train: Callable[[], Run]) -> Run | None:
    """Return the run that ``train`` makes, or None if it diverged.

    A run that diverges goes back and halves its step, and gives up with an error after some times. Both count here: a
    run with half the step is no measurement of the step that a trial was given.

    Parameters
    ----------
    train : callable
        Function without arguments that calls ``minimise``.

    Examples
    --------
    >>> def explode():
    ...     raise DivergedError("The loss exploded.")
    >>> stable_run(explode) is None
    True
    """
    try:
        run = train()
    except DivergedError:
        return None
    return None if divergences(run) else run


def outcome(results: Results, figure: str, /, **settings: object) -> str:
    """Return the mean of a figure in words, with the number of trials that diverged and therefore have none.

    >>> some = Results(({"w": 1, "loss": 0.5}, {"w": 1, "diverged": 1}, {"w": 2, "diverged": 1}))
    >>> outcome(some, "loss", w=1), outcome(some, "loss", w=2), outcome(some, "loss", w=3)
    ('0.5 (1 of 2 runs diverged)', 'diverged', 'unknown')
    """
    mean, trials = results.mean(figure, **settings), results.where(**settings).records
    lost = sum(bool(record.get("diverged")) for record in trials)
    if not mean.count:
        return "diverged" if lost else str(mean)
    return f"{mean} ({lost} of {len(trials)} runs diverged)" if lost else str(mean)


def diverged_runs(results: Results, *settings: str, counted_as: str = "left out of all means") -> list[Finding]:
    """Return a sentence that names the settings with which trials diverged; none if no trial did.

    Parameters
    ----------
    results : Results
        All trials.
    settings : str
        Names of the settings by which the trials are told apart.
    counted_as : str, default "left out of all means"
        What the reading does with trials that diverged.

    Examples
    --------
    >>> some = Results(({"rule": "sgd", "step": 2.0, "diverged": 1}, {"rule": "adam", "step": 2.0, "diverged": 0}))
    >>> diverged_runs(some, "rule", "step")[0].text
    'Diverged, and left out of all means: sgd, step 2 (1 of 1).'
    """
    lost: dict[str, list[bool]] = {}
    for record in results.records:
        values = [(name, record[name]) for name in settings if name in record]
        label = ", ".join(value if isinstance(value, str) else f"{name} {value:g}" for name, value in values)
        lost.setdefault(label, []).append(bool(record.get("diverged")))
    told = [f"{label} ({sum(each)} of {len(each)})" for label, each in lost.items() if any(each)]
    return [Finding(f"Diverged, and {counted_as}: {'; '.join(told)}.")] if told else []


def ratio(one: Mean, other: Mean) -> Mean:
    """Return the ratio of two means with its standard error; a mean of no values where there is none."""
    if not other.value or not math.isfinite(one.value / other.value):
        return Mean.of([])
    times = one.value / other.value
    error = abs(times) * math.hypot(one.error / one.value if one.value else 0.0, other.error / other.value)
    return Mean(times, 0.0, error, min(one.count, other.count))


def gain(one: Mean, other: Mean) -> str:
    """Return the ratio of two means in words, with its standard error.

    >>> gain(Mean(4.0, 0, 0.2, 4), Mean(2.0, 0, 0.1, 4))
    '2.00 ± 0.14'
    """
    times = ratio(one, other)
    return str(times) if times.count else "an unknown number of"


def to_target(results: Results, curve: str = "test_curve") -> Results:
    """Return the results with the epochs and the seconds that each trial needed for a target of its held-out loss.

    The target is the setting ``target`` of a trial. Without one it is 1% above the lowest held-out loss that any trial
    with the same seed came to. Each record gets ``target``, ``epochs_to_target`` and ``seconds_to_target``; the last
    two are None for a trial that never reached the target.

    Parameters
    ----------
    results : Results
        Records with held-out losses under ``curve``, and with ``epochs`` and ``times``, one value for each loss.
    curve : str, default "test_curve"
        Name of the held-out losses.

    Returns
    -------
    Results
        The same trials with three more figures each.

    Examples
    --------
    >>> fast = {"seed": 0, "test_curve": [0.5, 0.4], "epochs": [1, 2], "times": [0.1, 0.2]}
    >>> slow = {"seed": 0, "test_curve": [0.9, 0.8], "epochs": [1, 2], "times": [0.1, 0.2]}
    >>> [record["epochs_to_target"] for record in to_target(Results((fast, slow))).records]
    [2, None]
    """
    lowest_of: dict[int, float] = {}
    for record in results.records:
        known = [loss for loss in record.get(curve) or () if loss is not None and math.isfinite(loss)]
        lowest_of[record["seed"]] = min([lowest_of.get(record["seed"], math.inf), *known])
    found = []
    for record in results.records:
        target = record.get("target")
        if target is None:
            target = lowest_of[record["seed"]] * (1 + NEAR_BEST)
        at = next((k for k, loss in enumerate(record.get(curve) or ()) if loss is not None and loss <= target), None)
        found.append({
            **record, "target": target, "epochs_to_target": None if at is None else record["epochs"][at],
            "seconds_to_target": None if at is None else record["times"][at],
        })  # fmt: skip
    return Results(tuple(found))


def reached(results: Results, figure: str, /, **settings: object) -> str:
    """Return the mean of a figure that trials have only if they reached something, in words.

    >>> some = Results(({"w": 1, "epochs_to_target": 2}, {"w": 1, "epochs_to_target": None}, {"w": 2}))
    >>> reached(some, "epochs_to_target", w=1), reached(some, "epochs_to_target", w=2)
    ('2 (1 of 2 runs)', 'never reached')
    """
    mean, trials = results.mean(figure, **settings), len(results.where(**settings).records)
    if not mean.count:
        return "never reached"
    return str(mean) if mean.count == trials else f"{mean} ({mean.count} of {trials} runs)"


def each(names: Sequence[Any], make: Callable[[Any], Series]) -> tuple[Series, ...]:
    """Make a curve for each of the given values, without curves that have no points."""
    found = (make(name) for name in names)
    return tuple(series for series in found if any(value is not None for value in series.y))


def spelt(value: float) -> str:
    """Return a number as text with few digits.

    >>> spelt(12_345.678), spelt(0.5), spelt(1.23456e-9), spelt(2.0)
    ('12,346', '0.5', '1.23e-09', '2')
    """
    if abs(value) >= 1e3 and abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "worker"), counted(4, "worker")
    ('1 worker', '4 workers')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def finite(value: float) -> float | None:
    """Return a value for a chart, or None if it is not finite."""
    return value if math.isfinite(value) else None


def _zero(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _or_inf(value: float) -> float:
    return value if math.isfinite(value) else math.inf


Point = Mapping[str, Any]
"""Settings of a trial, plain values only."""

Trial = Callable[[Point, int], Mapping[str, Any]]
"""(settings, seed) -> figures: numbers, and lists or tables of numbers for curves."""

Reading = Callable[[Results], tuple[Sequence[Finding], Sequence[Part]]]

OnData = Callable[[Sequence[Point], Sequence[str]], Sequence[Point]]
"""(settings, values of ``--data``) -> settings with the user's data; a ParameterError for other values."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """Study that one command runs.

    ``hogwild lab FILE`` needs a file that defines ``experiment = Experiment(...)``, and nothing else.

    Parameters
    ----------
    name, title, question, method : str
        Name on the command line, and the words of the report.
    points, quick : sequence of mapping
        Settings that are tried, and those of ``--quick``: fewer, for a first look.
    trial : callable
        Function of settings and seed that returns the figures of one trial.
    read : callable
        Function of all results that returns findings and figures.
    seconds : tuple of float
        Approximate duration of all trials on two cores, in full and quick. It is the forecast before the first trial
        has ended.
    seeds : tuple of int, default (5, 2)
        Number of seeds with which each setting is tried, in full and quick.
    timed : bool or callable, default False
        Whether trials measure real time, or a function of settings that says so for each. Such trials run in sequence,
        with the machine to themselves. Other trials run in parallel.
    on_data : callable, optional
        Function that puts the user's data into the settings. Without it the experiment refuses ``--data``.
    limit : float, default 1800.0
        Seconds after which a trial is ended and counts as failed.
    """

    name: str
    title: str
    question: str
    method: str
    points: Sequence[Point]
    quick: Sequence[Point]
    trial: Trial
    read: Reading
    seconds: tuple[float, float]
    seeds: tuple[int, int] = (5, 2)
    timed: bool | Callable[[Point], bool] = False
    on_data: OnData | None = None
    limit: float = 1800.0

    def runs_alone(self, point: Point) -> bool:
        """Return whether a trial with these settings needs the machine to itself."""
        return self.timed(point) if callable(self.timed) else self.timed


def with_file(points: Sequence[Point], given: Sequence[str]) -> list[Point]:
    """Return the settings with one file of rows, as ``file``; this is the ``on_data`` of most experiments.

    >>> with_file([{"step": 1}], [__file__])[0].keys()
    dict_keys(['step', 'file'])
    >>> with_file([], ["a.svm", "b.svm"])
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: --data is one file or packed folder here. Got 'a.svm', 'b.svm'.
    """
    if len(given) != 1:
        raise ParameterError(f"--data is one file or packed folder here. Got {', '.join(map(repr, given))}.")
    if not Path(given[0]).exists():
        raise ParameterError(f"--data {given[0]}: there is no such file.")
    return [{**point, "file": str(Path(given[0]).absolute())} for point in points]


@dataclass(frozen=True, slots=True, eq=False)
class OwnRows:
    """The user's rows: a part to train on, a held-out part, and what suits their labels."""

    training: Dataset
    held_out: Dataset
    loss: str  # logistic for two labels, softmax for 3 to 100 labels that are integers, squared for all others
    scale: float  # about the loss of a model that is zero everywhere

    @classmethod
    def open(cls, file: str, share: float) -> OwnRows:
        """Open a file or a packed folder, and hold out a share of its rows."""
        data = open_data(file)
        counts = data.label_counts()
        labels = () if counts is None else counts[0]
        whole = all(float(label).is_integer() for label in labels)
        training, held_out = data.split(share, 0)
        if len(labels) == 2 or (whole and 3 <= len(labels) <= MOST_CLASSES):
            return cls(training, held_out, "logistic" if len(labels) == 2 else "softmax", math.log(len(labels)))
        return cls(training, held_out, "squared", 0.5 * float((training.labels() ** 2).mean()))


def budget_for(schedule: Schedule, epochs: int, scale: float) -> Budget:
    """Return a budget of epochs, with a tolerance for a schedule that waits for the objective to stall.

    The objective has stalled when it improves by less than 0.0003 times ``scale`` in an epoch.

    >>> from hogwild.schedules import Adaptive
    >>> budget_for(Adaptive(), 5, scale=1.0).tolerance
    0.0003
    """
    return Budget(epochs, tolerance=STALL * scale, stall_epochs=1) if schedule.needs_stall else Budget(epochs)


def grid(**choices: Sequence[Any]) -> list[dict[str, Any]]:
    """Return every combination of the given choices.

    >>> grid(workers=[1, 2], step=[0.1])
    [{'workers': 1, 'step': 0.1}, {'workers': 2, 'step': 0.1}]
    """
    points: list[dict[str, Any]] = [{}]
    for name, values in choices.items():
        points = [{**point, name: value} for point in points for value in values]
    return points
