"""Losses of two classes: the label is -1 or 1 and what counts is the margin ``m = z * y``."""

from __future__ import annotations

from math import exp, log1p

from hogwild.losses.loss import Loss

FLAT = -37.0  # a score below which exp(-z) + 1 is exp(-z)


def hinge(z: float, y: float, parameter: float) -> tuple[float, float]:
    """max(0, 1 - m)"""
    gap = 1.0 - z * y
    if gap >= 0.0:  # on the kink too: any slope between the two is right there
        return gap, -y
    return 0.0, 0.0


def perceptron(z: float, y: float, parameter: float) -> tuple[float, float]:
    """max(0, -m)"""
    gap = -z * y
    if gap >= 0.0:  # at zero too, or nothing would ever begin to move
        return gap, -y
    return 0.0, 0.0


def squared_hinge(z: float, y: float, parameter: float) -> tuple[float, float]:
    """max(0, 1 - m)^2"""
    gap = 1.0 - z * y
    if gap > 0.0:
        return gap * gap, -2.0 * gap * y
    return 0.0, 0.0


def logistic(z: float, y: float, parameter: float) -> tuple[float, float]:
    """log(1 + exp(-m)), computed so that no margin overflows; the slope rounds as scikit-learn's does"""
    if z <= FLAT:
        e = exp(z)
        return (-z, e - 1.0) if y > 0.0 else (e, e)
    e = exp(-z)
    if y > 0.0:
        return log1p(e), -e / (1.0 + e)
    return log1p(1.0 / e) if z <= 0.0 else log1p(e) + z, 1.0 / (1.0 + e)


def waning(slope: float) -> float:
    """How bent the logistic loss is, against where it is most: the less, the surer one is."""
    return 4.0 * abs(slope) * (1.0 - abs(slope))


def modified_huber(z: float, y: float, parameter: float) -> tuple[float, float]:
    """max(0, 1 - m)^2 from m = -1 on, -4m before: a squared hinge that outliers cannot drag"""
    m = z * y
    if m >= 1.0:
        return 0.0, 0.0
    if m >= -1.0:
        return (1.0 - m) * (1.0 - m), -2.0 * (1.0 - m) * y
    return -4.0 * m, -4.0 * y


HINGE = Loss("hinge", hinge, "classes")
PERCEPTRON = Loss("perceptron", perceptron, "classes")
SQUARED_HINGE = Loss("squared-hinge", squared_hinge, "classes", curvature=2.0)
LOGISTIC = Loss("logistic", logistic, "classes", link="sigmoid", curvature=0.25, bend=waning)
MODIFIED_HUBER = Loss("modified-huber", modified_huber, "classes", link="huber", curvature=2.0)
