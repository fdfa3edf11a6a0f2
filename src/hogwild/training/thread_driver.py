"""Driver of runs on threads in one memory: prepares a session for a problem of rows, trains, and returns the run."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from hogwild import strategies
from hogwild.data.dataset import Chunk, Dataset
from hogwild.events import EventLog
from hogwild.files import to_jsonable
from hogwild.problems.problem import RowProblem
from hogwild.rules.rule import Rule
from hogwild.run import Run, WarmStart
from hogwild.runtimes.shared_memory.conflict_monitor import ConflictMonitor
from hogwild.runtimes.shared_memory.threads import Session
from hogwild.schedules import with_step, with_total
from hogwild.signals import deferred_interrupts
from hogwild.stopping import Budget, DivergenceGuard, RecordInterval
from hogwild.strategies.strategy import Strategy
from hogwild.training.checkpoint_record import check_record
from hogwild.training.job import (
    Job,
    held_out_for,
    load_initial_state,
    resolve_schedule,
    warn_if_worse,
    with_chosen_step,
)
from hogwild.training.loop import TrainingLoop
from hogwild.training.run_report import conflict_monitor, conflict_report

LEAST_WORK = 2**16  # least number of non-zeros of an epoch for each worker: tenths of a millisecond of work
# Least work of a worker in the whole run, in multiples of ``LEAST_WORK``: several milliseconds, about the time to start
# and stop a worker.
STARTING = 32
GUARDED_ROWS = 512  # number of rows whose initial loss is the reference of the divergence guard


def run(job: Job) -> Run:
    """Train a problem of rows on threads of this process."""
    assert isinstance(job.problem, RowProblem)
    problem = job.problem.in_any_order() if job.runtime.uses_gpu else job.problem
    rule, schedule, strategy, options = job.rule, job.schedule, job.strategy, job.options
    seed, init, checkpoints, every = options.seed, options.init, job.checkpoints, RecordInterval.parse(options.every)
    budget = job.budget.for_data(problem.data.nonzeros + problem.data.n_features)
    held_out = held_out_for(problem, options.test)
    cores = 1 if job.runtime.uses_gpu else strategies.worker_count(strategy)
    # Delayed workers leave their cores to others. Several workers of SDCA need replicas, to lose no change.
    chosen = (strategy.workers is not None or job.runtime.delays_workers) and not rule.has_duals
    chosen = chosen or job.runtime.uses_gpu
    workers, why = (cores, "") if chosen else useful_workers(cores, problem, rule, strategy, budget)
    job.runtime.check_workers(workers)
    event_log = EventLog(options.callbacks)
    config = to_jsonable({
        **problem.describe(), "rule": repr(rule), "schedule": repr(schedule), "average": options.average, "seed": seed,
        "held_out": None if held_out is None else held_out.fingerprint,
        # Delays and records between epochs change the chunks, by whose numbers a checkpoint tells what is to come.
        **({"delayed": True} if job.runtime.delays_workers else {}),
        **({} if every.updates is None else {"every": every.updates}),
    })  # fmt: skip
    found = checkpoints.load(check_record) if checkpoints is not None and options.resume else None
    schedule = with_step(schedule, found[1]["step"]) if found is not None and found[1].get("step") else schedule
    schedule = resolve_schedule(problem, schedule)
    event_log.emit(
        "started", time=time.time(), **config, strategy=repr(strategy), workers=workers, runtime=repr(job.runtime),
        budget=repr(budget),
    )  # fmt: skip
    if workers < cores:
        event_log.emit(
            "workers", workers=workers, cores=cores, message=f"{why} done sooner by {workers} than by {cores}"
        )
    seen = conflict_monitor(problem, rule, strategy, workers, budget) if options.count_conflicts else None
    session = _session(job, problem, workers, seen)
    try:
        event_log.emit("compiled", seconds=session.compile_seconds)
        if session.planned is not None:
            event_log.emit("replicas", **session.planned.describe())
        if init is not None:
            load_initial_state(init, session.state)
            load_initial_state(WarmStart(problem.to_training_space(session.state, rule)), session.state)
        if found is None:
            schedule = with_chosen_step(
                problem, rule, schedule, budget, seed, workers, session.alone, held_out, event_log
            )  # fmt: skip
        schedule = with_total(schedule, strategy.total(1, workers))
        at_start = _loss_at_start(problem, session.state_to_read, seed)
        before = at_start if held_out is None else _loss_of(problem, held_out, session)
        assert isinstance(options.average, int | float)
        loop = TrainingLoop(
            problem, schedule, session, budget, held_out, options.average, seed, event_log, checkpoints, config,
            DivergenceGuard(at_start, factor=options.divergence_factor),
            partial(problem.from_training_space, rule=rule), shuffle=options.shuffle,
            every=every, measured=options.evaluate_every_epoch,
            earlier=0 if init is None else init.updates,
        )  # fmt: skip
        if found is not None:
            loop.restore(*found)
        elif options.resume:
            event_log.emit("resumed", epoch=0, chunk=0, message="there is no checkpoint yet: from the beginning")
        session.enable_replicas()
        event_log.emit("training", loss=at_start)
        with deferred_interrupts() as loop.interrupt:
            values = loop.run()
    finally:
        session.close()
    used = max((record.get("workers_used", 0) for record in loop.history), default=0)
    if 0 < used < workers:
        epochs = loop.position.epoch + (loop.position.chunk > 0)
        missing = session.planned is not None and session.buffers is None
        why = _why_idle(missing, missing and session.is_compiling, epochs, workers)
        event_log.emit("workers", workers=used, cores=cores, message=f"{used} of {workers} workers trained: {why}")
    warn_if_worse(before, loop.history[-1], event_log)
    if seen is not None:
        event_log.emit("conflicts", **conflict_report(seen, problem, seed))
    config |= {"schedule": repr(schedule), "strategy": repr(strategy), "workers": workers, "budget": repr(budget)}
    model = problem.model(problem.from_training_space(values, rule), config)
    return Run(
        model, config, loop.history, event_log.events, loop.stop_reason,
        problem.from_training_space(session.state_to_read, rule), loop.position.seconds, session.compile_seconds,
    )  # fmt: skip


def _session(job: Job, problem: RowProblem, workers: int, seen: ConflictMonitor | None) -> Any:
    """Return the parameters of the run, and the threads or the GPU that trains them."""
    if job.runtime.uses_gpu:
        from hogwild.problems.averaged_on_gpu import SHARES
        from hogwild.runtimes.cuda.session import CudaSession

        in_step = isinstance(job.strategy, strategies.Synchronous)
        shares = (job.strategy.workers or SHARES) if isinstance(job.strategy, strategies.Averaging) else 1
        return CudaSession(problem, job.rule, job.runtime.device_memory, in_step, shares)
    return Session(problem, job.rule, job.strategy, workers, seen, job.runtime.delay_streams(job.options.seed, workers))


def useful_workers(cores: int, problem: RowProblem, rule: Rule, strategy: Strategy, budget: Budget) -> tuple[int, str]:
    """Return the number of workers that make the run faster, and the reason for no more.

    Each worker needs enough work, per epoch and in the run, to be worth its start. Workers that cannot have replicas
    with this rule delay each other where parameters are few, and so do more workers than replicas pay for.
    """
    epochs = min(STARTING, budget.epochs or STARTING)
    workers = max(1, min(cores, problem.work * epochs // (STARTING * LEAST_WORK)))
    most = problem.max_workers(rule, workers) if strategy.buffer == "auto" else workers
    return most, "so little is" if most == workers else "what so many workers would write at the same time is"


def _why_idle(replicas_missing: bool, compiling: bool, epochs: int, workers: int) -> str:
    """Return the reason for which workers made no update in any epoch, and a setting with which all of them train.

    >>> _why_idle(False, False, 1, 4)
    'the others found no rows left in 1 epoch; use more rows, or fewer workers'
    """
    if compiling:
        return (
            "the run ended before the loop with hot replicas was compiled, without which several are rarely faster; "
            "it is being compiled now, once for this machine, and the next run has it"
        )
    if replicas_missing:
        return (
            "the loop with hot replicas, without which several are rarely faster, is compiled after some seconds of "
            f"training, over all runs; Hogwild({workers}, buffer=0), or --buffer 0, has no replicas, and all of its "
            "workers train from the start"
        )
    return f"the others found no rows left in {epochs} epoch{'s'[: epochs > 1]}; use more rows, or fewer workers"


def _loss_of(problem: RowProblem, data: Dataset, session: Session) -> float:
    return float(problem.metrics(session.measure(data, session.present))["loss"])


def _loss_at_start(problem: Any, state: Any, seed: int) -> float:
    data = problem.sampling.for_trials(problem.data).here()
    epoch, wanted, sums = data.epoch(seed, 0), min(GUARDED_ROWS, data.n_rows), 0.0
    for number in range(len(epoch)):
        chunk = epoch[number]
        sums = sums + problem.measure(Chunk(chunk.rows, chunk.order[:wanted]), state)
        wanted -= min(wanted, len(chunk.order))
        epoch.done(number)
        if not wanted:
            break
    loss: float = problem.metrics(sums)["loss"]
    return loss
