"""Losses for numbers, as functions of the residual ``r = z - y``.

As in scikit-learn, squared and Huber loss have the factor 1/2, and the squared epsilon-insensitive loss has not.
"""

from __future__ import annotations

from math import exp

from hogwild.losses import proximal
from hogwild.losses.loss import Loss


def squared(z: float, y: float, parameter: float) -> tuple[float, float]:
    """Return r^2 / 2 and its derivative by ``z``."""
    r = z - y
    return 0.5 * r * r, r


def huber(z: float, y: float, width: float) -> tuple[float, float]:
    """Return r^2 / 2 within ``width``, linear outside, and its derivative by ``z``."""
    r = z - y
    if r > width:
        return width * (r - 0.5 * width), width
    if r < -width:
        return width * (-r - 0.5 * width), -width
    return 0.5 * r * r, r


def epsilon_insensitive(z: float, y: float, width: float) -> tuple[float, float]:
    """Return max(0, |r| - width) and its derivative by ``z``."""
    r = z - y
    if r > width:
        return r - width, 1.0
    if r < -width:
        return -r - width, -1.0
    return 0.0, 0.0


def squared_epsilon_insensitive(z: float, y: float, width: float) -> tuple[float, float]:
    """Return max(0, |r| - width)^2 and its derivative by ``z``."""
    r = z - y
    if r > width:
        return (r - width) * (r - width), 2.0 * (r - width)
    if r < -width:
        return (r + width) * (r + width), 2.0 * (r + width)
    return 0.0, 0.0


def quantile(z: float, y: float, share: float) -> tuple[float, float]:
    """Return -share * r below the label, (1 - share) * r above the label, and its derivative by ``z``.

    The minimum is that quantile of the labels.
    """
    r = z - y
    if r >= 0.0:
        return (1.0 - share) * r, 1.0 - share
    return -share * r, -share


def poisson(z: float, y: float, parameter: float) -> tuple[float, float]:
    """Return exp(z) - y z, for counts whose mean is exp(z), and its derivative by ``z``."""
    mean = exp(z)
    return mean - y * z, mean - y


SQUARED = Loss("squared", squared, "real", link="identity", prox=proximal.squared)
HUBER = Loss("huber", huber, "real", 0.1, link="identity", prox=proximal.huber)
EPSILON_INSENSITIVE = Loss(
    "epsilon-insensitive",
    epsilon_insensitive,
    "real",
    0.1,
    link="identity",
    has_kink=True,
    prox=proximal.epsilon_insensitive,
)
SQUARED_EPSILON_INSENSITIVE = Loss(
    "squared-epsilon-insensitive", squared_epsilon_insensitive, "real", 0.1, link="identity", curvature=2.0,
    prox=proximal.squared_epsilon_insensitive,
)  # fmt: skip
QUANTILE = Loss("quantile", quantile, "real", 0.5, link="identity", has_kink=True, prox=proximal.quantile)
POISSON = Loss("poisson", poisson, "counts", link="exp")
