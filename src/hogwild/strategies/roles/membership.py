"""Who takes part where workers have the parameters themselves, and from where they go on when that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hogwild.messaging.actions import Action, Send
from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.messages import ViewChange, ViewState

FEW = 256  # members whose topology is told of again after each change: eigenvalues of many take long

About = Callable[[tuple[str, ...]], dict[str, Any]]
"""What to tell of the members of a view."""


class Membership:
    """The coordinator's list of members. Each change of it makes a new view, which all agree on before it begins.

    Members say where they stand, those who train when their burst is over. If another comes or goes meanwhile, that is
    simply one more view: whoever is asked last has to answer, so nobody waits for the dead. All go on from the mean of
    what they have; where they are ``replicas`` of one another, from those who are furthest, who have everything that
    the others have.
    """

    def __init__(self, about: About | None = None, *, replicas: bool = False) -> None:
        self.about, self.replicas = about, replicas
        self.number = 0
        self.members: tuple[str, ...] = ()
        self.standing: dict[str, ViewState] = {}
        self.forming = False

    def begin(self, members: tuple[str, ...]) -> None:
        """The first view, which begins where the run does."""
        self.members = members

    def told(self) -> dict[str, Any]:
        """What to tell of this view."""
        news = {"view": self.number, "members": len(self.members)}
        if self.about is None or (self.number and len(self.members) > FEW):
            return news
        return news | self.about(self.members)

    def form(self, members: tuple[str, ...]) -> Iterator[Action]:
        """Somebody has come or gone: ask those who are there where they stand."""
        self.number += 1
        self.members, self.standing, self.forming = members, {}, bool(members)
        for name in members:
            yield Send(name, ViewChange(self.number))

    def heard(self, sender: str, standing: ViewState) -> bool:
        """Somebody says where it stands; return whether everybody has."""
        if not self.forming or standing.view != self.number:
            return False
        self.standing[sender] = standing
        self.forming = len(self.standing) < len(self.members)
        return not self.forming

    def agreed(self) -> tuple[int, int, Floats] | None:
        """The clock, the progress and the parameters to go on from; None if nobody has any."""
        have = [each for name in self.members if (each := self.standing[name]).values is not None]
        if not have:
            return None
        clock = max(each.clock for each in have)
        progress = max(each.progress for each in have)
        if self.replicas:
            have = [each for each in have if each.clock == clock]
        return clock, progress, mean([each.values for each in have], [each.weight for each in have])


def mean(several: list[Any], weights: list[float]) -> Floats:
    """The mean of vectors, each counting as much as its weight says.

    >>> mean([np.array([1.0, 2.0], np.float32), np.array([4.0, 2.0], np.float32)], [2.0, 1.0])
    array([2., 2.], dtype=float32)
    """
    total = np.zeros(len(several[0]), np.float64)
    for values, weight in zip(several, weights, strict=True):
        total += weight * values.astype(np.float64)
    return frozen((total / sum(weights)).astype(several[0].dtype))
