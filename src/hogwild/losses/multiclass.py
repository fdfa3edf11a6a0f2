"""Losses of several classes: a score for each class, the label is a class number.

Both fill ``slopes`` with the derivative by each score and return the loss.
"""

from __future__ import annotations

from math import exp, log
from typing import Any


def one_vs_rest(scores: Any, y: int, parameter: float, slopes: Any) -> float:
    """The sum over the classes of a two-class loss: this class (1) against all others (-1)."""
    total = 0.0
    for k in range(scores.size):
        value, slope = loss(float(scores[k]), 1.0 if k == y else -1.0, parameter)  # type: ignore[name-defined]  # noqa: F821
        slopes[k] = slope
        total += value
    return total


def softmax(scores: Any, y: int, parameter: float, slopes: Any) -> float:
    """-log of the probability that softmax gives to the label's class"""
    largest = scores[0]
    for k in range(1, scores.size):
        largest = max(largest, scores[k])
    total = 0.0
    for k in range(scores.size):
        slopes[k] = exp(float(scores[k] - largest))
        total += slopes[k]
    for k in range(scores.size):
        slopes[k] /= total
    slopes[y] -= 1.0
    return log(total) + float(largest - scores[y])
