"""Membership views of runs whose workers hold the parameters, and the state from which a new view begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hogwild.messaging.deltas import Floats, weighted_sum
from hogwild.messaging.messages import ViewChange, ViewState
from hogwild.messaging.protocol import Action, Send

# Most members with which a changed view is described with its topology. The eigenvalues of a larger view take too long.
MAX_DESCRIBED_MEMBERS = 256

About = Callable[[tuple[str, ...]], dict[str, Any]]
"""Function from the members of a view to the description of their topology."""


class Membership:
    """Membership views of a run, held by the coordinator.

    Each join or departure makes a new view. Every member agrees to a view before the view begins: it reports its state,
    after the end of its burst if it trains. A further join or departure meanwhile makes one more view. Only the members
    of the newest view have to answer, so no view waits for a crashed worker.

    All members resume from the weighted mean of their parameters. If they are ``replicas`` of each other, they resume
    from those with the highest clock, which contain all deltas of the others.
    """

    def __init__(self, about: About | None = None, *, replicas: bool = False) -> None:
        self.about, self.replicas = about, replicas
        self.number = 0  # Number of the current view.
        self.members: tuple[str, ...] = ()
        self.states: dict[str, ViewState] = {}
        self.forming = False  # Whether states of members are outstanding.

    def begin(self, members: tuple[str, ...]) -> None:
        """Set the members of the first view, which begins with the run."""
        self.members = members

    def describe(self) -> dict[str, Any]:
        """Return the description of the current view for the event log."""
        description = {"view": self.number, "members": len(self.members)}
        if self.about is None or (self.number and len(self.members) > MAX_DESCRIBED_MEMBERS):
            return description
        return description | self.about(self.members)

    def form(self, members: tuple[str, ...]) -> Iterator[Action]:
        """Form a new view after a join or a departure, and ask its members for their state."""
        self.number += 1
        self.members, self.states, self.forming = members, {}, bool(members)
        for name in members:
            yield Send(name, ViewChange(self.number))

    def receive(self, sender: str, state: ViewState) -> bool:
        """Record the state of a member, and return whether all members of the view have reported."""
        if not self.forming or state.view != self.number:
            return False
        self.states[sender] = state
        self.forming = len(self.states) < len(self.members)
        return not self.forming

    def agreed(self) -> tuple[int, int, Floats] | None:
        """Return the clock, the progress and the parameters that a view begins with.

        Return None if no member has parameters.
        """
        have = [each for name in self.members if (each := self.states[name]).values is not None]
        if not have:
            return None
        clock = max(each.clock for each in have)
        progress = max(each.progress for each in have)
        if self.replicas:
            have = [each for each in have if each.clock == clock]
        return clock, progress, mean([each.values for each in have], [each.weight for each in have])


def mean(several: list[Any], weights: list[float]) -> Floats:
    """Return the weighted mean of vectors.

    >>> import numpy as np
    >>> mean([np.array([1.0, 2.0], np.float32), np.array([4.0, 2.0], np.float32)], [2.0, 1.0])
    array([2., 2.], dtype=float32)
    """
    whole = sum(weights)
    return weighted_sum([(weight / whole, values) for values, weight in zip(several, weights, strict=True)])
