"""Updates of a worker process that count what other workers write between its read of the parameters and its write.

The optimiser steps a private copy of the parameters, and a kernel adds its changes to the shared ones. PyTorch's own
steps do the same in place: they add a change to what each number is at that moment. The updates are thus those of the
same algorithm, and one worker comes to the same bits as without counters.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from hogwild.kernels.conflict_counters import LOST, MET, MISSED, WRITES, write_watched
from hogwild.nn.sparse_mlp import Batch, SparseTable
from hogwild.nn.sparse_table_cpu import CPUEngine
from hogwild.runtimes.processes.conflict_monitor import (
    COLLIDED,
    UPDATES,
    Counts,
    ModuleConflictMonitor,
    WatchedTensor,
    load_kernels,
)
from hogwild.runtimes.shared_memory.conflict_monitor import MOMENTS, MOST


class WatchedUpdates:
    """Context of each update of a worker; within it, :meth:`step` takes the place of the optimiser's step."""

    def __init__(
        self, monitor: ModuleConflictMonitor, rank: int, net: nn.Module, optimiser: torch.optim.Optimizer
    ) -> None:
        load_kernels(monitor.layout)  # before training begins, whose time is measured
        self._expected, self._rank, self._optimiser = monitor.expected, rank, optimiser
        self._all_counts, self._stamps = monitor.counts.numpy(), monitor.stamps.numpy()
        self._counts, self._histogram = self._all_counts[rank], monitor.histograms[rank].numpy()
        self._tally, self._picture = monitor.tallies[rank].numpy(), monitor.pictures[rank].numpy()
        self._moved = monitor.moved[rank].numpy()
        by_name = {each.name: each for each in monitor.layout}
        watched = {id(part): by_name[name] for name, part in net.named_parameters() if name in by_name}
        stepped = [part for group in optimiser.param_groups for part in group["params"] if id(part) in watched]
        self._stepped: list[tuple[nn.Parameter, WatchedTensor]] = [(part, watched[id(part)]) for part in stepped]
        self._tables: list[WatchedTable] = []
        for module in net.modules():
            if isinstance(module, SparseTable) and id(module.weight) in watched:
                self._tables.append(WatchedTable(self, watched[id(module.weight)]))
                module.engine = self._tables[-1]
        self._seen: list[Counts] = []  # writes of others to the units of each stepped tensor, before the update's read
        self._since, self._behind = 0, 0  # updates of others before the update's read, and from then to its write
        # Writes of this update: tensor, units, changes of each by others that it had not seen, and lost parameters.
        self._writes: list[tuple[WatchedTensor, Counts, Counts, Counts]] = []

    def __enter__(self) -> None:
        self._writes = []
        self._since = self._updates_of_others()
        self._seen = [self.writes_of_others(tensor, slice(None)) for _, tensor in self._stepped]
        for table in self._tables:
            table.begin()

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is None and self._writes:
            self._histogram[min(self._behind, MOST - 1)] += 1
            self._counts[COLLIDED] += any(missed.any() for _, _, missed, _ in self._writes)
            # After the write, and outside of a lock that it may have needed: the counts take longer than the write.
            for write in self._writes:
                self._count(*write)

    def step(self) -> None:
        """Take a step of the optimiser on copies of the parameters, and add the changes to the shared ones."""
        moving = [
            (parameter, tensor, seen, parameter.data, parameter.detach().clone())
            for (parameter, tensor), seen in zip(self._stepped, self._seen, strict=True) if parameter.grad is not None
        ]  # fmt: skip
        try:
            for parameter, _, _, _, before in moving:
                parameter.data = before.clone()
            self._optimiser.step()
        finally:
            stepped = [parameter.data for parameter, *_ in moving]
            for parameter, _, _, shared, _ in moving:
                parameter.data = shared
        for (parameter, tensor, seen, shared, before), after in zip(moving, stepped, strict=True):
            table, old, new = (part.view(tensor.units, tensor.size) for part in (shared, before, after))
            rows = np.arange(tensor.units, dtype=np.int64)
            if parameter.grad is not None and parameter.grad.is_sparse and tensor.units > 1:
                rows = _written(parameter.grad, old, new)
                old, new = old[torch.from_numpy(rows)], new[torch.from_numpy(rows)]
            self.write(tensor, rows, table, old, new, seen[rows])
        self._behind = self._updates_of_others() - self._since
        self._counts[UPDATES] += bool(self._writes)

    def write(
        self, tensor: WatchedTensor, rows: Counts, shared: Tensor, before: Tensor, after: Tensor, seen: Counts
    ) -> None:
        """Add the changes ``after - before`` to the units ``rows``, and note the writes of others since ``seen``."""
        lost = np.zeros(len(rows), np.int64)
        write_watched(shared.numpy(), rows, before.numpy(), after.numpy(), lost, self._moved)
        self._writes.append((tensor, rows, self.writes_of_others(tensor, rows) - seen, lost))
        self._stamps[self._rank, tensor.first + rows] += 1

    def _count(self, tensor: WatchedTensor, rows: Counts, missed: Counts, lost: Counts) -> None:
        groups = tensor.groups_of(rows)
        for column, counted in ((WRITES, np.ones_like(rows)), (MET, np.sign(missed)), (MISSED, missed)):
            np.add.at(self._tally[:, column], groups, counted * tensor.size)
        np.add.at(self._tally[:, LOST], groups, lost)
        moment = min((int(self._all_counts[:, UPDATES].sum()) - 1) * MOMENTS // self._expected, MOMENTS - 1)
        np.add.at(self._picture[moment], groups, tensor.size)

    def writes_of_others(self, tensor: WatchedTensor, rows: Counts | slice) -> Counts:
        """Return the number of writes of all other workers to some units of a tensor."""
        stamps = self._stamps[:, tensor.first : tensor.first + tensor.units][:, rows]
        found: Counts = stamps.sum(0, dtype=np.int64) - stamps[self._rank]
        return found

    def _updates_of_others(self) -> int:
        return int(self._all_counts[:, UPDATES].sum() - self._counts[UPDATES])


class WatchedTable:
    """Engine of a sparse table that counts its writes: a batch moves copies of its rows, and then adds the changes."""

    def __init__(self, updates: WatchedUpdates, tensor: WatchedTensor) -> None:
        self._updates, self._tensor, self._inner = updates, tensor, CPUEngine()
        # Batches of the present update, their rows, and the writes of others to these before the batch read them.
        self._read: dict[int, tuple[Batch, Counts, Counts]] = {}

    def begin(self) -> None:
        """Forget the batches of the update before."""
        self._read.clear()

    def check(self, table: SparseTable) -> None:
        """Do as the usual engine."""
        self._inner.check(table)

    def look_up(self, table: SparseTable, batch: Batch) -> Tensor:
        """Note the writes of others to the rows of a batch, and return the weighted sum of each sample's rows."""
        rows = np.unique(batch.indices.numpy()).astype(np.int64)
        rows = rows[(rows >= 0) & (rows < self._tensor.units)]  # The usual engine reports rows that do not exist.
        self._read[id(batch)] = batch, rows, self._updates.writes_of_others(self._tensor, rows)
        return self._inner.look_up(table, batch)

    def descend(self, table: SparseTable, batch: Batch, gradient: Tensor) -> None:
        """Move copies of the batch's rows against their gradient, and add the changes to the table."""
        _, rows, seen = self._read.pop(id(batch))
        shared, squares, chosen = table.weight.data, table.squares, torch.from_numpy(rows)
        before, old_squares = shared[chosen], squares[chosen] if len(squares) else squares
        places = torch.from_numpy(np.searchsorted(rows, batch.indices.numpy())).to(batch.indices.dtype)
        try:
            table.weight.data, table.squares = before.clone(), old_squares.clone()
            self._inner.descend(table, Batch(places, batch.offsets, batch.values), gradient)
        finally:
            after, new_squares = table.weight.data, table.squares
            table.weight.data, table.squares = shared, squares
        if len(squares):
            accumulators, old, new = (part.view(-1, 1).numpy() for part in (squares, old_squares, new_squares))
            write_watched(accumulators, rows, old, new, np.zeros(len(rows), np.int64), np.zeros(2))
        self._updates.write(self._tensor, rows, shared, before, after, seen)


def _written(gradient: Tensor, before: Tensor, after: Tensor) -> Counts:
    """Return the rows that a step with a sparse gradient wrote: those with a gradient, and those that have changed."""
    written = (after != before).any(1)
    written[gradient.coalesce().indices()[0]] = True
    return np.flatnonzero(written.numpy()).astype(np.int64)
