"""Losses for two classes, as functions of the margin ``m = z * y`` with a label y of -1 or 1."""

from __future__ import annotations

from math import exp, log1p

from hogwild.losses import proximal
from hogwild.losses.loss import Loss

# Score below which exp(-z) + 1 equals exp(-z) in double precision.
FLAT = -37.0


def hinge(z: float, y: float, parameter: float) -> tuple[float, float]:
    """Return max(0, 1 - m) and its derivative by ``z``."""
    gap = 1.0 - z * y
    # The branch includes the kink, where any derivative between both sides is a subgradient.
    if gap >= 0.0:
        return gap, -y
    return 0.0, 0.0


def perceptron(z: float, y: float, parameter: float) -> tuple[float, float]:
    """Return max(0, -m) and its derivative by ``z``."""
    gap = -z * y
    # The branch includes zero; otherwise weights of zero would never move.
    if gap >= 0.0:
        return gap, -y
    return 0.0, 0.0


def squared_hinge(z: float, y: float, parameter: float) -> tuple[float, float]:
    """Return max(0, 1 - m)^2 and its derivative by ``z``."""
    gap = 1.0 - z * y
    if gap > 0.0:
        return gap * gap, -2.0 * gap * y
    return 0.0, 0.0


def logistic(z: float, y: float, parameter: float) -> tuple[float, float]:
    """Return log(1 + exp(-m)) and its derivative by ``z``.

    No margin overflows, and the derivative rounds as scikit-learn's.
    """
    if z <= FLAT:
        e = exp(z)
        return (-z, e - 1.0) if y > 0.0 else (e, e)
    e = exp(-z)
    if y > 0.0:
        return log1p(e), -e / (1.0 + e)
    return log1p(1.0 / e) if z <= 0.0 else log1p(e) + z, 1.0 / (1.0 + e)


def waning(slope: float) -> float:
    """Return the curvature of the logistic loss relative to its maximum.

    It falls as predictions become more certain.
    """
    return 4.0 * abs(slope) * (1.0 - abs(slope))


def modified_huber(z: float, y: float, parameter: float) -> tuple[float, float]:
    """Return max(0, 1 - m)^2 for m >= -1, else -4m, and its derivative by ``z``; outliers have a bounded derivative."""
    m = z * y
    if m >= 1.0:
        return 0.0, 0.0
    if m >= -1.0:
        return (1.0 - m) * (1.0 - m), -2.0 * (1.0 - m) * y
    return -4.0 * m, -4.0 * y


HINGE = Loss("hinge", hinge, "classes", has_kink=True, prox=proximal.hinge)
PERCEPTRON = Loss("perceptron", perceptron, "classes", has_kink=True, prox=proximal.perceptron)
SQUARED_HINGE = Loss("squared-hinge", squared_hinge, "classes", curvature=2.0, prox=proximal.squared_hinge)
# Scores of the logistic loss are log-odds: a probability of 98% is a score of 4.
LOGISTIC = Loss(
    "logistic", logistic, "classes", link="sigmoid", curvature=0.25, bend=waning, prox=proximal.logistic,
    score_scale=4.0,
)  # fmt: skip
MODIFIED_HUBER = Loss(
    "modified-huber", modified_huber, "classes", link="huber", curvature=2.0, prox=proximal.modified_huber
)
