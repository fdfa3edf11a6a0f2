"""Mixing weights of a topology, and the spectral gap that measures how fast workers agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.topologies.topology import Links, Topology

Weights = dict[int, dict[int, float]]
"""For each member, the weights of the parameters that it mixes, by member, including its own."""


def mixing(topology: Topology, members: tuple[int, ...], round: int = 0) -> Weights:
    """Return the mixing weights of a round: Metropolis-Hastings weights, or push-sum weights for directed links.

    >>> from hogwild.topologies import Ring
    >>> mixing(Ring(), (0, 1, 2, 3))[0] == {0: 1 / 3, 1: 1 / 3, 3: 1 / 3}
    True
    """
    links = topology.links(members, round)
    return pushing(links) if topology.directed else metropolis(links)


def metropolis(links: Links) -> Weights:
    """Return Metropolis-Hastings weights, which are symmetric, with rows and columns that sum to one.

    The weight of a link is 1 / (1 + d), where d is the larger degree of its two ends.
    """
    weights: Weights = {}
    for node, others in links.items():
        row = {other: 1 / (1 + max(len(others), len(links[other]))) for other in sorted(others)}
        # Where no neighbour has a larger degree, the difference 1 - sum(row) would differ from the weight of each
        # neighbour by a rounding error.
        alike = all(len(links[other]) <= len(others) for other in others)
        row[node] = 1 / (1 + len(others)) if alike else 1 - sum(row.values())
        weights[node] = dict(sorted(row.items()))
    return weights


def pushing(links: Links) -> Weights:
    """Return push-sum weights: each node gives equal shares to itself and to the nodes that it sends to.

    Columns sum to one. Rows need not.
    """
    weights: Weights = {node: {} for node in links}
    for node in sorted(links):
        share = 1 / (1 + len(links[node]))
        for other in (node, *links[node]):
            weights[other][node] = share
    return {node: dict(sorted(row.items())) for node, row in weights.items()}


def matrix(weights: Weights) -> NDArray[np.float64]:
    """Return weights as a matrix, with one row for each node that mixes."""
    places = {node: place for place, node in enumerate(sorted(weights))}
    whole = np.zeros((len(places), len(places)))
    for node, row in weights.items():
        for source, weight in row.items():
            whole[places[node], places[source]] = weight
    return whole


def spectral_gap(weights: Weights | NDArray[np.float64]) -> float:
    """Return 1 minus the second largest magnitude of the eigenvalues.

    It is 1 if all workers agree after one round, and 0 if they never agree.

    >>> round(spectral_gap(np.full((4, 4), 0.25)), 6)
    1.0
    """
    whole = matrix(weights) if isinstance(weights, dict) else weights
    if len(whole) < 2:
        return 1.0
    values = np.linalg.eigvalsh(whole) if np.array_equal(whole, whole.T) else np.linalg.eigvals(whole)
    return float(1 - np.sort(np.abs(values))[-2])


def about(topology: Topology, members: tuple[int, ...]) -> dict[str, Any]:
    """Return the description of a topology for the event log.

    It contains the spectral gap of the product of all rounds in a cycle, and the least and largest number of
    neighbours.

    >>> from hogwild.topologies import Clique
    >>> about(Clique(), (0, 1, 2))
    {'topology': 'Clique()', 'members': 3, 'spectral_gap': 1.0, 'rounds': 1, 'neighbours': {'least': 2, 'most': 2}}
    """
    rounds = topology.cycle(len(members))
    whole = np.eye(len(members))
    for round in range(rounds):
        whole = matrix(mixing(topology, members, round)) @ whole
    counts = [len(others) for others in topology.links(members).values()]
    return {
        "topology": repr(topology), "members": len(members), "spectral_gap": round_off(spectral_gap(whole)),
        "rounds": rounds, "neighbours": {"least": min(counts), "most": max(counts)},
    }  # fmt: skip


def round_off(gap: float) -> float:
    """Return a spectral gap rounded to 12 decimal places, because eigenvalues have rounding errors beyond them."""
    return round(gap, 12)
