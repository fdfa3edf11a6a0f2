"""Parameter server: holds a part of the parameters, adds pushed deltas, and delays pulls to bound the staleness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from hogwild.messaging.deltas import Floats, add, checked, frozen, nbytes, plus, scaled
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import (
    COORDINATOR,
    Begin,
    Body,
    ChangesReply,
    JoinReply,
    JoinRequest,
    Leave,
    ParametersReply,
    ParametersRequest,
    Pull,
    PullChanges,
    PullReply,
    Push,
    Ready,
    Stopped,
    number_of,
)  # fmt: skip
from hogwild.messaging.protocol import Action, Delivered, Event, PeerJoined, PeerLost, Persist, Resumed, Send, Started
from hogwild.strategies.delay_correction import Correction, DelayAdaptive, Late
from hogwild.strategies.roles.change_log import ChangeLog
from hogwild.strategies.roles.controlled_staleness import ControlledStaleness
from hogwild.strategies.roles.outer_optimiser import OuterOptimiser, PlainOuter
from hogwild.strategies.roles.worker_progress import ClockVector

# Pushes of each worker between two persisted states, if they are small. After a crash all pushes since the state are
# sent again, and a worker may get parameters without those of others meanwhile.
RARELY = 8
LATE = DelayAdaptive()
FORMER = "former-"  # Prefix of the name of a worker in deltas of its earlier incarnation.


class ParameterServerRole:
    """Parameter server for the parameters from index ``start`` up to ``stop`` (Dean et al. 2012; Ho et al. 2013).

    Without a bound (``staleness=None``) the server adds each delta when it arrives. With ``staleness=0`` it waits for
    the deltas of one clock from all workers, and adds them together in the order of the workers. With ``staleness=s`` a
    worker at clock c gets parameters only when all other workers have pushed the deltas of all clocks before c - s. The
    server does not wait for workers that have crashed or left.

    With ``log`` the server also answers what has changed since a version, and adds deltas in place.

    With ``order`` the server adds deltas in a fixed order and answers pulls with old parameters, so that the staleness
    of every delta is the prescribed one.
    """

    def __init__(
        self, number: int, start: int, stop: int, config: RunConfig, *, staleness: int | None = None, mean: bool =
        False, correction: Correction | None = None, outer: OuterOptimiser | None = None, order: ControlledStaleness |
        None = None, log: ChangeLog | None = None,
    ) -> None:  # fmt: skip
        self.number, self.start, self.stop, self.config = number, start, stop, config
        self.staleness, self.mean, self.correction, self.order, self.log = staleness, mean, correction, order, log
        self.outer: OuterOptimiser = outer or PlainOuter()
        self.values: Floats = frozen(config.start[start:stop].copy())
        self.average: Floats | None = None  # Polyak average of the iterates.
        self.averaged = 0  # Iterates in the average.
        self.version = 0  # Deltas added so far.
        self.progress = 0  # Terms that the added deltas were computed from.
        self.clocks = ClockVector()
        # Deltas that wait for a complete clock, by clock (staleness=0 only).
        self.pending: dict[int, list[tuple[str, Push]]] = {}
        self.round = 0  # Clock whose deltas are added next (staleness=0 only).
        self.waiting: dict[str, int] = {}  # Clock of the pull that each waiting worker has sent.
        self.since: dict[str, int] = {}  # Version that a waiting worker has, if it pulls what others have changed.
        self.requests: list[ParametersRequest] = []  # Requests of the coordinator that are not answered yet.
        self.begun = False
        # Workers that have completed their terms. They still count in the step sizes of the others.
        self.ended = 0
        self.here: set[str] = set()  # Nodes that are running.
        self.left: set[str] = set()  # Workers whose Leave message has arrived.
        # Number of deltas by staleness, in deltas of other workers, for each worker.
        self.delays: dict[str, Counter[int]] = {}
        self.lags: Counter[int] = Counter()  # Number of pulls by lag, in clocks ahead of the slowest worker.
        # Parameters that each worker has pulled, by version, from those of its last push on; only for a correction.
        self.reads: dict[str, dict[int, Floats]] = {}
        self._unpersisted = 0  # Deltas received since the state was last persisted.
        self._unpersisted_bytes = 0  # Their size.
        self._answered_at = -1  # Slowest clock at the last check of all waiting workers.

    @property
    def parameters(self) -> slice:
        """The parameters in the part of this server. The other values are state of the update rule."""
        return self.config.parameters_between(self.start, self.stop)

    @property
    def clock(self) -> int:
        """The clock of the slowest worker."""
        return self.clocks.least

    @property
    def epoch(self) -> int:
        """The number of epochs that the added deltas make up."""
        return self.progress // max(1, self.config.epoch)

    def react(self, event: Event) -> Iterable[Action]:
        """React to an event with actions."""
        if isinstance(event, Started):
            self.here = set(event.here)
            if event.kept is not None:
                self._restore(event.kept)
            yield Send(COORDINATOR, Ready())
        elif isinstance(event, Delivered):
            yield from self._delivered(event.sender, event.body)
        elif isinstance(event, PeerLost):
            self.here.discard(event.peer)
            yield from self._remove(event.peer)
        elif isinstance(event, Resumed):
            yield from self._persist()
        elif isinstance(event, PeerJoined):
            self.here.add(event.peer)
            self.left.discard(event.peer)
            if event.peer == COORDINATOR:
                yield Send(COORDINATOR, Ready())

    def _delivered(self, sender: str, body: Body) -> Iterator[Action]:
        if isinstance(body, Push):
            yield from self._pushed(sender, body)
        elif isinstance(body, Pull):
            self.waiting[sender] = body.clock
            self.since.pop(sender, None)
            self.clocks.at_least(sender, body.clock)
            if self.order is not None:
                self.order.reserve(sender)
            yield from self._advance()
            if sender in self.waiting:
                yield from self._answer(sender)
        elif isinstance(body, PullChanges):
            self.waiting[sender], self.since[sender] = body.clock, body.version
            self.clocks.at_least(sender, body.clock)
            yield from self._advance()
            if sender in self.waiting:
                yield from self._answer(sender)
        elif isinstance(body, JoinRequest):
            self.clocks.at_least(sender, max(self.round, self.clocks.least))
            self._rename_pending(sender)
            # Without this, a restarted server would not wait for the worker until its next message.
            yield from self._persist()
            yield Send(sender, JoinReply(self.clocks.of(sender)))
        elif isinstance(body, Leave):
            self.ended += sender in self.clocks
            self.left.add(sender)
            yield from self._remove(sender)
        elif isinstance(body, Begin) and not self.begun:
            self.begun = True
            # The message may be old, and no event reports members that have left before it arrived. So only members
            # that are running are added.
            for name in body.members:
                if name in self.here and name not in self.left:
                    self.clocks.at_least(name, 0)
            yield from self._persist()
            yield from self._advance()
        elif isinstance(body, ParametersRequest):
            self.requests.append(body)
            yield from self._advance()

    def _remove(self, worker: str) -> Iterator[Action]:
        """Remove a worker that has crashed or left, and answer the workers that waited for it."""
        self.waiting.pop(worker, None)
        self.since.pop(worker, None)
        self.reads.pop(worker, None)
        if self.order is not None:
            self.order.release(worker)
        if self.clocks.without(worker):
            yield from self._advance()
        if self.log is not None and self._unpersisted:
            # A worker that has crashed cannot send its last pushes again.
            yield from self._persist()

    def _rename_pending(self, sender: str) -> None:
        """Rename deltas of an earlier incarnation of a worker, which the new one pulls as those of another."""
        if self.log is not None:
            for clock, pushes in self.pending.items():
                self.pending[clock] = [(FORMER + name if name == sender else name, push) for name, push in pushes]

    def _pushed(self, sender: str, push: Push) -> Iterator[Action]:
        checked(push.change, self.stop - self.start)
        if self.staleness == 0:
            # A list, because a delta of an earlier incarnation of the sender may already be in it.
            self.pending.setdefault(push.clock, []).append((sender, push))
        elif self.order is not None:
            # Before a crash the server has answered the pull of this delta, which was delivered again since.
            self.waiting.pop(sender, None)
            self.order.push(sender, push)
        elif self.log is not None:
            self._add_in_place([(sender, push)], self.log)
        else:
            self._add([(sender, push)])
        self.clocks.at_least(sender, push.clock + 1)
        self._unpersisted += 1
        yield from self._advance()
        # A state that is persisted is copied before the next change. So the changes in between are as large, or many.
        large = self.log is None or self._unpersisted_bytes >= self.values.nbytes
        if self._unpersisted >= max(1, len(self.clocks)) * (1 if large else RARELY):
            yield from self._persist()

    # Addition of deltas.

    def _advance(self) -> Iterator[Action]:
        """Add the deltas of complete clocks, and answer the pulls and requests that no longer have to wait."""
        if not self.begun:
            return
        while self.pending and (not self.clocks or self.clocks.least > min(self.pending)):
            self.round = min(self.pending)
            pushes = sorted(self.pending.pop(self.round), key=lambda item: number_of(item[0]))
            if self.log is None:
                self._add(pushes)
            else:
                self._add_in_place(pushes, self.log)
            self.round += 1
        if self.order is not None:
            self._add_in_order(self.order)
        # At the same slowest clock, no waiting worker can continue that waits for others.
        if self.clocks.least != self._answered_at or self.order is not None:
            self._answered_at = self.clocks.least
            for worker in list(self.waiting):
                yield from self._answer(worker)
        for request in [request for request in self.requests if not request.last or not self.clocks]:
            self.requests.remove(request)
            if request.last:
                yield Send(COORDINATOR, Stopped({"delays": self._delays(), "lags": dict(self.lags)}))
            yield Send(COORDINATOR, ParametersReply(request.number, self._best(), self.start, self.clocks.least))

    def _answer(self, worker: str) -> Iterator[Action]:
        """Send parameters to a worker, if the staleness bound allows it."""
        clock = self.waiting[worker]
        if self.order is not None:
            may_read = self.order.is_ready(worker, self.version)
        else:
            may_read = self.staleness is None or self.clocks.least >= clock - self.staleness
        # A worker that keeps its parameters may push before the server begins. It counts all pushes after its pull as
        # not contained in the reply, so the reply must not wait.
        if (self.begun or (self.log is not None and self.staleness is None)) and may_read:
            del self.waiting[worker]
            version = self.since.pop(worker, None)
            yield self._answered(worker, clock) if version is None else self._changed(worker, clock, version)

    def _answered(self, worker: str, clock: int) -> Action:
        if self.staleness is not None:
            self.lags[max(0, clock - self.clocks.least)] += 1
        values, version = self.values, self.version
        if self.order is not None:
            version = self.order.version(worker)
            values = self.order.versions[version]
        if self.correction is not None:
            self.reads.setdefault(worker, {})[version] = values
        return Send(worker, PullReply(frozen(values), clock, version, self.progress, self._members))

    def _changed(self, worker: str, clock: int, version: int) -> Action:
        """Answer what other workers have changed since a version, or with all parameters if that is not known."""
        assert self.log is not None
        known, change = self.log.since(version, self.version, worker)
        if not known:
            return self._answered(worker, clock)
        if self.staleness is not None:
            self.lags[max(0, clock - self.clocks.least)] += 1
        return Send(worker, ChangesReply(change, clock, self.version, self.progress, self._members))

    @property
    def _members(self) -> int:
        return self.ended + len(self.clocks) or 1 if self.begun else self.config.workers

    def _add_in_place(self, pushes: list[tuple[str, Push]], log: ChangeLog) -> None:
        """Add deltas to the parameters, which are copied first if another node has got them.

        A delta of a worker that was held up is scaled down. It may lead far beyond what others have reached meanwhile.
        """
        if not self.values.flags.writeable:
            self.values = self.values.copy()
        before = self.version
        for worker, push in pushes:
            delay = max(0, before - push.read - push.own)
            self.delays.setdefault(worker.removeprefix(FORMER), Counter())[delay] += 1
            factor = LATE.factor(delay, self.config.fresh * self._members)
            change = push.change if factor == 1.0 else scaled(push.change, factor)
            add(self.values, change)
            log.append(worker, change, None if factor == 1.0 else scaled(push.change, factor - 1.0))
            self.progress += push.terms
            self._unpersisted_bytes += nbytes(push.change)
        self.version += len(pushes)
        if self.config.begins_mean(self.progress):
            self._average()

    def _add(self, pushes: list[tuple[str, Push]]) -> None:
        """Add deltas of one or several workers at once.

        Each delta is added in full, or their mean is added. In a mean of one clock each delta has its number of samples
        as weight.
        """
        total = sum(push.samples for _, push in pushes)
        change = np.zeros(self.stop - self.start, self.values.dtype) if self.outer.accumulates else self.values
        for worker, push in pushes:
            delay = max(0, self.version - push.read - push.own)
            self.delays.setdefault(worker, Counter())[delay] += 1
            weight = 1.0
            if self.mean:
                weight = push.samples / total if self.staleness == 0 else 1 / max(1, len(self.clocks))
            vector = push.change
            if self.correction is not None:
                read = self._read(worker, push.read)
                vector = self.correction(
                    vector, Late(delay, self.config.workers, self.values, read, self.parameters, push.step)
                )
            if change is self.values:  # Other nodes may share this array, so it is not changed in place.
                change = plus(change, vector, weight)
            else:
                add(change, vector, weight)
            self.progress += push.terms
        self.version += len(pushes)
        self.values = frozen(self._outer_step(change) if self.outer.accumulates else change)
        if self.config.begins_mean(self.progress):
            self._average()

    def _add_in_order(self, order: ControlledStaleness) -> None:
        """Add the deltas whose turn it is; the update of a worker that has left changes nothing."""
        while self.version in order.arrived:
            arrived = order.arrived.pop(self.version)
            if arrived is None:
                self.version += 1
            else:
                self._add([arrived])
            order.record(self.version, self.values)

    def _read(self, worker: str, version: int) -> Floats | None:
        """Return the parameters of a version that a worker pulled; None after a crash of the server.

        A worker never pushes deltas of an older version again, so older versions are dropped.
        """
        reads = self.reads.get(worker, {})
        for older in [number for number in reads if number < version]:
            del reads[older]
        return reads.get(version)

    def _outer_step(self, change: Floats) -> Floats:
        """Return the values after an outer step of the parameters.

        The outer step extrapolates, which is right for parameters alone. The mean of the workers is taken of all other
        values: running means and variances, and the state of the update rule.
        """
        values = self.values + change
        values[self.parameters] = self.outer(self.values[self.parameters], change[self.parameters])
        return values.astype(self.values.dtype, copy=False)

    def _average(self) -> None:
        """Add the current parameters to the Polyak average of the iterates."""
        self.averaged += 1
        if self.average is None:
            self.average = self.values.astype(np.float64)
        else:
            self.average += (self.values - self.average) / self.averaged

    def _best(self) -> Floats:
        return frozen(self.values) if self.average is None else frozen(self.average.astype(self.values.dtype))

    def _delays(self) -> dict[str, dict[int, int]]:
        return {worker: dict(counts) for worker, counts in self.delays.items()}

    # Persistence across crashes.

    def _persist(self) -> Iterator[Action]:
        self._unpersisted = self._unpersisted_bytes = 0
        yield Persist({
            "values": frozen(self.values), "average": None if self.average is None else self.average.copy(),
            "averaged": self.averaged, "version": self.version, "progress": self.progress, "clocks": self.clocks.copy(),
            "pending": {clock: list(pushes) for clock, pushes in self.pending.items()}, "round": self.round,
            "delays": {worker: counts.copy() for worker, counts in self.delays.items()}, "lags": self.lags.copy(),
            "outer": self.outer.copy(), "begun": self.begun, "ended": self.ended,
            "order": None if self.order is None else self.order.copy(),
        })  # fmt: skip

    def _restore(self, persisted: dict[str, Any]) -> None:
        for name, value in persisted.items():
            setattr(self, name, value)
        self.clocks, self.outer = self.clocks.copy(), self.outer.copy()
        self.order = None if self.order is None else self.order.copy()
        for name in self.clocks.missing(self.here):
            self.clocks.without(name)
            if self.order is not None:
                self.order.release(name)
        self.pending = {clock: list(pushes) for clock, pushes in self.pending.items()}
        self.average = None if self.average is None else self.average.copy()
        self.delays = {worker: counts.copy() for worker, counts in self.delays.items()}
        self.lags = self.lags.copy()
