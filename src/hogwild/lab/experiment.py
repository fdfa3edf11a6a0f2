"""What an experiment is: settings, a trial for each, and a reading of what came of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hogwild.lab.report_model import Finding, Part
from hogwild.lab.results import Results

Point = Mapping[str, Any]
"""The settings of a trial, plain values only."""

Trial = Callable[[Point, int], Mapping[str, Any]]
"""(settings, seed) -> figures: numbers, and lists or tables of numbers for curves."""

Reading = Callable[[Results], tuple[Sequence[Finding], Sequence[Part]]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A study that one command runs.

    Each of ``points`` is tried with several ``seeds``. ``quick`` has fewer of both, for a first look. Where trials
    measure real time they are ``timed``: one after the other, with the machine to themselves; others run side by side.
    ``seconds`` is about how long all of them take on two cores, in full and quick.

    A file with an ``experiment = Experiment(...)`` in it is all that ``hogwild lab FILE`` needs.
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
    timed: bool = False


def grid(**choices: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination of some choices.

    >>> grid(workers=[1, 2], step=[0.1])
    [{'workers': 1, 'step': 0.1}, {'workers': 2, 'step': 0.1}]
    """
    points: list[dict[str, Any]] = [{}]
    for name, values in choices.items():
        points = [{**point, name: value} for point in points for value in values]
    return points
