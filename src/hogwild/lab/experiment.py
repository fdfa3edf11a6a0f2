"""Experiment: settings, a trial for each setting, and an analysis of the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hogwild.lab.report_model import Finding, Part
from hogwild.lab.results import Results

Point = Mapping[str, Any]
"""Settings of a trial, plain values only."""

Trial = Callable[[Point, int], Mapping[str, Any]]
"""(settings, seed) -> figures: numbers, and lists or tables of numbers for curves."""

Reading = Callable[[Results], tuple[Sequence[Finding], Sequence[Part]]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """Study that one command runs.

    Each of ``points`` is tried with several ``seeds``. ``quick`` has fewer points and seeds, for a first look. Trials
    that measure real time are ``timed``: they run in sequence, with the machine to themselves. Other trials run in
    parallel. ``seconds`` is the approximate duration of all trials on two cores, in full and quick.

    ``hogwild lab FILE`` needs a file that defines ``experiment = Experiment(...)``, and nothing else.
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
    """Return every combination of the given choices.

    >>> grid(workers=[1, 2], step=[0.1])
    [{'workers': 1, 'step': 0.1}, {'workers': 2, 'step': 0.1}]
    """
    points: list[dict[str, Any]] = [{}]
    for name, values in choices.items():
        points = [{**point, name: value} for point in points for value in values]
    return points
