"""Replicas of hot coordinates, which workers step privately and merge periodically."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.dataset import Chunk, Dataset
from hogwild.data.frequent_first import Ranking, most_frequent, ranking
from hogwild.data.slices import in_slices
from hogwild.data.subsample import subsample
from hogwild.kernels.linear_dual import new_locks
from hogwild.kernels.linear_replicated import BENT, LINE, LONGEST, PACE, PERIOD, SHORTEST, WAITING, WHOLE, WORKER
from hogwild.parallel import in_parallel
from hogwild.problems.feature_tiers import eigenvalues
from hogwild.problems.problem import QueueKernel, State

# Bytes of a worker's two copies that do not burden its cache.
CACHED = 2**20
# Number of hot coordinates if there are too many coordinates to replicate all.
FREQUENT = 2**12
# Number of coordinates in the first tier, which every merge includes.
FIRST_TIER = 128
# Least number of rows between two merges: at the start of a run, when workers learn most from each other, and later
# where steps are long.
FIRST_ROWS = 8
UNKNOWN_PACE = 1e6  # Mean step before the first merge, so that all tiers are merged.
# Minimum number of rows per worker for replicas to pay.
FEWEST_ROWS = 1_000
# Minimum number of non-zeros for each number that is copied.
WORTH = 8
# Minimum bytes of free memory: replicas and the compiler of their loop need memory.
LEAST_ROOM = 2**28
# Maximum number of rows between two merges of a worker; rarer merges would save almost nothing.
LONGEST_ROWS = 512
# Number of rows between two merges for dense data.
DENSE_ROWS = 128
# Maximum number of power iterations for the largest eigenvalue.
POWERS = 12
# Relative change of the eigenvalue below which power iteration stops.
STEADY = 1e-4
# Number of rows sampled to estimate the magnitudes of features.
SAMPLED_ROWS = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaLayout:
    """Choice of the hot coordinates, and of how often they are merged."""

    by_rank: Array  # Hot coordinates, the most frequent first.
    where: Array  # Rank of every coordinate. Coordinates that are not hot have the number of hot ones.
    tiers: Array  # First rank of each tier, and the end of the last tier.
    stiff: Array  # Largest curvature of each tier.
    period: int  # Number of rows between two merges.
    dense: bool  # Whether a term touches every coordinate.

    def lookups(self, shares: Array) -> tuple[Array, Array]:
        """Return the rank of every coordinate, and the shares of the penalty if there is one.

        If all coordinates are hot, no kernel reads ranks. Otherwise both are in one table, so that one access to memory
        fetches both.
        """
        if self.everything:
            return np.empty((0, 2), np.uint32), shares
        table = np.zeros((len(self.where), 2), np.uint32)
        beside = table.view(np.float32)

        def fill(part: slice) -> None:
            table[part, 0] = self.where[part]
            if len(shares):
                beside[part, 1] = shares[part]

        in_slices(len(table), fill)
        return table, beside

    @property
    def places(self) -> Array:
        """The row of each rank in a worker's replica: the coordinate's number if all are hot, else the rank."""
        return np.asarray(self.by_rank if self.everything else np.arange(len(self.by_rank)), np.uint32)

    @property
    def everything(self) -> bool:
        """Whether all coordinates are hot."""
        return len(self.by_rank) == len(self.where)


@dataclass(frozen=True, slots=True, eq=False)
class WorkerReplica:
    """Private memory of one worker: its replica, the shared values at its last merge, and its counters."""

    copy: Array
    seen: Array  # Shared rows at the last merge.
    control: Array
    about_tiers: Array

    def start(self, hot: Array, places: Array) -> None:
        """Copy the shared values."""
        self.copy[places] = hot
        self.seen[:] = hot


def rows_between_merges(data: Dataset, workers: int, dense: bool, width: int) -> int:
    """Return the number of rows between two merges of a worker; 0 where replicas do not pay.

    ``width`` is the number of numbers per coordinate.
    """
    if workers > max_workers(data, dense, width) or data.room < LEAST_ROOM:
        return 0
    if dense:
        return DENSE_ROWS
    return max(1, min(LONGEST_ROWS, max(128, min(8_192, data.n_rows // 32)) // workers))


def max_workers(data: Dataset, dense: bool, width: int) -> int:
    """Return the largest number of workers for which replicas pay.

    A worker with fewer than ``FEWEST_ROWS`` rows has learnt almost nothing by its first merge, and copying takes longer
    than training.

    >>> from hogwild.data import open
    >>> data = open(np.ones((50_000, 100), np.float32), np.zeros(50_000))
    >>> max_workers(data, dense=True, width=1), max_workers(data.split(0.9, seed=0)[0], dense=True, width=1)
    (50, 5)
    """
    # Every worker copies the hot coordinates before and after an epoch.
    copied = WORTH * count_hot(data.n_features, 4 * width, dense)
    return min(data.n_rows // FEWEST_ROWS, data.nonzeros // max(1, copied))


def replica_layout(data: Dataset, bytes_each: int, curvature: float, rows: int) -> ReplicaLayout:
    """Rank the coordinates, and choose how many are hot; workers merge every ``rows`` rows.

    >>> from hogwild.data import open
    >>> plan = replica_layout(open(np.eye(4, dtype=np.float32)[[0, 1, 1, 2, 2, 2]], np.zeros(6)), 8, 0.25, 16)
    >>> plan.tiers, plan.period, plan.everything
    (array([0, 4]), 16, True)
    """
    features = data.n_features
    few = subsample(data, SAMPLED_ROWS).rows
    dense = few.layout == "dense"
    hots = count_hot(features, bytes_each, dense)
    # In dense rows, all coordinates are as frequent.
    if dense:
        ranked = Ranking(np.arange(features), np.arange(features, dtype=np.uint32))
    elif hots == features:
        ranked = ranking(data.frequencies())
    else:
        ranked = most_frequent(data.frequencies(), hots)
    tiers = np.array([0, hots]) if dense else _tiers(hots)  # All coordinates of dense rows are equally frequent.
    if dense:
        table = few.values[few.indptr[0] : few.indptr[-1]].reshape(len(few), features)
        stiff = curvature * np.array([_steepest(table)])
    else:
        stiff = curvature * eigenvalues(few, ranked.ranks, tiers)
    return ReplicaLayout(ranked.features[:hots], ranked.ranks, tiers, np.asarray(stiff, np.float32), rows, dense)


def count_hot(features: int, bytes_each: int, dense: bool) -> int:
    """Return the number of hot coordinates; for dense data, all are hot because a dense row is stepped as a whole.

    >>> count_hot(50_000, 8, dense=False), count_hot(4_000_000, 8, dense=False)
    (50000, 4096)
    """
    return features if dense or 2 * features * bytes_each <= CACHED else min(FREQUENT, features)


def _steepest(table: Array) -> float:
    """Return the largest eigenvalue of the second moments of a table's columns, by power iteration.

    >>> round(_steepest(np.array([[3.0, 0.0], [0.0, 1.0]])), 3)
    4.5
    """
    # The vector has the table's type, as einsum would otherwise convert the table each time.
    direction, length = (
        np.ones(table.shape[1], table.dtype),
        0.0,
    )
    for _ in range(POWERS):
        # The threads of a BLAS keep spinning on the workers' cores after a call, so einsum is used instead.
        direction = np.einsum("ij,i->j", table, np.einsum("ij,j->i", table, direction)) / table.dtype.type(len(table))
        before, length = length, float(np.sqrt(np.square(direction, dtype=np.float64).sum()))
        if abs(length - before) <= STEADY * length:
            break
        direction = direction / table.dtype.type(length)
    return length


def _tiers(hots: int) -> Array:
    """Return the bounds of tiers, of which each is twice the bound before.

    >>> _tiers(1000)
    array([   0,  128,  256,  512, 1000])
    """
    bounds = [0]
    while bounds[-1] < hots:
        bounds.append(min(hots, max(FIRST_TIER, 2 * bounds[-1])))
    return np.array(bounds, np.int64)


@dataclass(eq=False)
class HotReplicas:
    """Shared values of the hot coordinates, ordered by rank, and every worker's replica."""

    plan: ReplicaLayout
    kernel: Any
    # (state, hot, own, locks, places, shares) -> the arguments of the kernel after the data.
    rest: Callable[..., tuple[Any, ...]]
    # (arguments of the kernel after the data, step sizes) -> merges the whole replica of a worker.
    merge: Any
    workers: int
    width: int  # Number of numbers per coordinate.
    places: Array  # Row of each rank in a worker's replica.
    shares: Array  # Share of each coordinate's penalty in a term.
    hot: Array = field(init=False)
    own: list[WorkerReplica] = field(init=False)
    locks: Array = field(init=False)  # Locks of segments of coordinates.
    rate: Any = field(default_factory=np.float32)  # Current step size.

    def __post_init__(self) -> None:
        shape = len(self.plan.by_rank), self.width
        # If a term touches every coordinate, columns are contiguous, else the numbers of a coordinate are.
        order: Literal["F", "C"] = "F" if self.plan.dense else "C"
        self.hot = np.zeros(shape, np.float32, order=order)
        self.locks, tiers = new_locks(len(self.plan.by_rank)), len(self.plan.stiff)
        self.own = [
            WorkerReplica(
                np.zeros(shape, np.float32, order=order),
                np.zeros(shape, np.float32, order=order),
                # 64 counters are more than needed, so that no two workers' counters share a cache line.
                np.zeros(64, np.int64),
                np.zeros(2 * (tiers + LINE), np.float32)[: 2 * tiers].reshape(2, tiers),
            )
            for _ in range(self.workers)
        ]
        # Offsets keep workers from merging at the same time.
        for number, own in enumerate(self.own):
            shortest = min(FIRST_ROWS, self.plan.period)
            own.control[WAITING] = number * shortest // self.workers
            own.control[WORKER], own.about_tiers[PACE] = number, UNKNOWN_PACE
            own.control[PERIOD] = own.control[SHORTEST] = shortest
            own.control[LONGEST] = self.plan.period
            own.control[BENT] = WHOLE

    def compile(self, nothing: Chunk, state: State) -> None:
        """Compile descent and merge, by a descent along a chunk without terms and a merge without changes."""
        self.gather(state, 0)
        self.descent(0)(nothing, np.empty(0, np.float32), state, np.zeros(1, np.int64))
        self.settle(0, state)

    def describe(self) -> dict[str, Any]:
        """Return the chosen layout, for records."""
        return {"coordinates": len(self.plan.by_rank), "of": len(self.plan.where), "rows": self.plan.period}

    def gather(self, state: State, rate: float) -> None:
        """Copy the hot coordinates from the parameters, also to every worker's replica.

        ``rate`` is the current step size.
        """
        self.take(state)
        self.rate = np.float32(rate)
        in_parallel(lambda own: own.start(self.hot, self.places), self.own)

    def take(self, state: State) -> None:
        """Copy the hot coordinates from the parameters, but not to the workers' replicas."""
        self.hot[:] = state[0][self.plan.by_rank]

    def settle(self, worker: int, state: State) -> None:
        """Merge the remaining changes of a worker's replica."""
        self.merge(self._arguments(worker, state), np.full(1, self.rate, np.float32))

    def scatter(self, state: State) -> None:
        """Copy the hot coordinates back to the parameters, after all workers have settled."""
        state[0][self.plan.by_rank] = self.hot

    def descent(self, worker: int) -> QueueKernel:
        """Return the bound kernel of one worker."""

        def rest(state: State, sync: Array) -> tuple[Any, ...]:
            return self._arguments(worker, state)

        return QueueKernel(self.kernel, rest)

    def _arguments(self, worker: int, state: State) -> tuple[Any, ...]:
        return self.rest(state, self.hot, self.own[worker], self.locks, self.places, self.shares)

    @property
    def numbers(self) -> Array | None:
        """The rank of each feature; None where not all coordinates of sparse rows are hot."""
        return self.plan.where if self.plan.everything and not self.plan.dense else None

    def renumber(self) -> None:
        """Expect rows whose features are numbered by rank from now on."""
        self.places = np.arange(len(self.plan.by_rank), dtype=np.uint32)
        self.shares = self.shares[self.plan.by_rank] if len(self.shares) else self.shares

    def renumbered(self, values: State) -> State:
        """Return parameters for rows whose features are numbered by rank."""
        return values[0][self.plan.by_rank], *values[1:]
