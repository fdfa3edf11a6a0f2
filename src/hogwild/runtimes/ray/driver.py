"""Driver of a run on a Ray cluster: starts all nodes, detects crashes by heartbeats, and restarts crashed nodes.

The driver runs in the program that requested the run. In this package a *node* is a worker, a server or the
coordinator. A *Ray node* is a member of the Ray cluster.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from hogwild.errors import WorkerError
from hogwild.messaging.job import MessageJob, Outcome, Traffic
from hogwild.messaging.messages import COORDINATOR, worker
from hogwild.messaging.protocol import Finish, SnapshotPart
from hogwild.messaging.reliable_channel import is_durable
from hogwild.runtimes.messaging.actor import now
from hogwild.runtimes.messaging.snapshot_collector import SnapshotCollector, incarnations_of, membership_events
from hogwild.runtimes.ray.actor import Heartbeat, Peers, ResumeState
from hogwild.runtimes.ray.connection import put_job
from hogwild.runtimes.ray.node_stats import ClusterStats, Metrics
from hogwild.runtimes.ray.placement import ActorRecord, Placement

if TYPE_CHECKING:
    from hogwild.runtimes.ray import Ray

TICK = 0.05  # seconds between two checks for Ctrl-C, and between two heartbeat requests to the coordinator
SHOWN = 0.5  # seconds between two "cluster" events, which report the state of all nodes
CLOSING = 60.0  # seconds that a burst may continue after Ctrl-C
# Factor of the heartbeat timeout for a process that is not ready yet. Such a process reads data and compiles, so it
# answers late. No other node waits for it yet.
PREPARING = 5
# Factor of the heartbeat timeout for the coordinator. It cannot be replaced: if the driver takes a slow coordinator for
# crashed, the run is lost. A process that has really ended is reported by Ray at once, whatever the timeout.
IRREPLACEABLE = 10
FAREWELL = 3.0  # seconds that all nodes have for their last heartbeat, with their final counters
RUNS = itertools.count()  # numbers of the runs of this program


class RayDriver:
    """Driver of one run on a Ray cluster."""

    def __init__(self, ray: Any, runtime: Ray, job: MessageJob) -> None:
        self.ray, self.runtime, self.job = ray, runtime, job
        cpus = runtime.cpus_per_worker * job.cores
        self.nodes = Placement(ray, cpus, *put_job(ray, job), dict(runtime.extra_seconds), runtime.link)
        self.places: dict[str, ActorRecord] = {}  # running and starting incarnations, by node
        self.before: list[ActorRecord] = []  # crashed incarnations, whose counters still belong to the run
        self.births: Counter[str] = Counter()
        self.deaths: Counter[str] = Counter()
        self.alive: dict[str, float] = defaultdict(float)
        self.begun = False
        self._finish: tuple[Finish, float] | None = None
        self._looked = now()
        self._gathering = SnapshotCollector()
        self._came = now()  # when a node last became ready before the common start
        self._standings, self._shown = ClusterStats(), 0.0
        self._metrics = Metrics(f"{ray.get_runtime_context().get_job_id()}-{next(RUNS)}")
        self._cut = job.resumed
        if self._cut is not None:
            self.births.update(self._cut["births"] | incarnations_of(self._cut))
        late = {worker(number): at for number, at in runtime.join_times.items()}
        first = self._cut["people"] if self._cut is not None else job.roles.keys() - late.keys()
        self._to_come = {name: late.get(name, 0.0) for name in job.roles if name not in first}

    def play(self) -> Outcome:
        """Run until a node finishes the run or fails, then terminate all processes; return the outcome."""
        try:
            for name in self.job.roles:
                if name not in self._to_come:
                    self._start(name)
            self._stand_by()
            self._attend()
            self._say_farewell()
        finally:
            self.nodes.dismiss()
            for place in (*self.places.values(), *self.before):
                self.nodes.end(place)
        return self._outcome()

    def _attend(self) -> None:
        told: float | None = None  # when the coordinator was sent the interrupt
        while self._finish is None:
            self._look()
            self._judge()
            self._admit()
            self._show()
            if told is None and self.job.interrupted():
                told = now()
                self.places[COORDINATOR].handle.interrupt.remote()
            if told is not None and (not self.begun or now() - told > CLOSING):
                self._finish = Finish(None, "interrupted"), 0.0

    # Heartbeats

    def _look(self) -> None:
        """Process the heartbeats that have arrived, and request those that are due.

        The call waits at most ``TICK`` seconds.
        """
        asked = {place.asked: place for place in self.places.values() if place.asked is not None}
        due = min((place.due for place in self.places.values() if place.asked is None), default=now() + TICK)
        rest = min(TICK, max(1e-3, due - now()))
        if not asked:
            time.sleep(rest)
        else:
            self.ray.wait(list(asked), timeout=rest)
            for answered in self.ray.wait(list(asked), num_returns=len(asked), timeout=0)[0]:
                self._heard(asked[answered], answered)
        pause = now() - self._looked
        self._looked = now()
        for place in list(self.places.values()):
            if pause > self.runtime.heartbeat_timeout / 2:
                # The driver itself was suspended. Its pause must not count as the silence of a node.
                place.seen += pause
            if place.asked is None and now() >= place.due:
                place.asked = place.handle.pulse.remote(self._longest(), self._total())

    def _heard(self, place: ActorRecord, answered: Any) -> None:
        """Process the answer of an actor: a heartbeat, a location, or an error of Ray."""
        place.asked = None
        try:
            answer = self.ray.get(answered)
        except self.ray.exceptions.RayActorError as error:
            if getattr(error, "actor_init_failed", False):
                raise WorkerError(f"{place.name} could not be started: {_reason(error)}") from error
            if isinstance(error, self.ray.exceptions.ActorUnavailableError) and place.where is not None:
                # The actor is unreachable. Other actors on the same Ray node may be unreachable too.
                self.nodes.suspects.add(place.where.node)
            self._died(place, "its process ended")
            return
        except self.ray.exceptions.RayTaskError as error:
            raise WorkerError(f"{place.name} failed: {error}") from error
        except self.ray.exceptions.RayError as error:  # the answer, or the Ray process that held it, is lost
            self._died(place, f"it could not be heard ({type(error).__name__})")
            return
        place.seen = now()
        often = place.name == COORDINATOR or not place.begun
        place.due = now() + (TICK if often else self.runtime.heartbeat_timeout / 3)
        if isinstance(answer, Heartbeat):
            self._felt(place, answer)
        else:
            place.where = answer
            self.nodes.suspects.discard(answer.node)  # an actor on this Ray node has answered

    def _show(self) -> None:
        """Emit a "cluster" event with the state of all nodes, at most once in ``SHOWN`` seconds."""
        if now() < self._shown + SHOWN:
            return
        self._shown = now()
        heartbeat, cast = self.runtime.heartbeat_timeout, self.job.roles
        rows = self._standings.rows(cast, self.places, self.deaths, now(), heartbeat)
        self.job.tell("cluster", seconds=self._seconds(), participants=rows)

    def _felt(self, place: ActorRecord, pulse: Heartbeat) -> None:
        """Process a heartbeat: failure, readiness, events, parts of snapshots and the end of the run."""
        was_ready = place.ready
        self._noted(place, pulse)
        if pulse.failure:
            raise WorkerError(pulse.failure.strip())
        if pulse.ready and not place.begun and (self.begun or not was_ready):
            self._arrived(place)
        for event, seconds, what in pulse.news:
            self.job.tell(event, seconds=seconds, **{key: value for key, value in what.items() if key != "seconds"})
        for save in pulse.saves:
            self._saved(place, save)
        self._finish = self._finish or pulse.finished

    def _noted(self, place: ActorRecord, pulse: Heartbeat) -> None:
        """Record a heartbeat in the statistics and in the metrics of Ray."""
        place.pulse = pulse
        done = self._standings.note(place)
        if done is not None:
            self._metrics.note(place.name, done)

    def _saved(self, place: ActorRecord, save: SnapshotPart) -> None:
        there = {each.name for each in self.places.values() if each.begun}
        cut = self._gathering.add(place.name, save, self.births, there, self._seconds())
        if cut is not None and self.job.save is not None:
            self.job.save(cut)

    def _longest(self) -> float:
        return max(place.pulse.longest for place in self.places.values())

    def _total(self) -> tuple[int, int]:
        sent = self._traffic().values()
        return sum(each.messages for each in sent), sum(each.bytes for each in sent)

    # Start, admission and crash of nodes

    def _start(self, name: str) -> None:
        life = self.births[name]
        self.births[name] += 1
        self.places[name] = self.nodes.start(name, life)

    def _stand_by(self) -> None:
        if any(is_durable(name) for name in self.job.roles):
            self.nodes.stand_by(self.runtime.standby_servers)

    def _arrived(self, place: ActorRecord) -> None:
        """Admit a node that is ready.

        Before the common start, ready nodes wait for each other. Later, a ready node joins the running nodes at once.
        """
        if not self.begun:
            self._came = now()
            return
        place.since = now()
        self._gathering.disturb()
        for peer, (_, handle) in self._peers(place.name).items():
            assert peer != place.name
            handle.joined.remote(place.name, place.life, place.handle)
        kept = None
        if is_durable(place.name):
            kept = self.places[COORDINATOR].handle.kept.remote(place.name, place.life)
            self._stand_by()  # the standby process that was there may have become this server
        place.handle.begin.remote(self._peers(place.name), kept)
        self._placed(place)

    def _admit(self) -> None:
        """Start the run once its nodes are ready, and start late workers when their join time has come."""
        if not self.begun:
            missing = [place for place in self.places.values() if not place.ready]
            if not missing or self._can_do_without(missing):
                self._begin(missing)
        for name, at in list(self._to_come.items()):
            if self.begun and self._seconds() >= at:
                del self._to_come[name]
                self._start(name)

    def _can_do_without(self, missing: list[ActorRecord]) -> bool:
        """Return whether the run can start without the missing nodes.

        The missing nodes must be workers for which Ray has started no process. The last ready node must have waited
        ``admission_timeout`` seconds. The cluster must be full, or ``startup_timeout`` must have passed. A run that
        resumes from a snapshot waits for all its nodes.
        """
        homeless = all(place.where is None and place.name.startswith("worker") for place in missing)
        others = sum(place.ready and place.name.startswith("worker") for place in self.places.values())
        if not homeless or not others or self._cut is not None or now() - self._came < self.runtime.admission_timeout:
            return False
        return self.nodes.full(others) or now() - missing[0].born > self.runtime.startup_timeout

    def _begin(self, missing: list[ActorRecord]) -> None:
        """Start all ready nodes, from the beginning or from the snapshot that the run resumes.

        A node that is not part of the snapshot joins later as a new node. A missing node counts as crashed at the
        start, and also joins later as a new node.
        """
        self.begun = True
        for place in self.places.values():
            place.since = now()
        for place in self.places.values():
            if place not in missing:
                place.handle.begin.remote(self._peers(place.name), None, self._sitting(place.name))
                self._placed(place)
        for place in missing:
            self._postpone(place)
            self._to_come[place.name] = 0.0

    def _postpone(self, place: ActorRecord) -> None:
        """Withdraw a worker for which the cluster has no room; the worker joins when a CPU is free."""
        del self.places[place.name]
        self.nodes.end(place)
        for _, handle in self._peers(place.name).values():
            handle.lost.remote(place.name, place.life)
        self.job.tell("no room", seconds=self._seconds(), participant=place.name, reason=self.nodes.room())

    def _sitting(self, name: str) -> ResumeState | None:
        cut = self._cut
        return None if cut is None else ResumeState(cut["seconds"], cut["people"][name], membership_events(cut))

    def _placed(self, place: ActorRecord) -> None:
        assert place.where is not None
        node, process = place.where.node, place.where.process
        self.job.tell(
            "placed",
            seconds=self._seconds(),
            participant=place.name,
            life=place.life,
            node=node,
            process=process,
            run=self._metrics.run,
        )

    def _seconds(self) -> float:
        coordinator = self.places.get(COORDINATOR)
        before = 0.0 if self._cut is None else float(self._cut["seconds"])
        return before + (now() - coordinator.since if coordinator is not None and coordinator.since is not None else 0)

    def _peers(self, name: str) -> Peers:
        return {
            each.name: (each.life, each.handle) for each in self.places.values() if each.begun and each.name != name
        }

    def _judge(self) -> None:
        """Treat each node as crashed whose heartbeat is overdue, and handle processes that did not start in time."""
        for place in list(self.places.values()):
            limit = self._heartbeat_limit(place)
            if place.where is not None and place.asked is not None and now() - place.seen > limit:
                self.nodes.suspects.add(place.where.node)
                self.nodes.end(place, silent=True)
                self._died(place, f"it did not answer for {limit:g} s")
            elif not place.ready and now() - place.born > self.runtime.startup_timeout:
                self._never_came(place)

    def _heartbeat_limit(self, place: ActorRecord) -> float:
        """Return the seconds without an answer after which a node counts as crashed."""
        if place.name == COORDINATOR:
            return self.runtime.heartbeat_timeout * IRREPLACEABLE
        return self.runtime.heartbeat_timeout * (1 if place.ready else PREPARING)

    def _never_came(self, place: ActorRecord) -> None:
        """Raise ``WorkerError`` if the run cannot continue without a process that did not start in time.

        The run continues without a restarted or late worker. It cannot continue without a server. Before the common
        start it can continue only under the conditions of ``_can_do_without``.
        """
        late = [each for each in self.places.values() if not each.ready]
        if not self.begun and self._can_do_without(late):
            return
        if not self.begun or is_durable(place.name):
            missing = sorted(each.name for each in late)
            who, limit = ", ".join(missing[:5]), self.runtime.startup_timeout
            raise WorkerError(f"Nothing was heard of {who} for {limit:g} s: {self.nodes.room()}.")

    def _died(self, place: ActorRecord, why: str) -> None:
        """Record a crash, inform all other nodes, and restart the node at most ``max_restarts`` times.

        A crash of the coordinator ends the run. So does a crash that exhausts the restarts of a server, of any node
        before the common start, or of the last worker.
        """
        name, life = place.name, place.life
        if self.places.get(name) is not place:
            return
        self.nodes.end(place)
        del self.places[name]
        self.before.append(place)
        self.deaths[name] += 1
        again = self.deaths[name] <= self.runtime.max_restarts
        if name == COORDINATOR:
            raise WorkerError(
                f"The coordinator has died: {why}. With a checkpoint the run goes on when it is started again with "
                "resume."
            )
        if place.since is not None:
            self._gathering.disturb()
            self.alive[name] += now() - place.since
            for peer, (_, handle) in self._peers(name).items():
                assert peer != name
                handle.lost.remote(name, life)
        self.job.tell("died", seconds=self._seconds(), participant=name, life=life, reason=why, again=again)
        if again:
            self._metrics.restarted(name)
            self._start(name)
        elif is_durable(name) or not self.begun or not any(each.startswith("worker") for each in self.places):
            raise WorkerError(f"{name} has died {self.deaths[name]} times, the last time because {why}.")

    # Shutdown and outcome

    def _say_farewell(self) -> None:
        """Request a last heartbeat from all nodes, for their final counters; wait at most 3 seconds."""
        last = {
            place.handle.pulse.remote(self._longest(), self._total()): place
            for place in self.places.values() if place.begun
        }  # fmt: skip
        if not last:
            return  # the run was interrupted before the common start
        for answered in self.ray.wait(list(last), num_returns=len(last), timeout=FAREWELL)[0]:
            try:
                pulse = self.ray.get(answered)
            except self.ray.exceptions.RayError:
                continue  # the counters of the previous heartbeat stay valid
            last[answered].seen = now()
            self._noted(last[answered], pulse)

    def _everybody(self) -> list[ActorRecord]:
        return [*self.before, *self.places.values()]

    def _traffic(self) -> dict[str, Traffic]:
        whole: dict[str, Traffic] = defaultdict(Traffic)
        for kind, each in itertools.chain(*(place.pulse.traffic.items() for place in self._everybody())):
            mine = whole[kind]
            mine.messages += each.messages
            mine.bytes += each.bytes
            mine.receipts += each.receipts
        return whole

    def _outcome(self) -> Outcome:
        assert self._finish is not None
        action, seconds = self._finish
        traffic, busy = self._traffic(), dict[str, float]()
        pulses = [place.pulse for place in self._everybody()]
        traffic["all"].resent = sum(pulse.resent for pulse in pulses)
        for place in self._everybody():
            if place.name.startswith("worker"):
                busy[place.name] = busy.get(place.name, 0.0) + place.pulse.busy
        for place in self.places.values():
            if place.since is not None:
                self.alive[place.name] += now() - place.since
        alive = {name: there for name, there in self.alive.items() if name.startswith("worker")}
        more = {
            "events": sum(pulse.events for pulse in pulses), "crashes": self.deaths.total(),
            "calls": sum(pulse.calls for pulse in pulses), "refused": sum(pulse.refused for pulse in pulses),
            "malformed": sum(pulse.malformed for pulse in pulses),
        }  # fmt: skip
        return Outcome(
            action.values, action.reason, action.figures.get("record", {}), action.figures.get("halted", {}), seconds,
            dict(traffic), busy, alive, more,
        )  # fmt: skip


def _reason(error: Exception) -> str:
    """Return the message of the hogwild error in an error of Ray, or else the whole text of the error."""
    found = re.search(r"^hogwild\.errors\.\w+: (.*)", str(error), re.MULTILINE)
    return found[1] if found else str(error)
