"""Edges of a graph that are nearest to given nodes."""

from __future__ import annotations

from collections.abc import Sequence

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
