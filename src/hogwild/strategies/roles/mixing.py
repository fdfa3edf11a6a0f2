"""What workers in step give each other after a burst, and what they make of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np

from hogwild.messaging.compression import Compression, Sender
from hogwild.messaging.deltas import Floats, SparseDelta, Vector, add, change, frozen
from hogwild.messaging.events import Trained
from hogwild.messaging.messages import GossipPush
from hogwild.messaging.run_config import RunConfig
from hogwild.topologies.mixing_matrix import Weights, mixing
from hogwild.topologies.topology import Links, Topology

MOST_LINKS = 64  # layouts that are remembered


class Exchange(Protocol):
    """A worker's parameters, and how they are exchanged."""

    @property
    def values(self) -> Floats:
        """What it trains from."""

    @property
    def weight(self) -> float:
        """How much that counts when workers begin anew from their mean."""

    def begin(self, view: int, members: tuple[int, ...], values: Floats | None) -> None:
        """Go on with these members, from these parameters or from the start."""

    def trained(self, event: Trained) -> None:
        """Take in what a burst has made of them."""

    def alone(self) -> None:
        """Take that in for good: nobody is going to be heard in this round."""

    def targets(self, clock: int) -> Iterable[int]:
        """To whom to send in a round."""

    def sources(self, clock: int) -> Iterable[int]:
        """Of whom to hear in a round."""

    def message(self, clock: int) -> GossipPush:
        """What to send."""

    def mix(self, clock: int, got: Mapping[int, GossipPush]) -> None:
        """Take in what came from all of them."""


class MixingPlan:
    """Who sends to whom in a round of a view and with which weights, worked out once for all workers of a process."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._view = 0
        self._rounds: dict[tuple[int, int], tuple[Links, Weights]] = {}
        self._links: dict[tuple[tuple[int, ...], int], Links] = {}

    def at(self, view: int, members: tuple[int, ...], clock: int) -> tuple[Links, Weights]:
        """Links and weights of a round."""
        key = view, clock % self.topology.cycle(len(members))
        found = self._rounds.get(key)
        if found is None:
            found = self.topology.links(members, key[1]), mixing(self.topology, members, key[1])
            if view > self._view:
                self._view, self._rounds = view, {}
            self._rounds[key] = found
        return found

    def near(self, me: int, members: tuple[int, ...], clock: int) -> list[int]:
        """The neighbours of one, where each knows by itself who is there."""
        key = members, clock % self.topology.cycle(len(members))
        links = self._links.get(key)
        if links is None:
            links = self.topology.links(*key)
            self._links = {**self._links, key: links} if len(self._links) < MOST_LINKS else {key: links}
        return sorted(links[me])


class AverageExchange:
    """Gossip: everybody sends its parameters, and mixes those of its neighbours with its own.

    Where links are directed, weights need not add up to one for everybody. Then parameters are sent with a weight that
    is mixed as they are, and what counts is their quotient (push-sum; Assran et al. 2019, arXiv 1811.10792).
    What is lost to compression stays with its owner, so the mean of all is kept.
    """

    def __init__(self, me: int, config: RunConfig, plan: MixingPlan, compression: Compression | None = None) -> None:
        self.me, self.config, self.at, self.compression = me, config, plan.at, compression
        self.directed = plan.topology.directed
        self.view = 0
        self.members: tuple[int, ...] = (me,)
        self.values = self.mass = config.start  # the quotient, and what it is the quotient of
        self.weight = 1.0

    def begin(self, view: int, members: tuple[int, ...], values: Floats | None) -> None:
        """Go on with these members."""
        self.view, self.members = view, members
        self.values = self.mass = self.config.start if values is None else values
        self.weight = 1.0

    def trained(self, event: Trained) -> None:
        """What was learnt at the quotient goes to both."""
        self.mass = event.values if self.weight == 1.0 else frozen(self.mass + (event.values - self.values))
        self.values = event.values if self.weight == 1.0 else self._quotient()

    def alone(self) -> None:
        """It has been taken in."""

    def targets(self, clock: int) -> Iterable[int]:
        """Its neighbours."""
        return sorted(self.at(self.view, self.members, clock)[0][self.me])

    def sources(self, clock: int) -> Iterable[int]:
        """Those whose neighbour it is."""
        return [source for source in self.at(self.view, self.members, clock)[1][self.me] if source != self.me]

    def message(self, clock: int) -> GossipPush:
        """Its parameters and their weight."""
        return GossipPush(self._sent(), clock, self.view, self.weight)

    def mix(self, clock: int, got: Mapping[int, GossipPush]) -> None:
        """The weighted mean of all."""
        sent = self._sent()
        total = self.mass.astype(np.float64) - sent if self.compression else np.zeros(len(self.mass), np.float64)
        weight = 0.0
        for source, share in self.at(self.view, self.members, clock)[1][self.me].items():
            own = source == self.me
            vector = sent if own else _whole(got[source].vector)
            total += share * vector.astype(np.float64)
            weight += share * (self.weight if own else got[source].weight)
        self.mass = frozen(total.astype(self.mass.dtype))
        if self.directed:
            self.weight = weight
        self.values = self._quotient()

    def _sent(self) -> Floats:
        return self.mass if self.compression is None else _whole(self.compression(self.mass))

    def _quotient(self) -> Floats:
        return self.mass if self.weight == 1.0 else frozen((self.mass / self.weight).astype(self.mass.dtype))


class SumExchange:
    """Everybody sends its change to everybody, and all add the same: their mean or their sum, in order of number."""

    weight = 1.0

    def __init__(self, me: int, config: RunConfig, mean: bool = True, compression: Compression | None = None) -> None:
        self.me, self.config, self.mean, self.sender = me, config, mean, Sender(compression)
        self.view = 0
        self.members: tuple[int, ...] = (me,)
        self.values = config.start
        self.own = GossipPush(frozen(np.zeros_like(config.start)), 0, 0)

    def begin(self, view: int, members: tuple[int, ...], values: Floats | None) -> None:
        """Go on with these members."""
        self.view, self.members = view, members
        self.values = self.config.start if values is None else values

    def trained(self, event: Trained) -> None:
        """What it has changed, which it adds when all do."""
        self.own = GossipPush(self.sender(change(self.values, event.values)), 0, self.view, float(event.samples))

    def alone(self) -> None:
        """What it adds by itself is such that the mean of all who do is what they would have had together."""
        values = self.values.copy()
        add(values, self.own.vector, 1.0 if self.mean else len(self.members))
        self.values = frozen(values)

    def targets(self, clock: int) -> Iterable[int]:
        """All others."""
        return [member for member in self.members if member != self.me]

    sources = targets

    def message(self, clock: int) -> GossipPush:
        """Its change, and of how many samples."""
        return GossipPush(self.own.vector, clock, self.view, self.own.weight)

    def mix(self, clock: int, got: Mapping[int, GossipPush]) -> None:
        """Add all changes."""
        changes = [self.own if member == self.me else got[member] for member in self.members]
        samples = sum(each.weight for each in changes)
        values = self.values.copy()
        for each in changes:
            add(values, each.vector, each.weight / samples if self.mean else 1.0)
        self.values = frozen(values)


def _whole(vector: Vector) -> Floats:
    return vector.dense() if isinstance(vector, SparseDelta) else vector
