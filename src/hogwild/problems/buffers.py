"""Buffers of workers that do not share their most frequent coordinates at every step."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hogwild.data.dataset import Chunk, Dataset
from hogwild.data.rows import Array
from hogwild.data.sample import sample
from hogwild.kernels.buffered import EVENT, PERIOD, WAITING

CACHED = 2**20  # bytes of a worker's two copies that are no burden to its cache
FREQUENT = 2**13  # coordinates that are worth a copy where there are too many for all
FIRST_TIER = 128  # coordinates that are merged every time
SAMPLED_ROWS = 2_000  # enough to know how large features are


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Which coordinates are hot, and how often they are merged."""

    by_rank: Array  # the hot coordinates, the most frequent first
    where: Array  #   the rank of every coordinate
    tiers: Array  #   where each tier of ranks begins; a row more for the end
    stiff: Array  #   how fast each tier's optimum is approached by a step of one
    period: int  #    rows between two merges

    @property
    def everything(self) -> bool:
        """Whether all coordinates are hot."""
        return len(self.by_rank) == len(self.where)


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """What one worker has to itself."""

    copy: Array
    seen: Array  # what the shared rows were when it last met them
    control: Array
    places: Array  # the ranks of one row's coordinates

    def start(self, hot: Array) -> None:
        """Begin with what all workers have."""
        self.copy[:] = hot
        self.seen[:] = hot


def layout(data: Dataset, bytes_each: int, curvature: float, rows: int) -> Layout:
    """Rank the coordinates and choose how many are hot; they are merged every so many ``rows``.

    >>> from hogwild.data import open
    >>> plan = layout(open(np.eye(4, dtype=np.float32)[[0, 1, 1, 2, 2, 2]], np.zeros(6)), 8, 0.25, 16)
    >>> plan.tiers, plan.period, plan.everything
    (array([0, 4]), 16, True)
    """
    features = data.n_features
    few = sample(data, SAMPLED_ROWS).rows
    dense = few.layout == "dense"
    hots = features if 2 * features * bytes_each <= CACHED else min(FREQUENT, features)
    # A stable sort, so that equals are in the same order everywhere; in dense rows all are equally frequent.
    by_rank = np.arange(features) if dense else np.argsort(-data.frequencies(), kind="stable")
    where = np.empty(features, np.uint32)
    where[by_rank] = np.arange(features, dtype=np.uint32)
    tiers = _tiers(hots)
    columns = np.tile(np.arange(features), len(few)) if dense else few.indices[few.indptr[0] : few.indptr[-1]]
    values = np.ones(len(columns)) if few.layout == "binary" else few.values[few.indptr[0] : few.indptr[-1]]
    means, squares = (np.bincount(columns, weights, features) / len(few) for weights in (values, np.square(values)))
    stiff = [
        curvature * max(np.square(means[tier]).sum(), squares[tier].max())
        for tier in (by_rank[low:high] for low, high in itertools.pairwise(tiers))
    ]
    return Layout(by_rank[:hots], where, tiers, np.asarray(stiff, np.float32), rows)


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
class Buffers:
    """The shared copy of the hot coordinates, ranked, and every worker's own."""

    plan: Layout
    kernel: Any  # (chunk, rates, state, hot, own, plan) -> the loss
    settle: Any  # (rate, hot, own, plan): merge all of a worker's copy
    workers: int
    width: int  # how many numbers a coordinate has
    longest: int  # coordinates in one row, at most
    hot: Array = field(init=False)
    own: list[Own] = field(init=False)
    rate: Any = 0.0  # the last step that a worker took

    def __post_init__(self) -> None:
        shape = len(self.plan.by_rank), self.width
        self.hot = np.zeros(shape, np.float32)
        self.own = [
            Own(
                np.zeros(shape, np.float32),
                np.zeros(shape, np.float32),
                np.zeros(8, np.int64),
                np.zeros(self.longest, np.uint32),
            )
            for _ in range(self.workers)
        ]
        for number, own in enumerate(self.own):  # so that they do not all merge at the same time, nor the same part
            own.control[WAITING] = number * self.plan.period // self.workers
            own.control[EVENT] = number * 7_919
            own.control[PERIOD] = self.plan.period

    def describe(self) -> dict[str, Any]:
        """What was chosen, for records."""
        return {"coordinates": len(self.plan.by_rank), "of": len(self.plan.where), "rows": self.plan.period}

    def gather(self, state: Any) -> None:
        """Take the hot coordinates from the parameters."""
        self.hot[:] = state[0][self.plan.by_rank]
        for own in self.own:
            own.start(self.hot)

    def scatter(self, state: Any) -> None:
        """Merge what workers still have to themselves, and put the hot coordinates back."""
        for own in self.own:
            self.settle(self.rate, self.hot, own, self.plan)
        state[0][self.plan.by_rank] = self.hot

    def descend(self, worker: int, chunk: Chunk, rates: Array, state: Any) -> float:
        """One worker descends along a chunk."""
        if len(rates):
            self.rate = rates[-1]
        return float(self.kernel(chunk, rates, state, self.hot, self.own[worker], self.plan))
