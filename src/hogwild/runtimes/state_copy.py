"""Copies of the parameters of a run, to which it goes back after a divergence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hogwild.data.slices import copied, copy_array
from hogwild.problems.problem import State


class StateCopy(Protocol):
    """Copy of the parameters, with the rule's state of each, in the memory of the host or of a GPU."""

    def arrays(self) -> State:
        """Return the copy in the memory of the host."""


@dataclass(frozen=True, slots=True, eq=False)
class HostCopy:
    """Copy of the parameters in the memory of the host."""

    state: State

    def arrays(self) -> State:
        """Return the copy."""
        return self.state


def copied_state(state: State, earlier: StateCopy | None) -> HostCopy:
    """Return a copy of parameters in the memory of the host, in that of an earlier copy if there is one."""
    if earlier is None:
        return HostCopy(tuple(copied(part) for part in state))
    assert isinstance(earlier, HostCopy)
    for kept, part in zip(earlier.state, state, strict=True):
        copy_array(kept, part)
    return earlier
