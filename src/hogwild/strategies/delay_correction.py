"""What servers do about changes that come late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hogwild.errors import ParameterError
from hogwild.messaging.deltas import Floats, SparseDelta, Vector, frozen
from hogwild.registry import invalid_parameter, kebab, lookup


class Correction(Protocol):
    """Turns a late change into what is added: ``late`` says how late, and what the parameters are and were."""

    def __call__(self, change: Vector, late: Late) -> Vector: ...


@dataclass(frozen=True, slots=True, eq=False)
class Late:
    """How late a change is, in changes of others; the parameters now and when it was made, and by which step."""

    delay: int
    workers: int
    now: Floats
    read: Floats | None
    parameters: int  # so many numbers are parameters; what follows is what rules remember
    step: float


@dataclass(frozen=True, slots=True)
class DelayAdaptive:
    """Smaller steps for changes that are later than usual (Mishchenko et al. 2022, arXiv 2206.07638).

    A change that comes after ``reference_delay`` others is added in full, one that comes after k times as many a k-th
    of it. Left out, it is the number of workers: with workers alike, a change is as late as there are others.

    >>> DelayAdaptive(reference_delay=4).factor(delay=8, workers=2)
    0.5
    """

    reference_delay: int | None = None

    def __post_init__(self) -> None:
        if self.reference_delay is not None and (not isinstance(self.reference_delay, int) or self.reference_delay < 1):
            raise invalid_parameter(
                "reference_delay",
                "a positive number of changes, or None for the number of workers",
                self.reference_delay,
            )

    def factor(self, delay: int, workers: int) -> float:
        """What is left of a change."""
        return min(1.0, (self.reference_delay or workers) / max(1, delay))

    def __call__(self, change: Vector, late: Late) -> Vector:
        factor = self.factor(late.delay, late.workers)
        if factor == 1.0:
            return change
        if isinstance(change, SparseDelta):
            return SparseDelta(change.indices, (change.values * factor).astype(change.values.dtype), change.size)
        return frozen((change * factor).astype(change.dtype))


@dataclass(frozen=True, slots=True)
class DelayCompensation:
    """Changes as they would have been with the parameters of now (DC-ASGD, Zheng et al. 2017, arXiv 1609.08326).

    To a gradient g that was computed at w' it adds ``strength * g * g * (w - w')``, the square standing in for the
    second derivative. The server has a copy of the parameters each worker has read.
    """

    strength: float = 0.04

    def __post_init__(self) -> None:
        if not self.strength >= 0:
            raise invalid_parameter("strength", "a number of at least 0", self.strength)

    def __call__(self, change: Vector, late: Late) -> Vector:
        if late.read is None or late.step <= 0:
            return change
        factor, few = self.strength / late.step, late.parameters
        if isinstance(change, SparseDelta):
            drift = np.where(change.indices < few, late.now[change.indices] - late.read[change.indices], 0)
            values = change.values - factor * change.values * change.values * drift
            return SparseDelta(change.indices, values.astype(change.values.dtype), change.size)
        made_up = change.copy()
        made_up[:few] -= factor * change[:few] * change[:few] * (late.now - late.read)[:few]
        return frozen(made_up)


CORRECTIONS: dict[str, Any] = {kebab(kind.__name__): kind for kind in (DelayAdaptive, DelayCompensation)}


def named(correction: str | Correction | None) -> Correction | None:
    """A correction from its name, with a number or without, or from itself.

    >>> named("delay-adaptive"), named("delay-adaptive:8"), named("delay-compensation:0.1")
    (DelayAdaptive(reference_delay=None), DelayAdaptive(reference_delay=8), DelayCompensation(strength=0.1))
    """
    if not isinstance(correction, str):
        return correction
    name, _, number = correction.partition(":")
    kind: Any = lookup("correction", name, CORRECTIONS)
    try:
        return kind(*([int(number) if kind is DelayAdaptive else float(number)] if number else []))  # type: ignore[no-any-return]
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        raise invalid_parameter(
            "correction", "a name, or a name and a number such as 'delay-adaptive:8'", correction
        ) from None
