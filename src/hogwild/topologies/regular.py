"""Regular topologies with short paths: exponential graphs and random regular graphs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter
from hogwild.topologies.topology import Links, connected, laid_out


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


SWITCHES = 10  # Swaps of ends per link, enough to make the graph independent of its initial links.


@dataclass(frozen=True, slots=True)
class RandomRegular:
    """Random regular graph: each worker has ``degree`` random neighbours.

    Such a graph is an expander: its spectral gap hardly falls with the number of workers.

    Parameters
    ----------
    degree : int, default 4
        Number of neighbours of each worker, at least 2.
    seed : int, default 0
        Seed of the random graph.

    Raises
    ------
    ParameterError
        If ``degree`` is not an integer of at least 2.

    Examples
    --------
    >>> {len(others) for others in RandomRegular(4, seed=1).links(tuple(range(20))).values()}
    {4}
    """

    degree: int = 4
    seed: int = 0

    directed = False

    def __post_init__(self) -> None:
        if not isinstance(self.degree, int) or self.degree < 2:
            raise invalid_parameter("degree", "an integer of at least 2", self.degree)

    def check(self, workers: int) -> None:
        """Raise :class:`ParameterError` unless workers exceed neighbours and the number of link ends is even."""
        if workers > 1 and (workers <= self.degree or workers * self.degree % 2):
            raise ParameterError(
                f"{workers} workers cannot have {self.degree} neighbours each: it takes more workers than neighbours, "
                "and one of both numbers must be even."
            )

    def cycle(self, members: int) -> int:
        """Return 1, because the links are the same in every round."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to.

        If members times ``degree`` is odd after the loss of a worker, each member has one neighbour more. No member has
        more neighbours than there are other members.
        """
        count, degree = len(members), self.degree
        degree = min(degree + (count * degree) % 2, count - 1)
        neighbours = [{(place + far) % count for far in _steps(count, degree)} for place in range(count)]
        random = np.random.default_rng([self.seed, count])
        while True:
            _switch(neighbours, random)
            links = laid_out(members, lambda place: neighbours[place])
            if connected(links):
                return links


def _steps(count: int, degree: int) -> list[int]:
    """Return the offsets of the initial links: the nearest members on both sides.

    For an odd degree the opposite member is added.
    """
    steps = [far for k in range(1, degree // 2 + 1) for far in (k, -k)]
    return [*steps, count // 2] if degree % 2 else steps


def _switch(neighbours: list[set[int]], random: np.random.Generator) -> None:
    """Swap the ends of random pairs of links, wherever no double link results."""
    edges = [(a, b) for a, others in enumerate(neighbours) for b in sorted(others) if a < b]
    for first, second, turn in random.integers([len(edges), len(edges), 2], size=(SWITCHES * len(edges), 3)):
        (a, b), (c, d) = edges[first], edges[second]
        if turn:
            c, d = d, c
        if len({a, b, c, d}) < 4 or d in neighbours[a] or b in neighbours[c]:
            continue
        for one, old, new in ((a, b, d), (b, a, c), (c, d, b), (d, c, a)):
            neighbours[one].discard(old)
            neighbours[one].add(new)
        edges[first], edges[second] = (a, d), (c, b)
