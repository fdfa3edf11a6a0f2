"""Vector of the clocks of workers, with its minimum."""

from __future__ import annotations

from collections import Counter


class ClockVector:
    """Clocks of the workers that a server waits for.

    The minimum is available without a pass over all workers.

    >>> clocks = ClockVector()
    >>> clocks.at_least("a", 3); clocks.at_least("b", 1); clocks.least
    1
    >>> clocks.without("b"), clocks.least, len(clocks)
    (True, 3, 1)
    >>> clocks.at_least("a", 5); clocks.without("a"), clocks.least, len(clocks)
    (True, 5, 0)
    """

    def __init__(self, clocks: dict[str, int] | None = None, least: int = 0) -> None:
        self._of = dict(clocks or {})
        self._at = Counter(self._of.values())  # Number of workers at each clock.
        self._least = least

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, worker: str) -> bool:
        return worker in self._of

    @property
    def least(self) -> int:
        """The clock of the slowest worker, or its last value if there are no workers."""
        if self._of and self._least not in self._at:
            # The cost grows with the number of distinct clocks, not with the number of workers.
            self._least = min(self._at)
        return self._least

    def of(self, worker: str) -> int:
        """Return the clock of a worker."""
        return self._of[worker]

    def at_least(self, worker: str, clock: int) -> None:
        """Raise the clock of a worker to ``clock``, and add the worker if it is new. A clock never decreases."""
        before = self._of.get(worker, -1)
        if clock <= before:
            return
        if before >= 0:
            self._leave(before)
        self._of[worker] = clock
        self._at[clock] += 1
        if before < 0 and (len(self._of) == 1 or clock < self._least):
            self._least = clock

    def without(self, worker: str) -> bool:
        """Remove a worker, and return whether it was in the vector."""
        self._least = self.least  # The last worker may be removed now, and then this value remains.
        clock = self._of.pop(worker, None)
        if clock is None:
            return False
        self._leave(clock)
        return True

    def missing(self, here: set[str]) -> set[str]:
        """Return the workers in the vector that are not in ``here``."""
        return set(self._of) - here

    def copy(self) -> ClockVector:
        """Return an independent copy."""
        return ClockVector(self._of, self._least)

    def _leave(self, clock: int) -> None:
        self._at[clock] -= 1
        if not self._at[clock]:
            del self._at[clock]
