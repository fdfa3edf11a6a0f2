"""How far each worker is, and how far the slowest."""

from __future__ import annotations

from collections import Counter


class ClockVector:
    """A clock for each worker that is waited for. The least of them is known at once, however many there are.

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
        self._at = Counter(self._of.values())
        self._least = least

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, worker: str) -> bool:
        return worker in self._of

    @property
    def least(self) -> int:
        """The clock of the slowest; without workers, what it last was."""
        if self._of and self._least not in self._at:
            self._least = min(self._at)  # there are as many as clocks are apart, not as workers
        return self._least

    def of(self, worker: str) -> int:
        """The clock of one worker."""
        return self._of[worker]

    def at_least(self, worker: str, clock: int) -> None:
        """A worker is here, if it is not further already."""
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
        """Wait for one no longer; say whether it was waited for."""
        self._least = self.least  # which is what it last was, should this be the last one
        clock = self._of.pop(worker, None)
        if clock is None:
            return False
        self._leave(clock)
        return True

    def missing(self, here: set[str]) -> set[str]:
        """Who is waited for and not here."""
        return set(self._of) - here

    def copy(self) -> ClockVector:
        """The same, to be changed apart."""
        return ClockVector(self._of, self._least)

    def _leave(self, clock: int) -> None:
        self._at[clock] -= 1
        if not self._at[clock]:
            del self._at[clock]
