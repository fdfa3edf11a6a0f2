"""The fit of one output by several workers, which begin when their work between two merges is worth a merge."""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.data.frequent_first import FrequentFirst
from hogwild.estimators.output_fit import INTERRUPTIBLE, OutputFit, check_finite
from hogwild.jit import compiled, is_cached
from hogwild.kernels import linear_epochs as loop
from hogwild.kernels import linear_parallel as workers
from hogwild.kernels.linear_build import train_part
from hogwild.losses import Loss
from hogwild.machine import spread_over_cores
from hogwild.problems.feature_tiers import SAMPLED_ROWS, largest_eigenvalues, tiers_of

# Replicas of 2^16 weights fit the second-level cache; up to EVERYTHING features, all have replicas.
REPLICATED, EVERYTHING = 2**16, 2**17
# Model of cost, in nanoseconds: of a row, of one of its entries, of a merge of the first tier, which takes longer with
# more workers, and of a weight in a merge of all tiers. A worker pays if it trains WORTH times as long as it merges.
ROW, ENTRY, MERGE, MERGE_WORKER, MERGE_WEIGHT, WORTH = 30.0, 1.8, 2000.0, 250.0, 2.0, 2.0
WORTH_THREADS = 2**20  # non-zeros of which an epoch takes longer than the start of threads
SHORT = 2**24  # values that a single worker passes over while the kernel of several is compiled, between two looks
COMPILING = "hogwild-compile"  # name of the thread
SMALLEST_FACTOR = 1e-5  # by which L2 multiplies all weights in a call

_shuffle = compiled(loop.shuffle)
_compiling: dict[Any, Future[None]] = {}  # kernels that are being compiled, each once


def replicated(features: int) -> int:
    """Return the number of features that have replicas.

    >>> replicated(50_000), replicated(1_000_000)
    (50000, 65536)
    """
    return features if features <= EVERYTHING else REPLICATED


@dataclass(frozen=True, slots=True, eq=False)
class ParallelFit:
    """Fit of one output by several workers."""

    fit: OutputFit
    rare_starts: Array
    tiers: Array
    eigenvalues: Array  # of second moments, times the curvature of the loss
    first_updates: Array  # number of the update at which each worker begins, in ascending order
    kernel: Any

    @classmethod
    def of(cls, fit: OutputFit, found: FrequentFirst, count: int, loss: Loss) -> ParallelFit:
        """Find the eigenvalues on which merges depend, and the first update at which merges pay."""
        rows, constants = fit.rows, fit.constants
        tiers = tiers_of(replicated(rows.features))
        weights = np.where(fit.targets > 0, constants[loop.POSITIVE_WEIGHT], constants[loop.NEGATIVE_WEIGHT])
        weights = weights[:SAMPLED_ROWS] * (fit.sample_weights[:SAMPLED_ROWS] if fit.sample_weights.size else 1.0)
        eigenvalues = largest_eigenvalues(rows, weights, tiers, threads=count)
        eigenvalues[0] += constants[loop.INTERCEPT_STEP] * weights.mean()
        eigenvalues = np.maximum(loss.curvature * eigenvalues, 1e-9)
        row = _row_cost(rows)
        counts = np.arange(2, count + 1)
        together = np.maximum(counts, WORTH * counts * (MERGE + MERGE_WORKER * counts) / row)  # rows between two merges
        begins = [_first_update(fit, 1 / (number * eigenvalues[0])) for number in together]
        kernel = train_part(rows.layout, loss.function, loss.ours)
        return cls(fit, found.rare_starts, tiers, eigenvalues, np.array([begins[0], *begins]), kernel)

    def train(self, epochs: int) -> None:
        """Train until the fit has converged, or for this number of epochs.

        Raises
        ------
        FloatingPointError
            If a parameter is not finite any more.
        """
        fit, progress = self.fit, self.fit.progress
        earlier, last = progress[loop.UPDATES], progress[loop.UPDATES] + epochs * len(fit.rows)
        starts = np.array([self._block_start(max(0.0, update - earlier)) for update in self.first_updates])
        if starts[0] >= last - earlier or self._decay(earlier + starts[0]) < SMALLEST_FACTOR:
            return fit.run(epochs)
        if not is_cached(self.kernel):
            self._train_while_compiling(epochs, earlier)
        fit.run(epochs, earlier + starts[0])
        if progress[loop.DONE] != loop.RUNNING or fit.epochs >= epochs:
            return None
        starts = np.maximum(starts, progress[loop.UPDATES] - earlier)
        # Workers compute losses before they know of each other's latest steps, so that losses rise when they begin.
        progress[[loop.BEST, loop.STALLED, loop.SQUARES]] = math.inf, 0, 0
        shared = SharedArrays.of(fit, starts[starts < last - earlier], int(self.tiers[-1]))
        with ThreadPoolExecutor(len(shared.first_blocks), thread_name_prefix="hogwild-fit") as pool:
            while progress[loop.DONE] == loop.RUNNING and fit.epochs < epochs:
                self._train_epochs(
                    shared, pool, min(epochs, fit.epochs + self._epochs_at_once(len(shared.first_blocks)))
                )
        check_finite(progress)
        return None

    def _train_epochs(self, shared: SharedArrays, pool: ThreadPoolExecutor, epochs: int) -> None:
        """Train by all workers until there are ``epochs`` complete epochs, or until the fit has converged."""
        fit, progress, control = self.fit, self.fit.progress, shared.control
        np.multiply(fit.weights, fit.weights.dtype.type(progress[loop.SCALE]), out=fit.weights)
        progress[[loop.SCALE, loop.SQUARES]] = 1.0, progress[loop.SQUARES] * progress[loop.SCALE] ** 2
        fit.constants[loop.MAX_EPOCHS], shared.losses[:, workers.SQUARED] = epochs, 0
        control[[workers.STOPPED, workers.READY]] = 0, fit.epochs + 2
        arguments = self._arguments(fit, shared, epochs * shared.blocks.shape[1])

        def part(worker: int) -> None:
            spread_over_cores(worker)
            try:
                self.kernel(*arguments, worker)
            except BaseException:
                control[workers.STOPPED] = 1  # The others stop after their current block.
                raise

        try:
            list(pool.map(part, range(len(shared.first_blocks))))
        except BaseException:
            control[workers.STOPPED] = 1
            raise
        progress[loop.INTERCEPT], control[workers.CLAIMED] = shared.bias[0], fit.epochs * shared.blocks.shape[1]

    def _arguments(self, fit: OutputFit, shared: SharedArrays, last_block: int) -> tuple[Any, ...]:
        """Return the arguments of the kernel but for the number of the worker."""
        return (
            *fit.rows.arrays[:3], self.rare_starts, fit.targets, fit.sample_weights, shared.blocks, fit.weights,
            shared.bias, shared.replicas, shared.seen, shared.losses, shared.control, self.tiers, self.eigenvalues,
            shared.first_blocks, fit.progress.copy(), fit.progress, fit.constants, last_block,
        )  # fmt: skip

    def _train_while_compiling(self, epochs: int, earlier: float) -> None:
        """Train by a single worker until the kernel of several workers is compiled, for the first time."""
        fit, progress = self.fit, self.fit.progress
        fit.run(epochs, earlier + self._block_start(1.0))  # compiles the loop of a single worker before
        if self.kernel not in _compiling:
            pool = ThreadPoolExecutor(1, thread_name_prefix=COMPILING)
            _compiling[self.kernel] = pool.submit(self._compile)
            pool.shutdown(wait=False)
        compiling = _compiling[self.kernel]
        rows = SHORT * len(fit.rows) // max(1, fit.rows.nonzeros)
        while progress[loop.DONE] == loop.RUNNING and fit.epochs < epochs and not compiling.done():
            fit.run(epochs, earlier + self._block_start(progress[loop.UPDATES] - earlier + rows))
        if compiling.done():
            _compiling.pop(self.kernel, None)
            compiling.result()

    def _compile(self) -> None:
        """Compile the kernel, by a call that claims no block and changes copies alone."""
        fit = self.fit
        twin = replace(
            fit, weights=np.zeros_like(fit.weights), progress=fit.progress.copy(), constants=fit.constants.copy()
        )
        shared = SharedArrays.of(twin, np.zeros(1), int(self.tiers[-1]))
        self.kernel(*self._arguments(twin, shared, 0), 0)

    def _block_start(self, update: float) -> float:
        """Return the number of the first update from ``update`` on with which a block begins."""
        rows, block = len(self.fit.rows), self.fit.constants[loop.BLOCK]
        if update == math.inf:
            return math.inf
        return float(update // rows * rows + min(rows, np.ceil(update % rows / block) * block))

    def _decay(self, update: float) -> float:
        """Return the factor by which L2 multiplies all weights in an epoch that begins with an update."""
        fit, constants = self.fit, self.fit.constants
        l2, last = constants[loop.ALPHA] * (1.0 - constants[loop.L1_RATIO]), update + len(fit.rows)
        return float(workers.decay_between(constants, fit.progress[loop.STEP], l2, update, last))

    def _epochs_at_once(self, count: int) -> int:
        """Return the number of epochs in a call, after which weights are multiplied by their common factor.

        A call must be short for Ctrl-C, and the factor must not be too small for the type of the weights.
        """
        decay = self._decay(self.fit.progress[loop.UPDATES])
        most = math.log(SMALLEST_FACTOR) / math.log(decay) if decay < 1 else math.inf
        return int(max(1, min(most, count * INTERRUPTIBLE // max(1, self.fit.rows.nonzeros))))


@dataclass(frozen=True, slots=True, eq=False)
class SharedArrays:
    """Arrays that workers share besides rows and weights. :mod:`hogwild.kernels.linear_parallel` describes them."""

    blocks: Array
    first_blocks: Array
    bias: Array
    replicas: Array
    seen: Array
    losses: Array
    control: Array

    @classmethod
    def of(cls, fit: OutputFit, starts: Array, replicated: int) -> SharedArrays:
        """Return the arrays for workers that begin with these updates, the first ones with the next update."""
        blocks, block, rows = _first_orders(fit), int(fit.constants[loop.BLOCK]), len(fit.rows)
        first_blocks = (starts // rows * blocks.shape[1] + np.ceil(starts % rows / block)).astype(np.int64)
        size, trained = -(-replicated // workers.LINE) * workers.LINE, int(fit.progress[loop.ROW]) // block
        replicas, seen = (np.empty((len(first_blocks), size), fit.weights.dtype) for _ in range(2))
        control = workers.new_control(size)
        control[workers.TRAINED + fit.epochs % 2 * workers.LINE] = trained
        control[workers.CLAIMED] = fit.epochs * blocks.shape[1] + trained
        losses, bias = np.zeros((len(first_blocks), 2 * workers.LINE)), fit.progress[[loop.INTERCEPT]]
        return cls(blocks, first_blocks, bias, replicas, seen, losses, control)


def _first_orders(fit: OutputFit) -> Array:
    """Return the first rows of blocks, in the order of the current epoch and in that of the next one."""
    block = int(fit.constants[loop.BLOCK])
    order, whole = fit.order[::block].astype(np.int64), len(fit.order) // block
    blocks = np.empty((2, len(order)), np.int64)
    for epoch in (fit.epochs, fit.epochs + 1):
        if epoch > fit.epochs or fit.progress[loop.ROW] == 0:
            _shuffle(order[:whole], np.uint32(fit.constants[loop.SEED]), 1)
        blocks[epoch % 2] = order
    return blocks


def useful_workers(rows: CSRRows, most: int) -> int:
    """Return the number of workers that train longer than they merge all weights, at most ``most``."""
    if rows.nonzeros < WORTH_THREADS:
        return 1
    merges = workers.LEAST_MERGES * MERGE_WEIGHT * replicated(rows.features)
    return max(1, min(most, int(len(rows) * _row_cost(rows) / (WORTH * merges))))


def _row_cost(rows: CSRRows) -> float:
    return ROW + ENTRY * rows.nonzeros / max(1, len(rows))


def _first_update(fit: OutputFit, step: float) -> float:
    """Return the number of the first update whose step size is at most ``step``; infinity if there is none."""
    constants, step_size = fit.constants, partial(loop.step_size, fit.constants, fit.progress[loop.STEP])
    if constants[loop.SCHEDULE] == loop.OPTIMAL:
        return max(0.0, float(1 / (constants[loop.STEP_ALPHA] * step) - constants[loop.T0]))
    low, high = 0.0, 2.0**40
    if step_size(high) > step:
        return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if step_size(middle) <= step else (middle, high)
    return high if step_size(0.0) > step else 0.0
