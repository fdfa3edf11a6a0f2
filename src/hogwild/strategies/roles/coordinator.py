"""Coordinator of a run by messages, for all strategies: shards, start, watchdog, evaluation, stop and result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hogwild.events import Record
from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import (
    Assign,
    Begin,
    Body,
    ParametersReply,
    ParametersRequest,
    Progress,
    Ready,
    StepScale,
    Stop,
    Stopped,
    TermsReply,
    TermsRequest,
    TimeSpent,
    ViewState,
    is_worker,
    number_of,
    server,
    worker,
)  # fmt: skip
from hogwild.messaging.node import NO_DELAYS
from hogwild.messaging.protocol import (
    Action,
    BeginSnapshot,
    Delivered,
    Emit,
    Evaluate,
    Evaluated,
    Event,
    Finish,
    Interrupted,
    PeerJoined,
    PeerLost,
    Resumed,
    Send,
    SetTimer,
    Started,
    TimerFired,
)
from hogwild.stopping import Stall, held_out_value, monitored_value, stop_reason
from hogwild.strategies.roles.membership import Membership

# Names of the timers for the watchdog, the time limit of the run, records between epochs, and reports of the time.
WATCH, TIME, RECORD, REPORT = "watch", "time", "record", "report"
TIME_REPORTS = 64  # Reports of the time to workers in a run that is limited in seconds.


class Coordinator:
    """Coordinator of a run by messages.

    The coordinator assigns shards to workers, starts and stops the run, evaluates each epoch and collects the result.
    The ``servers`` hold the parameters, or the workers do if there are no servers.

    With ``rounds`` workers end by themselves. Otherwise the coordinator stops them when all together have trained
    enough terms. Workers that hold the parameters agree on their membership through ``views``.
    """

    delays = NO_DELAYS

    def __init__(self, config: RunConfig, servers: int, rounds: bool, views: Membership | None = None) -> None:
        self.config, self.servers, self.rounds = config, [server(k) for k in range(servers)], rounds
        self.views = views
        self.holding: set[str] = set()  # Workers that hold parameters.
        self.known: Floats = config.start  # Latest parameters that the coordinator has collected.
        self.ready: set[str] = set()  # Nodes that have reported that they are ready.
        self.training: set[str] = set()  # Workers among them that have not ended; they share the terms that are left.
        self.running = {worker(k) for k in range(config.workers) if k not in config.late} | set(self.servers)
        self.begun = False
        self.drawn = dict.fromkeys(range(config.workers), 0)  # Terms drawn from each shard.
        self.owners: dict[str, tuple[int, ...]] = {}  # Shards of each worker, by name.
        self.terms = self.samples = self.updates = 0
        self.loss = 0.0
        self.clock = 0
        self.time_reports = 0  # Reports of the time so far.
        self.step = math.nan  # Step size of the last burst that was reported.
        self.stall = Stall()
        self.stalls = 0  # Stalls after which the step size was made smaller.
        self.events_since_check = 0  # Events since the watchdog timer last fired.
        self.reason = ""  # Reason for the end of the run; empty until then.
        self.stopped: dict[str, dict[str, Any]] = {}  # Counters of nodes that have ended, by name.
        self.number = 0  # Number of the last request for parameters.
        self.last = False  # Whether that request is the last of the run.
        self.replies: dict[str, ParametersReply] = {}
        self.asking: set[str] = set()  # Nodes whose parameters are outstanding.
        # Epoch, samples and summed loss at the last request for parameters.
        self.measured: tuple[int, int, float] = (0, 0, 0.0)
        self.timed = False  # Whether the seconds between two records are over.
        self.record: Record = {}  # Record of the evaluation that is running; empty if none is.
        # Lowest watched loss, its epoch, and its parameters if patience may need them.
        self.best: tuple[float, int, Floats | None] = (math.inf, 0, None)
        self.records: list[Record] = []
        self.finished = False

    @property
    def epoch(self) -> int:
        """The number of completed epochs."""
        return self.terms // max(1, self.config.epoch)

    def react(self, event: Event) -> Iterable[Action]:
        """React to an event with actions."""
        if self.finished:
            return
        self.events_since_check += not isinstance(event, TimerFired)
        if isinstance(event, Started):
            yield SetTimer(WATCH, self.config.silence)
            yield from self._set_record_timer()
            if self.config.seconds is not None:
                yield SetTimer(TIME, self.config.seconds)
                yield SetTimer(REPORT, self.config.seconds / TIME_REPORTS)
        elif isinstance(event, Resumed):
            yield SetTimer(WATCH, self.config.silence)
            yield from self._set_record_timer()
            if self.config.seconds is not None:
                yield SetTimer(TIME, max(0.0, self.config.seconds - event.seconds))
                yield SetTimer(REPORT, self.config.seconds / TIME_REPORTS)
        elif isinstance(event, Delivered):
            yield from self._delivered(event.sender, event.body)
        elif isinstance(event, PeerLost):
            yield from self._lost(event.peer)
        elif isinstance(event, PeerJoined):
            yield from self._joined(event.peer)
        elif isinstance(event, Evaluated):
            yield from self._measured(event)
        elif isinstance(event, TimerFired) and event.name == TIME:
            yield from self._stop("seconds")
        elif isinstance(event, TimerFired) and event.name == REPORT:
            yield from self._report_time()
        elif isinstance(event, TimerFired) and event.name == RECORD:
            self.timed = self.begun
            yield from self._set_record_timer()
            yield from self._ask_if_due()
        elif isinstance(event, Interrupted):
            yield from self._interrupted()
        elif isinstance(event, TimerFired) and event.name == WATCH:
            yield from self._watch()

    def _report_time(self) -> Iterator[Action]:
        """Tell the workers which share of the time is spent; they have no clock of the run."""
        assert self.config.seconds is not None
        self.time_reports += 1
        for name in self._workers(self.ready):
            if name not in self.stopped:
                yield Send(name, TimeSpent(self.time_reports / TIME_REPORTS))
        if self.time_reports < TIME_REPORTS:
            yield SetTimer(REPORT, self.config.seconds / TIME_REPORTS)

    def _set_record_timer(self) -> Iterator[Action]:
        if self.config.every.seconds is not None:
            yield SetTimer(RECORD, self.config.every.seconds)

    def _delivered(self, sender: str, body: Body) -> Iterator[Action]:
        if isinstance(body, Ready):
            yield from self._is_ready(sender)
        elif isinstance(body, Progress):
            yield from self._progress(body)
        elif isinstance(body, TermsRequest):
            if not self.reason:  # Otherwise the worker gets a Stop.
                yield Send(sender, TermsReply(self.terms, max(1, len(self.training))))
        elif isinstance(body, ParametersReply):
            yield from self._replied(sender, body)
        elif isinstance(body, ViewState) and self.views is not None:
            if self.views.receive(sender, body) and not self.reason:
                yield from self._go_on(self.views)
        elif isinstance(body, Stopped):
            self.stopped[sender] = {**self.stopped.get(sender, {}), **body.counts}
            self.training.discard(sender)
            yield from self._ask_last()

    # Membership.

    def _is_ready(self, name: str) -> Iterator[Action]:
        self.ready.add(name)
        self.running.add(name)
        self.stopped.pop(name, None)  # The report of an earlier incarnation is void.
        if is_worker(name):
            self.training.add(name)
        if not self.begun:
            if self.running <= self.ready and any(is_worker(name) for name in self.running):
                yield from self._begin()
        elif name in self.servers:
            yield Send(name, Begin((), 0, self.terms, self._workers(self.ready)))
        elif self.reason:
            yield Send(name, Stop())
        else:
            yield from self._deal(newcomer=name)
            yield from self._send_scale(name)

    def _workers(self, who: set[str] | None = None) -> tuple[str, ...]:
        who = self.running if who is None else who
        return tuple(sorted((name for name in who if is_worker(name)), key=number_of))

    def _begin(self) -> Iterator[Action]:
        self.begun = True
        yield Emit("ready", {"workers": len(self._workers()), "servers": len(self.servers)})
        for name in self.servers:
            yield Send(name, Begin((), 0, 0, self._workers()))
        yield from self._deal()
        self.holding = set(self._workers())
        if self.views is not None:
            self.views.begin(self._workers())
            yield Emit("topology", self.views.describe())
        # The run was stopped before it began, and workers that started later have got no Stop.
        if self.reason:
            for name in self._workers():
                if name not in self.stopped:
                    yield Send(name, Stop())
        yield from self._ask_last()

    def _deal(self, newcomer: str = "") -> Iterator[Action]:
        """Send each worker its shards, if they have changed.

        A worker that is running but not ready gets its shards when it reports that it is ready.
        """
        names = self._workers(self.ready)
        if self.views is not None and self.owners:
            yield from self.views.form(names)
            return
        before = self.owners
        self._share(names)
        for name, shards in self.owners.items():
            known = self._drawn_by(name)
            if name == newcomer:
                yield Send(name, Begin(known, -1, self.terms, names))
            elif name not in before:
                yield Send(name, Begin(known, 0, self.terms, names))
            elif before[name] != shards and name not in self.stopped:
                yield Send(name, Assign(known))

    def _share(self, names: tuple[str, ...]) -> None:
        """Assign each shard to its own worker, and the shards of absent workers to the others in turn."""
        owners: dict[str, list[int]] = {name: [] for name in names}
        for shard in self.drawn:
            own = worker(shard)
            owners[own if own in owners else names[shard % len(names)]].append(shard)
        self.owners = {name: tuple(shards) for name, shards in owners.items()}

    def _drawn_by(self, name: str) -> tuple[tuple[int, int], ...]:
        return tuple((shard, self.drawn[shard]) for shard in self.owners[name])

    def _go_on(self, views: Membership) -> Iterator[Action]:
        """Begin a membership view after all of its members have reported their state."""
        clock, progress, self.known = views.agreed() or (self.clock, self.terms, self.known)
        self._share(views.members)
        for name in views.members:
            yield Send(name, Begin(self._drawn_by(name), clock, progress, views.members, views.number, self.known))
        self.holding |= set(views.members)
        yield Emit("topology", views.describe())

    def _lost(self, name: str) -> Iterator[Action]:
        if name not in self.running:
            return
        self.running.discard(name)
        self.ready.discard(name)
        self.training.discard(name)
        self.holding.discard(name)
        yield Emit("lost", {"node": name})
        if not self.begun:
            if self.running <= self.ready and self._workers():
                yield from self._begin()
            return
        if name not in self.servers:  # Servers restart, so their answers stay outstanding.
            self.asking.discard(name)
        if self.views is None:
            self.owners.pop(name, None)
        if self._workers(self.ready) and name not in self.servers and not self.reason:
            yield from self._deal()
        yield from self._ask_last()
        yield from self._all_replied()

    def _joined(self, name: str) -> Iterator[Action]:
        """Record that a node has started. The node itself reports when it is ready."""
        self.running.add(name)
        yield Emit("joined", {"node": name})
        if name in self.asking:
            yield Send(name, ParametersRequest(self.number, self.last))

    def _watch(self) -> Iterator[Action]:
        if self.events_since_check == 0:
            missing = (
                sorted(self.running - self.ready) if not self.begun else sorted(self.asking) or list(self._workers())
            )
            who = ", ".join(missing[:5]) or "any worker"
            yield from self._finish(None, f"nothing was heard of {who} for {self.config.silence:g} s")
            return
        self.events_since_check = 0
        yield SetTimer(WATCH, self.config.silence)

    # Progress and evaluation.

    def _progress(self, body: Progress) -> Iterator[Action]:
        self.drawn[body.shard] += body.terms
        self.terms += body.terms
        self.samples += body.samples
        self.loss += body.loss
        self.clock = max(self.clock, body.clock)
        self.step = body.step
        if self._has_diverged(body.loss / max(1, body.samples)):
            yield from self._finish(None, "diverged")
            return
        yield Emit("progress", {"epoch": self.epoch, "updates": self.samples, "terms": self.terms})
        if self._has_enough and not self.rounds:
            yield from self._stop("epochs")
        yield from self._ask_if_due()

    @property
    def _has_enough(self) -> bool:
        return self.config.goal is not None and self.terms >= self.config.goal

    def _ask_if_due(self) -> Iterator[Action]:
        if self._record_is_due() and not self.asking and not self.reason and not self.record:
            yield from self._ask()

    def _stop(self, reason: str) -> Iterator[Action]:
        if self.reason:
            return
        self.reason = reason
        for name in self._workers():
            if name not in self.stopped:
                yield Send(name, Stop())
        yield from self._ask_last()

    def _interrupted(self) -> Iterator[Action]:
        if self.begun:
            yield from self._stop("interrupted")
        else:
            yield from self._finish(None, "interrupted")

    def _holders(self) -> list[str]:
        return self.servers or [name for name in self._workers() if name in self.holding]

    def _ask(self, last: bool = False) -> Iterator[Action]:
        """Request the current parameters of all nodes that hold them."""
        self.number += 1
        self.last, self.replies, self.asking = last, {}, set(self._holders())
        samples, loss = self.samples, self.loss
        _, before, loss_before = self.measured
        if samples > before:
            met = (loss - loss_before) / (samples - before)
        else:  # no sample since the record before
            met = self.records[-1]["met"] if self.records else math.nan
        self.record = {
            "epoch": self.epoch, "updates": samples, "met": met, "clock": self.clock, "step": self.step,
        }  # fmt: skip
        self.measured, self.timed = (self.epoch, samples, loss), False
        for name in sorted(self.asking):
            yield Send(name, ParametersRequest(self.number, last))
        yield from self._all_replied()  # No node may be left that holds parameters.

    def _ask_last(self) -> Iterator[Action]:
        """Request the final parameters, once all workers have ended."""
        if self.last or self.record or not self.begun:
            return
        if not all(name in self.stopped for name in self.running if is_worker(name)):
            return
        if not self._workers(set(self.stopped)) and not (self.servers and self.reason):
            # All workers have crashed with work left, and may restart.
            return
        self.reason = self.reason or "epochs"
        yield from self._ask(last=True)

    def _replied(self, sender: str, body: ParametersReply) -> Iterator[Action]:
        if body.number == self.number and sender in self.asking:
            self.replies[sender] = body
            self.asking.discard(sender)
            yield from self._all_replied()

    def _all_replied(self) -> Iterator[Action]:
        if self.asking or not self.record or "consensus" in self.record:
            return
        values, consensus = self._together() if self.replies else (self.known, 0.0)
        self.known = values
        self.record["consensus"] = consensus
        self.record["values"] = values
        yield Evaluate(self.number, values, exactly=self.last)

    def _together(self) -> tuple[Floats, float]:
        """Return the parameters, and the distance between their replicas.

        The distance is the root mean square of the distances of the replicas from their mean, divided by the norm of
        the mean.
        """
        replies = sorted(self.replies.values(), key=lambda answer: answer.start)
        if self.servers:
            pieces = [answer.values for answer in replies]
            return (pieces[0] if len(pieces) == 1 else frozen(np.concatenate(pieces))), 0.0
        mean = np.mean([answer.values for answer in replies], axis=0, dtype=np.float64)
        apart = math.sqrt(float(np.mean([np.square(answer.values - mean).sum() for answer in replies])))
        size = math.sqrt(float(np.square(mean).sum()))
        return frozen(mean.astype(self.config.start.dtype)), apart / size if size else apart

    def _measured(self, event: Evaluated) -> Iterator[Action]:
        record, self.record = self.record, {}
        values = record.pop("values")
        record |= event.figures
        if self._has_diverged(record["loss"]) or not all(map(math.isfinite, event.figures.values())):
            yield from self._finish(None, "diverged")
            return
        last_record = self.records[-1] if self.records else {"epoch": 0, "updates": -1}
        if record["updates"] == last_record["updates"] and event.figures.items() <= last_record.items():
            record = last_record  # No update since then, and nothing else has changed the parameters.
        else:
            self.records.append(record)
            yield Emit("epoch", record, values)
        if record["epoch"] > last_record["epoch"]:
            yield from self._watch_for_stalls(record)
        held_out = "test_loss" in record
        watched: float = held_out_value(record, self.config.budget) if held_out else record.get("loss", math.inf)
        if watched < self.best[0]:
            self.best = watched, record["epoch"], values if self.config.budget.patience else None
        if self.last:
            if self.reason == "epochs":
                self.reason = self._stop_reason(record) or self.reason
            yield from self._end(values, record)
        elif reason := self._stop_reason(record):
            yield from self._stop(reason)
        elif self._record_is_due() and not self.reason:
            yield from self._ask()
        if not self.last:
            if self.config.saves and not self.reason:
                yield BeginSnapshot()
            yield from self._ask_last()

    def _stop_reason(self, record: Record) -> str:
        return stop_reason(
            self.config.budget, self.records, held_out="test_loss" in record, best_epoch=self.best[1],
            stalled_epochs=self.stall.epochs,
        )  # fmt: skip

    def _watch_for_stalls(self, record: Record) -> Iterator[Action]:
        """Count epochs without an improvement; after enough of them, send workers the next smaller step size."""
        budget = self.config.budget
        value = monitored_value(record, budget)
        if budget.tolerance is None or value is None:
            return
        self.stall = self.stall.after(value, budget.tolerance)
        if self.stall.epochs >= budget.stall_epochs and self.stalls < len(self.config.stall_scales):
            self.stall = replace(self.stall, epochs=0)
            self.stalls += 1
            for name in self._workers():
                yield from self._send_scale(name)

    def _send_scale(self, name: str) -> Iterator[Action]:
        if self.stalls:
            yield Send(name, StepScale(self.config.stall_scales[self.stalls - 1]))

    def _has_diverged(self, loss: float) -> bool:
        return not (math.isfinite(loss) and loss <= self.config.loss_limit)

    def _record_is_due(self) -> bool:
        """Return whether the last record is one epoch old, or as many updates or seconds as the user asked for.

        The record of the last epoch is made when all workers have ended.
        """
        if self._has_enough:
            return False
        every = self.config.every.updates
        enough = every is not None and self.samples >= self.measured[1] + every
        return self.epoch > self.measured[0] or self.timed or enough

    def _end(self, values: Floats, record: dict[str, Any]) -> Iterator[Action]:
        best = self.best[2]
        if self.config.budget.patience and best is not None:
            values = best
            record = next(each for each in self.records if each["epoch"] == self.best[1])
        yield from self._finish(values, self.reason, record)

    def _finish(self, values: Floats | None, reason: str, record: dict[str, Any] | None = None) -> Iterator[Action]:
        self.finished = True
        yield Finish(values, reason, {"record": record or {}, "stopped": self.stopped})
