"""Corrections of stale deltas by a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hogwild.errors import ParameterError
from hogwild.messaging.deltas import Floats, SparseDelta, Vector, frozen, scaled
from hogwild.registry import invalid_parameter, kebab, lookup


class Correction(Protocol):
    """Function from a stale delta to the delta that the server adds."""

    def __call__(self, change: Vector, late: Late) -> Vector: ...


@dataclass(frozen=True, slots=True, eq=False)
class Late:
    """Staleness of a delta, and the parameters and the step size that a correction of the delta needs."""

    delay: int  # Staleness, in deltas of other workers.
    workers: int
    now: Floats  # Parameters of the server now.
    read: Floats | None  # Parameters that the worker pulled; None if they are unknown.
    parameters: slice  # The values that are parameters. The others are state of the update rule.
    step: float  # Mean step size of the burst that made the delta.


@dataclass(frozen=True, slots=True)
class DelayAdaptive:
    """Delay-adaptive step sizes: deltas that are staler than usual are scaled down (Mishchenko et al. 2022).

    A delta with a staleness of at most ``reference_delay`` is added in full. A delta with k times that staleness is
    added with a factor of 1/k.

    Parameters
    ----------
    reference_delay : int, optional
        Staleness up to which a delta counts in full, in deltas of other workers. Left out, it is the number of workers:
        with equally fast workers the staleness equals the number of other workers.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> DelayAdaptive(reference_delay=4).factor(delay=8, workers=2)
    0.5

    References
    ----------
    Mishchenko et al. 2022, arXiv 2206.07638.
    """

    reference_delay: int | None = None

    def __post_init__(self) -> None:
        if self.reference_delay is not None and (not isinstance(self.reference_delay, int) or self.reference_delay < 1):
            raise invalid_parameter(
                "reference_delay",
                "a positive number of changes, or None for the number of workers",
                self.reference_delay,
            )

    def factor(self, delay: int, workers: float) -> float:
        """Return the factor that a delta is multiplied by.

        Parameters
        ----------
        delay : int
            Staleness of the delta, in deltas of other workers.
        workers : float
            Number of workers, used if ``reference_delay`` was left out.

        Returns
        -------
        float
            Factor above 0 and at most 1.
        """
        return min(1.0, (self.reference_delay or workers) / max(1, delay))

    def __call__(self, change: Vector, late: Late) -> Vector:
        factor = self.factor(late.delay, late.workers)
        return change if factor == 1.0 else scaled(change, factor)


@dataclass(frozen=True, slots=True)
class DelayCompensation:
    """Delay compensation: deltas are corrected for the change of the parameters since they were read (DC-ASGD).

    A worker computed the gradient g at parameters w', and the parameters now are w. The correction adds ``strength * g
    * g * (w - w')`` to g. The square of the gradient approximates the second derivative. The server keeps a copy of the
    parameters that each worker has read.

    Parameters
    ----------
    strength : float, default 0.04
        Factor of the correction, at least 0.

    Raises
    ------
    ParameterError
        If ``strength`` is negative.

    References
    ----------
    Zheng et al. 2017, arXiv 1609.08326.
    """

    strength: float = 0.04

    def __post_init__(self) -> None:
        if not self.strength >= 0:
            raise invalid_parameter("strength", "a number of at least 0", self.strength)

    def __call__(self, change: Vector, late: Late) -> Vector:
        if late.read is None or late.step <= 0:
            return change
        factor, chosen = self.strength / late.step, late.parameters
        if isinstance(change, SparseDelta):
            every = range(*chosen.indices(change.size))
            places = change.indices.astype(np.int64)
            of_parameters = (places >= every.start) & (places < every.stop) & ((places - every.start) % every.step == 0)
            drift = np.where(of_parameters, late.now[places] - late.read[places], 0)
            values = change.values - factor * change.values * change.values * drift
            return SparseDelta(change.indices, values.astype(change.values.dtype), change.size)
        corrected, moved = change.copy(), change[chosen]
        corrected[chosen] -= factor * moved * moved * (late.now - late.read)[chosen]
        return frozen(corrected)


CORRECTIONS: dict[str, Any] = {kebab(kind.__name__): kind for kind in (DelayAdaptive, DelayCompensation)}


def named(correction: str | Correction | None) -> Correction | None:
    """Return a correction from its name, with or without a number, or a correction unchanged.

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
