"""Exchanges of synchronous workers: the messages after a burst, and the mixing of the replies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np

from hogwild.messaging.compression import Compression, Sender
from hogwild.messaging.deltas import Floats, SparseDelta, Vector, add, change, frozen, weighted_sum
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import GossipPush
from hogwild.messaging.protocol import Trained
from hogwild.topologies.mixing_matrix import Weights, mixing
from hogwild.topologies.topology import Links, Topology

MOST_LINKS = 64  # Most sets of links that ``neighbours`` caches.


class Exchange(Protocol):
    """Exchange of one worker: the worker's parameters, and the messages that mix them with those of others."""

    @property
    def values(self) -> Floats:
        """The parameters from which the worker trains."""

    @property
    def weight(self) -> float:
        """The weight of the worker's parameters in the mean from which a new membership view begins."""

    def begin(self, view: int, members: tuple[int, ...], values: Floats | None) -> None:
        """Begin a membership view from the given parameters, or from the initial parameters if they are None."""

    def trained(self, event: Trained) -> None:
        """Apply the result of a burst."""

    def complete_alone(self) -> None:
        """Complete the round without messages of others, because the membership view or the run ends."""

    def targets(self, clock: int) -> Iterable[int]:
        """Return the workers to send to in a round."""

    def sources(self, clock: int) -> Iterable[int]:
        """Return the workers to receive from in a round."""

    def message(self, clock: int) -> GossipPush:
        """Return the message of a round."""

    def mix(self, clock: int, got: Mapping[int, GossipPush]) -> None:
        """Mix the messages of all sources into the parameters."""


class MixingPlan:
    """Links and mixing weights of each round of a membership view, computed once for all workers of a process."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._view = 0
        self._rounds: dict[tuple[int, int], tuple[Links, Weights]] = {}
        self._links: dict[tuple[tuple[int, ...], int], Links] = {}

    def at(self, view: int, members: tuple[int, ...], clock: int) -> tuple[Links, Weights]:
        """Return the links and the mixing weights of a round."""
        key = view, clock % self.topology.cycle(len(members))
        found = self._rounds.get(key)
        if found is None:
            found = self.topology.links(members, key[1]), mixing(self.topology, members, key[1])
            if view > self._view:
                self._view, self._rounds = view, {}
            self._rounds[key] = found
        return found

    def neighbours(self, me: int, members: tuple[int, ...], clock: int) -> list[int]:
        """Return the neighbours of one worker in a round, sorted.

        The worker gives its own list of ``members``, because in AD-PSGD the lists of two workers can differ.
        """
        key = members, clock % self.topology.cycle(len(members))
        links = self._links.get(key)
        if links is None:
            links = self.topology.links(*key)
            self._links = {**self._links, key: links} if len(self._links) < MOST_LINKS else {key: links}
        return sorted(links[me])


class AverageExchange:
    """Gossip averaging: each worker sends its parameters to its neighbours, and mixes theirs with its own.

    In a directed topology the weights of a worker need not sum to one. Then the parameters are sent with a scalar
    weight that is mixed in the same way. The worker trains on their quotient (push-sum; Assran et al. 2019, arXiv
    1811.10792). Each worker keeps the part of its parameters that compression removes from a message. So mixing
    preserves the mean over all workers.
    """

    def __init__(self, me: int, config: RunConfig, plan: MixingPlan, compression: Compression | None = None) -> None:
        self.me, self.config, self.at, self.compression = me, config, plan.at, compression
        self.directed = plan.topology.directed
        self.view = 0
        self.members: tuple[int, ...] = (me,)
        self.values = self.mass = config.start  # The quotient, and its numerator.
        self.weight = 1.0

    def begin(self, view: int, members: tuple[int, ...], values: Floats | None) -> None:
        """Begin a membership view with weight 1."""
        self.view, self.members = view, members
        self.values = self.mass = self.config.start if values is None else values
        self.weight = 1.0

    def trained(self, event: Trained) -> None:
        """Add the delta of a burst, which started at the quotient, to the mixed parameters and to the quotient."""
        self.mass = event.values if self.weight == 1.0 else frozen(self.mass + (event.values - self.values))
        self.values = event.values if self.weight == 1.0 else self._quotient()

    def complete_alone(self) -> None:
        """Do nothing, because ``trained`` has already applied the burst."""

    def targets(self, clock: int) -> Iterable[int]:
        """Return the neighbours of the worker in a round."""
        return sorted(self.at(self.view, self.members, clock)[0][self.me])

    def sources(self, clock: int) -> Iterable[int]:
        """Return the workers whose neighbour this worker is in a round."""
        return [source for source in self.at(self.view, self.members, clock)[1][self.me] if source != self.me]

    def message(self, clock: int) -> GossipPush:
        """Return the parameters of the worker and their weight."""
        return GossipPush(self._sent(), clock, self.view, self.weight)

    def mix(self, clock: int, got: Mapping[int, GossipPush]) -> None:
        """Replace the parameters by the weighted mean of those received and its own."""
        sent = self._sent()
        # What compression has left out of the message stays here.
        weighted = [(1.0, self.mass), (-1.0, sent)] if self.compression else []
        weight = 0.0
        for source, share in self.at(self.view, self.members, clock)[1][self.me].items():
            own = source == self.me
            weighted.append((share, sent if own else _dense(got[source].vector)))
            weight += share * (self.weight if own else got[source].weight)
        self.mass = weighted_sum(weighted)
        if self.directed:
            self.weight = weight
        self.values = self._quotient()

    def _sent(self) -> Floats:
        return self.mass if self.compression is None else _dense(self.compression(self.mass))

    def _quotient(self) -> Floats:
        return self.mass if self.weight == 1.0 else frozen((self.mass / self.weight).astype(self.mass.dtype))


class SumExchange:
    """All-to-all exchange of deltas: each worker sends its delta to all others.

    All workers add the same mean or sum of the deltas, in the order of worker numbers. So the replicas stay equal to
    the last bit.
    """

    weight = 1.0

    def __init__(self, me: int, config: RunConfig, mean: bool = True, compression: Compression | None = None) -> None:
        self.me, self.config, self.mean, self.sender = me, config, mean, Sender(compression)
        self.view = 0
        self.members: tuple[int, ...] = (me,)
        self.values = config.start
        self.own = GossipPush(frozen(np.zeros_like(config.start)), 0, 0)

    def begin(self, view: int, members: tuple[int, ...], values: Floats | None) -> None:
        """Begin a membership view from the given parameters."""
        self.view, self.members = view, members
        self.values = self.config.start if values is None else values

    def trained(self, event: Trained) -> None:
        """Record the delta of a burst, for the worker to add together with the others' deltas."""
        self.own = GossipPush(self.sender(change(self.values, event.values)), 0, self.view, float(event.samples))

    def complete_alone(self) -> None:
        """Add the worker's own delta, scaled for the mean from which the next membership view begins.

        If all members do so, the mean of their parameters equals the result of a complete round.
        """
        values = self.values.copy()
        add(values, self.own.vector, 1.0 if self.mean else len(self.members))
        self.values = frozen(values)

    def targets(self, clock: int) -> Iterable[int]:
        """Return all other members."""
        return [member for member in self.members if member != self.me]

    sources = targets

    def message(self, clock: int) -> GossipPush:
        """Return the delta of the worker, with its number of samples as weight."""
        return GossipPush(self.own.vector, clock, self.view, self.own.weight)

    def mix(self, clock: int, got: Mapping[int, GossipPush]) -> None:
        """Add the mean or the sum of all deltas."""
        changes = [self.own if member == self.me else got[member] for member in self.members]
        samples = sum(each.weight for each in changes)
        values = self.values.copy()
        for each in changes:
            add(values, each.vector, each.weight / samples if self.mean else 1.0)
        self.values = frozen(values)


def _dense(vector: Vector) -> Floats:
    return vector.dense() if isinstance(vector, SparseDelta) else vector
