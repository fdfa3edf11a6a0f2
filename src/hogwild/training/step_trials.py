"""Trials of a step size: short versions of a run on a sample of its rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hogwild.data.csr import CSRRows
from hogwild.data.dataset import Chunk
from hogwild.schedules import Schedule, with_step
from hogwild.training.step_sizes import StepSizes

SHARE = 1 / 32  # share of the run's updates that a trial makes, within the limits of ``WORK`` or ``LONG_WORK``
# Least and greatest number of non-zeros of a trial: tenths of a millisecond to several milliseconds.
WORK = 2**16, 2**18
# Least and greatest number of non-zeros of a trial with a rule that is not self-annealing. Only longer trials show how
# the best step size of such a rule falls with the length of a run.
LONG_WORK = 2**18, 2**20
# Greatest number of non-zeros of a trial where shorter trials do not show how the best step size depends on length.
# ``SHARE`` does not limit these trials.
IN_DOUBT = 2**22
ROWS = 1_000  # least number of rows of a trial, however long the rows are
# Number of rows below which a trial is as long as the run: any sample of so few rows is too small.
FEW = 2_000
FEW_OF_A_CLASS = 8  # number of rows of a class below which a sample shows too little of the class
UNEVEN = 1e4  # ratio of the squared norms of the longest and shortest row above which a few rows decide a trial


class TrialRunner:
    """Short version of a run, with any step size, on a sample of its rows.

    Each row is visited once, or repeatedly if the rows are few. The result of a trial is the objective on these rows at
    its end. The losses before each update are a worse criterion. Rows seen for the first time favour smaller step sizes
    than the run needs, because the run sees its rows again.
    """

    def __init__(
        self, problem: Any, rule: Any, schedule: Schedule, epochs: float, seed: int, alone: bool, updates: int
    ) -> None:
        self.sample = problem.sample(min(problem.data.n_rows, updates), seed, narrow=True)
        self.start, self.schedule, self.epochs, rows = (
            self.sample.start(rule),
            schedule,
            epochs,
            self.sample.data.n_rows,
        )
        self.descend, self.sync = self.sample.kernel(rule, "free", 1, alone), self.sample.sync_buffer("free")
        walks = [self.sample.data.epoch(seed, number).whole() for number in range(-(-updates // rows))]
        self.rows, self.order = walks[0].rows, np.concatenate([walk.order for walk in walks])

    @property
    def entries(self) -> float:
        """The mean number of non-zeros of a row."""
        return float(self.rows.nonzeros / max(1, len(self.rows)))

    @property
    def lack_a_class(self) -> bool:
        """Whether the sample has fewer than ``FEW_OF_A_CLASS`` rows of a class, or none."""
        labels = self.sample.labels
        if labels is None or labels.classes is None:
            return False
        counts = np.unique(self.rows.labels, return_counts=True)[1]
        return len(counts) < max(2, self.sample.n_outputs) or bool(counts.min() < FEW_OF_A_CLASS)

    def objective(self, step: float, updates: int) -> float:
        """Return the objective after a trial of ``updates`` updates; infinity if it diverges.

        The schedule runs through its whole course, compressed into the length of the trial.
        """
        state = tuple(part.copy("K") for part in self.start)
        schedule, precision = with_step(self.schedule, step), np.result_type(*state)
        rates = StepSizes(schedule, updates / self.epochs, self.epochs, precision=precision).rates(0, updates)
        if not math.isfinite(self.descend(Chunk(self.rows, self.order[:updates]), rates, state, self.sync)):
            return math.inf
        walked = Chunk(self.rows, self.order[: min(updates, len(self.rows))])
        loss = self.sample.metrics(self.sample.measure(walked, state))["loss"]
        found = float(loss + self.sample.penalty(state))
        return found if math.isfinite(found) else math.inf


def updates_of_trials(rows: int, nonzeros: int, epochs: float, tapers: bool) -> tuple[int, int]:
    """Return the number of updates of a trial, and the number for trials where the first is inconclusive.

    >>> updates_of_trials(100_000, 7_000_000, 10, tapers=True), updates_of_trials(50, 700, 100, tapers=True)
    ((3745, 59919), (5000, 5000))
    """
    each, run = max(1.0, nonzeros / max(1, rows)), rows * epochs
    fewest, most = (work / each for work in (WORK if tapers else LONG_WORK))
    in_doubt = max(1, round(min(run, max(ROWS, IN_DOUBT / each))))
    usual = max(1, round(max(ROWS, fewest, min(most, run * SHARE))))
    return in_doubt if rows < FEW else min(in_doubt, usual), in_doubt


def has_uneven_rows(rows: CSRRows) -> bool:
    """Return whether the norms of the rows differ so much that the outcome of a short trial depends on chance.

    >>> ends, values = np.array([0, 1, 2]), np.array([1.0, 1000.0])
    >>> rows = CSRRows(ends, np.zeros(2, np.uint32), values, np.zeros(2), np.empty(0), features=1, layout="sparse")
    >>> has_uneven_rows(rows)
    True
    """
    if rows.layout == "binary":
        return False
    sums = np.concatenate([[0.0], np.cumsum(np.square(rows.values, dtype=np.float64))])
    lengths = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    lengths = lengths[lengths > 0]
    return bool(lengths.size and lengths.max() > UNEVEN * lengths.min())
