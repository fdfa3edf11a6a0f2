"""Supervision of worker processes that train a module: budget, interrupts, heartbeats, checkpoints, evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hogwild.errors import CheckpointError, DivergedError, ParameterError, WorkerError
from hogwild.events import EventLog, Parameters, Record
from hogwild.models.module import ModuleModel
from hogwild.runtimes.processes import Processes, evaluator, hogwild_worker
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.evaluator import Evaluation
from hogwild.runtimes.processes.process_group import ProcessGroup, WorkerProcess, worker_error
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.shared_tensors import SharedTensors, return_freed_memory
from hogwild.runtimes.processes.worker_config import Tensors, WorkerConfig
from hogwild.runtimes.processes.write_policies import average_tensors
from hogwild.signals import Interrupt
from hogwild.stopping import Budget, held_out_value, limit_reached
from hogwild.training import module_checkpoints
from hogwild.training.checkpoints import Checkpoints, check_same, completed
from hogwild.training.epoch_recorder import EpochRecorder
from hogwild.training.module_checkpoints import copy_tensors, counts_of, restore, tensors_of

POLL_SECONDS = 0.01  # Seconds between two reads of the shared counters.
PROGRESS_SECONDS = 0.2  # Seconds between two "progress" events.


@dataclass(eq=False)
class ProcessSupervisor:
    """Supervisor of one run on processes, in the process that called ``minimise``.

    The workers train. The supervisor reads their shared counters, emits events, writes checkpoints and decides when to
    stop.
    """

    work: WorkerConfig
    arena: SharedTensors
    counters: SharedCounters
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
    _last_progress: float = 0.0
    _before: Any = 0  # Samples of each worker before the checkpoint that this run resumes from.
    # Rank that held the turn at the last check without being a working process; None: no such rank.
    _stale_turn_holder: int | None = None

    @property
    def seconds(self) -> float:
        """Seconds of training so far, including those before the checkpoint that the run resumes from."""
        if self._began is None:
            return self._earlier
        return self._earlier + (self._ended or time.monotonic()) - self._began

    def run(self) -> None:
        """Start the workers, supervise them to the end, and leave the parameters to keep in the model."""
        self._processes = ProcessGroup(self.arena, self.counters)
        try:
            names = [f"worker {rank}" for rank in range(self.counters.workers)]
            self._workers = self._processes.start(self.run_worker, self.work, names)
            if self.test is not None:
                self.records.evaluator = self._start_evaluator()
            self._wait_until_ready()
            self._train()
            self._conclude()
        finally:
            self._processes.close()

    # Start-up

    def _start_evaluator(self) -> WorkerProcess:
        mean = self.work.mean.tensors if self.work.mean else None
        what = Evaluation(self.work.problem, self.test, mean, self.best, self.work.threads, self.budget)
        return self._processes.start(evaluator.run, what, ["the evaluator"])[0]

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + self.runtime.startup_timeout
        evaluator_ready = self.test is None
        while not (evaluator_ready and all(state >= at.READY for state in self.counters.states())):
            for member, what in self._processes.receive(POLL_SECONDS):
                evaluator_ready = evaluator_ready or what["kind"] == "ready"
                self._process_report(member, what)
            if time.monotonic() > until:
                states = self.counters.counts[:, at.STATE]
                late = [member.name for member in self._workers if states[member.rank] < at.READY]
                raise WorkerError(
                    f"Not ready after {self.runtime.startup_timeout:g} seconds: {', '.join(late) or 'the evaluator'}. "
                    "Look what takes the model or the data set so long to load, or give Processes(startup_timeout=...)."
                )
            if self.interrupt.pressed:
                raise KeyboardInterrupt
        self.event_log.emit("training", workers=self.counters.workers)

    # Training

    def _train(self) -> None:
        self._began = time.monotonic()
        self._before = self.counters.counts[:, at.SAMPLES].copy()
        self.counters.sums[:, at.BEAT] = self._began
        self.counters.flags[at.GO] = 1
        while not self._all_finished():
            self._receive()
            self._poll()
        self._ended = time.monotonic()
        self.stop_reason = self.stop_reason or "epochs"
        if self.work.replicas is not None:
            average_tensors(self.work.values, [self.work.replicas[rank] for rank in self.counters.running()])

    def _all_finished(self) -> bool:
        states = self.counters.states()
        if not states:
            raise worker_error(self._workers)
        return all(state == at.FINISHED for state in states)

    def _receive(self, seconds: float = POLL_SECONDS) -> None:
        for member, what in self._processes.receive(seconds):
            self._process_report(member, what)

    def _poll(self) -> None:
        self._emit_progress()
        following = self.records.epoch + 1
        while self.counters.samples >= following * self.work.rate.samples and following != self.budget.epochs:
            self.records.make(following, self.seconds)
            following += 1
        if self.records.is_due(self.seconds):
            self.records.make(self.records.epoch, self.seconds)
        self._emit_records()
        if self.interrupt.pressed:
            self._stop("interrupted")
        elif self.budget.seconds is not None and self.seconds >= self.budget.seconds:
            self._stop("seconds")
        if self.checkpoints is not None and self.checkpoints.due and not self.stop_reason:
            self._save()
        self._check_heartbeats()
        self._check_turn()

    def _emit_records(self) -> None:
        ready = list(self.records.ready())
        for record in ready:
            self.event_log.emit("epoch", self._parameters, **record)
            why = self.records.reason_to_stop(record)
            if why:
                self._stop(why)
        if ready and self.checkpoints is not None and self._ended is None and not self.stop_reason:
            self._save()
        self.records.measure(self.seconds)

    def _parameters(self) -> Parameters:
        mean = self.work.mean
        if mean is None or not self.records.mean_has_begun(self.seconds):
            return self._model_parameters()
        count = sum(1 for _ in self.work.problem.net.parameters())
        return tuple(tensor.detach().cpu().numpy().copy() for tensor in mean.tensors[:count])

    def _model_parameters(self) -> Parameters:
        return tuple(tensor.detach().cpu().numpy().copy() for tensor in self.work.problem.net.parameters())

    def _stop(self, why: str) -> None:
        self.stop_reason = self.stop_reason or why
        self.counters.flags[at.STOP] = 1

    def _emit_progress(self) -> None:
        now = time.monotonic()
        if now - self._last_progress < PROGRESS_SECONDS:
            return
        return_freed_memory()
        self._last_progress, here, samples = now, max(self.seconds - self._earlier, 1e-9), self.counters.samples
        self.event_log.emit(
            "progress", updates=samples, seconds=self.seconds,
            fraction=self.work.rate.spent(samples, self.seconds),
            workers=[round(float(done) / here, 1) for done in self.counters.counts[:, at.SAMPLES] - self._before],
        )  # fmt: skip

    # Process failures

    def _process_report(self, member: WorkerProcess, what: Record) -> None:
        if what["kind"] == "measured":
            self.records.measured(what)
        elif what["kind"] == "ended" and not member.done:
            self._remove_crashed(member)

    def _remove_crashed(self, member: WorkerProcess) -> None:
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
        if kind == "ParameterError":  # All workers have the same parts, so that the others would fail as well.
            raise ParameterError(what)
        if self.runtime.on_worker_failure == "stop" or self._began is None:
            raise worker_error([member])
        self.event_log.emit("worker crashed", worker=member.name, message=member.crash_report())
        if member is self.records.evaluator:
            self.records.evaluator = None
        else:
            self.counters.counts[member.rank, at.ENDED] = 1

    def _check_heartbeats(self) -> None:
        limit = time.monotonic() - self.runtime.heartbeat_timeout
        for member in self._workers:
            line = self.counters.counts[member.rank]
            working = not line[at.ENDED] and line[at.STATE] != at.FINISHED
            if working and self.counters.sums[member.rank, at.BEAT] < limit and member.code is None:
                self._kill_timed_out(member, "A batch that takes longer needs Processes(heartbeat_timeout=...).")

    def _kill_timed_out(self, member: WorkerProcess, remedy: str) -> None:
        member.failure = member.failure or {
            "error": f"it did not respond for {self.runtime.heartbeat_timeout:g} seconds", "traceback": remedy,
        }  # fmt: skip
        member.kill()

    def _check_turn(self) -> None:
        """Pass the round-robin turn on when its holder has terminated or finished without doing so.

        The supervisor acts at the second check that finds the same holder. A worker that finishes thus has time to pass
        the turn on itself.
        """
        holder = int(self.counters.flags[at.TURN])
        if holder in self.counters.working():
            self._stale_turn_holder = None
        elif holder == self._stale_turn_holder:
            self.counters.pass_turn(holder)
        else:
            self._stale_turn_holder = holder

    # End of the run

    def _conclude(self) -> None:
        """Evaluate the final parameters, and copy the parameters to keep into the model."""
        self._emit_outstanding_records()
        over = min(int(self.counters.counts[rank, at.EPOCH]) for rank in self.counters.running())
        last = self.records.history[-1] if self.records.history else {"updates": -1, "epoch": 0}
        if last["updates"] != self.counters.samples or last["epoch"] < over:
            self.records.make(max(over, self.records.epoch), self.seconds)
            self._emit_outstanding_records()
        if self.checkpoints is not None:
            # The checkpoint has the last parameters, not the kept ones: a resumed run continues from them.
            self._write()
        kept = self._copy_kept_parameters()
        if self.checkpoints is not None:
            module_checkpoints.save_weights(self.checkpoints, ModuleModel(self.work.problem.net, self.config))
        self.event_log.emit("result", self._model_parameters, stop_reason=self.stop_reason, **kept)

    def _emit_outstanding_records(self) -> None:
        """Wait for outstanding evaluations and emit their records.

        The supervisor terminates an evaluator process that takes longer than the heartbeat timeout.
        """
        until = time.monotonic() + self.runtime.heartbeat_timeout
        self._emit_records()
        while self.records.busy:
            self._receive()
            self._emit_records()
            if time.monotonic() > until and isinstance(
                self.records.evaluator, WorkerProcess
            ):  # An evaluator in this process is not terminated.
                self._kill_timed_out(
                    self.records.evaluator,
                    "An evaluation of the held-out data that takes longer needs Processes(heartbeat_timeout=...), or "
                    "less held-out data.",
                )

    def _copy_kept_parameters(self) -> Record:
        records, net = self.records, self.work.problem.net
        if self.best is not None and records.least[0] < float("inf"):
            copy_tensors([*net.parameters(), *net.buffers()], self.best)
            found = (record for record in records.history if held_out_value(record, self.budget) == records.least[0])
            return next(found)
        if self.work.mean is not None and records.mean_has_begun(self.seconds):
            copy_tensors(list(net.parameters()), self.work.mean.tensors)
        return records.history[-1]

    # Checkpoints

    def _save(self) -> None:
        """Pause all workers, so that the checkpoint is consistent, and write it."""
        self.counters.flags[at.PAUSE] = 1
        try:
            self._wait_while(lambda: any(state not in (at.PAUSED, at.FINISHED) for state in self.counters.states()))
            self._write()
        finally:
            self.counters.flags[at.PAUSE] = 0
            self.counters.sums[:, at.BEAT] = time.monotonic()
        # Wait until all workers have resumed. The next pause would otherwise take a worker that is still about to
        # resume for a paused one.
        self._wait_while(lambda: at.PAUSED in self.counters.states())

    def _wait_while(self, condition: Callable[[], bool]) -> None:
        while condition():
            self._receive(0.001)
            self._check_heartbeats()
            self._check_turn()
            self._all_finished()

    def _write(self) -> None:
        assert self.checkpoints is not None
        records = self.records
        record = {
            **counts_of(self.work, self.counters), "config": self.config, "history": records.history,
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
            if len(record["counts"]) != self.counters.workers:
                count = len(record["counts"])
                raise CheckpointError(
                    f"{folder}: the checkpoint is of {count} worker{'s' * (count > 1)}, each in the middle of its own "
                    f"part of the data. Resume with as many, not with {self.counters.workers}, or begin a new run with "
                    "its weights: hogwild.load(folder / 'model.safetensors', net)."
                )
            restore(self.work, self.counters, self.best, state, record)
            self.records.history, self.records.epoch = list(record["history"]), int(record["epoch"])
            self.records.least = float(record["least"][0]), int(record["least"][1])
            self.records.seen = int(record["seen"][0]), float(record["seen"][1])
            self.records.trained = self.counters.counts[:, at.SAMPLES].copy()
            # With replicas the interrupted epoch restarts, so its losses are counted from zero.
            if self.work.replicas is not None:
                self.records.seen = self.counters.known_losses()
            self._earlier = float(record["seconds"])
            self.work = replace(self.work, earlier=self._earlier)
        except (KeyError, TypeError, ValueError, RuntimeError) as reason:
            raise CheckpointError(f"{folder}: the checkpoint is incomplete or inconsistent ({reason}).") from None
        end = completed(self.records.epoch, limit_reached(self.budget, self.records.epoch, self._earlier))
        self.event_log.emit("resumed", epoch=self.records.epoch, updates=self.counters.samples, **end)
