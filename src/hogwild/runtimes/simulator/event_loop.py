"""Event loop of the simulator: a priority queue of events in simulated time, and the execution of actions."""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.delays import Always, named
from hogwild.messaging.job import LocalTrainer, MessageJob, Outcome, Traffic
from hogwild.messaging.messages import COORDINATOR, HEADER, Ack, Envelope, number_of, worker
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
from hogwild.runtimes.messaging.faults import Crash, planned
from hogwild.runtimes.messaging.snapshot_collector import (
    SnapshotCollector,
    incarnations_of,
    membership_events,
    restore_node,
    snapshotting,
    with_trainer_state,
)
from hogwild.runtimes.simulator.memory_accounting import held_bytes

if TYPE_CHECKING:
    from hogwild.runtimes.simulator import Simulator

RESEND = 4.0  # retransmission timeout, as a multiple of the longest expected round trip
LOOK = 256  # events between two checks for Ctrl-C


@dataclass(frozen=True, slots=True, eq=False)
class _Over:
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
        self._numbers = {name: number_of(name) if name.startswith("worker") else -1 for name in job.roles}
        self.lives: dict[str, int] = {}  # incarnations of the running nodes
        self.births: dict[str, int] = defaultdict(int)  # number of incarnations of each node so far
        self.people: dict[str, Node | SnapshottingNode] = {}  # running nodes
        self.kept: dict[str, Any] = {}  # state that each node has persisted for its next incarnation
        self._learners: dict[str, LocalTrainer] = {}
        self._bursts: dict[str, int] = defaultdict(int)
        self._sent: dict[str, int] = defaultdict(int)
        self._uplink: dict[str, float] = defaultdict(float)  # time from which each sender's uplink is free
        self.traffic: dict[str, Traffic] = defaultdict(Traffic)
        self.busy: dict[str, float] = defaultdict(float)  # seconds of the bursts of each worker
        self.alive: dict[str, float] = defaultdict(float)  # seconds that each node has run
        self._since: dict[str, float] = {}  # time of the last start of each node
        self.events = self.crashes = 0
        self.memory = self.apart = 0  # maximal bytes of arrays: with shared arrays counted once, and once per holder
        self._gathering = SnapshotCollector()
        self.outcome: Outcome | None = None
        self._playback = None if runtime.trace is None else TraceReplay(runtime.trace)
        self._handles = self._playback is not None or runtime.handling_time != Always(0.0)
        self._handled: dict[str, int] = defaultdict(int)
        self._queues: dict[tuple[str, int], deque[Event]] = {}  # unhandled events of each busy node
        self._patience = self._resend_after()

    def play(self) -> Outcome:
        """Run until a node finishes the run, or until the queue of events is empty; return the outcome."""
        late = {worker(number): at for number, at in self.runtime.join_times.items()}
        if self.job.resumed is None:
            self._open(late)
        else:
            self._reopen(self.job.resumed, late)
        self._plan_faults()
        told = False  # whether the coordinator was sent the interrupt
        while self._queue and self.outcome is None:
            self._next()
            if self.events % LOOK == 0 and not told and self.job.interrupted():
                told = True
                self._at(self.now, COORDINATOR, self.lives[COORDINATOR], Interrupted())
        if self.outcome is None:
            self._end(None, "nobody had anything left to do", {})
        assert self.outcome is not None
        return self.outcome

    def _open(self, late: dict[str, float]) -> None:
        for name in self.job.roles:
            if name not in late:
                self.lives[name] = 0
        for name in list(self.lives):
            self._start(name, first=True)
        for name, at in late.items():
            self._at(at, "", 0, ("start", name))

    def _reopen(self, cut: dict[str, Any], late: dict[str, float]) -> None:
        """Resume from a snapshot. A node that is not part of the snapshot joins now, or at its join time."""
        self.now = cut["seconds"]
        self.births.update(cut["births"])
        self.lives = incarnations_of(cut)
        for name, life in self.lives.items():
            self._make(name)
            restore_node(self.people[name], self._learners.get(name), cut["people"][name])
            self._at(self.now, name, life, Resumed(self.now))
        for change in membership_events(cut):
            for peer in sorted(set(self.lives) - {change.peer}):
                self._at(self.now, peer, self.lives[peer], change)
        for name in self.job.roles:
            if name not in self.lives:
                self._at(max(self.now, late.get(name, 0.0)), "", 0, ("start", name))

    def _next(self) -> None:
        self.now, _, name, life, event = heapq.heappop(self._queue)
        if not name:
            self._happen(event)
        elif self.lives.get(name) == life:
            if self._handles:
                self._handle(name, life, event)
            else:
                self._react(name, event)

    def _react(self, name: str, event: Event) -> None:
        self.events += 1
        for action in self.people[name].react(event):
            self._carry_out(name, action)

    def _handle(self, name: str, life: int, event: Any) -> None:
        """Handle the events of a node one after the other; an event for a busy node waits in the node's queue."""
        queue = self._queues.get((name, life))
        if isinstance(event, _Over):
            assert queue is not None
            self._react(name, event.event)
            if queue:
                self._begin(name, life, queue.popleft())
            else:
                del self._queues[name, life]
        elif isinstance(event, Received) and isinstance(event.envelope.body, Ack):
            self._react(name, event)  # acknowledgements take no simulated time and wait for no other event
        elif queue is not None:
            queue.append(event)
        else:
            self._queues[name, life] = deque()
            self._begin(name, life, event)

    def _begin(self, name: str, life: int, event: Event) -> None:
        """Schedule the end of a node's reaction to an event."""
        if self._playback is not None:
            seconds = self._playback.handling(name, _kind(event))
        else:
            number, count = self._numbers[name], self._handled[name]
            seconds = self._handling.draw(self._compute, number, count)
            self._handled[name] += 1
        self._at(self.now + seconds, name, life, _Over(event))

    def _at(self, when: float, name: str, life: int, event: Any) -> None:
        """Schedule an event for one incarnation of a node, or for the event loop itself if ``name`` is empty."""
        self._count += 1
        heapq.heappush(self._queue, (when, self._count, name, life, event))

    # Execution of actions

    def _carry_out(self, name: str, action: Action) -> None:
        if isinstance(action, Transmit):
            self._send(action.envelope)
        elif isinstance(action, Train):
            self._train(name, action)
        elif isinstance(action, SetTimer):
            self._at(self.now + action.after, name, self.lives[name], TimerFired(action.name))
        elif isinstance(action, Persist):
            self.kept[name] = action.what
        elif isinstance(action, Evaluate):
            figures = self.job.measure(action.values)
            self._at(self.now, name, self.lives[name], Evaluated(action.number, figures))
        elif isinstance(action, Emit):
            self._tell(action)
        elif isinstance(action, SnapshotPart):
            self._save(name, action)
        elif isinstance(action, Finish):
            self._end(action.values, action.reason, action.figures)

    def _tell(self, action: Emit) -> None:
        if action.event == "epoch":
            memory, apart = held_bytes(self.people.values())
            self.memory, self.apart = max(self.memory, memory), max(self.apart, apart)
            sent = self.traffic.values()
            action.what.update(
                seconds=self.now, messages=sum(each.messages for each in sent), bytes=sum(each.bytes for each in sent)
            )
        self.job.tell(action.event, seconds=self.now, **{k: v for k, v in action.what.items() if k != "seconds"})

    def _save(self, name: str, action: SnapshotPart) -> None:
        save = with_trainer_state(action, self._learners.get(name))
        cut = self._gathering.add(name, save, self.births, set(self.lives), self.now)
        if cut is not None and self.job.save is not None:
            self.job.save(cut)

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
        free = self._uplink[sender]
        leaves = (self.now if self.now > free else free) + size / link.bandwidth
        self._uplink[sender] = leaves
        if self._playback is not None:
            arrivals, leaves = [self._playback.way(envelope.to, kind)], self.now
        else:
            arrivals = link.arrivals(self._links, self._numbers[sender], count)
        traffic.lost += not arrivals
        to = envelope.to
        life = self.lives.get(to)
        if life is not None:
            for after in arrivals:
                self._at(leaves + after, to, life, Received(envelope))

    def _train(self, name: str, train: Train) -> None:
        """Compute a burst now, and schedule its result for the burst's simulated end.

        The result depends on the parameters at the start of the burst, so it must be computed at the start.
        """
        number = self._numbers[name]
        if self._playback is not None:
            seconds = self._playback.burst(name, train.terms)
        else:
            each = self._update.draw(self._compute, number, self._bursts[name])
            seconds = train.terms * each * self.runtime.slowdown.get(number, 1.0) / self.job.cores
        self._bursts[name] += 1
        self.busy[name] += seconds
        trained = self._learners[name].burst(train)
        self._at(self.now + seconds, name, self.lives[name], trained)

    # Start and crash of nodes

    def _happen(self, event: tuple[str, Any]) -> None:
        what, detail = event
        if what == "start" and detail not in self.lives:
            self.lives[detail] = self.births[detail]
            self._start(detail)
        elif what == "crash":
            self._crash(detail)

    def _start(self, name: str, first: bool = False) -> None:
        life = self.lives[name]
        self.births[name] = life + 1
        self._gathering.disturb()
        self._make(name)
        others = set(self.lives) - {name}
        kept: Event = Started(self.kept.get(name))
        self._at(self.now, name, life, kept)
        if not first:
            for peer in sorted(others):
                self._at(self.now, peer, self.lives[peer], PeerJoined(name, life))

    def _make(self, name: str) -> None:
        """Create the node, the reliable channel and the trainer of a new incarnation."""
        others = {peer: incarnation for peer, incarnation in self.lives.items() if peer != name}
        person = Node(self.job.roles[name](), ReliableChannel(name, self.lives[name], others, self._patience))
        self.people[name] = snapshotting(person, self.job)
        if name.startswith("worker"):
            self._learners[name] = self.job.learner(number_of(name))
        self._since[name] = self.now

    def _crash(self, fault: Crash) -> None:
        name = fault.who
        if name not in self.lives:
            return
        self.crashes += 1
        self._gathering.disturb()
        if name == COORDINATOR:
            self._end(None, "the coordinator crashed", {})
            return
        life = self.lives.pop(name)
        del self.people[name]
        self._learners.pop(name, None)
        self.alive[name] += self.now - self._since[name]
        for peer in sorted(self.lives):
            self._at(self.now + self.runtime.detection_delay, peer, self.lives[peer], PeerLost(name, life))
        if fault.back_after is not None:
            self._at(self.now + fault.back_after, "", 0, ("start", name))

    def _plan_faults(self) -> None:
        for fault in planned(self.runtime.faults, self.job.roles, self._faults):
            if fault.at >= self.now:  # a resumed run skips the crashes before its snapshot
                self._at(fault.at, "", 0, ("crash", fault))

    # Retransmission timeout and outcome

    def _resend_after(self) -> float:
        """Return the retransmission timeout, in seconds.

        The timeout exceeds every expected round trip. A needless retransmission costs handling time, for which other
        messages wait.
        """
        link, trial = self.runtime.link, np.random.default_rng(0)
        if self._playback is not None:
            longest, handling = self._playback.longest()
        else:
            longest = max(named(link.latency).draw(trial, 0, k) for k in range(32))
            handling = max(self._handling.draw(trial, 0, k) for k in range(32))
        # All nodes may send to the same node at once, which handles them in turn and answers over one uplink.
        queue = (handling + self.job.config.start.nbytes / link.bandwidth) * len(self.job.roles)
        return float(RESEND * 2 * (longest * (10 if link.reordering else 1) + queue) + 1e-3)

    def _end(self, values: Any, reason: str, figures: dict[str, Any]) -> None:
        for name in self.lives:
            self.alive[name] += self.now - self._since[name]
        for participant in self.people.values():
            self.traffic["all"].resent += participant.post.resent
        self.outcome = Outcome(
            values, reason, figures.get("record", {}), figures.get("halted", {}), self.now, dict(self.traffic),
            dict(self.busy),
            {name: seconds for name, seconds in self.alive.items() if name.startswith("worker")},
            {"events": self.events, "crashes": self.crashes, "memory": self.memory, "memory_apart": self.apart},
        )  # fmt: skip
