"""From shares of nodes in parts to parts: the cut of least weight among those that the shares suggest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hogwild.data.csr import Array

TRIES = 64  # roundings by random thresholds, where there are more than two parts


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """The ends and the weights of edges."""

    one: Array
    other: Array
    weights: Array

    def cut(self, parts: Array) -> float:
        """The weight of the edges between different parts.

        >>> edges = Edges(np.array([0, 1]), np.array([1, 2]), np.array([2.0, 3.0]))
        >>> edges.cut(np.array([0, 0, 1]))
        3.0
        """
        return float(self.weights[parts[self.one] != parts[self.other]].sum())


def round_cut(shares: Array, edges: Edges, seed: int = 0) -> NDArray[np.int64]:
    """A part for each node. ``shares`` has a row for each node; those that are wholly in a part stay there.

    Two parts are told apart by the best of all thresholds: where the shares are optimal, every threshold between them
    gives a cut of least weight. More are told apart by the largest share, or by thresholds that are tried in random
    order (Calinescu, Karloff and Rabani 2000), whichever is best.

    >>> edges = Edges(np.array([0, 1]), np.array([1, 2]), np.array([2.0, 3.0]))
    >>> round_cut(np.array([[1.0, 0.0], [0.4, 0.6], [0.0, 1.0]]), edges)
    array([0, 1, 1])
    """
    if shares.shape[1] == 2:
        return _by_threshold(shares[:, 1], edges)
    random = np.random.default_rng(seed)
    tries = [shares.argmax(axis=1), *(_by_thresholds(shares, random) for _ in range(TRIES))]
    best: NDArray[np.int64] = np.asarray(min(tries, key=edges.cut), np.int64)
    return best


def _by_threshold(shares: Array, edges: Edges) -> NDArray[np.int64]:
    """Part 1 is who has more of it than the best threshold: an edge is cut by those between its ends' shares."""
    levels, place = np.unique(shares, return_inverse=True)
    low, high = np.minimum(place[edges.one], place[edges.other]), np.maximum(place[edges.one], place[edges.other])
    change = np.zeros(len(levels) + 1)
    np.add.at(change, low, edges.weights)
    np.subtract.at(change, high, edges.weights)
    cuts = np.cumsum(change)[: max(1, len(levels) - 1)]  # by a threshold above each level but the last
    return (place > int(cuts.argmin())).astype(np.int64)


def _by_thresholds(shares: Array, random: np.random.Generator) -> NDArray[np.int64]:
    """Parts take in turn who has more of them than a threshold; the last takes the rest."""
    turns, threshold = random.permutation(shares.shape[1]), random.uniform()
    parts = np.full(len(shares), turns[-1])
    free = np.ones(len(shares), bool)
    for part in turns[:-1]:
        taken = free & (shares[:, part] > threshold)
        parts[taken], free = part, free & ~taken
    return parts
