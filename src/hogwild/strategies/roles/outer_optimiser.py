"""What a server does with the change that workers agree on: add it, or step along it with momentum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hogwild.messaging.deltas import Floats


class OuterOptimiser(Protocol):
    """A step of the server's own."""

    @property
    def accumulates(self) -> bool:
        """Whether it must have the change by itself, not added to the parameters."""

    def __call__(self, values: Floats, change: Floats) -> Floats:
        """The parameters after a change."""

    def copy(self) -> OuterOptimiser:
        """The same, to go on from after a crash."""


@dataclass
class PlainOuter:
    """Add it."""

    accumulates = False

    def __call__(self, values: Floats, change: Floats) -> Floats:
        return values + change

    def copy(self) -> PlainOuter:
        """There is nothing to remember."""
        return self


@dataclass
class Nesterov:
    """Nesterov's momentum on the changes of many local steps, as in DiLoCo (Douillard et al. 2023, arXiv 2311.08105).

    >>> step = Nesterov(0.5, 0.5)
    >>> step(np.zeros(1), np.ones(1)), step(np.zeros(1), np.ones(1))
    (array([0.75]), array([0.875]))
    """

    rate: float = 0.7
    momentum: float = 0.9
    gathered: Floats | None = None

    accumulates = True

    def __call__(self, values: Floats, change: Floats) -> Floats:
        before = np.zeros_like(change) if self.gathered is None else self.gathered
        self.gathered = (self.momentum * before + change).astype(values.dtype)
        return (values + self.rate * (self.momentum * self.gathered + change)).astype(values.dtype)

    def copy(self) -> Nesterov:
        """With what it has gathered, which is never changed in place."""
        return replace(self)
