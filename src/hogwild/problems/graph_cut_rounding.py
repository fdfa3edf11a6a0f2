"""Rounding of relaxed cuts: from shares of nodes in parts to the lightest cut among several candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hogwild.data.csr import Array


def nearest_edges(one: Array, other: Array, nodes: int, centres: Sequence[int], edges: int) -> NDArray[np.int64]:
    """Return the numbers of ``edges`` edges, first those whose farther end is the fewest edges away from a centre.

    >>> nearest_edges(np.array([3, 0, 1]), np.array([4, 1, 2]), 5, [0], 2).tolist()
    [1, 2]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    # An additional node is adjacent to all centres, so that one search begins at all of them.
    ends = np.concatenate([one, np.full(len(centres), nodes)]), np.concatenate([other, np.asarray(centres, np.int64)])
    graph = csr_array((np.ones(len(ends[0]), np.int8), ends), shape=(nodes + 1, nodes + 1))
    order = breadth_first_order(graph, nodes, directed=False, return_predecessors=False)
    rank = np.full(nodes + 1, nodes + 1)
    rank[order] = np.arange(len(order))
    farther = np.maximum(rank[one], rank[other])
    kept: NDArray[np.int64] = np.sort(np.argpartition(farther, edges - 1)[:edges])
    return kept


# Number of roundings by random thresholds, if there are more than two parts.
TRIES = 64


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Ends and weights of edges."""

    one: Array
    other: Array
    weights: Array

    def cut(self, parts: Array) -> float:
        """Return the weight of the edges between different parts.

        >>> edges = Edges(np.array([0, 1]), np.array([1, 2]), np.array([2.0, 3.0]))
        >>> edges.cut(np.array([0, 0, 1]))
        3.0
        """
        return float(self.weights[parts[self.one] != parts[self.other]].sum())


def round_cut(shares: Array, edges: Edges, seed: int = 0) -> NDArray[np.int64]:
    """Return a part for each node; a node that is wholly in a part stays there.

    ``shares`` has a row for each node. For two parts, the best of all thresholds separates them: for optimal shares,
    every threshold between them gives a cut of least weight. For more parts, the candidates are the largest share, and
    ``TRIES`` roundings with random thresholds in random order (Calinescu, Karloff and Rabani 2000). The lightest cut
    wins.

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
    """Return part 1 for nodes whose share in it exceeds the best threshold, else part 0.

    A threshold cuts an edge if it lies between the shares of the edge's ends.
    """
    levels, place = np.unique(shares, return_inverse=True)
    low, high = np.minimum(place[edges.one], place[edges.other]), np.maximum(place[edges.one], place[edges.other])
    change = np.zeros(len(levels) + 1)
    np.add.at(change, low, edges.weights)
    np.subtract.at(change, high, edges.weights)
    # Weights of the cuts by a threshold above each level but the last.
    cuts = np.cumsum(change)[: max(1, len(levels) - 1)]
    return (place > int(cuts.argmin())).astype(np.int64)


def _by_thresholds(shares: Array, random: np.random.Generator) -> NDArray[np.int64]:
    """Assign to each part in random order the free nodes whose share exceeds a threshold.

    The last part takes the rest.
    """
    turns, threshold = random.permutation(shares.shape[1]), random.uniform()
    parts = np.full(len(shares), turns[-1])
    free = np.ones(len(shares), bool)
    for part in turns[:-1]:
        taken = free & (shares[:, part] > threshold)
        parts[taken], free = part, free & ~taken
    return parts
