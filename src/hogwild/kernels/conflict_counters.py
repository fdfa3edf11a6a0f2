"""Instrumented access, which counts the writes of other workers between a worker's read of a term and its own write.

The functions of this module wrap those of another access policy, and a rule's step. Every coordinate has a stamp, which
counts its writes. A worker records the stamps of a term's coordinates before it reads them. After its own write it
reads the stamps again. The difference counts the writes that the worker had not seen.

A write is an atomic exchange, which returns the overwritten value. If that value differs from the one that the worker
had read, changes by other workers are lost. The algorithm is the same as without counters, but several times slower.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hogwild.jit import compiled
from hogwild.kernels.atomics import exchange, fetch_add, load, load_of

# mypy: disable-error-code="name-defined, call-arg, unreachable, var-annotated"
# ruff: noqa: F821

# Columns of a tally. WRITES: coordinates written. MET: written coordinates that other workers changed meanwhile.
# MISSED: number of those changes. LOST: changes by other workers that were overwritten unseen.
WRITES, MET, MISSED, LOST = range(4)
# Entries of a worker's notes. SINCE: updates of all workers before it read. WROTE: coordinates of this term that it has
# written. COLLIDED: its terms with at least one coordinate that another worker changed meanwhile. WHOLE: expected
# updates of the run.
SINCE, WROTE, COLLIDED, WHOLE = range(4)


class ConflictCounters(NamedTuple):
    """Counters of one worker; all workers share ``stamps``, ``clock`` and the read-only ``groups``."""

    stamps: Any  # Number of writes to each coordinate.
    clock: Any  # Number of updates by all workers.
    groups: Any  # Group of each coordinate.
    seen: Any  # Stamps of the current term's coordinates when the worker read them.
    notes: Any
    # Histogram of staleness: entry s counts the terms with s updates between read and write; the last entry is "or
    # more".
    delays: Any
    tally: Any  # Counts of WRITES, MET, MISSED and LOST for each group.
    heat: Any  # Writes in each interval of the run, for each group.
    copy: Any  # Memory for the numbers of one coordinate.


def hold_watched(sync: Any, indices: Any, start: Any, stop: Any) -> None:
    """Hold the term with the inner policy, then record the clock and the stamps of its coordinates."""
    inner, counters = sync
    hold(inner, indices, start, stop)
    counters.notes[SINCE] = load(counters.clock, 0)
    counters.notes[WROTE] = 0
    for j in range(start, stop):
        counters.seen[j - start] = load(counters.stamps, column(indices, j, start))


def claim_watched(sync: Any, turn: Any) -> None:
    """Claim the term with the inner policy."""
    claim(sync[0], turn)


def release_watched(sync: Any, indices: Any, start: Any, stop: Any, turn: Any) -> None:
    """Count the writes of other workers since this worker read the term, then release with the inner policy."""
    inner, counters = sync
    if counters.notes[WROTE] > 0:
        when = fetch_add(counters.clock, 0, 1)
        counters.delays[min(when - counters.notes[SINCE], counters.delays.size - 1)] += 1
        moment = min(when * counters.heat.shape[0] // counters.notes[WHOLE], counters.heat.shape[0] - 1)
        collided = 0
        for j in range(start, stop):
            u = column(indices, j, start)
            group, missed = counters.groups[u], load(counters.stamps, u) - counters.seen[j - start] - 1
            counters.tally[group, WRITES] += 1
            counters.heat[moment, group] += 1
            if missed > 0:
                counters.tally[group, MET] += 1
                counters.tally[group, MISSED] += missed
                collided = 1
        counters.notes[COLLIDED] += collided
    release(inner, indices, start, stop, turn)


def guard_watched(sync: Any, at: Any) -> None:
    """Guard the intercept with the inner policy."""
    guard(sync[0], at)


def unguard_watched(sync: Any, at: Any) -> None:
    """Release the intercept with the inner policy."""
    unguard(sync[0], at)


def step_watched(state: Any, u: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """Take a rule's step on a copy of a coordinate, then exchange the copy's value for the shared value."""
    given, counters = constants
    before = load(counters.stamps, u)
    for n in range(state.shape[1]):
        counters.copy[0, n] = state[u, n]
    read = counters.copy[0, 0]
    step(counters.copy, 0, g, rate, l1, l2, given)
    for n in range(1, state.shape[1]):
        state[u, n] = counters.copy[0, n]
    stamped = fetch_add(counters.stamps, u, 1)
    found = exchange(state, u, 0, counters.copy[0, 0])
    if found != read:
        # The scheduler may suspend a worker before or after its exchange. Only writes that came before the exchange are
        # lost. If the shared value is still this worker's, no write came after the exchange, so all unseen ones are
        # lost.
        last = load(counters.stamps, u) - 1
        unseen = (last if load_of(state, u, 0) == counters.copy[0, 0] else stamped) - before
        counters.tally[counters.groups[u], LOST] += max(1, unseen)
    counters.notes[WROTE] += 1


def step_unwatched(state: Any, u: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """Take a rule's step on a worker's own intercept, to which no other worker writes."""
    step(state, u, g, rate, l1, l2, constants[0])


# Entries of ``moved``: the summed sizes of all changes, and of those by other workers that were overwritten unseen.
CHANGED, OVERWRITTEN = range(2)


@compiled
def write_watched(table: Any, rows: Any, before: Any, after: Any, lost: Any, moved: Any) -> None:
    """Add the changes ``after - before`` to rows of a shared table, number by number.

    A number that is still what it was ``before`` becomes exactly what it is ``after``, so that a single worker comes to
    the same bits as without counters. Each write is an exchange. If it returns another value than was read just before,
    a change by another worker is lost: ``lost`` counts these for each row, and ``moved`` adds up their sizes.
    """
    for k in range(len(rows)):
        u = rows[k]
        for c in range(table.shape[1]):
            read, old, new = load_of(table, u, c), before[k, c], after[k, c]
            found = exchange(table, u, c, new if read == old else read + (new - old))
            moved[CHANGED] += abs(new - old)
            if found != read:
                lost[k] += 1
                moved[OVERWRITTEN] += abs(found - read)
