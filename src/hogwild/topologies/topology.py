"""What topologies have in common: whom each worker sends its parameters to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

Links = dict[int, frozenset[int]]
"""For each member the others it sends to."""


class Topology(Protocol):
    """Who talks to whom. It is laid out over those who are there, so it heals when one of them is lost.

    In one that is ``directed``, a member need not hear from those it sends to.
    """

    @property
    def directed(self) -> bool:
        """Whether somebody may send to another who does not send to it."""

    def check(self, workers: int) -> None:
        """Refuse a number of workers that it cannot be laid out over."""

    def cycle(self, members: int) -> int:
        """After how many rounds it is as it was."""

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Whom each member sends to in a round."""


def laid_out(members: tuple[int, ...], others: Callable[[int], Iterable[int]]) -> Links:
    """Links between members from links between their places; those that lead nowhere are left out.

    >>> laid_out((3, 5, 8), lambda place: (place - 1, place + 1))[3]
    frozenset({5})
    """
    count = len(members)
    return {
        member: frozenset(members[other] for other in others(place) if 0 <= other < count and other != place)
        for place, member in enumerate(members)
    }


def connected(links: Links) -> bool:
    """Whether everybody can be reached from everybody.

    >>> connected({0: frozenset({1}), 1: frozenset()})
    False
    """
    backwards: dict[int, set[int]] = {node: set() for node in links}
    for node, targets in links.items():
        for target in targets:
            backwards[target].add(node)
    return _reaches_all(links) and _reaches_all({node: frozenset(sources) for node, sources in backwards.items()})


def _reaches_all(links: Links) -> bool:
    if not links:
        return True
    first = next(iter(links))
    reached, edge = {first}, [first]
    while edge:
        new = links[edge.pop()] - reached
        reached |= new
        edge.extend(new)
    return len(reached) == len(links)
