"""What servers keep for their next lives. It is in the process of the coordinator, without which no run goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class StateStore:
    """The last thing that each has kept.

    What a life keeps after the next has begun is refused: it would be receipted, and nobody would have it.

    >>> vault = StateStore()
    >>> vault.keep("server-0", 0, "a"), vault.kept("server-0", 1), vault.keep("server-0", 0, "b")
    (True, 'a', False)
    """

    _what: dict[str, Any] = field(default_factory=dict)
    _life: dict[str, int] = field(default_factory=dict)

    def keep(self, name: str, life: int, what: Any) -> bool:
        """Take something; return whether that was done."""
        if life < self._life.get(name, 0):
            return False
        self._what[name] = what
        return True

    def kept(self, name: str, life: int) -> Any:
        """What there is for a life that begins; None if there is nothing."""
        self._life[name] = life
        return self._what.get(name)
