"""Weights of the changes that workers make to the parameters between two exchanges.

Workers that exchange rarely all move the frequent coordinates towards the same optimum. The sum of their changes would
overshoot it, and their mean is right. A rare coordinate is changed by one worker alone, and its change has to count in
full. So a change is divided by the expected number of workers that change the same coordinate between two exchanges.
Where steps are short beside the way to the optimum, changes of several workers add up as those of one would that had
all their rows: they are weighed so that together they come as far as it does.

Sums of squared gradients are averaged, those of rare coordinates as well, and so are momentum and other means. Then the
steps of a coordinate fall as those of one worker do, although the changes of all workers count: their sum would make
steps too short for a mean of changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.messaging.deltas import Floats, frozen
from hogwild.problems.problem import RowProblem, State
from hogwild.rules.rule import Rule
from hogwild.training.exchange_tiers import ExchangeTiers
from hogwild.training.interval_progress import measurable_term, progress
from hogwild.training.row_trainer import pack_state

OCTAVE = 16  # levels of weights between a weight and twice that weight


@dataclass(frozen=True, slots=True, eq=False)
class ChangeWeights:
    """Weight of the change of each coordinate, and of those columns whose weight is the same for all coordinates."""

    parts: tuple[Floats, ...]  # weights of the coordinates of each part of the state
    fixed: Floats  # weight of each column; 0 where it is that of the coordinate
    tiers: ExchangeTiers | None = None  # frequent and rare features; None if all are exchanged after every burst

    @classmethod
    def full(cls, state: State) -> ChangeWeights:
        """Return weights with which all changes count in full."""
        return cls.all_of(state, 1.0)

    @classmethod
    def all_of(cls, state: State, weight: float) -> ChangeWeights:
        """Return weights with which all changes have one weight."""
        parts = tuple(np.full(len(part), weight, np.float32) for part in state)
        return cls(parts, np.zeros(state[0].shape[1], np.float32))

    def packed(self) -> Floats:
        """Return the weight of each value, in the order of ``pack_state``.

        >>> weights = ChangeWeights((np.array([0.5, 1.0]), np.array([0.5])), np.array([0.0, 0.25]))
        >>> weights.packed()
        array([0.5 , 0.25, 0.5 , 0.25, 1.  , 0.25])
        """
        tables = [np.where(self.fixed > 0, self.fixed, part[:, None]) for part in self.parts]
        return frozen(pack_state(tuple(tables)))


def levels(weights: Floats) -> tuple[Any, Floats]:
    """Return the level of each coordinate, and the weight of each level.

    Coordinates of one level have about the same weight.

    >>> levels(np.array([0.5, 0.501, 1.0]))
    (array([1, 1, 0], dtype=uint16), array([1.    , 0.5005], dtype=float32))
    """
    keys = np.rint(-OCTAVE * np.log2(weights)).astype(np.int32)
    counts = np.bincount(keys)
    found = np.flatnonzero(counts)
    numbers = np.zeros(len(counts), np.uint16)
    numbers[found] = np.arange(len(found))
    sums = np.bincount(keys, weights)
    return numbers[keys], (sums[found] / counts[found]).astype(np.float32)


def change_weights(
    problem: RowProblem, rule: Rule, state: State, workers: float, interval: int, averages: bool, tiers: ExchangeTiers |
    None = None, step: float | None = None,
) -> ChangeWeights | None:  # fmt: skip
    """Return the weights of changes; None where all count alike.

    ``workers`` is the number of those among which an exchange spreads changes. ``averages`` tells whether the strategy
    takes the mean of the changes, which divides each by that number already. ``step`` is the largest step size, if
    it is known.
    """
    rates, times = problem.touch_rates(), workers if averages else 1
    if workers <= 1 or (rates is None and (rule.adds_up or averages)):
        return None
    if rates is None:
        return ChangeWeights.all_of(state, 1 / workers)
    rows: list[Any] = [interval] * len(rates)
    if tiers is not None:
        rows[0] = tiers.intervals(len(rates[0]), interval)
    found = [_share_of_changers(rate * each, workers) for rate, each in zip(rates, rows, strict=True)]
    term = measurable_term(problem, rule)
    if term is not None and step is not None:
        found[0] = _share_of_progress(progress(term, rule, step, rates[0], rows[0]), workers)
    parts = tuple(
        (times * np.repeat(weights, len(part) // len(weights))).astype(np.float32)
        for weights, part in zip(found, state, strict=True)
    )
    fixed = np.zeros(state[0].shape[1], np.float32)
    fixed[list(_averaged_columns(rule))] = times / workers
    return ChangeWeights(parts, fixed, tiers)


def _averaged_columns(rule: Rule) -> Iterable[int]:
    """Return the columns of which the mean over the workers is right.

    >>> from hogwild.rules import AdaGrad, Adam
    >>> list(_averaged_columns(AdaGrad())), list(_averaged_columns(Adam()))
    ([1], [1, 2, 3, 4])
    """
    if rule.adds_up:
        return rule.accumulator_columns
    return (column for column in range(len(rule.initial)) if column not in rule.position_columns)


def _share_of_changers(visits: NDArray[np.float64], workers: float) -> NDArray[np.float64]:
    """Return one divided by the expected number of workers that change a coordinate, if one of them does.

    >>> _share_of_changers(np.array([100.0, 1e-7]), workers=4).round(3)
    array([0.25, 1.  ])
    """
    others = (workers - 1) * -np.expm1(-visits)
    weights: NDArray[np.float64] = 1 / (1 + others)
    return weights


def _share_of_progress(progress: NDArray[np.float64], workers: float) -> NDArray[np.float64]:
    """Return the way that all rows take a coordinate, divided by the sum of the ways that the workers take it.

    >>> _share_of_progress(np.array([100.0, 1.0, 1e-7, 0.0]), workers=4).round(3)
    array([0.25 , 0.388, 1.   , 1.   ])
    """
    some = np.maximum(progress, 1e-9)
    weights: NDArray[np.float64] = np.expm1(-workers * some) / (workers * np.expm1(-some))
    return weights
