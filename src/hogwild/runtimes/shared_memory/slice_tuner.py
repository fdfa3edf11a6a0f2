"""Tuner of the slice size: the number of parts that the main thread takes before it returns to Python."""

from __future__ import annotations

import math


class SliceTuner:
    """Estimate of the number of parts of an epoch that take a given time, from the last slice that was measured.

    The estimate is kept from one epoch to the next. The first slice is one part. Each slice has at most twice the parts
    of the slice before, because parts differ in duration.

    >>> slices = SliceTuner()
    >>> slices.lasting(0.05)
    1
    >>> slices.lasted(4, 0.01); slices.lasting(0.05), slices.lasting(0.005)
    (8, 2)
    """

    def __init__(self) -> None:
        self._parts, self._seconds = 1, math.inf

    def lasting(self, seconds: float) -> int:
        """Return the number of parts for the next slice, so that it takes about ``seconds`` seconds."""
        return max(1, min(2 * self._parts, int(self._parts * seconds / max(self._seconds, 1e-9))))

    def lasted(self, parts: int, seconds: float) -> None:
        """Record that a slice of ``parts`` parts took ``seconds`` seconds."""
        self._parts, self._seconds = parts, seconds
