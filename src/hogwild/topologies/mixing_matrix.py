"""How much each counts for the others, and how fast that makes them agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.topologies.topology import Links, Topology

Weights = dict[int, dict[int, float]]
"""For each member whose parameters it mixes, its own among them, and with which weight."""


def mixing(topology: Topology, members: tuple[int, ...], round: int = 0) -> Weights:
    """The weights of a round: of Metropolis and Hastings, or where links are directed those of push-sum.

    >>> from hogwild.topologies import Ring
    >>> mixing(Ring(), (0, 1, 2, 3))[0] == {0: 1 / 3, 1: 1 / 3, 3: 1 / 3}
    True
    """
    links = topology.links(members, round)
    return pushing(links) if topology.directed else metropolis(links)


def metropolis(links: Links) -> Weights:
    """Symmetric weights whose rows and columns add up to one: 1 / (1 + the larger number of neighbours of both)."""
    weights: Weights = {}
    for node, others in links.items():
        row = {other: 1 / (1 + max(len(others), len(links[other]))) for other in sorted(others)}
        # As a difference where neighbours are alike, this would not be quite what each of them counts.
        alike = all(len(links[other]) <= len(others) for other in others)
        row[node] = 1 / (1 + len(others)) if alike else 1 - sum(row.values())
        weights[node] = dict(sorted(row.items()))
    return weights


def pushing(links: Links) -> Weights:
    """Each gives equal shares to itself and those it sends to: columns add up to one, rows need not."""
    weights: Weights = {node: {} for node in links}
    for node in sorted(links):
        share = 1 / (1 + len(links[node]))
        for other in (node, *links[node]):
            weights[other][node] = share
    return {node: dict(sorted(row.items())) for node, row in weights.items()}


def matrix(weights: Weights) -> NDArray[np.float64]:
    """Weights as a matrix, a row for each who mixes."""
    places = {node: place for place, node in enumerate(sorted(weights))}
    whole = np.zeros((len(places), len(places)))
    for node, row in weights.items():
        for source, weight in row.items():
            whole[places[node], places[source]] = weight
    return whole


def spectral_gap(weights: Weights | NDArray[np.float64]) -> float:
    """One less the second largest eigenvalue by size: 1 if all agree after one round, 0 if they never do.

    >>> round(spectral_gap(np.full((4, 4), 0.25)), 6)
    1.0
    """
    whole = matrix(weights) if isinstance(weights, dict) else weights
    if len(whole) < 2:
        return 1.0
    values = np.linalg.eigvalsh(whole) if np.array_equal(whole, whole.T) else np.linalg.eigvals(whole)
    return float(1 - np.sort(np.abs(values))[-2])


def about(topology: Topology, members: tuple[int, ...]) -> dict[str, Any]:
    """What to tell about a topology: its gap (of all its rounds, one after the other) and how many neighbours.

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
    """A gap to twelve digits: what is left are rounding errors of the eigenvalues."""
    return round(gap, 12)
