"""Exponential topologies, whose links double in length (Ying et al. 2021, arXiv 2110.13363)."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.topologies.topology import Links, laid_out


@dataclass(frozen=True, slots=True)
class Exponential:
    """Static exponential graph: each worker sends to the workers 1, 2, 4, ... positions ahead.

    A worker has only about log2(n) links, and the spectral gap falls only with the logarithm of the number of workers
    n.

    Examples
    --------
    >>> Exponential().links(tuple(range(6)))[0]
    frozenset({1, 2, 4})

    References
    ----------
    Ying et al. 2021, arXiv 2110.13363.
    """

    directed = True

    def check(self, workers: int) -> None:
        """Accept any number of workers."""

    def cycle(self, members: int) -> int:
        """Return 1, because the links are the same in every round."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to."""
        count = len(members)
        bits = (count - 1).bit_length()
        return laid_out(members, lambda place: ((place + (1 << bit)) % count for bit in range(bits)))


@dataclass(frozen=True, slots=True)
class OnePeerExponential:
    """One-peer exponential graph: each round uses one link of the exponential graph, in turn.

    A worker sends one message a round, and 2^k workers agree exactly after k rounds.

    Examples
    --------
    >>> [OnePeerExponential().links((0, 1, 2, 3), round)[0] for round in range(3)]
    [frozenset({1}), frozenset({2}), frozenset({1})]

    References
    ----------
    Ying et al. 2021, arXiv 2110.13363.
    """

    directed = True

    def check(self, workers: int) -> None:
        """Accept any number of workers."""

    def cycle(self, members: int) -> int:
        """Return the number of links of the exponential graph, each of which takes one round."""
        return max(1, (members - 1).bit_length())

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the worker that each member sends to in a round."""
        count = len(members)
        far = 1 << (round % self.cycle(count))
        return laid_out(members, lambda place: ((place + far) % count,))
