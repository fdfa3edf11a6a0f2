"""Access that is watched: what others did between a worker's look at a term and its own change of it.

It goes around another way of access, and around a rule's step. Every coordinate has a stamp that counts its writes. A
worker notes the stamps of a term's coordinates before it reads them, and looks again when it has written: what was
written there meanwhile, it had not seen. A write is an exchange, so that it gets back what it overwrites: if that is
not what the worker had read, changes by others are lost. The algorithm is the same; it takes some times as long.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hogwild.kernels.atomics import exchange, fetch_add, load, load_of

# mypy: disable-error-code="name-defined, call-arg, unreachable, var-annotated"
# ruff: noqa: F821

WRITES, MET, MISSED, LOST = range(4)  # columns of a tally: coordinates written; of them, changed by others meanwhile;
# how often they were; and changes by others that were overwritten unseen
SINCE, WROTE, COLLIDED, WHOLE = range(4)  # in a worker's notes: updates before it read; coordinates it has written of
# this term; its terms of which some coordinate was changed meanwhile; updates that are expected of the run


class ConflictCounters(NamedTuple):
    """What one worker notes. ``stamps`` and ``clock`` are shared by all, and ``groups`` of coordinates are known."""

    stamps: Any  # writes of each coordinate
    clock: Any  # updates of all
    groups: Any  # the group of each coordinate
    seen: Any  # the stamps of the term at hand, when it was read
    notes: Any
    delays: Any  # how many updates landed meanwhile: how often it was so many, the last of them "or more"
    tally: Any  # of each group
    heat: Any  # writes at each moment, of each group
    copy: Any  # room for the numbers of a coordinate


def hold_watched(sync: Any, indices: Any, start: Any, stop: Any) -> None:
    """Note what a term's coordinates are like before they are read."""
    inner, eye = sync
    hold(inner, indices, start, stop)
    eye.notes[SINCE] = load(eye.clock, 0)
    eye.notes[WROTE] = 0
    for j in range(start, stop):
        eye.seen[j - start] = load(eye.stamps, column(indices, j, start))


def claim_watched(sync: Any, turn: Any) -> None:
    """Claim as one does here."""
    claim(sync[0], turn)


def release_watched(sync: Any, indices: Any, start: Any, stop: Any, turn: Any) -> None:
    """Count what was written meanwhile."""
    inner, eye = sync
    if eye.notes[WROTE] > 0:
        when = fetch_add(eye.clock, 0, 1)
        eye.delays[min(when - eye.notes[SINCE], eye.delays.size - 1)] += 1
        moment = min(when * eye.heat.shape[0] // eye.notes[WHOLE], eye.heat.shape[0] - 1)
        collided = 0
        for j in range(start, stop):
            u = column(indices, j, start)
            group, missed = eye.groups[u], load(eye.stamps, u) - eye.seen[j - start] - 1
            eye.tally[group, WRITES] += 1
            eye.heat[moment, group] += 1
            if missed > 0:
                eye.tally[group, MET] += 1
                eye.tally[group, MISSED] += missed
                collided = 1
        eye.notes[COLLIDED] += collided
    release(inner, indices, start, stop, turn)


def guard_watched(sync: Any, at: Any) -> None:
    """Guard the intercept as one does here."""
    guard(sync[0], at)


def unguard_watched(sync: Any, at: Any) -> None:
    """And let it go again."""
    unguard(sync[0], at)


def step_watched(state: Any, u: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """Take a rule's step in a copy of a coordinate, and exchange it for what is there."""
    given, eye = constants
    before = load(eye.stamps, u)
    for n in range(state.shape[1]):
        eye.copy[0, n] = state[u, n]
    read = eye.copy[0, 0]
    step(eye.copy, 0, g, rate, l1, l2, given)
    for n in range(1, state.shape[1]):
        state[u, n] = eye.copy[0, n]
    stamped = fetch_add(eye.stamps, u, 1)
    found = exchange(state, u, 0, eye.copy[0, 0])
    if found != read:
        # A worker may be put to sleep on either side of its write: what others did meanwhile is lost if it was before,
        # and then nobody has written since.
        last = load(eye.stamps, u) - 1
        unseen = (last if load_of(state, u, 0) == eye.copy[0, 0] else stamped) - before
        eye.tally[eye.groups[u], LOST] += max(1, unseen)
    eye.notes[WROTE] += 1


def step_unwatched(state: Any, u: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """Take a rule's step where nobody else is: in a worker's own intercept."""
    step(state, u, g, rate, l1, l2, constants[0])
