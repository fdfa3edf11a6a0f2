"""Driver of message-passing runs that train a PyTorch module."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from hogwild.errors import DataError, ParameterError
from hogwild.events import EventLog, Parameters
from hogwild.files import format_size, to_jsonable
from hogwild.machine import usable_cores
from hogwild.messaging.deltas import Floats, frozen
from hogwild.models.module import ModuleModel
from hogwild.nn.batch_loader import BatchLoader
from hogwild.nn.memory_footprint import MemoryFootprint, bytes_of, gradient_bytes
from hogwild.problems.module import Module
from hogwild.run import Run
from hogwild.runtimes import Local, Runtime, Simulator
from hogwild.runtimes.processes import rng_state
from hogwild.runtimes.processes.optimiser_state import state_tensors, unallocated_bytes
from hogwild.strategies.strategy import Strategy
from hogwild.training.batch_trainer import BatchSource, BatchTrainer, FlatParameters
from hogwild.training.job import Job
from hogwild.training.message_launch import LocalTask, MessageCheckpointer, epochs, run_message_strategy
from hogwild.training.torch_optimisers import check_gradients, describe_optimiser, optimiser_of, step_size_of


def run(job: Job) -> Run:
    """Train a module by message passing.

    Every worker has its own copy of the model and its own optimiser: n workers hold n of each in memory. An update is
    the step of one minibatch.

    Workers exchange parameters and floating-point buffers, in single precision. Workers do not exchange the state of
    their optimisers. Checkpoints contain that state, and a worker that crashes loses it.

    The workers themselves read the samples, however many reader processes a ``DataLoader`` asks for. After each epoch
    the loss of all training data is evaluated.
    """
    assert isinstance(job.problem, Module)
    problem, schedule, strategy, runtime, budget = job.problem, job.schedule, job.strategy, job.runtime, job.budget
    seed, average, workers = job.options.seed, job.options.average, job.workers
    check_gradients(job)
    if job.options.test is not None and len(problem.feed(job.options.test)) == 0:
        raise DataError("the test data has no samples")
    if problem.in_sequence:
        raise ParameterError(
            "Workers that send each other messages read different places of the data in turn, and the files of a "
            "RecordLoader can be read only from beginning to end: pack the files (hogwild pack), and give "
            "CSRDataset(folder)."
        )
    optimiser = optimiser_of(job.rule, problem)
    _check_memory(problem, optimiser, runtime, workers)
    labels = problem.labels()
    samples, batch = problem.samples_of_epoch(workers, labels), problem.batch or 1
    # Changes that are added in full are damped below, so that together they are one step of all workers.
    total = strategy.total(batch, workers) * (workers if sums_updates(strategy) else 1)
    rate = step_size_of(schedule, optimiser, samples, budget, total)
    damping = 1 / workers if sums_updates(strategy) else 1.0
    keeper = MessageCheckpointer(job)
    remembers = keeper.checkpoints is not None
    batches = BatchSource(problem, optimiser, rate, seed, workers, labels, damping, remembers)
    event_log = EventLog(job.options.callbacks)
    config = to_jsonable({
        **problem.describe(), "rule": describe_optimiser(optimiser), "schedule": repr(schedule), "average": average,
        "seed": seed, "shapes": [list(tensor.shape) for tensor in problem.net.parameters()],
    })  # fmt: skip
    at = {"at": 0.0} if runtime.simulated_time else {"time": time.time()}
    event_log.emit("started", **config, strategy=repr(strategy), workers=workers, runtime=repr(runtime),
                 budget=repr(budget), **at)  # fmt: skip
    keeper.begin(config | {"strategy": repr(strategy), "workers": workers, "epochs": budget.epochs}, event_log)
    with _threads(1 if runtime.simulated_time else threads_per_worker(workers)), _generators():

        def make_task(scale: float) -> LocalTask:
            return task_of_batches(replace(batches, scale=scale), job.options.test)

        outcome = run_message_strategy(make_task, job, None, budget, event_log, keeper)
    assert outcome.values is not None
    FlatParameters(problem.net).put(outcome.values)
    config |= {"strategy": repr(strategy), "workers": workers, "budget": repr(budget)}
    history = keeper.history + epochs(event_log)
    state = problem.net.state_dict(), optimiser.state_dict()
    return Run(
        ModuleModel(problem.net, config), config, history, event_log.events, outcome.reason, state, outcome.seconds, 0.0
    )


def _check_memory(problem: Module, optimiser: torch.optim.Optimizer, runtime: Runtime, workers: int) -> None:
    """Raise ParameterError if the workers in this process need more memory than there is.

    On a cluster, each node has a memory of its own.
    """
    if not isinstance(runtime, (Local, Simulator)):
        return
    net = problem.net
    values = bytes_of([*net.parameters(), *net.buffers()])
    state = unallocated_bytes(optimiser) + bytes_of(state_tensors(optimiser))
    parts = {
        f"networks of {workers} workers": workers * values,
        "their gradients": workers * gradient_bytes(net),
        "the states of their optimisers": workers * state,
        "copies to evaluate and to send": 3 * values,
    }
    MemoryFootprint(parts, problem.device).check(
        f"Training this network of {format_size(values)} by messages",
        "Use fewer workers, a smaller network, or an optimiser with less state; in one memory, Hogwild() has one copy "
        "for all workers.",
    )


def task_of_batches(batches: BatchSource, test: Any) -> LocalTask:
    """Return the task of training on minibatches.

    Each incarnation of a worker has its own trainer, which starts from the present parameters of the model.
    """
    problem = batches.problem
    start, parameters = FlatParameters(problem.net).values(), FlatParameters(problem.net).parameters
    spare = replace(problem, net=copy.deepcopy(problem.net))
    flat, feed = FlatParameters(spare.net), _read_here(problem.feed())
    held_out = None if test is None else _read_here(problem.feed(test))

    def measure(values: Floats, exactly: bool) -> dict[str, float]:
        if not np.isfinite(values).all():
            return {"loss": float("nan")}
        flat.put(values)
        figures = spare.measure(feed)
        figures["objective"] = figures["loss"]
        if held_out is not None:
            figures |= {f"test_{name}": value for name, value in spare.measure(held_out).items()}
        return figures

    shapes = [tuple(tensor.shape) for tensor in problem.net.parameters()]

    def read(values: Floats) -> Parameters:
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        parts = np.split(np.array(values[: ends[-1]]), ends[:-1])
        return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))

    return LocalTask(
        frozen(start), slice(parameters), batches.epoch, lambda worker: BatchTrainer(batches, feed), measure, read
    )


def sums_updates(strategy: Strategy) -> bool:
    """Return whether the deltas of all workers are added in full, instead of being averaged or mixed.

    >>> from hogwild.strategies import ElasticAveraging, ParameterServer
    >>> [sums_updates(each) for each in (ParameterServer(), ParameterServer(staleness=0), ElasticAveraging())]
    [True, False, False]
    """
    return not strategy.averages


def threads_per_worker(workers: int) -> int:
    """Return the number of arithmetic threads for each of ``workers`` workers in this process."""
    return max(1, usable_cores() // workers)


def _read_here(feed: BatchLoader) -> BatchLoader:
    """Return the loader without reader processes: a burst is too short to start processes for it."""
    feed.options = {}
    return feed


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Set PyTorch's number of threads for the block.

    A simulation uses one thread, so that sums are added in the same order in every run.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _generators() -> Iterator[None]:
    """Restore the states of all random number generators after the block, so that the caller's sequences continue."""
    before = rng_state.capture()
    try:
        yield
    finally:
        rng_state.restore(before)
