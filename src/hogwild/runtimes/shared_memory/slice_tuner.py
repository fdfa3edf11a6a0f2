"""How much the thread that has to look up now and then does in one go."""

from __future__ import annotations

import math


class SliceTuner:
    """How many parts of an epoch last so many seconds, learnt from those that were done, also in epochs before.

    The first go is one part, and each at most twice the one before: parts are not all alike.

    >>> slices = SliceTuner()
    >>> slices.lasting(0.05)
    1
    >>> slices.lasted(4, 0.01); slices.lasting(0.05), slices.lasting(0.005)
    (8, 2)
    """

    def __init__(self) -> None:
        self._parts, self._seconds = 1, math.inf

    def lasting(self, seconds: float) -> int:
        """How many parts to take next, so that they last about so long."""
        return max(1, min(2 * self._parts, int(self._parts * seconds / max(self._seconds, 1e-9))))

    def lasted(self, parts: int, seconds: float) -> None:
        """Take note of how long so many parts lasted."""
        self._parts, self._seconds = parts, seconds
