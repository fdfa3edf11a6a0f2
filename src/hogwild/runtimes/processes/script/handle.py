"""Handle of a worker in the user's own training loop: its rank, its batches and its steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.utils.data import DataLoader

from hogwild.data.sampling import Indices, Split, WorkerShare
from hogwild.errors import ParameterError
from hogwild.nn.batch_loader import BatchLoader, batch_loader, check_sampler
from hogwild.problems.module import BATCH
from hogwild.registry import invalid_parameter
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.atomic_optimiser_step import concurrent_steps
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.write_policies import StepLock


class WorkerHandle:
    """Worker in a training loop of the user's own: its ``rank``, the number of ``workers``, and its part of the data.

    Examples
    --------
    See :func:`hogwild.shared`.
    """

    def __init__(
        self, rank: int, counters: SharedCounters, seed: int, check_peers: Callable[[], None] | None = None
    ) -> None:
        self.rank, self.workers = rank, counters.workers
        self._counters, self._seed, self._check_peers = counters, seed, check_peers
        self._epochs: dict[int, int] = {}  # number of epochs begun, by the number of samples of the data

    def __repr__(self) -> str:
        return f"<worker {self.rank} of {self.workers}>"

    @property
    def steps(self) -> int:
        """The number of optimiser steps that all workers together have taken in this block."""
        return self._counters.steps

    def split(self, data: object, batch: int | None = None) -> WorkerBatches:
        """Return this worker's batches of a data set or ``DataLoader``; each iteration over them is one epoch.

        All workers divide the same shuffle of the data among them, a new one in each epoch.

        Parameters
        ----------
        data : Dataset or DataLoader
            Data to divide. A loader's batch size, collate function, reading processes and ``drop_last`` are used.
        batch : int, optional
            Samples of a batch. The default is the loader's batch size, or 32 for a data set.

        Returns
        -------
        WorkerBatches
            An iterable of batches, whose length is the number of this worker's batches in one epoch.

        Raises
        ------
        ParameterError
            If ``batch`` is no positive integer, or if the loader has no batch size, or a sampler that does not draw
            each sample once.
        """
        return WorkerBatches(self, data, batch)

    def stop(self) -> None:
        """Stop all workers: their iterations over batches end before the next batch."""
        self._counters.flags[at.STOP] = 1

    def _stepped(self) -> None:
        self._counters.counts[self.rank, at.STEPS] += 1
        self._beat()

    def _beat(self) -> None:
        self._counters.beat(self.rank)
        if self._check_peers is not None:
            self._check_peers()

    def _share(self, samples: int, batch: int) -> WorkerShare:
        epoch = self._epochs.get(samples, 0)
        self._epochs[samples] = epoch + 1
        return WorkerShare(samples, *self._part(), epoch, self._seed, batch)

    def _part(self) -> tuple[int, int]:
        """Return the number of this worker's part of the data, and the number of parts.

        The data of a worker that has terminated is divided among the other workers.
        """
        running = list(self._counters.running())
        return running.index(self.rank), len(running)


class WorkerBatches:
    """Batches of one worker; each iteration is one epoch."""

    def __init__(self, worker: WorkerHandle, data: object, batch: int | None) -> None:
        loader = data if isinstance(data, DataLoader) else None
        self._worker, self._feed = worker, _feed(data, loader)
        self._batch, self._whole = _batch(loader, batch), loader is not None and loader.drop_last

    def __len__(self) -> int:
        """Return the number of this worker's batches in one epoch."""
        samples = len(self._feed) / self._batch
        batches = math.floor(samples) if self._whole else math.ceil(samples)
        part, parts = self._worker._part()
        return len(range(part, batches, parts))

    def __iter__(self) -> Iterator[Any]:
        worker = self._worker
        share = worker._share(len(self._feed), self._batch)
        for batch in self._feed.batches(self._wanted(share)):
            worker._beat()
            if worker._counters.flags[at.STOP]:
                return
            yield batch

    def _wanted(self, share: WorkerShare) -> Iterator[Indices]:
        for batch in Split().batches(share):
            if len(batch) == self._batch or not self._whole:
                yield batch


@contextmanager
def counted_steps(worker: WorkerHandle, optimizer: torch.optim.Optimizer, locked: bool) -> Iterator[None]:
    """Count the steps of an optimiser within the block; with ``locked``, lock out other workers during each step."""
    lock: AbstractContextManager[Any] = StepLock(worker.rank, worker._counters) if locked else nullcontext()
    concurrent = concurrent_steps(optimizer) if worker.workers > 1 and not locked else nullcontext()

    def before(*_: object) -> None:
        lock.__enter__()

    def after(*_: object) -> None:
        lock.__exit__(None, None, None)
        worker._stepped()

    hooks = optimizer.register_step_pre_hook(before), optimizer.register_step_post_hook(after)
    try:
        with concurrent:
            yield
    finally:
        for hook in hooks:
            hook.remove()
        lock.__exit__(None, None, None)  # A step that raised has not released the lock.


def _feed(data: object, loader: DataLoader[Any] | None) -> BatchLoader:
    feed = batch_loader(data if loader is None else loader.dataset, loader)
    if loader is not None:
        check_sampler(loader, "iterate over the loader itself, or split the data set")
    return feed


def _batch(loader: DataLoader[Any] | None, batch: int | None) -> int:
    if loader is not None and loader.batch_size is None:
        raise ParameterError("Workers cannot share this DataLoader, which has no batch size: split the data set.")
    found = batch or (BATCH if loader is None else loader.batch_size)
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise invalid_parameter("batch", "a positive integer", found)
    return found
