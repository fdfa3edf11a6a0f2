"""Replay of recorded durations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

from hogwild.errors import ParameterError
from hogwild.messaging.trace import Trace


class TraceReplay:
    """Replays the durations of a trace.

    Each node gets its recorded durations in their order, and from the beginning again after the last. If a node has no
    record of a kind of event, the records of all nodes with the same role are used. Without those, the duration is 0.
    """

    def __init__(self, trace: Trace) -> None:
        self._diaries = trace.diaries
        self._turns: dict[tuple[str, str, str], int] = defaultdict(int)
        self._others: dict[tuple[str, str, str], Sequence[float]] = {}

    def burst(self, worker: str, terms: int) -> float:
        """Return the seconds of a worker's next burst: the next recorded duration, scaled to this number of terms."""
        diary = self._diaries.get(worker)
        if diary is None or not diary.bursts:
            raise ParameterError(
                f"The trace has no bursts of {worker}: replay it with the strategy it was recorded with."
            )
        seconds, recorded = diary.bursts[self._turn("burst", worker, "", len(diary.bursts))]
        return seconds * terms / max(1, recorded)

    def way(self, receiver: str, kind: str) -> float:
        """Return the seconds between sending and arrival of the receiver's next message of a kind."""
        return self._next("ways", receiver, kind)

    def handling(self, name: str, kind: str) -> float:
        """Return the seconds that an idle node takes to wake up for an event and to react."""
        return self._next("waking", name, kind) + self._next("handling", name, kind)

    def longest(self) -> tuple[float, float]:
        """Return the seconds of the longest transmission, and of the longest wake-up and reaction together."""
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
        """Return the recorded durations of all nodes with the same role."""
        role = name.partition("-")[0]
        key = (what, role, kind)
        if key not in self._others:
            alike = (diary for other, diary in sorted(self._diaries.items()) if other.partition("-")[0] == role)
            self._others[key] = list(chain.from_iterable(getattr(diary, what).get(kind, ()) for diary in alike))
        return self._others[key]

    def _turn(self, what: str, name: str, kind: str, length: int) -> int:
        """Return the index of the next record, modulo the number of records."""
        turn = self._turns[what, name, kind]
        self._turns[what, name, kind] = turn + 1
        return turn % length
