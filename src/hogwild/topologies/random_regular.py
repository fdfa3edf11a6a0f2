"""As many neighbours for everybody, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter
from hogwild.topologies.topology import Links, connected, laid_out

SWITCHES = 10  # of ends, for each link: enough to forget where it began


@dataclass(frozen=True, slots=True)
class RandomRegular:
    """Each with ``degree`` others, at random: an expander, whose gap hardly falls with the number of workers.

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
        """There must be more workers than neighbours, and an even number of ends."""
        if workers > 1 and (workers <= self.degree or workers * self.degree % 2):
            raise ParameterError(
                f"{workers} workers cannot have {self.degree} neighbours each: it takes more workers than neighbours, "
                "and one of both numbers must be even."
            )

    def cycle(self, members: int) -> int:
        """It is always the same."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Whom each member sends to. When too few are left, all have more neighbours, at most all others."""
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
    """To whom links lead before they are switched: the nearest on both sides, and the opposite one."""
    steps = [far for k in range(1, degree // 2 + 1) for far in (k, -k)]
    return [*steps, count // 2] if degree % 2 else steps


def _switch(neighbours: list[set[int]], random: np.random.Generator) -> None:
    """Let pairs of links swap ends, wherever that makes no link double."""
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
