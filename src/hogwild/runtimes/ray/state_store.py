"""State store for parameter servers, which restart from their last stored state.

The store is in the coordinator's process. No run continues after a crash of the coordinator, so the store needs no
replica.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class StateStore:
    """Last state of each server.

    The store refuses the state of an incarnation whose successor has started. Otherwise the server would acknowledge
    messages as persisted, and the successor would not have their effect.

    >>> vault = StateStore()
    >>> vault.keep("server-0", 0, "a"), vault.kept("server-0", 1), vault.keep("server-0", 0, "b")
    (True, 'a', False)
    """

    _what: dict[str, Any] = field(default_factory=dict)  # last state of each server
    _life: dict[str, int] = field(default_factory=dict)  # latest incarnation that has read its state, by server

    def keep(self, name: str, life: int, what: Any) -> bool:
        """Store the state of an incarnation; return whether the store has accepted it."""
        if life < self._life.get(name, 0):
            return False
        self._what[name] = what
        return True

    def kept(self, name: str, life: int) -> Any:
        """Return the state for a new incarnation, or None; refuse states of earlier incarnations from now on."""
        self._life[name] = life
        return self._what.get(name)
