"""Trace of the Hessian, estimated from random sign vectors (Hutchinson 1989)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Estimate of the sum of all eigenvalues: the value of each probe, their mean and its standard error."""

    each: Vector

    @property
    def value(self) -> float:
        """The estimate: the mean over all probes."""
        return float(self.each.mean())

    @property
    def error(self) -> float:
        """The standard error. Two standard errors to either side contain the true trace in about 95% of cases."""
        return float(self.each.std(ddof=1) / np.sqrt(len(self.each)))


def trace(surface: Surface, at: Vector, probes: int = 64, seed: int = 0) -> Trace:
    """Estimate the trace of the Hessian by ``z . H z`` for vectors z of random signs.

    The estimate is exact for a diagonal Hessian. Each probe costs one product with the Hessian.

    >>> from hogwild.landscape.quadratic import Quadratic
    >>> found = trace(Quadratic(np.diag([4.0, 1.0])), np.zeros(2), probes=3)
    >>> found.value, found.error
    (5.0, 0.0)
    """
    at = checked(surface, at)
    if probes < 2:
        raise invalid_parameter("probes", "at least 2", probes)
    chance = np.random.default_rng(seed)
    each = np.empty(probes)
    for k in range(probes):
        signs = chance.choice([-1.0, 1.0], surface.size)
        each[k] = signs @ surface.times(at, signs)
    return Trace(each)
