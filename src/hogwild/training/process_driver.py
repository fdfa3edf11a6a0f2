"""Driver of runs on processes: moves a PyTorch module into shared memory, and starts workers that train it."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from hogwild.errors import DataError
from hogwild.events import Callback, EventLog
from hogwild.files import format_size, to_jsonable
from hogwild.iterate_average import EMA
from hogwild.models.module import ModuleModel
from hogwild.nn.memory_footprint import MemoryFootprint, bytes_of, gradient_bytes
from hogwild.nn.step_profile import StepProfile
from hogwild.problems.module import Module
from hogwild.run import Run
from hogwild.runtimes.processes import Processes, hogwild_worker
from hogwild.runtimes.processes.atomic_optimiser_step import fuse, needs_step_lock
from hogwild.runtimes.processes.ddp import process
from hogwild.runtimes.processes.optimiser_state import allocate_state, has_shareable_state, unallocated_bytes
from hogwild.runtimes.processes.rng_state import ROOM
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.shared_tensors import move_to_shared_memory
from hogwild.runtimes.processes.worker_config import CapturedSteps, SharedAverage, WorkerConfig
from hogwild.signals import deferred_interrupts
from hogwild.stopping import RecordInterval
from hogwild.strategies.strategy import Strategy
from hogwild.training.checkpoints import Checkpoints
from hogwild.training.ddp_supervisor import TorchrunSupervisor, check_synchronous, rendezvous, torchrun_rank
from hogwild.training.epoch_recorder import EpochRecorder
from hogwild.training.job import Job
from hogwild.training.process_supervisor import ProcessSupervisor
from hogwild.training.run_report import module_conflict_report
from hogwild.training.torch_optimisers import (
    check_gradients,
    describe_optimiser,
    exclude_norms_from_decay,
    optimiser_of,
    scale_schedule,
    self_updating,
    step_size_of,
    trainable_parameters,
)

if TYPE_CHECKING:
    from hogwild.runtimes.processes.conflict_monitor import ModuleConflictMonitor


def run(job: Job) -> Run:
    """Train a module with worker processes."""
    assert isinstance(job.problem, Module)
    assert isinstance(job.runtime, Processes)
    problem, strategy, runtime, budget = job.problem, job.strategy, job.runtime, job.budget
    test, average, seed, resume = job.options.test, job.options.average, job.options.seed, job.options.resume
    callbacks: Iterable[Callback] = job.options.callbacks
    watches = job.options.count_conflicts
    check_gradients(job)
    if strategy.uses_all_reduce:
        check_synchronous(runtime)
    if test is not None and len(problem.feed(test)) == 0:
        raise DataError("the test data has no samples")
    rank, workers = torchrun_rank(strategy) or (None, job.workers)
    runtime.check_workers(workers)
    folder = job.checkpoints
    optimiser = optimiser_of(job.rule, problem)
    recipe = strategy.recipe
    if recipe is not None and not recipe.decay_norms:
        exclude_norms_from_decay(optimiser, problem.net)
    chosen = scale_schedule(job.schedule, recipe)
    labels = problem.labels()
    samples = problem.samples_of_epoch(workers, labels)
    watching = _conflict_monitor(problem, optimiser, workers, samples * (budget.epochs or 10)) if watches else None
    if samples == 0:
        raise DataError(
            f"no worker has a whole batch of {problem.batch} samples, and smaller ones are dropped",
            remedy="Use a smaller batch, fewer workers, or a DataLoader without drop_last.",
        )
    rate = step_size_of(chosen, optimiser, samples, budget, _total(strategy, problem, workers))
    if rank:  # of the workers that a launcher has started, only rank 0 emits events and writes checkpoints
        callbacks, folder = (), None
    event_log = EventLog(callbacks)
    config = to_jsonable({
        **problem.describe(), "rule": describe_optimiser(optimiser), "schedule": repr(chosen), "average": repr(average),
        "seed": seed, "shapes": [list(tensor.shape) for tensor in problem.net.parameters()],
    })  # fmt: skip
    # Checkpoints of asynchronous strategies have workers at different steps. The configuration tells both kinds apart.
    if strategy.uses_all_reduce:
        # Every strategy is a dataclass, which its base class cannot declare.
        config["together"] = repr(replace(strategy, workers=None))  # type: ignore[type-var]
    event_log.emit(
        "started", time=time.time(), **config, strategy=repr(strategy), workers=workers, runtime=repr(runtime),
        budget=repr(budget),
    )  # fmt: skip
    if not has_shareable_state(optimiser):
        _emit_state_notice(event_log, optimiser, strategy, folder)
    access = _access(strategy, optimiser, workers, event_log)
    # A captured step reads and writes in one launch, between which no worker can wait.
    steps = None if runtime.delays_workers else _captured_steps(problem, strategy, optimiser, workers)
    values = [*problem.net.parameters(), *problem.net.buffers()]
    _check_memory(job, optimiser, workers)
    state = allocate_state(optimiser)
    replicas = [[torch.empty_like(tensor) for tensor in values] for _ in range(workers if strategy.replicas else 0)]
    mean = None if not average else SharedAverage(
        [tensor.detach().clone() for tensor in problem.net.parameters()],
        0.0 if isinstance(average, EMA) else 1 - average, average.decay if isinstance(average, EMA) else None,
    )  # fmt: skip
    best = [tensor.detach().clone() for tensor in values] if budget.patience else None
    random = torch.zeros((workers, ROOM), dtype=torch.uint8)
    arena = move_to_shared_memory([
        *values, *state, *(mean.tensors if mean else ()), *(best or ()), *(one for some in replicas for one in some),
        random, *(watching.tensors if watching else ()),
    ])  # fmt: skip
    counters = SharedCounters(workers)
    try:
        with rendezvous(strategy, runtime, rank) as ddp, deferred_interrupts() as interrupt:
            work = WorkerConfig(
                problem, optimiser, rate, budget.epochs, seed, workers, runtime.threads_for(workers),
                access, replicas or None, mean, labels, random, resume, ddp, steps=steps, delay=runtime.delay,
                conflicts=watching,
            )  # fmt: skip
            every = RecordInterval.parse(job.options.every)
            records = EpochRecorder(counters, rate, budget, every, mean, watches_test=test is not None)
            supervisor = (ProcessSupervisor if rank is None else partial(TorchrunSupervisor, rank=rank))(
                work, arena, counters, runtime, budget, test, best, event_log, folder, config, records,
                run_worker=hogwild_worker.run_hogwild_worker if ddp is None else process.run_ddp_worker,
                interrupt=interrupt,
            )  # fmt: skip
            if folder is not None and resume:
                supervisor.restore()
            supervisor.run()
    finally:
        arena.close()
        counters.block.close()
    if watching is not None:
        event_log.emit("conflicts", **module_conflict_report(watching))
    config |= {"strategy": repr(strategy), "workers": workers, "budget": repr(budget)}
    return Run(
        ModuleModel(problem.net, config), config, records.history, event_log.events, supervisor.stop_reason,
        (problem.net.state_dict(), optimiser.state_dict()), supervisor.seconds, 0.0,
    )  # fmt: skip


def _check_memory(job: Job, optimiser: torch.optim.Optimizer, workers: int) -> None:
    """Raise ParameterError if the run needs more memory than there is, before it allocates any."""
    assert isinstance(job.problem, Module)
    net = job.problem.net
    parameters, gradients = bytes_of(net.parameters()), workers * gradient_bytes(net)
    values = parameters + bytes_of(net.buffers())
    copies = {
        "state of the optimiser": unallocated_bytes(optimiser),
        "average of the iterates": parameters if job.options.average else 0,
        "best parameters so far": values if job.budget.patience else 0,
        f"copies of {workers} workers": workers * values if job.strategy.replicas else 0,
    }
    # Memory that workers share holds all of it once more. Each worker has its gradients, after the originals are freed.
    shared = values + sum(copies.values())
    later = {f"gradients of {workers} workers": gradients} if gradients > shared else {"memory that is shared": shared}
    MemoryFootprint(copies | later, job.problem.device).check(
        f"Training this network of {format_size(values)}",
        "Use a smaller network, an optimiser with less state (SGD has none without momentum), or fewer workers; leave "
        "out 'average' and 'patience', which keep copies; of strategies, Hogwild() has one copy for all workers.",
    )


def _conflict_monitor(
    problem: Module, optimiser: torch.optim.Optimizer, workers: int, samples: int
) -> ModuleConflictMonitor:  # fmt: skip
    """Return a monitor of the conflicts of a run that is expected to draw ``samples`` samples in all."""
    # The import is here, because the monitor imports the kernels of sparse tables.
    from hogwild.runtimes.processes.conflict_monitor import ModuleConflictMonitor

    assert problem.batch is not None
    return ModuleConflictMonitor.of(problem.net, optimiser, workers, -(-samples // problem.batch))


def _captured_steps(
    problem: Module, strategy: Strategy, optimiser: torch.optim.Optimizer, workers: int
) -> Callable[[Any, torch.optim.Optimizer], CapturedSteps] | None:
    """Return the factory of CUDA-graph steps for a module with self-updating tables; None for other modules."""
    if not self_updating(problem.net) or strategy.uses_all_reduce:
        return None
    # The import is here, because the module ``cuda_graph_step`` imports dependencies that only sparse tables need.
    from hogwild.nn.cuda_graph_step import steps_for

    return steps_for(problem, optimiser, workers)


def _access(strategy: Strategy, optimiser: torch.optim.Optimizer, workers: int, event_log: EventLog) -> str:
    """Return the write policy of the optimiser's steps: the strategy's own, or "locked" where partial steps do harm.

    A step is partial when another worker's step reads the optimiser's state before all of it is written. Fused steps
    avoid that. An optimiser without one gets a lock.
    """
    access = strategy.access if strategy.shares_memory else "apart"  # "apart": each worker has its own parameters
    if access != "free" or strategy.replicas or workers == 1:
        return access
    fuse(optimiser)
    if not needs_step_lock(optimiser):
        return access
    name = type(optimiser).__name__
    event_log.emit("locked steps", message=f"steps of {name} are applied one at a time, because others read its state")
    return "locked"


def _emit_state_notice(
    event_log: EventLog, optimiser: torch.optim.Optimizer, strategy: Strategy, folder: Checkpoints | None
) -> None:
    name = type(optimiser).__name__
    if not strategy.uses_all_reduce:
        event_log.emit(
            "optimiser state", message=f"the state of {name} cannot be shared: each worker has a state of its own"
        )
    elif folder is not None:
        event_log.emit("optimiser state", message=f"the state of {name} is not in checkpoints, and is lost on resuming")


def _total(strategy: Strategy, problem: Module, workers: int) -> int:
    """Return the number of samples of one step."""
    assert problem.batch is not None
    return strategy.total(problem.batch, workers)


WARM_UP = 2  # number of first steps that are not counted


def profiled(problem: Module, steps: int = 20) -> StepProfile:
    """Run ``steps`` training steps with step size zero, and return the time of each part.

    The time includes the loading of the batches.

    >>> from torch.utils.data import TensorDataset
    >>> rows = TensorDataset(torch.ones(64, 3), torch.zeros(64, 1))
    >>> profiled(Module(torch.nn.Linear(3, 1), torch.nn.functional.mse_loss, rows, batch=8), steps=4).steps
    4
    """
    twin = replace(problem, net=copy.deepcopy(problem.net))
    optimiser = torch.optim.SGD(trainable_parameters(twin.net), lr=0.0)
    for module in self_updating(twin.net):
        follow: Any = module.follow
        follow(optimiser)
    profile, warm = StepProfile(twin.net), StepProfile()
    share = problem.share(0, 1, 0, 0, problem.labels())
    done = 0
    while done < steps + WARM_UP:
        batches = iter(problem.training.batches(problem.batches(share)))
        begun = time.perf_counter()
        for batch in batches:
            waited = time.perf_counter() - begun
            loss, _ = twin.loss(batch)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            if problem.device != "cpu":
                torch.cuda.synchronize()
            done += 1
            if done <= WARM_UP:
                profile.seconds = dict.fromkeys(profile.seconds, 0.0)
            (warm if done <= WARM_UP else profile).step(time.perf_counter() - begun, waited)
            if done >= steps + WARM_UP:
                break
            begun = time.perf_counter()
    return profile
