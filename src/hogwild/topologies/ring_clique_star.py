"""Ring, clique and star topologies."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.topologies.topology import Links, laid_out


@dataclass(frozen=True, slots=True)
class Ring:
    """Ring: each worker exchanges with its two neighbours.

    A round needs two messages per worker, but agreement is slow: the spectral gap falls with the square of the number
    of workers.

    Examples
    --------
    >>> Ring().links((0, 1, 2, 3))[0]
    frozenset({1, 3})
    """

    directed = False

    def check(self, workers: int) -> None:
        """Accept any number of workers."""

    def cycle(self, members: int) -> int:
        """Return 1, because the links are the same in every round."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to."""
        count = len(members)
        return laid_out(members, lambda place: ((place - 1) % count, (place + 1) % count))


@dataclass(frozen=True, slots=True)
class Clique:
    """Clique: each worker exchanges with all others, and all agree after one round.

    Examples
    --------
    >>> len(Clique().links((0, 1, 2, 3))[0])
    3
    """

    directed = False

    def check(self, workers: int) -> None:
        """Accept any number of workers."""

    def cycle(self, members: int) -> int:
        """Return 1, because the links are the same in every round."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to."""
        everybody = frozenset(members)
        return {member: everybody - {member} for member in members}


@dataclass(frozen=True, slots=True)
class Star:
    """Star: all workers exchange with the first worker. If the first worker is lost, the next takes its place.

    Examples
    --------
    >>> Star().links((2, 5, 7))
    {2: frozenset({5, 7}), 5: frozenset({2}), 7: frozenset({2})}
    """

    directed = False

    def check(self, workers: int) -> None:
        """Accept any number of workers."""

    def cycle(self, members: int) -> int:
        """Return 1, because the links are the same in every round."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to."""
        return laid_out(members, lambda place: (0,) if place else range(1, len(members)))
