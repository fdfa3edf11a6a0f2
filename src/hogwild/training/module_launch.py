"""``minimise`` for a ``torch.nn.Module``: everything is laid out in shared memory, then workers are started."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from hogwild import runtimes, strategies
from hogwild.averages import EMA
from hogwild.errors import DataError, ParameterError
from hogwild.jsonable import to_jsonable
from hogwild.models.module import ModuleModel
from hogwild.problems.module import Module
from hogwild.registry import invalid_parameter
from hogwild.run import Budget, Callback, Run, budget_of
from hogwild.runtimes.processes import hogwild_worker
from hogwild.runtimes.processes.atomic_optimiser_step import fuse, needs_step_lock
from hogwild.runtimes.processes.config import Processes
from hogwild.runtimes.processes.ddp import process
from hogwild.runtimes.processes.optimiser_state import allocate_state, has_shareable_state
from hogwild.runtimes.processes.rng_state import ROOM
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.shared_tensors import move_to_shared_memory
from hogwild.runtimes.processes.worker_config import IterateAverage, WorkerConfig
from hogwild.strategies import Synchronous
from hogwild.training.checkpoints import Checkpoints
from hogwild.training.ddp_supervisor import TorchrunSupervisor, check_synchronous, rendezvous, torchrun_rank
from hogwild.training.event_log import EventLog
from hogwild.training.large_minibatch import exclude_norms_from_decay, scale_schedule
from hogwild.training.message_batches import minimise_module_by_messages
from hogwild.training.module_stopping import EpochRecorder
from hogwild.training.process_supervisor import ProcessSupervisor
from hogwild.training.sigint import deferred_sigint
from hogwild.training.torch_optimisers import describe_optimiser, optimiser_of, self_updating, step_size_of

EPOCHS = 10  # where nothing limits a run


def minimise_module(
    problem: Module,
    rule: Any,
    schedule: Any,
    strategy: Any,
    runtime: Any,
    budget: Budget | int | None,
    *,
    test: Any,
    average: float | EMA,
    seed: int,
    callbacks: Iterable[Callback],
    checkpoint: Any,
    resume: bool,
) -> Run:
    """Train a model with processes, or by messages where the runtime is for those; see :func:`hogwild.minimise`."""
    strategy, budget = strategies.named(strategy), budget_of(budget)
    if budget.epochs is None and budget.seconds is None:
        budget = replace(budget, epochs=EPOCHS)
    runtime = _runtime(runtime, strategy)
    _check_memory(problem, strategy, runtime)
    if runtime.passes_messages:
        return minimise_module_by_messages(
            problem, rule, schedule, strategy, runtime, budget, test=test, average=average, seed=seed,
            callbacks=callbacks, checkpoint=checkpoint, resume=resume,
        )  # fmt: skip
    _check(problem, strategy, runtime, budget, test, average)
    rank, workers = torchrun_rank(strategy) or (None, strategies.worker_count(strategy))
    folder = _checkpoints(checkpoint, resume)
    optimiser = optimiser_of(rule, problem)
    recipe = strategy.recipe
    if recipe is not None and not recipe.decay_norms:
        exclude_norms_from_decay(optimiser, problem.net)
    chosen = scale_schedule(schedule, recipe)
    labels = problem.labels()
    samples = problem.samples_of_epoch(workers, labels)
    if samples == 0:
        raise DataError(
            f"no worker has a whole batch of {problem.batch} samples, and smaller ones are dropped",
            remedy="Use a smaller batch, fewer workers, or a DataLoader without drop_last.",
        )
    rate = step_size_of(chosen, optimiser, samples, budget, _total(strategy, problem, workers))
    if rank:  # only the first of those that a launcher has started tells and writes anything
        callbacks, folder = (), None
    journal = EventLog(callbacks)
    asked = to_jsonable({
        **problem.describe(), "rule": describe_optimiser(optimiser), "schedule": repr(chosen), "average": repr(average),
        "seed": seed, "shapes": [list(tensor.shape) for tensor in problem.net.parameters()],
    })  # fmt: skip
    if isinstance(strategy, Synchronous):  # a checkpoint of another kind has workers at different steps
        asked["together"] = repr(replace(strategy, workers=None))
    journal.tell("started", time=time.time(), **asked, strategy=repr(strategy), workers=workers, runtime=repr(runtime),
                 budget=repr(budget))  # fmt: skip
    if not has_shareable_state(optimiser):
        _tell_of_memories(journal, optimiser, strategy, folder)
    access = _access(strategy, optimiser, workers, journal)
    steps = _whole_steps(problem, strategy, optimiser, workers)
    values = [*problem.net.parameters(), *problem.net.buffers()]
    memory = allocate_state(optimiser)
    replicas = [[torch.empty_like(tensor) for tensor in values] for _ in range(workers if strategy.replicas else 0)]
    mean = None if not average else IterateAverage(
        [tensor.detach().clone() for tensor in problem.net.parameters()],
        0.0 if isinstance(average, EMA) else 1 - average, average.decay if isinstance(average, EMA) else None,
    )  # fmt: skip
    best = [tensor.detach().clone() for tensor in values] if budget.patience else None
    random = torch.zeros((workers, ROOM), dtype=torch.uint8)
    arena = move_to_shared_memory([
        *values, *memory, *(mean.tensors if mean else ()), *(best or ()), *(one for some in replicas for one in some),
        random,
    ])  # fmt: skip
    board = SharedCounters(workers)
    try:
        with rendezvous(strategy, runtime, rank) as together, deferred_sigint() as interrupt:
            work = WorkerConfig(
                problem, optimiser, rate, budget.epochs, seed, workers, runtime.threads_for(workers),
                access, replicas or None, mean, labels, random, resume, together, steps=steps,
            )  # fmt: skip
            records = EpochRecorder(board, rate, budget, mean, watches_test=test is not None)
            watch = (ProcessSupervisor if rank is None else partial(TorchrunSupervisor, rank=rank))(
                work, arena, board, runtime, budget, test, best, journal, folder, asked, records,
                run_worker=hogwild_worker.run_hogwild_worker if together is None else process.run_ddp_worker,
                interrupt=interrupt,
            )  # fmt: skip
            if folder is not None and resume:
                watch.restore()
            watch.run()
    finally:
        arena.close()
        board.block.close()
    asked |= {"strategy": repr(strategy), "workers": workers, "budget": repr(budget)}
    return Run(
        ModuleModel(problem.net, asked), asked, records.history, journal.events, watch.stop_reason,
        (problem.net.state_dict(), optimiser.state_dict()), watch.seconds, 0.0,
    )  # fmt: skip


def _check(
    problem: Module, strategy: Any, runtime: Processes, budget: Budget, test: Any, average: float | EMA
) -> None:  # fmt: skip
    """Refuse what cannot work before anything starts."""
    if isinstance(strategy, Synchronous):
        check_synchronous(runtime)
    elif not strategy.shares_memory:
        raise invalid_parameter("strategy", "a strategy such as Hogwild(workers=4) or its name", strategy)
    if budget.patience and test is None:
        raise ParameterError("The 'patience' of a budget counts epochs without a better held-out loss: give test data.")
    if test is not None and len(problem.feed(test)) == 0:
        raise DataError("the test data has no samples")
    if budget.tolerance is not None:
        raise ParameterError(
            "The 'tolerance' of a budget is for problems in one memory: use 'patience' with test data."
        )
    if not isinstance(average, EMA) and not 0 <= average <= 1:
        raise invalid_parameter("average", "between 0 and 1, or EMA(decay)", average)
    if average and strategy.replicas:
        raise ParameterError("Averaging has a mean of its own: leave out 'average', or use another strategy.")


def _whole_steps(problem: Module, strategy: Any, optimiser: torch.optim.Optimizer, workers: int) -> Any:
    """What launches whole steps on a GPU, where a problem has such."""
    if not self_updating(problem.net) or isinstance(strategy, Synchronous):
        return None
    from hogwild.nn.cuda_graph_step import steps_for  # which imports what only sparse tables need

    return steps_for(problem, optimiser, workers)


def _check_memory(problem: Module, strategy: Any, runtime: Any) -> None:
    """Refuse to send gradients that are never made."""
    if self_updating(problem.net) and (runtime.passes_messages or isinstance(strategy, Synchronous)):
        raise ParameterError(
            "A table that is updated in the backward pass has no gradient to exchange: train it in one memory, with "
            f"Hogwild(), Averaging() or Serial(). Got {strategy!r} instead."
        )


def _runtime(runtime: Any, strategy: Any) -> Any:
    """Where workers run: processes, unless a strategy has none that share a model."""
    if runtime is None:
        shares = strategy.shares_memory or isinstance(strategy, Synchronous) or not strategy.passes_messages
        return Processes() if shares else runtimes.named("local")
    found = runtimes.named(runtime)
    if not found.trains_modules and not found.passes_messages:
        raise ParameterError(
            "A Module is trained by processes, or by messages: use runtime=Processes(), or Simulator() with a strategy "
            f"such as ParameterServer(). Got {found!r} instead."
        )
    return found


def _checkpoints(checkpoint: Any, resume: bool) -> Checkpoints | None:
    if checkpoint is None:
        if resume:
            raise ParameterError("To resume, say where the checkpoints are: checkpoint=FOLDER.")
        return None
    if isinstance(checkpoint, (str, os.PathLike)):
        return Checkpoints(Path(checkpoint))
    if not isinstance(checkpoint, Checkpoints):
        raise invalid_parameter("checkpoint", "a folder, or Checkpoints(folder, seconds)", checkpoint)
    return checkpoint


def _access(strategy: Any, optimiser: torch.optim.Optimizer, workers: int, journal: EventLog) -> str:
    """How workers keep out of each other's way: as the strategy says, unless half a step would spoil another's."""
    access = strategy.access if strategy.shares_memory else "apart"  # apart: each has parameters of its own
    if access != "free" or strategy.replicas or workers == 1:
        return access
    fuse(optimiser)
    if not needs_step_lock(optimiser):
        return access
    name = type(optimiser).__name__
    journal.tell("steps", message=f"steps of {name} are applied one at a time: half of one would spoil another's")
    return "locked"


def _tell_of_memories(journal: EventLog, optimiser: Any, strategy: Any, folder: Checkpoints | None) -> None:
    name = type(optimiser).__name__
    if not isinstance(strategy, Synchronous):
        journal.tell("memories", message=f"what {name} remembers cannot be shared: each worker has a memory of its own")
    elif folder is not None:
        journal.tell("memories", message=f"what {name} remembers is not in checkpoints: it is forgotten on resuming")


def _total(strategy: Any, problem: Module, workers: int) -> int:
    """How many samples a step takes."""
    assert problem.batch is not None
    return strategy.total(problem.batch, workers) if isinstance(strategy, Synchronous) else problem.batch
