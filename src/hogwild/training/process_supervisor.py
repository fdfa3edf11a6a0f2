"""Supervision of worker processes that train a module: budget, interrupts, heartbeats, checkpoints, evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hogwild.errors import CheckpointError, DivergedError, WorkerError
from hogwild.models.module import ModuleModel
from hogwild.run import Budget, Event
from hogwild.runtimes.processes import Processes, evaluator, hogwild_worker
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.evaluator import Evaluation
from hogwild.runtimes.processes.process_group import ProcessGroup, WorkerProcess, worker_error
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.shared_tensors import SharedTensors, return_freed_memory
from hogwild.runtimes.processes.worker_config import Tensors, WorkerConfig
from hogwild.runtimes.processes.write_policies import average_tensors
from hogwild.training import module_checkpoints
from hogwild.training.checkpoints import Checkpoints, check_same
from hogwild.training.event_log import EventLog
from hogwild.training.module_checkpoints import copy_tensors, counts_of, restore, tensors_of
from hogwild.training.stopping import EpochRecorder, Interrupt

LOOK = 0.01  # Seconds between two reads of the shared counters.
TOLD = 0.2  # Seconds between two "progress" events.


@dataclass(eq=False)
class ProcessSupervisor:
    """Supervisor of one run on processes, in the process that called ``minimise``.

    The workers train. The supervisor reads their shared counters, emits events, writes checkpoints and decides when to
    stop.
    """

    work: WorkerConfig
    arena: SharedTensors
    board: SharedCounters
    runtime: Processes
    budget: Budget
    test: Any
    # Shared tensors in which the evaluator keeps the best parameters, for a budget with ``patience``.
    best: Tensors | None
    event_log: EventLog
    checkpoints: Checkpoints | None
    config: dict[str, Any]
    records: EpochRecorder
    run_worker: Any = hogwild_worker.run_hogwild_worker
    interrupt: Interrupt = field(default_factory=Interrupt)
    stop_reason: str = ""
    _earlier: float = 0.0  # Seconds of training before the checkpoint that this run resumes from.
    _began: float | None = None
    _ended: float | None = None
    _told: float = 0.0
    _before: Any = 0  # Samples of each worker before the checkpoint that this run resumes from.
    # Rank that held the turn at the last check without being a working process; None: no such rank.
    _left: int | None = None

    @property
    def seconds(self) -> float:
        """Seconds of training so far, including those before the checkpoint that the run resumes from."""
        if self._began is None:
            return self._earlier
        return self._earlier + (self._ended or time.monotonic()) - self._began

    def run(self) -> None:
        """Start the workers, supervise them to the end, and leave the parameters to keep in the model."""
        self._fleet = ProcessGroup(self.arena, self.board)
        try:
            names = [f"worker {rank}" for rank in range(self.board.workers)]
            self._workers = self._fleet.start(self.run_worker, self.work, names)
            if self.test is not None:
                self.records.evaluator = self._start_evaluator()
            self._wait_until_ready()
            self._train()
            self._conclude()
        finally:
            self._fleet.close()

    # Start-up

    def _start_evaluator(self) -> WorkerProcess:
        mean = self.work.mean.tensors if self.work.mean else None
        what = Evaluation(self.work.problem, self.test, mean, self.best, self.work.threads)
        return self._fleet.start(evaluator.run, what, ["the evaluator"])[0]

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + self.runtime.startup_timeout
        heard = self.test is None
        while not (heard and all(state >= at.READY for state in self.board.states())):
            for member, what in self._fleet.hear(LOOK):
                heard = heard or what["kind"] == "ready"
                self._note(member, what)
            if time.monotonic() > until:
                late = [member.name for member in self._workers if self.board.counts[member.rank, at.STATE] < at.READY]
                raise WorkerError(
                    f"Not ready after {self.runtime.startup_timeout:g} seconds: {', '.join(late) or 'the evaluator'}. "
                    "Look what takes the model or the data set so long to load, or give Processes(startup_timeout=...)."
                )
            if self.interrupt.pressed:
                raise KeyboardInterrupt
        self.event_log.emit("training", workers=self.board.workers)

    # Training

    def _train(self) -> None:
        self._began = time.monotonic()
        self._before = self.board.counts[:, at.SAMPLES].copy()
        self.board.sums[:, at.BEAT] = self._began
        self.board.flags[at.GO] = 1
        while not self._all_finished():
            self._hear()
            self._look()
        self._ended = time.monotonic()
        self.stop_reason = self.stop_reason or "epochs"
        if self.work.replicas is not None:
            average_tensors(self.work.values, [self.work.replicas[rank] for rank in self.board.living()])

    def _all_finished(self) -> bool:
        states = self.board.states()
        if not states:
            raise worker_error(self._workers)
        return all(state == at.FINISHED for state in states)

    def _hear(self, seconds: float = LOOK) -> None:
        for member, what in self._fleet.hear(seconds):
            self._note(member, what)

    def _look(self) -> None:
        self._tell_progress()
        following = self.records.epoch + 1
        while self.board.samples >= following * self.work.rate.samples and following != self.budget.epochs:
            self.records.make(following, self.seconds)
            following += 1
        self._tell_records()
        if self.interrupt.pressed:
            self._stop("interrupted")
        elif self.budget.seconds is not None and self.seconds >= self.budget.seconds:
            self._stop("seconds")
        if self.checkpoints is not None and self.checkpoints.due and not self.stop_reason:
            self._save()
        self._mind_the_silent()
        self._mind_the_turn()

    def _tell_records(self) -> None:
        told = list(self.records.ready())
        for record in told:
            self.event_log.emit("epoch", **record)
            why = self.records.reason_to_stop(record)
            if why:
                self._stop(why)
        if told and self.checkpoints is not None and self._ended is None and not self.stop_reason:
            self._save()
        self.records.measure(self.seconds)

    def _stop(self, why: str) -> None:
        self.stop_reason = self.stop_reason or why
        self.board.flags[at.STOP] = 1

    def _tell_progress(self) -> None:
        now = time.monotonic()
        if now - self._told < TOLD:
            return
        return_freed_memory()
        self._told, here, samples = now, max(self.seconds - self._earlier, 1e-9), self.board.samples
        self.event_log.emit(
            "progress", updates=samples, seconds=self.seconds,
            fraction=self.work.rate.spent(samples, self.seconds),
            workers=[round(float(done) / here, 1) for done in self.board.counts[:, at.SAMPLES] - self._before],
        )  # fmt: skip

    # Process failures

    def _note(self, member: WorkerProcess, what: Event) -> None:
        if what["kind"] == "measured":
            self.records.measured(what)
        elif what["kind"] == "gone" and not member.done:
            self._bury(member)

    def _bury(self, member: WorkerProcess) -> None:
        """Continue without a worker process that has terminated, if the runtime allows it; otherwise raise its error.

        The run continues only with ``on_worker_failure="continue"`` and after training has begun. A divergence always
        ends it.
        """
        kind, _, what = member.failure.get("error", "").partition(": ")
        if kind == "DivergedError":
            raise DivergedError(
                f"{member.name}: {what}. Give the optimiser a smaller step, warm up (schedule=Warmup(...)), or look "
                "for outliers in the data."
            )
        if self.runtime.on_worker_failure == "stop" or self._began is None:
            raise worker_error([member])
        self.event_log.emit("worker lost", worker=member.name, message=member.obituary())
        if member is self.records.evaluator:
            self.records.evaluator = None
        else:
            self.board.counts[member.rank, at.GONE] = 1

    def _mind_the_silent(self) -> None:
        limit = time.monotonic() - self.runtime.heartbeat_timeout
        for member in self._workers:
            line = self.board.counts[member.rank]
            working = not line[at.GONE] and line[at.STATE] != at.FINISHED
            if working and self.board.sums[member.rank, at.BEAT] < limit and member.code is None:
                self._end_silent(member)

    def _end_silent(self, member: WorkerProcess) -> None:
        member.failure = member.failure or {
            "error": f"nothing was heard of it for {self.runtime.heartbeat_timeout:g} seconds",
            "traceback": "A batch that takes longer needs Processes(heartbeat_timeout=...).",
        }
        member.end()

    def _mind_the_turn(self) -> None:
        """Pass the round-robin turn on when its holder has terminated or finished without doing so.

        The supervisor acts at the second check that finds the same holder. A worker that finishes thus has time to pass
        the turn on itself.
        """
        holder = int(self.board.flags[at.TURN])
        if holder in self.board.working():
            self._left = None
        elif holder == self._left:
            self.board.pass_turn(holder)
        else:
            self._left = holder

    # End of the run

    def _conclude(self) -> None:
        """Evaluate the final parameters, and copy the parameters to keep into the model."""
        self._tell_what_comes()
        over = min(int(self.board.counts[rank, at.EPOCH]) for rank in self.board.living())
        last = self.records.history[-1] if self.records.history else {"updates": -1, "epoch": 0}
        if last["updates"] != self.board.samples or last["epoch"] < over:
            self.records.make(max(over, self.records.epoch), self.seconds)
            self._tell_what_comes()
        if self.checkpoints is not None:
            # The checkpoint has the last parameters, not the kept ones: a resumed run continues from them.
            self._write()
        kept = self._keep()
        if self.checkpoints is not None:
            module_checkpoints.save_weights(self.checkpoints, ModuleModel(self.work.problem.net, self.config))
        self.event_log.emit("result", stop_reason=self.stop_reason, **kept)

    def _tell_what_comes(self) -> None:
        """Wait for outstanding evaluations and emit their records.

        The supervisor terminates an evaluator process that takes longer than the heartbeat timeout.
        """
        until = time.monotonic() + self.runtime.heartbeat_timeout
        self._tell_records()
        while self.records.busy:
            self._hear()
            self._tell_records()
            if time.monotonic() > until and isinstance(
                self.records.evaluator, WorkerProcess
            ):  # An evaluator in this process is not terminated.
                self._end_silent(self.records.evaluator)

    def _keep(self) -> Event:
        records, net = self.records, self.work.problem.net
        if self.best is not None and records.least[0] < float("inf"):
            copy_tensors([*net.parameters(), *net.buffers()], self.best)
            return next(record for record in records.history if record.get("test_loss") == records.least[0])
        if self.work.mean is not None and records.mean_has_begun(self.seconds):
            copy_tensors(list(net.parameters()), self.work.mean.tensors)
        return records.history[-1]

    # Checkpoints

    def _save(self) -> None:
        """Pause all workers, so that the checkpoint is consistent, and write it."""
        self.board.flags[at.PAUSE] = 1
        try:
            self._wait_while(lambda: any(state not in (at.PAUSED, at.FINISHED) for state in self.board.states()))
            self._write()
        finally:
            self.board.flags[at.PAUSE] = 0
            self.board.sums[:, at.BEAT] = time.monotonic()
        # Wait until all workers have resumed. The next pause would otherwise take a worker that is still about to
        # resume for a paused one.
        self._wait_while(lambda: at.PAUSED in self.board.states())

    def _wait_while(self, something: Callable[[], bool]) -> None:
        while something():
            self._hear(0.001)
            self._mind_the_silent()
            self._mind_the_turn()
            self._all_finished()

    def _write(self) -> None:
        assert self.checkpoints is not None
        records = self.records
        record = {
            **counts_of(self.work, self.board), "config": self.config, "history": records.history,
            "epoch": records.epoch, "least": list(records.least), "seen": list(records.seen), "seconds": self.seconds,
        }  # fmt: skip
        model = ModuleModel(self.work.problem.net, self.config)
        module_checkpoints.save(self.checkpoints, tensors_of(self.work, self.best), record, model)
        self.event_log.emit("checkpoint", epoch=records.epoch)

    def restore(self) -> None:
        """Restore the run from its checkpoint, if there is one."""
        assert self.checkpoints is not None
        found, folder = module_checkpoints.load(self.checkpoints), self.checkpoints.folder
        if found is None:
            self.event_log.emit("resumed", epoch=0, message="there is no checkpoint yet: from the beginning")
            return
        state, record = found
        try:
            check_same(self.config, record["config"], folder)
            if len(record["counts"]) != self.board.workers:
                raise CheckpointError(
                    f"{folder}: the checkpoint is of {len(record['counts'])} workers, and each is in the middle of its "
                    f"own part of the data. Resume with as many, not with {self.board.workers}."
                )
            restore(self.work, self.board, self.best, state, record)
            self.records.history, self.records.epoch = list(record["history"]), int(record["epoch"])
            self.records.least = float(record["least"][0]), int(record["least"][1])
            self.records.seen = int(record["seen"][0]), float(record["seen"][1])
            # With replicas the interrupted epoch restarts, so its losses are counted from zero.
            if self.work.replicas is not None:
                self.records.seen = self.board.met()
            self._earlier = float(record["seconds"])
            self.work = replace(self.work, earlier=self._earlier)
        except (KeyError, TypeError, ValueError, RuntimeError) as reason:
            raise CheckpointError(f"{folder}: the checkpoint is incomplete or inconsistent ({reason}).") from None
        self.event_log.emit("resumed", epoch=self.records.epoch, updates=self.board.samples)
