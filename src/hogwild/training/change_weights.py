"""Weights of the changes that workers make to the parameters between two exchanges.

Workers that exchange rarely all move the frequent coordinates towards the same optimum. The sum of their changes would
overshoot it, and their mean is right. A rare coordinate is changed by one worker alone, and its change has to count in
full. So a change is divided by the expected number of workers that change the same coordinate between two exchanges.

Sums of squared gradients are averaged, those of rare coordinates as well. Then the steps of a coordinate fall as those
of one worker do, although the changes of all workers count: their sum would make steps too short for a mean of changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.messaging.deltas import Floats, frozen
from hogwild.problems.problem import RowProblem, State
from hogwild.rules.rule import Rule
from hogwild.training.exchange_tiers import ExchangeTiers
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
        return cls(tuple(np.ones(len(part), np.float32) for part in state), np.zeros(state[0].shape[1], np.float32))

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
    None = None,
) -> ChangeWeights | None:  # fmt: skip
    """Return the weights of changes; None where all count alike.

    ``workers`` is the number of those among which an exchange spreads changes. ``averages`` tells whether the strategy
    takes the mean of the changes, which divides each by that number already.
    """
    rates = problem.touch_rates()
    if rates is None or workers <= 1:
        return None
    times = workers if averages else 1
    rows: list[Any] = [interval] * len(rates)
    if tiers is not None:
        rows[0] = tiers.intervals(len(rates[0]), interval)
    parts = tuple(
        (times * np.repeat(_weights(rate, workers, each), len(part) // len(rate))).astype(np.float32)
        for rate, part, each in zip(rates, state, rows, strict=True)
    )
    fixed = np.zeros(state[0].shape[1], np.float32)
    fixed[list(rule.accumulator_columns)] = times / workers
    return ChangeWeights(parts, fixed, tiers)


def _weights(rate: NDArray[np.float64], workers: float, interval: Any) -> NDArray[np.float64]:
    """Return one divided by the expected number of workers that change a coordinate, if one of them does.

    >>> _weights(np.array([1.0, 1e-9]), workers=4, interval=100).round(3)
    array([0.25, 1.  ])
    """
    others = (workers - 1) * -np.expm1(-rate * interval)
    weights: NDArray[np.float64] = 1 / (1 + others)
    return weights
