"""Queue of events in simulated time: a binary heap of records. Events of the same time come in order of scheduling."""

from __future__ import annotations

from typing import Any

from hogwild.kernels.simulation.table_access import (
    event_queue,
)


def schedule(run: Any, when: Any, kind: Any, at: Any, number: Any, sequence: Any) -> None:
    """Add an event to the queue."""
    events = event_queue(run)
    run.count += 1
    place = run.queued
    run.queued += 1
    # The new event is the last one of its time, so it stays below events of the same time.
    while place > 0:
        above = (place - 1) // 2
        if events[above].when <= when:
            break
        events[place] = events[above]
        place = above
    event = events[place]
    event.when, event.count, event.kind, event.at = when, run.count, kind, at
    event.number, event.sequence = number, sequence


def is_before(event: Any, other: Any) -> bool:
    """Return whether an event comes before another one."""
    return bool(event.when < other.when or (event.when == other.when and event.count < other.count))


def take(run: Any) -> Any:
    """Take the next event out of the queue; return its time, kind, place, number and sequence."""
    events = event_queue(run)
    first = events[0]
    found = first.when, first.kind, first.at, first.number, first.sequence
    run.queued -= 1
    last, size = run.queued, run.queued
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and is_before(events[below + 1], events[below]):
            below += 1
        if not is_before(events[below], events[last]):
            break
        events[place] = events[below]
        place = below
    events[place] = events[last]
    return found
