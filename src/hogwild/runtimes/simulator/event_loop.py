"""Event loop of the simulator: a priority queue of events in simulated time, and the execution of actions."""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.delays import Always, DelayStream, named
from hogwild.messaging.deltas import Floats
from hogwild.messaging.job import LocalTrainer, MessageJob, Outcome, Traffic
from hogwild.messaging.messages import COORDINATOR, HEADER, Ack, Envelope, is_worker, number_of, worker
from hogwild.messaging.node import Node
from hogwild.messaging.protocol import (
    Action,
    Emit,
    Evaluate,
    Evaluated,
    Event,
    Finish,
    Interrupted,
    PeerJoined,
    PeerLost,
    Persist,
    Received,
    Resumed,
    SetTimer,
    SnapshotPart,
    Started,
    TimerFired,
    Train,
    Transmit,
)
from hogwild.messaging.reliable_channel import ReliableChannel
from hogwild.messaging.snapshot import SnapshottingNode
from hogwild.messaging.trace import TraceReplay
from hogwild.runtimes.messaging.injected_faults import Crash, planned
from hogwild.runtimes.messaging.snapshot_collector import (
    SnapshotCollector,
    incarnations_of,
    membership_events,
    restore_node,
    snapshotting,
    with_trainer_state,
)
from hogwild.runtimes.simulator.memory_accounting import held_bytes
from hogwild.runtimes.simulator.retransmission import retransmission_timeout

if TYPE_CHECKING:
    from hogwild.runtimes.simulator import Simulator

CHECK_EVERY = 256  # events between two checks for Ctrl-C


@dataclass(frozen=True, slots=True, eq=False)
class _HandlingEnded:
    """End of the simulated time that a node needs to react to an event."""

    event: Event


def _kind(event: Event) -> str:
    return type(event.envelope.body if isinstance(event, Received) else event).__name__


class EventLoop:
    """Event loop of one simulated run. All times are simulated seconds."""

    def __init__(self, runtime: Simulator, job: MessageJob) -> None:
        self.runtime, self.job = runtime, job
        self.now = 0.0
        self._queue: list[tuple[float, int, str, int, Any]] = []
        self._count = 0
        self._update, self._handling = named(runtime.compute_time), named(runtime.handling_time)
        # Durations, links and crashes have separate streams of random numbers. So one more crash does not change the
        # random numbers of the other two.
        self._compute, self._links, self._faults = (np.random.default_rng([job.seed, kind]) for kind in (1, 2, 3))
        self._numbers = {name: number_of(name) if is_worker(name) else -1 for name in job.roles}
        self.incarnations: dict[str, int] = {}  # incarnations of the running nodes
        self.starts: dict[str, int] = defaultdict(int)  # number of starts of each node so far
        self.nodes: dict[str, Node | SnapshottingNode] = {}  # running nodes
        self.persisted: dict[str, Any] = {}  # state that each node has persisted for its next incarnation
        self._trainers: dict[str, LocalTrainer] = {}
        self._delays: dict[str, DelayStream] = {}  # delays of the updates of each running worker
        self._bursts: dict[str, int] = defaultdict(int)
        self._sent: dict[str, int] = defaultdict(int)
        self._uplink_free: dict[str, float] = defaultdict(float)  # time from which each sender's uplink is free
        self.traffic: dict[str, Traffic] = defaultdict(Traffic)
        self.busy: dict[str, float] = defaultdict(float)  # seconds of the bursts of each worker
        self.running_seconds: dict[str, float] = defaultdict(float)  # seconds that each node has run
        self._since: dict[str, float] = {}  # time of the last start of each node
        self.events = self.crashes = 0
        self.memory = 0  # maximal bytes of arrays, with shared arrays counted once
        self.memory_per_holder = 0  # maximal bytes of arrays, with shared arrays counted once per holder
        self._collector = SnapshotCollector()
        self._collected = 0.0  # time at which the last parameters to evaluate were there
        self.outcome: Outcome | None = None
        self._replay = None if runtime.trace is None else TraceReplay(runtime.trace)
        self._simulates_handling = self._replay is not None or runtime.handling_time != Always(0.0)
        self._handled: dict[str, int] = defaultdict(int)
        self._queues: dict[tuple[str, int], deque[Event]] = {}  # unhandled events of each busy node
        recorded = None if self._replay is None else self._replay.longest()
        self._resend_timeout = retransmission_timeout(runtime, job, recorded)

    def play(self) -> Outcome:
        """Run until a node finishes the run, or until the queue of events is empty; return the outcome."""
        join_times = {worker(number): at for number, at in self.runtime.join_times.items()}
        if self.job.resumed is None:
            self._start_all(join_times)
        else:
            self._resume(self.job.resumed, join_times)
        self._plan_faults()
        interrupt_sent = False  # whether the coordinator was sent the interrupt
        while self._queue and self.outcome is None:
            self._next()
            if self.events % CHECK_EVERY == 0 and not interrupt_sent and self.job.interrupted():
                interrupt_sent = True
                self._schedule(self.now, COORDINATOR, self.incarnations[COORDINATOR], Interrupted())
        if self.outcome is None:
            self._end(None, "no node had anything left to do", {})
        assert self.outcome is not None
        return self.outcome

    def _start_all(self, join_times: dict[str, float]) -> None:
        for name in self.job.roles:
            if name not in join_times:
                self.incarnations[name] = 0
        for name in list(self.incarnations):
            self._start(name, first=True)
        for name, at in join_times.items():
            self._schedule(at, "", 0, ("start", name))

    def _resume(self, snapshot: dict[str, Any], join_times: dict[str, float]) -> None:
        """Resume from a snapshot. A node that is not part of the snapshot joins now, or at its join time."""
        self.now = snapshot["seconds"]
        self.starts.update(snapshot["starts"])
        self.incarnations = incarnations_of(snapshot)
        for name, incarnation in self.incarnations.items():
            self._create_node(name)
            restore_node(self.nodes[name], self._trainers.get(name), snapshot["nodes"][name])
            self._schedule(self.now, name, incarnation, Resumed(self.now))
        for change in membership_events(snapshot):
            for peer in sorted(set(self.incarnations) - {change.peer}):
                self._schedule(self.now, peer, self.incarnations[peer], change)
        for name in self.job.roles:
            if name not in self.incarnations:
                self._schedule(max(self.now, join_times.get(name, 0.0)), "", 0, ("start", name))

    def _next(self) -> None:
        self.now, _, name, incarnation, event = heapq.heappop(self._queue)
        if not name:
            self._change_membership(event)
        elif self.incarnations.get(name) == incarnation:
            if self._simulates_handling:
                self._handle(name, incarnation, event)
            else:
                self._react(name, event)

    def _react(self, name: str, event: Event) -> None:
        self.events += 1
        for action in self.nodes[name].react(event):
            self._execute(name, action)

    def _handle(self, name: str, incarnation: int, event: Event | _HandlingEnded) -> None:
        """Handle the events of a node one after the other; an event for a busy node waits in the node's queue."""
        queue = self._queues.get((name, incarnation))
        if isinstance(event, _HandlingEnded):
            assert queue is not None
            self._react(name, event.event)
            if queue:
                self._begin(name, incarnation, queue.popleft())
            else:
                del self._queues[name, incarnation]
        elif isinstance(event, Received) and isinstance(event.envelope.body, Ack):
            self._react(name, event)  # acknowledgements take no simulated time and wait for no other event
        elif queue is not None:
            queue.append(event)
        else:
            self._queues[name, incarnation] = deque()
            self._begin(name, incarnation, event)

    def _begin(self, name: str, incarnation: int, event: Event) -> None:
        """Schedule the end of a node's reaction to an event."""
        if self._replay is not None:
            seconds = self._replay.handling(name, _kind(event))
        else:
            number, count = self._numbers[name], self._handled[name]
            seconds = self._handling.draw(self._compute, number, count)
            self._handled[name] += 1
        self._schedule(self.now + seconds, name, incarnation, _HandlingEnded(event))

    def _schedule(
        self, when: float, name: str, incarnation: int, event: Event | _HandlingEnded | tuple[str, object]
    ) -> None:
        """Schedule an event for one incarnation of a node, or for the event loop itself if ``name`` is empty."""
        self._count += 1
        heapq.heappush(self._queue, (when, self._count, name, incarnation, event))

    # Execution of actions

    def _execute(self, name: str, action: Action) -> None:
        if isinstance(action, Transmit):
            self._send(action.envelope)
        elif isinstance(action, Train):
            self._train(name, action)
        elif isinstance(action, SetTimer):
            self._schedule(self.now + action.after, name, self.incarnations[name], TimerFired(action.name))
        elif isinstance(action, Persist):
            self.persisted[name] = action.what
        elif isinstance(action, Evaluate):
            self._collected = self.now
            figures = self.job.measure(action.values, True)
            after = 0.0 if self._replay is None else self._replay.evaluation(name)
            self._schedule(self.now + after, name, self.incarnations[name], Evaluated(action.number, figures))
        elif isinstance(action, Emit):
            self._emit(action)
        elif isinstance(action, SnapshotPart):
            self._save(name, action)
        elif isinstance(action, Finish):
            self._end(action.values, action.reason, action.figures)

    def _emit(self, action: Emit) -> None:
        seconds = self.now
        if action.event == "epoch":
            seconds = self._collected
            memory, per_holder = held_bytes(self.nodes.values())
            self.memory, self.memory_per_holder = max(self.memory, memory), max(self.memory_per_holder, per_holder)
            sent = self.traffic.values()
            action.what.update(
                seconds=seconds, messages=sum(each.messages for each in sent), bytes=sum(each.bytes for each in sent)
            )
        what = {name: value for name, value in action.what.items() if name != "seconds"}
        self.job.emit(action.event, seconds=seconds, values=action.values, **what)

    def _save(self, name: str, action: SnapshotPart) -> None:
        part = with_trainer_state(action, self._trainers.get(name))
        snapshot = self._collector.add(name, part, self.starts, set(self.incarnations), self.now)
        if snapshot is not None and self.job.save is not None:
            self.job.save(snapshot)

    def _send(self, envelope: Envelope) -> None:
        sender, link = envelope.sender, self.runtime.link
        body = envelope.body
        kind = type(body).__name__
        traffic = self.traffic[kind]
        if isinstance(body, Ack):
            traffic.receipts += 1
            size = HEADER
        else:
            traffic.messages += 1
            size = envelope.nbytes
        traffic.bytes += size
        self._sent[sender] = count = self._sent[sender] + 1
        free = self._uplink_free[sender]
        leaves = (self.now if self.now > free else free) + size / link.bandwidth
        self._uplink_free[sender] = leaves
        if self._replay is not None:
            arrivals, leaves = [self._replay.way(envelope.to, kind)], self.now
        else:
            arrivals = link.arrivals(self._links, self._numbers[sender], count)
        traffic.lost += not arrivals
        to = envelope.to
        incarnation = self.incarnations.get(to)
        if incarnation is not None:
            for after in arrivals:
                self._schedule(leaves + after, to, incarnation, Received(envelope))

    def _train(self, name: str, train: Train) -> None:
        """Compute a burst now, and schedule its result for the burst's simulated end.

        The result depends on the parameters at the start of the burst, so it must be computed at the start.
        """
        number = self._numbers[name]
        if self._replay is not None:
            seconds = self._replay.burst(name, train.terms)
        else:
            each = self._update.draw(self._compute, number, self._bursts[name])
            seconds = train.terms * each / self.job.cores + self._delays[name].total(train.terms)
        self._bursts[name] += 1
        self.busy[name] += seconds
        trained = self._trainers[name].burst(train)
        self._schedule(self.now + seconds, name, self.incarnations[name], trained)

    # Start and crash of nodes

    def _change_membership(self, event: tuple[str, Any]) -> None:
        what, detail = event
        if what == "start" and detail not in self.incarnations:
            self.incarnations[detail] = self.starts[detail]
            self._start(detail)
        elif what == "crash":
            self._crash(detail)

    def _start(self, name: str, first: bool = False) -> None:
        incarnation = self.incarnations[name]
        self.starts[name] = incarnation + 1
        self._collector.discard()
        self._create_node(name)
        others = set(self.incarnations) - {name}
        started: Event = Started(self.persisted.get(name))
        self._schedule(self.now, name, incarnation, started)
        if not first:
            for peer in sorted(others):
                self._schedule(self.now, peer, self.incarnations[peer], PeerJoined(name, incarnation))

    def _create_node(self, name: str) -> None:
        """Create the node, the reliable channel and the trainer of a new incarnation."""
        others = {peer: incarnation for peer, incarnation in self.incarnations.items() if peer != name}
        channel = ReliableChannel(name, self.incarnations[name], others, self._resend_timeout, self.job.config.window)
        self.nodes[name] = snapshotting(Node(self.job.roles[name](), channel), self.job)
        if is_worker(name):
            number = number_of(name)
            self._trainers[name] = self.job.make_trainer(number)
            self._delays[name] = DelayStream(self.runtime.delay, self.job.seed, number, self.incarnations[name])
        self._since[name] = self.now

    def _crash(self, fault: Crash) -> None:
        name = fault.who
        if name not in self.incarnations:
            return
        self.crashes += 1
        self._collector.discard()
        if name == COORDINATOR:
            self._end(None, "the coordinator crashed", {})
            return
        incarnation = self.incarnations.pop(name)
        self.traffic["all"].resent += self.nodes.pop(name).channel.resent
        self._queues.pop((name, incarnation), None)
        self._trainers.pop(name, None)
        self._delays.pop(name, None)
        self.running_seconds[name] += self.now - self._since[name]
        detected = self.now + self.runtime.detection_delay
        for peer in sorted(self.incarnations):
            self._schedule(detected, peer, self.incarnations[peer], PeerLost(name, incarnation))
        if fault.back_after is not None:
            self._schedule(self.now + fault.back_after, "", 0, ("start", name))

    def _plan_faults(self) -> None:
        for fault in planned(self.runtime.faults, self.job.roles, self._faults):
            if fault.at >= self.now:  # a resumed run skips the crashes before its snapshot
                self._schedule(fault.at, "", 0, ("crash", fault))

    # Outcome

    def _end(self, values: Floats | None, reason: str, figures: dict[str, Any]) -> None:
        seconds = self.now if values is None else self._collected  # without the last evaluation
        for name in self.incarnations:
            self.running_seconds[name] += self.now - self._since[name]
        for node in self.nodes.values():
            self.traffic["all"].resent += node.channel.resent
        self.outcome = Outcome(
            values, reason, figures.get("record", {}), figures.get("stopped", {}), seconds, dict(self.traffic),
            dict(self.busy),
            {name: seconds for name, seconds in self.running_seconds.items() if is_worker(name)},
            {
                "events": self.events, "crashes": self.crashes, "memory": self.memory,
                "memory_apart": self.memory_per_holder,
            },
        )  # fmt: skip
