"""Outer optimisers: the step of a server along the combined delta of its workers, plain or with momentum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hogwild.messaging.deltas import Floats


class OuterOptimiser(Protocol):
    """Optimiser of a server, which applies the combined delta of a round."""

    @property
    def accumulates(self) -> bool:
        """Whether the optimiser needs the delta by itself, not already added to the parameters."""

    def __call__(self, values: Floats, change: Floats) -> Floats:
        """Return the parameters after a step along a delta."""

    def copy(self) -> OuterOptimiser:
        """Return a copy that a crash of the server does not change."""


@dataclass
class PlainOuter:
    """Outer step that adds the delta."""

    accumulates = False

    def __call__(self, values: Floats, change: Floats) -> Floats:
        return values + change

    def copy(self) -> PlainOuter:
        """Return the object itself, because it has no state."""
        return self


@dataclass
class Nesterov:
    """Nesterov momentum on the deltas of many local steps, as in DiLoCo (Douillard et al. 2023, arXiv 2311.08105).

    Parameters
    ----------
    rate : float, default 0.7
        Step size of the outer step.
    momentum : float, default 0.9
        Momentum of the outer step.
    momentum_buffer : array, optional
        Momentum vector; zero if left out.

    Examples
    --------
    >>> step = Nesterov(0.5, 0.5)
    >>> step(np.zeros(1), np.ones(1)), step(np.zeros(1), np.ones(1))
    (array([0.75]), array([0.875]))
    """

    rate: float = 0.7
    momentum: float = 0.9
    momentum_buffer: Floats | None = None

    accumulates = True

    def __call__(self, values: Floats, change: Floats) -> Floats:
        before = np.zeros_like(change) if self.momentum_buffer is None else self.momentum_buffer
        self.momentum_buffer = (self.momentum * before + change).astype(values.dtype)
        return (values + self.rate * (self.momentum * self.momentum_buffer + change)).astype(values.dtype)

    def copy(self) -> Nesterov:
        """Return a copy that shares the momentum vector, which is never changed in place."""
        return replace(self)
