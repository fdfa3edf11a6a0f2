"""Links that double in length (Ying et al. 2021, arXiv 2110.13363)."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.topologies.topology import Links, laid_out


@dataclass(frozen=True, slots=True)
class Exponential:
    """Each sends to those 1, 2, 4, ... places further on: few links, and a gap that falls only with the logarithm.

    >>> Exponential().links(tuple(range(6)))[0]
    frozenset({1, 2, 4})
    """

    directed = True

    def check(self, workers: int) -> None:
        """Any number will do."""

    def cycle(self, members: int) -> int:
        """It is always the same."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Whom each member sends to."""
        count = len(members)
        bits = (count - 1).bit_length()
        return laid_out(members, lambda place: ((place + (1 << bit)) % count for bit in range(bits)))


@dataclass(frozen=True, slots=True)
class OnePeerExponential:
    """One of those links a round, in turn: one message each, and 2^k workers agree exactly after k rounds.

    >>> [OnePeerExponential().links((0, 1, 2, 3), round)[0] for round in range(3)]
    [frozenset({1}), frozenset({2}), frozenset({1})]
    """

    directed = True

    def check(self, workers: int) -> None:
        """Any number will do."""

    def cycle(self, members: int) -> int:
        """As many rounds as there are links."""
        return max(1, (members - 1).bit_length())

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Whom each member sends to in a round."""
        count = len(members)
        far = 1 << (round % self.cycle(count))
        return laid_out(members, lambda place: ((place + far) % count,))
