"""Trials of a step: the run in short, on a few of its rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hogwild.data.csr import CSRRows
from hogwild.data.dataset import Chunk
from hogwild.schedules import Schedule, with_step
from hogwild.training.step_sizes import StepSizes

SHARE = 1 / 32  # of the run's updates are made in a trial, but
WORK = 2**16, 2**18  # no fewer non-zeros and no more: some tenths of a millisecond to some milliseconds; and these
LONG_WORK = 2**18, 2**20  # if the rule does not taper: how its best step falls with length is seen in longer ones only
IN_DOUBT = 2**22  # non-zeros at most, and no share, where that is not seen
ROWS = 1_000  # no fewer rows, however long they are
FEW = 2_000  #  rows below which a trial is the run itself: any part of them is too small to tell
FEW_OF_A_CLASS = 8  # rows of it
UNEVEN = 1e4  # between the squared lengths of the longest row and the shortest: a few rows decide about a trial


class TrialRunner:
    """The run in short, with any step: along rows that are met for the first time, or again and again if they are few.

    What counts is the objective on these rows in the end. What was met on the way tells less: new rows ask for caution
    that the run itself, which sees them again, has no use for.
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
        """Of a row, in the mean."""
        return float(self.rows.nonzeros / max(1, len(self.rows)))

    @property
    def lack_a_class(self) -> bool:
        """Whether these rows tell next to nothing about a class: they have none of it, or very few."""
        labels = self.sample.labels
        if labels is None or labels.classes is None:
            return False
        counts = np.unique(self.rows.labels, return_counts=True)[1]
        return len(counts) < max(2, self.sample.n_outputs) or bool(counts.min() < FEW_OF_A_CLASS)

    def objective(self, step: float, updates: int) -> float:
        """What a trial of so many updates comes to; the schedule passes as in the run, only sooner."""
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
    """How many updates a trial makes for a run of so many epochs, and how many where that shows nothing.

    >>> updates_of_trials(100_000, 7_000_000, 10, tapers=True), updates_of_trials(50, 700, 100, tapers=True)
    ((3745, 59919), (5000, 5000))
    """
    each, run = max(1.0, nonzeros / max(1, rows)), rows * epochs
    fewest, most = (work / each for work in (WORK if tapers else LONG_WORK))
    in_doubt = max(1, round(min(run, max(ROWS, IN_DOUBT / each))))
    usual = max(1, round(max(ROWS, fewest, min(most, run * SHARE))))
    return in_doubt if rows < FEW else min(in_doubt, usual), in_doubt


def has_uneven_rows(rows: CSRRows) -> bool:
    """Whether some rows are so much longer than others that chance decides what comes of a short trial.

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
