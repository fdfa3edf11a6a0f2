"""Topologies: the neighbours of each worker in runs without servers. Each topology has one entry here."""

from __future__ import annotations

from typing import Any

from hogwild.registry import invalid_parameter, kebab, lookup
from hogwild.topologies.graph import Clique, Graph, Ring, Star
from hogwild.topologies.lattices import Grid, Hypercube, Torus
from hogwild.topologies.mixing_matrix import mixing, spectral_gap
from hogwild.topologies.regular import Exponential, OnePeerExponential, RandomRegular
from hogwild.topologies.topology import Topology

TOPOLOGIES: dict[str, Any] = {
    kebab(kind.__name__): kind
    for kind in (Ring, Clique, Star, Grid, Torus, Hypercube, Exponential, OnePeerExponential, RandomRegular)
}


def named(topology: Any) -> Topology:
    """Return a topology from its name, with numbers if it has any, from a graph of networkx, or unchanged.

    >>> named("random-regular:4"), named("ring")
    (RandomRegular(degree=4, seed=0), Ring())
    """
    if hasattr(topology, "is_directed") and hasattr(topology, "edges"):
        return Graph.of(topology)
    if not isinstance(topology, str):
        if not isinstance(topology, Topology):
            raise invalid_parameter("topology", "a name such as 'ring', a topology or a graph of networkx", topology)
        return topology
    name, *numbers = topology.split(":")
    kind = lookup("topology", name, TOPOLOGIES)
    try:
        return kind(*(int(number) for number in numbers))  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):
            raise
        raise invalid_parameter(
            "topology", "a name, or one with its numbers such as 'random-regular:4'", topology
        ) from None


__all__ = [
    "TOPOLOGIES",
    "Clique",
    "Exponential",
    "Graph",
    "Grid",
    "Hypercube",
    "OnePeerExponential",
    "RandomRegular",
    "Ring",
    "Star",
    "Topology",
    "Torus",
    "mixing",
    "named",
    "spectral_gap",
]
