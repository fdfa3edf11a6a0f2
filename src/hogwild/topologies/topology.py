"""Contract of topologies: the workers that each worker sends its parameters to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

Links = dict[int, frozenset[int]]
"""For each member, the other members that it sends to."""


@runtime_checkable
class Topology(Protocol):
    """Communication graph of workers.

    A topology is laid out over the members that are present, so it is complete again after the loss of a member. In a
    ``directed`` topology a member need not receive from the members that it sends to.
    """

    @property
    def directed(self) -> bool:
        """Whether a member may send to another member that does not send back."""

    def check(self, workers: int) -> None:
        """Raise :class:`ParameterError` if the topology cannot be laid out over this number of workers."""

    def cycle(self, members: int) -> int:
        """Return the number of rounds after which the links repeat."""

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to in a round."""


def laid_out(members: tuple[int, ...], others: Callable[[int], Iterable[int]]) -> Links:
    """Return links between members from links between their positions, without links to positions that do not exist.

    >>> laid_out((3, 5, 8), lambda place: (place - 1, place + 1))[3]
    frozenset({5})
    """
    count = len(members)
    return {
        member: frozenset(members[other] for other in others(place) if 0 <= other < count and other != place)
        for place, member in enumerate(members)
    }


def connected(links: Links) -> bool:
    """Return whether every node can be reached from every other node.

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
    reached, frontier = {first}, [first]
    while frontier:
        new = links[frontier.pop()] - reached
        reached |= new
        frontier.extend(new)
    return len(reached) == len(links)
