"""Monitor of conflicts between worker processes, by the tensors of a module and by blocks of rows of its tables.

A *unit* is what a worker reads and writes together: a tensor that the optimiser steps, or one row of a table of
embeddings. Every worker counts its own writes to each unit, so that every counter has one writer and needs no lock.
A worker that is killed loses at most the counts of its last update. Workers count in
:mod:`hogwild.runtimes.processes.watched_updates`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hogwild.errors import ParameterError
from hogwild.kernels.conflict_counters import CHANGED, LOST, MET, MISSED, OVERWRITTEN, WRITES, write_watched
from hogwild.nn.sparse_mlp import SparseTable
from hogwild.runtimes.shared_memory.conflict_monitor import MOMENTS, MOST

BLOCKS = 16  # largest number of blocks into which the rows of a table are divided
MOST_NUMBERS = 2**22  # largest number of parameters that the optimiser may step: each step copies them twice
MOST_STAMPS = 2**26  # largest number of counters of writes: rows of tables times workers
# Entries of a worker's ``counts``. UPDATES: its updates. COLLIDED: those of which another worker changed a unit between
# read and write.
UPDATES, COLLIDED = range(2)
PRECISIONS = (torch.float32, torch.float64)  # types of parameters whose writes can be counted
_WIDTH = 8  # 64-bit numbers in a cache line; each worker's counts have their own cache line

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WatchedTensor:
    """Parameter whose writes are counted: its units, and the groups in which they are reported."""

    name: str
    first: int  # number of its first unit
    units: int  # 1, or the number of rows of a table
    size: int  # parameters in one unit
    precision: torch.dtype
    group: int  # number of its first group
    groups: int  # 1, or the number of blocks of rows of a table

    def groups_of(self, rows: Counts) -> Counts:
        """Return the group of each of some units, which are numbered from 0 within this tensor."""
        return self.group + rows * self.groups // self.units

    def blocks(self) -> Iterator[tuple[str, int, int]]:
        """Yield the name of each group, and its first unit and the end of its units within this tensor.

        >>> list(WatchedTensor("table.weight", 0, 5, 8, torch.float32, 0, 2).blocks())
        [('table.weight[0:3]', 0, 3), ('table.weight[3:5]', 3, 5)]
        """
        ends = [-(-block * self.units // self.groups) for block in range(self.groups + 1)]
        for first, end in pairwise(ends):
            yield (self.name if self.units == 1 else f"{self.name}[{first}:{end}]"), first, end


@dataclass(frozen=True, slots=True, eq=False)
class ModuleConflictMonitor:
    """Conflict counters of one run of a module: a row of shared memory for each worker, and their sums."""

    layout: tuple[WatchedTensor, ...]
    expected: int  # expected updates of the run
    counts: Tensor  # UPDATES and COLLIDED of each worker
    stamps: Tensor  # writes of each worker to each unit
    histograms: Tensor  # updates of each worker by their staleness
    tallies: Tensor  # WRITES, MET, MISSED and LOST of each worker, for each group
    pictures: Tensor  # parameters that each worker wrote, in each interval of the run, for each group
    moved: Tensor  # sizes of each worker's changes, and of those by others that it overwrote unseen

    @classmethod
    def of(
        cls, net: nn.Module, optimiser: torch.optim.Optimizer, workers: int, updates: int
    ) -> ModuleConflictMonitor:  # fmt: skip
        """Return the monitor of a module, and compile the kernel that its workers need.

        Parameters
        ----------
        net : torch.nn.Module
            Network to train.
        optimiser : torch.optim.Optimizer
            Optimiser of its parameters.
        workers : int
            Number of worker processes.
        updates : int
            Expected number of updates of the run, by which it is divided into intervals.

        Raises
        ------
        ParameterError
            If the network is on a GPU, is too large, or has parameters whose writes cannot be counted.
        """
        layout = _layout(net, optimiser, workers)
        units, groups = sum(each.units for each in layout), sum(each.groups for each in layout)
        load_kernels(layout)  # Each worker would otherwise compile them.
        return cls(
            layout, max(1, updates), torch.zeros((workers, _WIDTH), dtype=torch.int64),
            torch.zeros((workers, units), dtype=torch.int32), torch.zeros((workers, MOST), dtype=torch.int64),
            torch.zeros((workers, groups, 4), dtype=torch.int64),
            torch.zeros((workers, MOMENTS, groups), dtype=torch.int64),
            torch.zeros((workers, _WIDTH), dtype=torch.float64),
        )  # fmt: skip

    @property
    def tensors(self) -> list[Tensor]:
        """The counters, which all processes must share."""
        return [self.counts, self.stamps, self.histograms, self.tallies, self.pictures, self.moved]

    @property
    def collided(self) -> int:
        """The number of updates of which another worker changed a unit between read and write."""
        return int(self.counts[:, COLLIDED].sum())

    @property
    def delays(self) -> Counts:
        """The staleness histogram of each worker, of shape (workers, ``MOST``)."""
        found: Counts = self.histograms.numpy().copy()
        return found

    @property
    def tally(self) -> Counts:
        """The counts of each group, of shape (groups, 4), summed over workers, as for rows but by parameters."""
        found: Counts = self.tallies.sum(0).numpy()
        return found

    @property
    def heat(self) -> Counts:
        """The number of writes, of shape (workers, ``MOMENTS``, groups)."""
        found: Counts = self.pictures.numpy().copy()
        return found

    @property
    def lost_change(self) -> float:
        """The share of all changes, by their sizes, that was overwritten unseen."""
        changed, overwritten = (float(self.moved[:, entry].sum()) for entry in (CHANGED, OVERWRITTEN))
        return overwritten / changed if changed else 0.0

    def groups(self) -> list[dict[str, Any]]:
        """Return the name, the size and the counts of each group, as plain values."""
        updates, written, tally, found = max(1, int(self.counts[:, UPDATES].sum())), self._written(), self.tally, []
        for each in self.layout:
            for number, (name, first, end) in enumerate(each.blocks(), each.group):
                row = tally[number]
                share = float(written[each.first + first : each.first + end].mean()) / updates
                found.append({
                    "name": name, "coordinates": (end - first) * each.size, "share_of_updates": share,
                    "writes": int(row[WRITES]), "met": int(row[MET]), "missed": int(row[MISSED]),
                    "lost": int(row[LOST]),
                })  # fmt: skip
        return found

    def predicted(self) -> dict[str, float]:
        """Return the conflicts to expect of updates that choose their units independently of each other.

        The share of updates that wrote each unit is counted. Two updates then have a unit in common with the square of
        this share as probability. The entries with the suffix ``_by_staleness`` follow from the measured staleness, the
        others from one update by each other worker between read and write.
        """
        histogram = self.delays.sum(0).astype(np.float64)
        updates, others = max(1.0, float(histogram.sum())), len(self.counts) - 1
        common = np.minimum(1.0, self._written() / updates) ** 2
        sizes = np.repeat([each.size for each in self.layout], [each.units for each in self.layout])
        shared = float(common @ sizes)  # parameters that two updates have in common on average
        with np.errstate(divide="ignore"):  # A tensor that every update writes has the logarithm of zero.
            apart = float(np.exp(np.log1p(-common).sum()))  # probability that two updates have no unit in common
        mean = float(histogram @ np.arange(MOST) / updates)
        return {
            "collided": 1 - apart**others, "missed": others * shared,
            "collided_by_staleness": float(histogram @ (1 - apart ** np.arange(MOST)) / updates),
            "missed_by_staleness": mean * shared,
        }  # fmt: skip

    def _written(self) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self.stamps.sum(0, dtype=torch.float64).numpy()
        return found


def load_kernels(layout: tuple[WatchedTensor, ...]) -> None:
    """Compile the kernel of counted writes for these tensors, or load it from disk if it is compiled already."""
    for precision in {tensor.precision for tensor in layout}:
        nothing = torch.zeros((0, 1), dtype=precision).numpy()
        write_watched(nothing, np.zeros(0, np.int64), nothing, nothing, np.zeros(0, np.int64), np.zeros(2))


def _layout(net: nn.Module, optimiser: torch.optim.Optimizer, workers: int) -> tuple[WatchedTensor, ...]:
    """Return the parameters that workers write, divided into units and groups; refuse what cannot be counted."""
    own = [module for module in net.modules() if getattr(module, "updates_in_backward", False)]
    if not all(isinstance(module, SparseTable) for module in own):
        raise ParameterError(
            "Writes in the backward pass can be counted for SparseTable only: leave out 'count_conflicts'."
        )
    tables = {id(module.weight) for module in net.modules() if _is_table(module)}
    stepped = {id(parameter) for group in optimiser.param_groups for parameter in group["params"]}
    written = stepped | {id(parameter) for module in own for parameter in module.parameters(recurse=False)}
    layout: list[WatchedTensor] = []
    first, group, copied = 0, 0, 0
    for name, parameter in net.named_parameters():
        if id(parameter) not in written or not parameter.requires_grad or not parameter.numel():
            continue
        if parameter.device.type != "cpu" or not parameter.is_contiguous() or parameter.dtype not in PRECISIONS:
            raise ParameterError(
                "Conflicts are counted for contiguous parameters of float32 or float64 in main memory: move the "
                f"network there, or leave out 'count_conflicts'. {name} is {parameter.dtype} on {parameter.device}."
            )
        units = len(parameter) if id(parameter) in tables else 1
        size, groups = parameter.numel() // units, min(units, BLOCKS)
        layout.append(WatchedTensor(name, first, units, size, parameter.dtype, group, groups))
        first, group = first + units, group + groups
        copied += parameter.numel() if id(parameter) in stepped else 0
    if copied > MOST_NUMBERS:
        raise ParameterError(
            f"To count conflicts, every step copies all parameters that the optimiser steps. Here they are {copied:,}, "
            f"and at most {MOST_NUMBERS:,} are taken: use a smaller network, or a SparseTable for embeddings."
        )
    if first * workers > MOST_STAMPS:
        raise ParameterError(
            f"To count conflicts, every worker counts its writes to each row of a table. {first:,} rows and {workers} "
            f"workers are {first * workers:,} counters, and at most {MOST_STAMPS:,} are taken: use fewer features, or "
            "fewer workers."
        )
    return tuple(layout)


def _is_table(module: nn.Module) -> bool:
    """Return whether an update writes only some rows of a module's weight."""
    return isinstance(module, SparseTable) or (isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.sparse)
