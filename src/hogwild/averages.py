"""Averages of the iterates, which a run returns instead of its last parameters."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True)
class EMA:
    """Exponential moving average of the iterates, for ``minimise(average=EMA())``.

    Parameters
    ----------
    decay : float, default 0.999
        Weight of each iterate relative to the next one, between 0 and 1.

    Raises
    ------
    ParameterError
        If ``decay`` is not between 0 and 1.

    Examples
    --------
    >>> EMA(1.5)
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: The 'decay' parameter must be between 0 and 1. Got 1.5 instead.
    """

    decay: float = 0.999

    def __post_init__(self) -> None:
        if not 0 < self.decay < 1:
            raise invalid_parameter("decay", "between 0 and 1", self.decay)
