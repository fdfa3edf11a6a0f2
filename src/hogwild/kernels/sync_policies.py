"""Access policies, which synchronise workers around one term: none, locks, or turns.

Each policy consists of three functions that a kernel calls. The kernel calls ``hold`` before it reads the term's
coordinates, ``claim`` before it writes them, and ``release`` afterwards. ``sync`` is the array that workers share. With
locks, it has a lock per feature and one more for the intercept. With turns, it is an array of
:mod:`hogwild.kernels.turns`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.jit import Function, bind
from hogwild.kernels import conflict_counters
from hogwild.kernels.atomics import lock, unlock
from hogwild.kernels.turns import new_turns, pass_on, wait_for


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


ACCESS: dict[str, dict[str, Function]] = {
    "free": {"hold": no_hold, "claim": no_claim, "release": no_release, "guard": no_guard, "unguard": no_guard},
    "locked": {"hold": hold_all, "claim": no_claim, "release": release_all, "guard": lock_one, "unguard": unlock_one},
    "turns": {"hold": no_hold, "claim": wait_for_turn, "release": pass_turn, "guard": no_guard, "unguard": no_guard},
}


def new_sync(access: str, coordinates: int) -> NDArray[Any]:
    """Return the array by which workers synchronise: a lock for each coordinate, turns, or an unused array."""
    if access == "locked":
        return np.zeros(coordinates, np.int32)
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
