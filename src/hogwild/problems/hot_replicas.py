"""Buffers of workers that do not share their most frequent coordinates at every step."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.data.dataset import Chunk, Dataset
from hogwild.data.subsample import subsample
from hogwild.kernels.linear_replicated import BENT, DOOR, EVENT, LONGEST, PERIOD, SHORTEST, WAITING, WHOLE
from hogwild.problems.bound_kernel import QueueKernel

CACHED = 2**20  # bytes of a worker's two copies that are no burden to its cache
FREQUENT = 2**12  # coordinates that are worth a copy where there are too many for all
FIRST_TIER = 128  # coordinates that are merged every time
FIRST_ROWS = 32  # between two merges at the beginning, when there is most to learn from each other
FEWEST_ROWS = 1_000  # for each worker
WORTH = 8  # non-zeros for each number that is copied
LEAST_ROOM = 2**28  # bytes: copies, and the compiler of their loop, are not for those who are short of memory
LONGEST_ROWS = 512  # rows that a worker goes at most: rarer merges would save next to nothing
DENSE_ROWS = 128  # rows of dense data between two merges
POWERS = 12  # of a matrix at most, until its steepest direction stands out,
STEADY = 1e-4  # which it does when it gets steeper by no more than this
SAMPLED_ROWS = 2_000  # enough to know how large features are


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaLayout:
    """Which coordinates are hot, and how often they are merged."""

    by_rank: Array  # the hot coordinates, the most frequent first
    where: Array  #   the rank of every coordinate
    tiers: Array  #   where each tier of ranks begins; a row more for the end
    stiff: Array  #   how fast each tier's optimum is approached by a step of one
    period: int  #    rows between two merges
    dense: bool  #    whether a term touches everything

    def lookups(self, shares: Array) -> tuple[Array, Array]:
        """The rank of every coordinate, and the shares of the penalty, if there is one.

        Where all are hot nobody asks for ranks. Else both are in one table, so that one trip to memory brings both.
        """
        if self.everything:
            return np.empty((0, 2), np.uint32), shares
        table = np.zeros((len(self.where), 2), np.uint32)
        table[:, 0], beside = self.where, table.view(np.float32)
        if len(shares):
            beside[:, 1] = shares
        return table, beside

    @property
    def places(self) -> Array:
        """Where in a worker's copy the coordinate of each rank is: by number if all are there, else by rank."""
        return np.asarray(self.by_rank if self.everything else np.arange(len(self.by_rank)), np.uint32)

    @property
    def everything(self) -> bool:
        """Whether all coordinates are hot."""
        return len(self.by_rank) == len(self.where)


@dataclass(frozen=True, slots=True, eq=False)
class WorkerReplica:
    """What one worker has to itself."""

    copy: Array
    seen: Array  # what the shared rows were when it last met them
    control: Array

    def start(self, hot: Array, places: Array) -> None:
        """Begin with what all workers have."""
        self.copy[places] = hot
        self.seen[:] = hot


def rows_between_merges(data: Dataset, workers: int, dense: bool, width: int) -> int:
    """How many rows each worker goes between two merges; 0 where copies do not pay.

    Of few rows little is learnt before workers would meet, and copying takes longer than walking. ``width`` is how many
    numbers a coordinate has.
    """
    rows = data.n_rows
    copied = (
        WORTH * workers * count_hot(data.n_features, 4 * width, dense)
    )  # by every worker, before and after an epoch
    if rows < FEWEST_ROWS * workers or data.nonzeros < copied or data.room < LEAST_ROOM:
        return 0
    if dense:
        return DENSE_ROWS
    return max(1, min(LONGEST_ROWS, max(128, min(8_192, rows // 32)) // workers))


def replica_layout(data: Dataset, bytes_each: int, curvature: float, rows: int) -> ReplicaLayout:
    """Rank the coordinates and choose how many are hot; they are merged every so many ``rows``.

    >>> from hogwild.data import open
    >>> plan = replica_layout(open(np.eye(4, dtype=np.float32)[[0, 1, 1, 2, 2, 2]], np.zeros(6)), 8, 0.25, 16)
    >>> plan.tiers, plan.period, plan.everything
    (array([0, 4]), 16, True)
    """
    features = data.n_features
    few = subsample(data, SAMPLED_ROWS).rows
    dense = few.layout == "dense"
    hots = count_hot(features, bytes_each, dense)
    # A stable sort, so that equals are in the same order everywhere; in dense rows all are equally frequent.
    by_rank = np.arange(features) if dense else np.argsort(-data.frequencies(), kind="stable")
    where = np.empty(features, np.uint32)
    where[by_rank] = np.arange(features, dtype=np.uint32)
    tiers = np.array([0, hots]) if dense else _tiers(hots)  # of dense rows none is rarer
    if dense:
        stiff = [curvature * _steepest(few.values[few.indptr[0] : few.indptr[-1]].reshape(len(few), features))]
    else:
        present, (mean, square) = data.frequencies()[by_rank[:hots]] / data.n_rows, _moments(few)
        stiff = [
            curvature * _steepest_apart(mean, square, present[low:high]) for low, high in itertools.pairwise(tiers)
        ]
    return ReplicaLayout(by_rank[:hots], where, tiers, np.asarray(stiff, np.float32), rows, dense)


def count_hot(features: int, bytes_each: int, dense: bool) -> int:
    """How many coordinates are hot; of dense data all, because a dense row is stepped as a whole.

    >>> count_hot(50_000, 8, dense=False), count_hot(4_000_000, 8, dense=False)
    (50000, 4096)
    """
    return features if dense or 2 * features * bytes_each <= CACHED else min(FREQUENT, features)


def _steepest(table: Any) -> float:
    """The largest eigenvalue of the second moments of some columns, by power iteration.

    >>> round(_steepest(np.array([[3.0, 0.0], [0.0, 1.0]])), 3)
    4.5
    """
    direction, length = (
        np.ones(table.shape[1], table.dtype),
        0.0,
    )  # of one type: einsum would convert the table each time
    for _ in range(POWERS):
        # einsum, because the threads of a BLAS would look out for more work for a while, on the workers' cores.
        direction = np.einsum("ij,i->j", table, np.einsum("ij,j->i", table, direction)) / table.dtype.type(len(table))
        before, length = length, float(np.sqrt(np.square(direction, dtype=np.float64).sum()))
        if abs(length - before) <= STEADY * length:
            break
        direction = direction / table.dtype.type(length)
    return length


def _steepest_apart(mean: float, square: float, present: Array) -> float:
    """The same of columns that are present in these shares of the rows, apart from each other, with such values.

    Not measured as it is for dense rows: rare columns that met in one row of a sample would look like one.
    """
    return float(max(mean**2 * np.square(present).sum(), square * present.max()))


def _moments(few: CSRRows) -> tuple[float, float]:
    """The mean of the values that are stored, and that of their squares."""
    if few.layout == "binary":
        return 1.0, 1.0
    values = few.values[few.indptr[0] : few.indptr[-1]]
    return float(np.mean(values)), float(np.mean(np.square(values)))


def _tiers(hots: int) -> Array:
    """Bounds of tiers of which each has twice as many coordinates as the one before.

    >>> _tiers(1000)
    array([   0,  128,  256,  512, 1000])
    """
    bounds = [0]
    while bounds[-1] < hots:
        bounds.append(min(hots, max(FIRST_TIER, 2 * bounds[-1])))
    return np.array(bounds, np.int64)


@dataclass(eq=False)
class HotReplicas:
    """The shared copy of the hot coordinates, ranked, and every worker's own."""

    plan: ReplicaLayout
    kernel: Any
    rest: Callable[..., tuple[Any, ...]]  # (state, hot, own, door) -> what the kernel gets besides the data
    merge: Any  # (what the kernel gets besides the data, steps): all of a worker's copy
    workers: int
    width: int  # how many numbers a coordinate has
    hot: Array = field(init=False)
    own: list[WorkerReplica] = field(init=False)
    door: Array = field(init=False)  # whether somebody is merging the most frequent
    rate: Any = field(default_factory=np.float32)  # how large steps are at present

    def __post_init__(self) -> None:
        shape = len(self.plan.by_rank), self.width
        # Where a term touches everything, numbers of a kind lie side by side; else those of a coordinate do.
        order: Literal["F", "C"] = "F" if self.plan.dense else "C"
        self.hot = np.zeros(shape, np.float32, order=order)
        self.door = np.zeros(2 * DOOR, np.int64)
        self.own = [
            WorkerReplica(
                np.zeros(shape, np.float32, order=order),
                np.zeros(shape, np.float32, order=order),
                np.zeros(64, np.int64),  # more than there is to count, so that no two workers' are in one cache line
            )
            for _ in range(self.workers)
        ]
        for number, own in enumerate(self.own):  # so that they do not all merge at the same time, nor the same part
            shortest = min(FIRST_ROWS, self.plan.period)
            own.control[WAITING] = number * shortest // self.workers
            own.control[EVENT] = number * 7_919
            own.control[PERIOD] = own.control[SHORTEST] = shortest
            own.control[LONGEST] = self.plan.period
            own.control[BENT] = WHOLE

    def compile(self, nothing: Chunk, state: Any) -> None:
        """Descend along a chunk without terms and merge what did not change, which compiles both."""
        self.gather(state, 0)
        self.descent(0)(nothing, np.empty(0, np.float32), state, np.zeros(1, np.int64))
        self.settle(0, state)

    def describe(self) -> dict[str, Any]:
        """What was chosen, for records."""
        return {"coordinates": len(self.plan.by_rank), "of": len(self.plan.where), "rows": self.plan.period}

    def gather(self, state: Any, rate: Any) -> None:
        """Take the hot coordinates from the parameters, every worker too; steps are about as large as ``rate``."""
        self.take(state)
        self.rate = np.float32(rate)
        for own in self.own:
            own.start(self.hot, self.plan.places)

    def take(self, state: Any) -> None:
        """Take the hot coordinates from the parameters; workers still have to."""
        self.hot[:] = state[0][self.plan.by_rank]

    def settle(self, worker: int, state: Any) -> None:
        """Merge what a worker still has to itself."""
        self.merge(self.rest(state, self.hot, self.own[worker], self.door), np.full(1, self.rate, np.float32))

    def scatter(self, state: Any) -> None:
        """Put the hot coordinates back, when all workers have settled."""
        state[0][self.plan.by_rank] = self.hot

    def descent(self, worker: int) -> QueueKernel:
        """How one worker descends."""

        def rest(state: Any, sync: Array) -> tuple[Any, ...]:
            return self.rest(state, self.hot, self.own[worker], self.door)

        return QueueKernel(self.kernel, rest)
