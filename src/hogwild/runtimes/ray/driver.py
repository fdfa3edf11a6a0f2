"""Driver of a run on a Ray cluster: starts all nodes, detects crashes by heartbeats, and restarts crashed nodes.

The driver runs in the program that requested the run. In this package a *node* is a worker, a server or the
coordinator. A *Ray node* is a member of the Ray cluster.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter, defaultdict
from types import ModuleType
from typing import TYPE_CHECKING

from hogwild.errors import WorkerError
from hogwild.messaging.job import MessageJob, Outcome, Traffic
from hogwild.messaging.messages import COORDINATOR, is_worker, worker
from hogwild.messaging.protocol import Finish, SnapshotPart
from hogwild.messaging.reliable_channel import is_durable
from hogwild.runtimes.messaging.actor import now
from hogwild.runtimes.messaging.snapshot_collector import SnapshotCollector, incarnations_of, membership_events
from hogwild.runtimes.ray.actor import Heartbeat, Peers, ResumeState
from hogwild.runtimes.ray.actor_context import PeerAddress
from hogwild.runtimes.ray.connection import put_job
from hogwild.runtimes.ray.failure_detector import FailureDetector
from hogwild.runtimes.ray.folder_locations import FolderLocations
from hogwild.runtimes.ray.node_stats import ClusterStats, Metrics
from hogwild.runtimes.ray.placement import ActorRecord, Placement

if TYPE_CHECKING:
    from hogwild.runtimes.ray import Ray

TICK = 0.05  # seconds between two checks for Ctrl-C, and between two heartbeat requests to the coordinator
REPORT_INTERVAL = 0.5  # seconds between two "cluster" events, which report the state of all nodes
CLOSING = 60.0  # seconds that a burst may continue after Ctrl-C
STANDBY_AFTER = 2.0  # seconds of a run after which standby processes start, so that nodes need not wait for their start
DATA_INTERVAL = 1.0  # seconds after which the data of a worker is looked for again, if no Ray node has it
LAST_HEARTBEATS = 3.0  # seconds that all nodes have for their last heartbeat, with their final counters
RUNS = itertools.count()  # numbers of the runs of this program


class RayDriver:
    """Driver of one run on a Ray cluster."""

    def __init__(self, ray: ModuleType, runtime: Ray, job: MessageJob) -> None:
        self.ray, self.runtime, self.job = ray, runtime, job
        cpus = runtime.cpus_per_worker * job.cores
        locations = FolderLocations(ray, job.folders)
        self.placement = Placement(ray, cpus, locations, *put_job(ray, job), runtime.delay, runtime.link)
        self.records: dict[str, ActorRecord] = {}  # running and starting incarnations, by node
        self.crashed: list[ActorRecord] = []  # crashed incarnations, whose counters still belong to the run
        self.starts: Counter[str] = Counter()
        self.crashes: Counter[str] = Counter()
        self.running_seconds: dict[str, float] = defaultdict(float)
        self.started = False
        self._finish: tuple[Finish, float] | None = None
        self._detector = FailureDetector(runtime.heartbeat_timeout, runtime.startup_timeout)
        self._last_poll = now()
        self._collector = SnapshotCollector()
        self._without_data: set[str] = set()  # workers whose data no Ray node has at present
        self._has_standby = False  # whether standby processes were started
        self._last_ready = now()  # when a node last became ready before the common start
        self._stats, self._last_report = ClusterStats(), 0.0
        self._metrics = Metrics(f"{ray.get_runtime_context().get_job_id()}-{next(RUNS)}")
        self._snapshot = job.resumed
        if self._snapshot is not None:
            self.starts.update(self._snapshot["starts"] | incarnations_of(self._snapshot))
        join_times = {worker(number): at for number, at in runtime.join_times.items()}
        first = self._snapshot["nodes"] if self._snapshot is not None else job.roles.keys() - join_times.keys()
        self._start_later = {name: join_times.get(name, 0.0) for name in job.roles if name not in first}

    def play(self) -> Outcome:
        """Run until a node finishes the run or fails, then terminate all processes; return the outcome."""
        first = [name for name in self.job.roles if name not in self._start_later]
        self.placement.locations.check(first)
        try:
            for name in first:
                self._start(name)
            self._supervise()
            self._request_last_heartbeats()
        finally:
            self.placement.end_standby()
            for record in (*self.records.values(), *self.crashed):
                self.placement.end(record)
        return self._outcome()

    def _supervise(self) -> None:
        interrupted_at: float | None = None  # when the coordinator was sent the interrupt
        while self._finish is None:
            self._poll_heartbeats()
            self._detect_failures()
            self._admit()
            self._report()
            if interrupted_at is None and self.job.interrupted():
                interrupted_at = now()
                self.records[COORDINATOR].handle.interrupt.remote()
            if interrupted_at is not None and (not self.started or now() - interrupted_at > CLOSING):
                self._finish = Finish(None, "interrupted"), 0.0

    # Heartbeats

    def _poll_heartbeats(self) -> None:
        """Process the heartbeats that have arrived, and request those that are due.

        The call waits at most ``TICK`` seconds.
        """
        pending = {record.pending_call: record for record in self.records.values() if record.pending_call is not None}
        due = min((record.due for record in self.records.values() if record.pending_call is None), default=now() + TICK)
        rest = min(TICK, max(1e-3, due - now()))
        if not pending:
            time.sleep(rest)
        else:
            self.ray.wait(list(pending), timeout=rest)
            for answered in self.ray.wait(list(pending), num_returns=len(pending), timeout=0)[0]:
                self._process_answer(pending[answered], answered)
        pause = now() - self._last_poll
        self._last_poll = now()
        for record in list(self.records.values()):
            if self._detector.suspended(pause):
                record.last_answer += pause
            if record.pending_call is None and now() >= record.due:
                record.pending_call = record.handle.heartbeat.remote(self._longest_burst(), self._total_sent())

    def _process_answer(self, record: ActorRecord, answered: object) -> None:
        """Process the answer of an actor: a heartbeat, a location, or an error of Ray."""
        record.pending_call = None
        try:
            answer = self.ray.get(answered)
        except self.ray.exceptions.RayActorError as error:
            if getattr(error, "actor_init_failed", False):
                raise WorkerError(f"{record.name} could not be started: {_reason(error)}") from error
            if isinstance(error, self.ray.exceptions.ActorUnavailableError) and record.location is not None:
                # The actor is unreachable. Other actors on the same Ray node may be unreachable too.
                self.placement.suspects.add(record.location.node)
            self._on_crash(record, "its process ended")
            return
        except self.ray.exceptions.RayTaskError as error:
            raise WorkerError(f"{record.name} failed: {error}") from error
        except self.ray.exceptions.RayError as error:  # the answer, or the Ray process that held it, is lost
            if isinstance(error, self.ray.exceptions.ActorUnschedulableError) and is_worker(record.name):
                del self.records[record.name]  # the Ray node with its data has left the cluster
                self._wait_for_data(record.name)
                return
            self._on_crash(record, f"its answer was lost ({type(error).__name__})")
            return
        record.last_answer = now()
        record.due = now() + self._detector.interval(record, TICK)
        if isinstance(answer, Heartbeat):
            self._process_heartbeat(record, answer)
        else:
            record.location = answer
            self.placement.suspects.discard(answer.node)  # an actor on this Ray node has answered

    def _report(self) -> None:
        """Emit a "cluster" event with the state of all nodes, at most once in ``REPORT_INTERVAL`` seconds."""
        if now() < self._last_report + REPORT_INTERVAL:
            return
        self._last_report = now()
        timeout, names = self.runtime.heartbeat_timeout, self.job.roles
        rows = self._stats.rows(names, self.records, self.crashes, now(), timeout)
        self.job.emit("cluster", seconds=self._seconds(), nodes=rows)

    def _process_heartbeat(self, record: ActorRecord, heartbeat: Heartbeat) -> None:
        """Process a heartbeat: failure, readiness, events, parts of snapshots and the end of the run."""
        was_ready = record.ready
        self._record_heartbeat(record, heartbeat)
        if heartbeat.failure:
            raise WorkerError(heartbeat.failure.strip())
        if heartbeat.ready and not record.started and (self.started or not was_ready):
            self._admit_node(record)
        for event, seconds, what in heartbeat.emitted:
            self.job.emit(event, seconds=seconds, **{key: value for key, value in what.items() if key != "seconds"})
        for part in heartbeat.snapshot_parts:
            self._saved(record, part)
        self._finish = self._finish or heartbeat.finished

    def _record_heartbeat(self, record: ActorRecord, heartbeat: Heartbeat) -> None:
        """Record a heartbeat in the statistics and in the metrics of Ray."""
        record.heartbeat = heartbeat
        done = self._stats.add_heartbeat(record)
        if done is not None:
            self._metrics.record(record.name, done)

    def _saved(self, record: ActorRecord, part: SnapshotPart) -> None:
        running = {each.name for each in self.records.values() if each.started}
        snapshot = self._collector.add(record.name, part, self.starts, running, self._seconds())
        if snapshot is not None and self.job.save is not None:
            self.job.save(snapshot)

    def _longest_burst(self) -> float:
        return max(record.heartbeat.longest_burst for record in self.records.values())

    def _total_sent(self) -> tuple[int, int]:
        sent = self._traffic().values()
        return sum(each.messages for each in sent), sum(each.bytes for each in sent)

    # Start, admission and crash of nodes

    def _start(self, name: str) -> None:
        if self.placement.locations.nodes_for(name) == []:
            self._wait_for_data(name)
            return
        self._without_data.discard(name)
        incarnation = self.starts[name]
        self.starts[name] += 1
        self.records[name] = self.placement.start(name, incarnation)

    def _wait_for_data(self, name: str) -> None:
        """Start a worker when a Ray node has its data again; the others go on without it."""
        if not self.started:
            raise WorkerError(f"The machine with the data of {name} has left the cluster.")
        if name not in self._without_data:
            reason = "no machine of the cluster has its data"
            self.job.emit("unplaced", seconds=self._seconds(), node=name, reason=reason)
        self._without_data.add(name)
        self._start_later[name] = self._seconds() + DATA_INTERVAL

    def _start_standby(self) -> None:
        self._has_standby = True
        if any(is_durable(name) for name in self.job.roles):
            self.placement.start_standby(self.runtime.standby_servers)

    def _admit_node(self, record: ActorRecord) -> None:
        """Admit a node that is ready.

        Before the common start, ready nodes wait for each other. Later, a ready node joins the running nodes at once.
        """
        if not self.started:
            self._last_ready = now()
            return
        record.since = now()
        self._collector.discard()
        for other in self._others(record.name):
            other.handle.joined.remote(record.name, _address(record, other))
        persisted: object = None
        if is_durable(record.name):
            persisted = self.records[COORDINATOR].handle.stored_state.remote(record.name, record.incarnation)
            self._start_standby()  # the standby process that was there may have become this server
        record.handle.begin.remote(self._peers(record), persisted)
        self._emit_placed(record)

    def _admit(self) -> None:
        """Start the run once its nodes are ready, and start late workers when their join time has come."""
        if not self.started:
            missing = [record for record in self.records.values() if not record.ready]
            if not missing or self._can_start_without(missing):
                self._start_run(missing)
        for name, at in list(self._start_later.items()):
            if self.started and self._seconds() >= at:
                del self._start_later[name]
                self._start(name)
        began = self.records[COORDINATOR].since if COORDINATOR in self.records else None
        if not self._has_standby and began is not None and now() - began >= STANDBY_AFTER:
            self._start_standby()

    def _can_start_without(self, missing: list[ActorRecord]) -> bool:
        """Return whether the run can start without the missing nodes.

        The missing nodes must be workers for which Ray has started no process. The last ready node must have waited
        ``admission_timeout`` seconds. The cluster must be full, or ``startup_timeout`` must have passed. A run that
        resumes from a snapshot waits for all its nodes.
        """
        unplaced = all(record.location is None and is_worker(record.name) for record in missing)
        others = sum(record.ready and is_worker(record.name) for record in self.records.values())
        waited = now() - self._last_ready
        if not unplaced or not others or self._snapshot is not None or waited < self.runtime.admission_timeout:
            return False
        return self.placement.full(others) or now() - missing[0].requested > self.runtime.startup_timeout

    def _start_run(self, missing: list[ActorRecord]) -> None:
        """Start all ready nodes, from the beginning or from the snapshot that the run resumes.

        A node that is not part of the snapshot joins later as a new node. A missing node counts as crashed at the
        start, and also joins later as a new node.
        """
        self.started = True
        for record in self.records.values():
            record.since = now()
        for record in self.records.values():
            if record not in missing:
                record.handle.begin.remote(self._peers(record), None, self._resume_state(record.name))
                self._emit_placed(record)
        for record in missing:
            self._postpone(record)
            self._start_later[record.name] = 0.0

    def _postpone(self, record: ActorRecord) -> None:
        """Withdraw a worker for which the cluster has no room; the worker joins when a CPU is free."""
        del self.records[record.name]
        self.placement.end(record)
        for other in self._others(record.name):
            other.handle.lost.remote(record.name, record.incarnation)
        self.job.emit("unplaced", seconds=self._seconds(), node=record.name, reason=self.placement.capacity())

    def _resume_state(self, name: str) -> ResumeState | None:
        snapshot = self._snapshot
        if snapshot is None:
            return None
        return ResumeState(snapshot["seconds"], snapshot["nodes"][name], membership_events(snapshot))

    def _emit_placed(self, record: ActorRecord) -> None:
        assert record.location is not None
        node, process = record.location.node, record.location.process
        self.job.emit(
            "placed",
            seconds=self._seconds(),
            node=record.name,
            incarnation=record.incarnation,
            ray_node=node,
            process=process,
            run=self._metrics.run,
        )

    def _seconds(self) -> float:
        coordinator = self.records.get(COORDINATOR)
        before = 0.0 if self._snapshot is None else float(self._snapshot["seconds"])
        return before + (now() - coordinator.since if coordinator is not None and coordinator.since is not None else 0)

    def _others(self, name: str) -> list[ActorRecord]:
        return [each for each in self.records.values() if each.started and each.name != name]

    def _peers(self, record: ActorRecord) -> Peers:
        return {other.name: _address(other, record) for other in self._others(record.name)}

    def _detect_failures(self) -> None:
        """Treat each node as crashed whose heartbeat is overdue, and handle processes that did not start in time."""
        for record in list(self.records.values()):
            if record.location is not None and self._detector.has_failed(record, now()):
                self.placement.suspects.add(record.location.node)
                self.placement.end(record, silent=True)
                self._on_crash(record, f"it did not answer for {self._detector.limit(record):g} s")
            elif self._detector.is_late(record, now()):
                self._startup_timed_out(record)

    def _startup_timed_out(self, record: ActorRecord) -> None:
        """Raise ``WorkerError`` if the run cannot continue without a process that did not start in time.

        The run continues without a restarted or late worker. It cannot continue without a server. Before the common
        start it can continue only under the conditions of ``_can_start_without``.
        """
        unready = [each for each in self.records.values() if not each.ready]
        if not self.started and self._can_start_without(unready):
            return
        if not self.started or is_durable(record.name):
            missing = sorted(each.name for each in unready)
            names, limit = ", ".join(missing[:5]), self.runtime.startup_timeout
            raise WorkerError(f"There was no answer from {names} for {limit:g} s: {self.placement.capacity()}.")

    def _on_crash(self, record: ActorRecord, why: str) -> None:
        """Record a crash, inform all other nodes, and restart the node at most ``max_restarts`` times.

        A crash of the coordinator ends the run. So does a crash that exhausts the restarts of a server, of any node
        before the common start, or of the last worker.
        """
        name, incarnation = record.name, record.incarnation
        if self.records.get(name) is not record:
            return
        self.placement.end(record)
        del self.records[name]
        self.crashed.append(record)
        self.crashes[name] += 1
        again = self.crashes[name] <= self.runtime.max_restarts
        if name == COORDINATOR:
            raise WorkerError(
                f"The coordinator crashed: {why}. With a checkpoint the run continues when it is started again with "
                "resume."
            )
        if record.since is not None:
            self._collector.discard()
            self.running_seconds[name] += now() - record.since
            for other in self._others(name):
                other.handle.lost.remote(name, incarnation)
        self.job.emit(
            "crashed", seconds=self._seconds(), node=name, incarnation=incarnation, reason=why, restarts=again
        )
        if again:
            self._metrics.restarted(name)
            self._start(name)
        elif is_durable(name) or not self.started or not any(is_worker(each) for each in self.records):
            raise WorkerError(f"{name} crashed {self.crashes[name]} times, the last time because {why}.")

    # Shutdown and outcome

    def _request_last_heartbeats(self) -> None:
        """Request a last heartbeat from all nodes, for their final counters; wait at most 3 seconds."""
        last = {
            record.handle.heartbeat.remote(self._longest_burst(), self._total_sent()): record
            for record in self.records.values() if record.started
        }  # fmt: skip
        if not last:
            return  # the run was interrupted before the common start
        for answered in self.ray.wait(list(last), num_returns=len(last), timeout=LAST_HEARTBEATS)[0]:
            try:
                heartbeat = self.ray.get(answered)
            except self.ray.exceptions.RayError:
                continue  # the counters of the previous heartbeat stay valid
            last[answered].last_answer = now()
            self._record_heartbeat(last[answered], heartbeat)

    def _all_records(self) -> list[ActorRecord]:
        return [*self.crashed, *self.records.values()]

    def _traffic(self) -> dict[str, Traffic]:
        traffic: dict[str, Traffic] = defaultdict(Traffic)
        for kind, each in itertools.chain(*(record.heartbeat.traffic.items() for record in self._all_records())):
            total = traffic[kind]
            total.messages += each.messages
            total.bytes += each.bytes
            total.receipts += each.receipts
        return traffic

    def _outcome(self) -> Outcome:
        assert self._finish is not None
        action, seconds = self._finish
        traffic, busy = self._traffic(), dict[str, float]()
        heartbeats = [record.heartbeat for record in self._all_records()]
        traffic["all"].resent = sum(each.resent for each in heartbeats)
        for record in self._all_records():
            if is_worker(record.name):
                busy[record.name] = busy.get(record.name, 0.0) + record.heartbeat.busy
        for record in self.records.values():
            if record.since is not None:
                self.running_seconds[record.name] += now() - record.since
        running_seconds = {name: each for name, each in self.running_seconds.items() if is_worker(name)}
        more = {
            "events": sum(each.events for each in heartbeats), "crashes": self.crashes.total(),
            "calls": sum(each.calls for each in heartbeats), "refused": sum(each.refused for each in heartbeats),
            "malformed": sum(each.malformed for each in heartbeats),
        }  # fmt: skip
        return Outcome(
            action.values, action.reason, action.figures.get("record", {}), action.figures.get("stopped", {}), seconds,
            dict(traffic), busy, running_seconds, more,
        )  # fmt: skip


def _address(record: ActorRecord, sender: ActorRecord) -> PeerAddress:
    """Return the address of a node for another node, with its socket if both are on the same Ray node."""
    to, here = record.location, sender.location
    near = to is not None and here is not None and to.node == here.node
    return PeerAddress(record.incarnation, record.handle, to.socket if near and to is not None else "")


def _reason(error: Exception) -> str:
    """Return the message of the hogwild error in an error of Ray, or else the whole text of the error."""
    found = re.search(r"^hogwild\.errors\.\w+: (.*)", str(error), re.MULTILINE)
    return found[1] if found else str(error)
