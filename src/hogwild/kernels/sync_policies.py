"""Access policies, which synchronise workers around one term: none, locks, or turns; or delay them.

Every turn has a slot in a cache line of its own. The worker before it writes to the slot the number of the term that
may be applied. So a worker watches a cache line that is written once for it, and only the worker before it wakes it.

Each policy consists of three functions that a kernel calls. The kernel calls ``hold`` before it reads the term's
coordinates, ``claim`` before it writes them, and ``release`` afterwards. ``sync`` is the array that workers share. With
locks, it has a lock per feature and one more for the intercept. With turns, it is the array of :func:`new_turns`. A
delayed worker has an array of its own, with the delays of its next terms (:func:`new_delays`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.jit import Function, bind, compiled
from hogwild.kernels import conflict_counters
from hogwild.kernels.atomics import fetch_add, load, lock, store, unlock
from hogwild.kernels.futex import current_core, fence, microseconds, pause, sleep_while, wake

# mypy: disable-error-code="call-arg, unreachable"

# Number of slots; beyond 64 workers, several share a slot and are sometimes woken in vain.
SLOTS = 64
LINE = 8  # Number of int64 numbers in a cache line.
# Positions in a slot's cache line. TERM: number of the term that may be applied. SLEEPERS: number of workers that sleep
# on the slot. SPINS: number of spins before a sleep. CORE: core of the worker that waits on the slot.
TERM, SLEEPERS, SPINS, CORE = range(4)
# Bounds on the number of spins before a sleep, from a few microseconds to a few hundred.
FEWEST_SPINS, MOST_SPINS = 300, 2**14
# Number of spins between two checks of whether both workers run on one core.
LOOK_SPINS = 32
# Microseconds; after a shorter sleep, the number of spins doubles, as spinning would have been better.
SHORT_MICROSECONDS = 100
# Microseconds after which a sleeping worker looks again, woken or not.
SLEEP_MICROSECONDS = 10_000


def new_turns() -> NDArray[np.int64]:
    """Return the turns of a run, of which the first is that of term 0.

    >>> turns = new_turns(); wait_for(turns, 0); pass_on(turns, 0); wait_for(turns, 1)
    """
    turns = np.empty(SLOTS * LINE, np.int64)
    turns[SPINS::LINE] = FEWEST_SPINS
    restart(turns)
    return turns


def restart(turns: NDArray[np.int64]) -> None:
    """Restart with term 0; no worker may be waiting."""
    turns[TERM::LINE], turns[SLEEPERS::LINE], turns[CORE::LINE] = -1, 0, -2
    turns[0] = 0


@compiled
def wait_for(turns: Any, turn: Any) -> None:
    """Wait until all earlier terms have been applied.

    A worker spins for longer than the worker before it takes for a term. If a worker slept or yielded each time, the
    scheduler would give away its core each time. Where there is other work, that lasts a whole time slice.

    A longer wait means that the scheduler has suspended the other worker. This worker then sleeps, which leaves its
    core to the other. A worker also sleeps at once if both run on the same core.
    """
    slot, before = np.int64(turn) % SLOTS * LINE, (np.int64(turn) - 1) % SLOTS * LINE
    if load(turns, slot) == np.int64(turn):
        return
    store(turns, slot + CORE, np.int64(current_core()))
    most, spins = load(turns, slot + SPINS), 0
    while True:
        seen = load(turns, slot)
        if seen == np.int64(turn):
            if most > max(FEWEST_SPINS, 8 * spins):
                store(turns, slot + SPINS, most - most // 16)
            return
        if spins < most and not (spins % LOOK_SPINS == 0 and load(turns, before + CORE) == np.int64(current_core())):
            spins += 1
            pause()
            continue
        started = microseconds()
        fetch_add(turns, slot + SLEEPERS, 1)
        sleep_while(turns, slot, seen, SLEEP_MICROSECONDS)
        fetch_add(turns, slot + SLEEPERS, -1)
        store(turns, slot + CORE, np.int64(current_core()))
        if spins >= most and microseconds() - started < SHORT_MICROSECONDS:
            store(turns, slot + SPINS, min(2 * most, MOST_SPINS))


@compiled
def pass_on(turns: Any, turn: Any) -> None:
    """Give the turn to the term after this one."""
    following = np.int64(turn) + 1
    slot = following % SLOTS * LINE
    store(turns, slot, following)
    # Without the fence, this thread could miss a sleeper that has missed the number just written.
    fence()
    if load(turns, slot + SLEEPERS) > 0:
        wake(turns, slot)


# Positions in a worker's array of delays. SKIPPED: whether the worker no longer waits. DEBT: microseconds of delay for
# which the worker has not slept yet. DRAWN: the delay of the first term, in microseconds; those of the other terms
# follow.
SKIPPED, DEBT, DRAWN = 0, 1, LINE
# Number of terms whose delays an array has.
DELAYED_TERMS = 64
# Microseconds; a shorter sleep would take about this long, so shorter delays add up to the next sleep.
SHORTEST_MICROSECONDS = 200


def new_delays() -> NDArray[np.int64]:
    """Return a worker's array of delays, all of them 0."""
    return np.zeros(DRAWN + DELAYED_TERMS, np.int64)


@compiled
def sleep_delay(delays: Any, turn: Any) -> None:
    """Sleep for the delay of a term, unless delays are skipped.

    Sleeps of the operating system are too long by some tens of microseconds. The excess is deducted from the next
    sleep, so that the sum of all sleeps is the sum of all delays.
    """
    delays[DEBT] += delays[DRAWN + np.int64(turn)]
    while delays[DEBT] >= SHORTEST_MICROSECONDS and load(delays, SKIPPED) == 0:
        started: Any = microseconds()
        sleep_while(delays, SKIPPED, 0, delays[DEBT])
        # A worker that the scheduler has suspended for long does not make up for it with terms without delay.
        delays[DEBT] = max(delays[DEBT] - (microseconds() - started), -SHORTEST_MICROSECONDS)


def skip_delays(delays: NDArray[np.int64]) -> None:
    """Wake a delayed worker, and let it wait no more."""
    delays[SKIPPED] = 1
    wake(delays, SKIPPED)


def no_hold(sync: Any, indices: Any, start: Any, stop: Any) -> None:
    """Read without a lock (Hogwild!, Niu et al. 2011)."""


def no_claim(sync: Any, turn: Any) -> None:
    """Write without a lock."""


def no_release(sync: Any, indices: Any, start: Any, stop: Any, turn: Any) -> None:
    """Do nothing, as no lock was taken."""


def no_guard(sync: Any, at: Any) -> None:
    """Access the intercept without a lock."""


def hold_all(sync: Any, indices: Any, start: Any, stop: Any) -> None:
    """Lock every coordinate of the term; indices ascend within a row, so no deadlock is possible."""
    for j in range(start, stop):
        lock(sync, column(indices, j, start))  # type: ignore[name-defined]  # noqa: F821  (the layout's)


def release_all(sync: Any, indices: Any, start: Any, stop: Any, turn: Any) -> None:
    """Unlock every coordinate of the term."""
    for j in range(start, stop):
        unlock(sync, column(indices, j, start))  # type: ignore[name-defined]  # noqa: F821


def lock_one(sync: Any, at: Any) -> None:
    """Lock the intercept."""
    lock(sync, at)


def unlock_one(sync: Any, at: Any) -> None:
    """Unlock the intercept."""
    unlock(sync, at)


def wait_for_turn(sync: Any, turn: Any) -> None:
    """Wait until all earlier terms have been applied."""
    wait_for(sync, turn)


def pass_turn(sync: Any, indices: Any, start: Any, stop: Any, turn: Any) -> None:
    """Give the turn to the next term."""
    pass_on(sync, turn)


def wait_delay(sync: Any, turn: Any) -> None:
    """Wait for the delay of this term, while other workers change what the worker has read."""
    sleep_delay(sync, turn)


ACCESS: dict[str, dict[str, Function]] = {
    "free": {"hold": no_hold, "claim": no_claim, "release": no_release, "guard": no_guard, "unguard": no_guard},
    "locked": {"hold": hold_all, "claim": no_claim, "release": release_all, "guard": lock_one, "unguard": unlock_one},
    "turns": {"hold": no_hold, "claim": wait_for_turn, "release": pass_turn, "guard": no_guard, "unguard": no_guard},
    "delayed": {"hold": no_hold, "claim": wait_delay, "release": no_release, "guard": no_guard, "unguard": no_guard},
}


def new_sync(access: str, coordinates: int) -> NDArray[Any]:
    """Return the array by which workers synchronise: a lock for each coordinate, turns, or an unused array.

    With delays, it is the array of one worker.
    """
    if access == "locked":
        return np.zeros(coordinates, np.int32)
    if access == "delayed":
        return new_delays()
    return new_turns() if access == "turns" else np.zeros(1, np.int64)


def ways(access: str, column: Function, watching: bool = False) -> dict[str, Function]:
    """Return the functions of an access policy, for rows whose columns ``column`` reads.

    With ``watching``, functions that count conflicts wrap them.
    """
    found = {
        name: bind(way, column=column) if way in (hold_all, release_all) else way
        for name, way in ACCESS[access].items()
    }  # fmt: skip
    if not watching:
        return found
    around = {name: getattr(conflict_counters, f"{name}_watched") for name in found}
    return {name: bind(way, column=column, **{name: found[name]}) for name, way in around.items()}
