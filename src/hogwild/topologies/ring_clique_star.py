"""A ring, everybody with everybody, and one in the middle."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.topologies.topology import Links, laid_out


@dataclass(frozen=True, slots=True)
class Ring:
    """Each with its two neighbours. Cheap, and slow to agree: the spectral gap falls with the square of the workers.

    >>> Ring().links((0, 1, 2, 3))[0]
    frozenset({1, 3})
    """

    directed = False

    def check(self, workers: int) -> None:
        """Any number will do."""

    def cycle(self, members: int) -> int:
        """It is always the same."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Whom each member sends to."""
        count = len(members)
        return laid_out(members, lambda place: ((place - 1) % count, (place + 1) % count))


@dataclass(frozen=True, slots=True)
class Clique:
    """Everybody with everybody: all agree after one round.

    >>> len(Clique().links((0, 1, 2, 3))[0])
    3
    """

    directed = False

    def check(self, workers: int) -> None:
        """Any number will do."""

    def cycle(self, members: int) -> int:
        """It is always the same."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Whom each member sends to."""
        everybody = frozenset(members)
        return {member: everybody - {member} for member in members}


@dataclass(frozen=True, slots=True)
class Star:
    """All with the first, who is in the middle; when it is lost, the next takes its place.

    >>> Star().links((2, 5, 7))
    {2: frozenset({5, 7}), 5: frozenset({2}), 7: frozenset({2})}
    """

    directed = False

    def check(self, workers: int) -> None:
        """Any number will do."""

    def cycle(self, members: int) -> int:
        """It is always the same."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Whom each member sends to."""
        return laid_out(members, lambda place: (0,) if place else range(1, len(members)))
