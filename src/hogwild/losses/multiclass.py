"""Losses for several classes, as functions of one score per class and the label's class number.

Both losses fill ``slopes`` with the derivative by each score, and return the loss.
"""

from __future__ import annotations

from math import exp, log
from typing import Any


def one_vs_rest(scores: Any, y: int, parameter: float, class_weights: Any, slopes: Any) -> float:
    """Return the sum over the classes of a two-class loss of this class (1) against all others (-1).

    The weight of a class applies where it is the positive class, not where it is among the rest, as in scikit-learn.
    """
    total = 0.0
    for k in range(scores.size):
        value, slope = loss(float(scores[k]), 1.0 if k == y else -1.0, parameter)  # type: ignore[name-defined]  # noqa: F821
        weight = class_weights[k] if k == y else 1.0
        slopes[k] = weight * slope
        total += weight * value
    return total


def softmax(scores: Any, y: int, parameter: float, class_weights: Any, slopes: Any) -> float:
    """Return -log of the probability that softmax assigns to the label's class."""
    largest = scores[0]
    for k in range(1, scores.size):
        largest = max(largest, scores[k])
    total = 0.0
    for k in range(scores.size):
        slopes[k] = exp(float(scores[k] - largest))
        total += slopes[k]
    weight = float(class_weights[y])
    for k in range(scores.size):
        slopes[k] *= weight / total
    slopes[y] -= weight
    return weight * (log(total) + float(largest - scores[y]))
