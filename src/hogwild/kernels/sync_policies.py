"""How workers keep out of each other's way around one term: not at all, by locks, or by taking turns.

Each way is three functions that a kernel calls: ``hold`` before it reads the term's coordinates, ``claim`` before it
writes them, ``release`` behind that. ``sync`` is the array they share: a lock per feature and one more for the
intercept, or the turns (:mod:`hogwild.kernels.turns`).
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
    """Read without asking: Hogwild!"""


def no_claim(sync: Any, turn: Any) -> None:
    """Write without asking."""


def no_release(sync: Any, indices: Any, start: Any, stop: Any, turn: Any) -> None:
    """Nothing was taken."""


def no_guard(sync: Any, at: Any) -> None:
    """Touch the intercept without asking."""


def hold_all(sync: Any, indices: Any, start: Any, stop: Any) -> None:
    """Lock every coordinate of the term. Indices rise within a row, so no two workers wait for each other."""
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
    """Let the next term be applied."""
    pass_on(sync, turn)


ACCESS: dict[str, dict[str, Function]] = {
    "free": {"hold": no_hold, "claim": no_claim, "release": no_release, "guard": no_guard, "unguard": no_guard},
    "locked": {"hold": hold_all, "claim": no_claim, "release": release_all, "guard": lock_one, "unguard": unlock_one},
    "turns": {"hold": no_hold, "claim": wait_for_turn, "release": pass_turn, "guard": no_guard, "unguard": no_guard},
}


def new_sync(access: str, coordinates: int) -> NDArray[Any]:
    """Make what workers share to keep out of each other's way: a lock for each coordinate, turns, or nothing."""
    if access == "locked":
        return np.zeros(coordinates, np.int32)
    return new_turns() if access == "turns" else np.zeros(1, np.int64)


def ways(access: str, column: Function, watching: bool = False) -> dict[str, Function]:
    """The functions of a way of access, for rows whose columns are read so; around them those that watch, if asked."""
    found = {
        name: bind(way, column=column) if way in (hold_all, release_all) else way
        for name, way in ACCESS[access].items()
    }  # fmt: skip
    if not watching:
        return found
    around = {name: getattr(conflict_counters, f"{name}_watched") for name in found}
    return {name: bind(way, column=column, **{name: found[name]}) for name, way in around.items()}
