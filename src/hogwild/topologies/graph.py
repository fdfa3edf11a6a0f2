"""Topologies of given edges: ring, clique, star, and any graph of the user's."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from hogwild.errors import ParameterError
from hogwild.topologies.topology import Links, connected, laid_out


@dataclass(frozen=True, slots=True)
class Ring:
    """Ring: each worker exchanges with its two neighbours.

    A round needs two messages per worker, but agreement is slow: the spectral gap falls with the square of the number
    of workers.

    Examples
    --------
    >>> Ring().links((0, 1, 2, 3))[0]
    frozenset({1, 3})
    """

    directed = False

    def check(self, workers: int) -> None:
        """Accept any number of workers."""

    def cycle(self, members: int) -> int:
        """Return 1, because the links are the same in every round."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to."""
        count = len(members)
        return laid_out(members, lambda place: ((place - 1) % count, (place + 1) % count))


@dataclass(frozen=True, slots=True)
class Clique:
    """Clique: each worker exchanges with all others, and all agree after one round.

    Examples
    --------
    >>> len(Clique().links((0, 1, 2, 3))[0])
    3
    """

    directed = False

    def check(self, workers: int) -> None:
        """Accept any number of workers."""

    def cycle(self, members: int) -> int:
        """Return 1, because the links are the same in every round."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to."""
        all_members = frozenset(members)
        return {member: all_members - {member} for member in members}


@dataclass(frozen=True, slots=True)
class Star:
    """Star: all workers exchange with the first worker. If the first worker is lost, the next takes its place.

    Examples
    --------
    >>> Star().links((2, 5, 7))
    {2: frozenset({5, 7}), 5: frozenset({2}), 7: frozenset({2})}
    """

    directed = False

    def check(self, workers: int) -> None:
        """Accept any number of workers."""

    def cycle(self, members: int) -> int:
        """Return 1, because the links are the same in every round."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to."""
        return laid_out(members, lambda place: (0,) if place else range(1, len(members)))


class NetworkXGraph(Protocol):
    """Graph of networkx, as far as :class:`Graph` reads it."""

    @property
    def nodes(self) -> Iterable[Hashable]:
        """The nodes, in their order."""

    @property
    def edges(self) -> Iterable[tuple[Any, ...]]:
        """The edges: the two nodes of each, and for a multigraph its key."""

    def is_directed(self) -> bool:
        """Return whether the edges are directed."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Topology from a given graph: worker k is the k-th node.

    The loss of a worker removes its edges. If the remaining workers are then not connected, the edges of a ring over
    them are added.

    Parameters
    ----------
    nodes : int
        Number of nodes, which must equal the number of workers.
    edges : tuple of pairs of int
        Edges as pairs of node numbers.
    directed : bool, default False
        Whether an edge leads only from its first node to its second.

    Raises
    ------
    ParameterError
        If an edge leads to a node that does not exist, or the graph is not connected.

    Examples
    --------
    >>> Graph(3, ((0, 1), (1, 2))).links((0, 1, 2))[1]
    frozenset({0, 2})
    """

    nodes: int
    edges: tuple[tuple[int, int], ...] = field(repr=False)
    directed: bool = False

    def __post_init__(self) -> None:
        if any(not 0 <= end < self.nodes for edge in self.edges for end in edge):
            raise ParameterError(f"An edge leads to a node that is not there: there are nodes 0 to {self.nodes - 1}.")
        if not connected(self._between(range(self.nodes))):
            raise ParameterError(
                "The graph is not connected: what some workers learn would never reach others. Add edges"
                + (", so that there is a way from every node to every other." if self.directed else ".")
            )

    @classmethod
    def of(cls, graph: NetworkXGraph) -> Graph:
        """Return the topology of a networkx graph, directed or not, with its nodes in their order.

        >>> import networkx
        >>> Graph.of(networkx.petersen_graph())
        Graph(nodes=10, directed=False)
        """
        places = {node: place for place, node in enumerate(graph.nodes)}
        edges = tuple((places[a], places[b]) for a, b, *_ in graph.edges if a != b)
        return cls(len(places), edges, bool(graph.is_directed()))

    def check(self, workers: int) -> None:
        """Raise :class:`ParameterError` unless there is one worker for each node."""
        if workers != self.nodes:
            raise ParameterError(f"The graph has {self.nodes} nodes and there are {workers} workers: give as many.")

    def cycle(self, members: int) -> int:
        """Return 1, because the links are the same in every round."""
        return 1

    def links(self, members: tuple[int, ...], round: int = 0) -> Links:
        """Return the workers that each member sends to."""
        links = self._between(members)
        if not connected(links):
            ring = Ring().links(members)
            links = {member: others | ring[member] for member, others in links.items()}
        return links

    def _between(self, members: Iterable[int]) -> Links:
        links: dict[int, set[int]] = {member: set() for member in members}
        for a, b in self.edges:
            if a in links and b in links and a != b:
                links[a].add(b)
                if not self.directed:
                    links[b].add(a)
        return {member: frozenset(others) for member, others in links.items()}
