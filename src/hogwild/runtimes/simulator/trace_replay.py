"""Recorded times, one after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

from hogwild.errors import ParameterError
from hogwild.messaging.trace import Trace


class TraceReplay:
    """Hands out what a trace has: for each participant in the order it was recorded, again from the beginning when
    there is no more. What somebody never did takes as long as for another of his kind, or no time.
    """

    def __init__(self, trace: Trace) -> None:
        self._diaries = trace.diaries
        self._turns: dict[tuple[str, str, str], int] = defaultdict(int)
        self._others: dict[tuple[str, str, str], Sequence[float]] = {}

    def burst(self, worker: str, terms: int) -> float:
        """Seconds of the next burst of a worker: of as many terms, if such were recorded."""
        diary = self._diaries.get(worker)
        if diary is None or not diary.bursts:
            raise ParameterError(
                f"The trace has no bursts of {worker}: replay it with the strategy it was recorded with."
            )
        seconds, recorded = diary.bursts[self._turn("burst", worker, "", len(diary.bursts))]
        return seconds * terms / max(1, recorded)

    def way(self, receiver: str, kind: str) -> float:
        """Seconds that a message is on its way."""
        return self._next("ways", receiver, kind)

    def handling(self, name: str, kind: str) -> float:
        """Seconds that somebody who has nothing else to do takes to notice, and to react."""
        return self._next("waking", name, kind) + self._next("handling", name, kind)

    def longest(self) -> tuple[float, float]:
        """Seconds of the longest way, and of the longest reaction."""
        diaries = self._diaries.values()
        ways = [max(times) for diary in diaries for times in diary.ways.values()]
        waking = [max(times) for diary in diaries for times in diary.waking.values()]
        handling = [max(times) for diary in diaries for times in diary.handling.values()]
        return max(ways, default=0.0), max(waking, default=0.0) + max(handling, default=0.0)

    def _next(self, what: str, name: str, kind: str) -> float:
        diary = self._diaries.get(name)
        times = getattr(diary, what).get(kind) if diary is not None else None
        times = times or self._of_others(what, name, kind)
        return times[self._turn(what, name, kind, len(times))] if times else 0.0

    def _of_others(self, what: str, name: str, kind: str) -> Sequence[float]:
        role = name.partition("-")[0]
        key = (what, role, kind)
        if key not in self._others:
            alike = (diary for other, diary in sorted(self._diaries.items()) if other.partition("-")[0] == role)
            self._others[key] = list(chain.from_iterable(getattr(diary, what).get(kind, ()) for diary in alike))
        return self._others[key]

    def _turn(self, what: str, name: str, kind: str, length: int) -> int:
        turn = self._turns[what, name, kind]
        self._turns[what, name, kind] = turn + 1
        return turn % length
