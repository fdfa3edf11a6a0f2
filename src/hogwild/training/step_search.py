"""Search for the step size (``step="auto"``) by short trial runs on a sample of the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.data.csr import CSRRows
from hogwild.data.dataset import Chunk, Dataset, Epoch
from hogwild.data.subsample import subsample
from hogwild.lazy import cached_property
from hogwild.parallel import in_parallel
from hogwild.problems.problem import State
from hogwild.schedules import Schedule, with_step
from hogwild.training.step_sizes import StepSizes

SHARE = 1 / 32  # share of the run's updates that a trial makes, within the limits below
# Least and greatest number of non-zeros of a trial: tenths of a millisecond.
WORK = 2**14, 2**16
# Least and greatest number of non-zeros of a trial that held-out rows judge: a shorter one overfits its few rows.
WORK_IF_JUDGED = 2**16, 2**18
# Least and greatest number of non-zeros of a trial with a rule that is not self-annealing. Only longer trials show how
# the best step size of such a rule falls with the length of a run.
LONG_WORK = 2**18, 2**20
# Greatest number of non-zeros of a trial where shorter trials do not show how the best step size depends on length.
# ``SHARE`` does not limit these trials.
IN_DOUBT = 2**22
# Least share of the rows that a trial visits if held-out rows judge it. The model of a smaller share overfits it more
# than the run overfits all rows, so that its held-out loss asks for a smaller step size than the run needs.
JUDGED_ROWS = 1 / 2
# Limits up to which a trial is made longer to visit that share: a share of the run's updates, and non-zeros.
JUDGED_SHARE, JUDGED_WORK = 1 / 8, 2**21
ROWS = 1_000  # least number of rows of a trial, however long the rows are
# Number of rows below which a trial is as long as the run: any sample of so few rows is too small.
FEW = 2_000
FEW_OF_A_CLASS = 8  # number of rows of a class below which a sample shows too little of the class
JUDGING_ROWS = 2**14  # most held-out rows that judge a trial
UNEVEN = 1e4  # ratio of the squared norms of the longest and shortest row above which a few rows decide a trial


class TrialRunner:
    """Short version of a run, with any step size, on a sample of its rows.

    Each row is visited once, or repeatedly if the rows are few. The result of a trial is the objective on these rows at
    its end. The losses before each update are a worse criterion. Rows seen for the first time favour smaller step sizes
    than the run needs, because the run sees its rows again.

    With held-out rows, the result is the loss on a sample of them if that is higher. Rows that a model separates have
    an objective that falls with any step size, and a loss on other rows that does not. A trial on a small share of the
    rows overfits them more than the run does. There the held-out loss counts only if it is above its start.
    """

    def __init__(
        self, problem: Any, rule: Any, schedule: Schedule, epochs: float, seed: int, alone: bool, judge: Dataset |
        None, updates: int,
    ) -> None:  # fmt: skip
        self.sample = problem.sample(min(problem.data.n_rows, updates), seed, narrow=judge is None)
        self.judge = None if judge is None else subsample(judge, JUDGING_ROWS, seed).in_order()
        self.few_rows = updates < JUDGED_ROWS * problem.data.n_rows
        self.start, self.schedule, self.epochs, rows = (
            self.sample.start(rule),
            schedule,
            epochs,
            self.sample.data.n_rows,
        )
        self.descend, self.sync = self.sample.kernel(rule, "free", 1, alone), self.sample.sync_buffer("free")
        walks = [self.sample.data.epoch(seed, number).whole() for number in range(-(-updates // rows))]
        self.rows, self.order = walks[0].rows, np.concatenate([walk.order for walk in walks])
        self._unit_rates: dict[int, NDArray[Any]] = {}  # Step sizes of the schedule with step 1, by length of a trial.

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
        rates = self._rates(step, updates)
        if not math.isfinite(self.descend(Chunk(self.rows, self.order[:updates]), rates, state, self.sync)):
            return math.inf
        walked = Chunk(self.rows, self.order[: min(updates, len(self.rows))])
        loss = self.sample.metrics(self.sample.measure(walked, state))["loss"]
        found = float(loss + self.sample.penalty(state))
        if self.judge is not None:
            held_out = self.loss_on(self.judge, state)
            if not (self.few_rows and held_out <= self.held_out_at_start):
                found = max(found, held_out)
        return found if math.isfinite(found) else math.inf

    def _rates(self, step: float, updates: int) -> NDArray[Any]:
        """Return the step sizes of a trial. Those of a proportional schedule are computed once for each length.

        Steps that are tried are powers of two, so that products are exact.
        """
        if not self.schedule.is_proportional:
            return self._scheduled(step, updates)
        if updates not in self._unit_rates:
            self._unit_rates[updates] = self._scheduled(1.0, updates)
        unit = self._unit_rates[updates]
        scaled: NDArray[Any] = unit * unit.dtype.type(step)
        return scaled

    def _scheduled(self, step: float, updates: int) -> NDArray[Any]:
        schedule, precision = with_step(self.schedule, step), np.result_type(*self.start)
        return StepSizes(schedule, updates / self.epochs, self.epochs, precision=precision).rates(0, updates)

    @cached_property
    def held_out_at_start(self) -> float:
        """The held-out loss before the first update."""
        assert self.judge is not None
        return self.loss_on(self.judge, self.start)

    def loss_on(self, rows: Epoch, state: State) -> float:
        """Return the mean loss on other rows."""
        sums = sum(self.sample.measure(rows[number], state) for number in range(len(rows)))
        return float(self.sample.metrics(sums)["loss"])


def updates_of_trials(rows: int, nonzeros: int, epochs: float, tapers: bool, judged: bool = False) -> tuple[int, int]:
    """Return the number of updates of a trial, and the number for trials where the first is inconclusive.

    A trial that is to be ``judged`` by held-out rows visits half of the rows, if that is not too long.

    >>> updates_of_trials(100_000, 7_000_000, 10, tapers=True), updates_of_trials(50, 700, 100, tapers=True)
    ((1000, 59919), (5000, 5000))
    >>> updates_of_trials(20_000, 1_400_000, 10, tapers=True, judged=True)
    (10000, 59919)
    """
    each, run = max(1.0, nonzeros / max(1, rows)), rows * epochs
    limits = LONG_WORK if not tapers else WORK_IF_JUDGED if judged else WORK
    fewest, most = (work / each for work in limits)
    in_doubt = max(1, round(min(run, max(ROWS, IN_DOUBT / each))))
    usual = max(1, round(max(ROWS, fewest, min(most, run * SHARE))))
    if rows < FEW:
        return in_doubt, in_doubt
    usual = min(in_doubt, usual)
    half = math.ceil(rows * JUDGED_ROWS)
    if judged and half <= min(run * JUDGED_SHARE, JUDGED_WORK / each):
        usual = max(usual, half)
    return usual, in_doubt


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


# Ratio of the updates of deciding trials to those of short trials. Short trials only find the range to search.
LONGER = 8
FIRST = 0.5  # first step size that is tried
LEAST, MOST = 2.0**-30, 2.0**14  # bounds of the step sizes that are tried
EQUAL = 1e-3  # relative difference up to which two objectives count as equal
# Lowest exponent of the best step size as a power of a run's length: the one where only noise limits the step size.
STEEPEST = -0.5
CLIFF = 10.0  # multiple of the best objective above which a step size counts as diverged
SOON = 2**17  # non-zeros that one thread processes before another thread has woken up
UNLIKELY = -0.75, 0.1  # range of plausible exponents; outside it, the difference between trials is due to chance
# Octaves by which the best step size of a self-annealing rule is below that of its trials, and the fraction of an
# octave to which it is rounded. A trial knows its few rows by heart soon, which favours long steps.
CAUTION, ROUNDED = 0.35, 1 / 4


@dataclass(frozen=True, slots=True)
class ChosenStep:
    """Chosen step size, and the (step size, objective) pairs of the trials that decided."""

    step: float
    trials: list[tuple[float, float]]


def choose_step(
    problem: Any, rule: Any, schedule: Schedule, epochs: float, seed: int, workers: int = 1, alone: bool = True,
    held_out: Dataset | None = None,
) -> ChosenStep:  # fmt: skip
    """Choose a step size by trials on a sample of the rows.

    The search starts at 0.5 and goes in both directions, until the objective gets worse. Short trials find the range to
    search, and longer ones decide. Of the best step size and its equals, the smallest is chosen. With many workers, or
    on all of the data, a large step size becomes unstable before a small one.

    With a self-annealing rule, a parabola refines the choice, and the step size is a little smaller than that: trials
    on few rows favour long steps. With a rule that is not self-annealing, the best step size falls with the length of a
    run. Short and longer trials give the exponent, which extrapolates the step size to the length of the run. Where the
    trials do not show the exponent, as with columns of very different scales, further trials are nearly as long as the
    run.

    With ``held_out`` rows, the higher of the objective and the held-out loss decides. Where trials have less than half
    of the rows, because the rows are many, the held-out loss only excludes step sizes with which it rises.

    Independent trials run at the same time, on up to ``workers`` threads, unless they are very short. The choice is the
    same for any number of threads. ``alone`` tells whether each worker of the run has parameters to itself. Trials use
    the kernel of the run's workers, so that no other kernel is compiled.
    """
    data, tapers = problem.data, rule.self_annealing
    usual, in_doubt = updates_of_trials(data.n_rows, data.nonzeros, epochs, tapers, held_out is not None)
    making = partial(TrialRunner, problem, rule, schedule, epochs, seed, alone, held_out)
    trials = making(usual)
    if trials.lack_a_class and usual < in_doubt:
        trials, usual = making(in_doubt), in_doubt
    short = StepSearch(trials, max(1, usual // LONGER), workers).search()
    long = StepSearch(trials, usual, workers).around(short.best)
    shorter = data.n_rows * epochs / usual  # ratio of the run's length to that of a trial
    if shorter <= 1:
        return long.choice(long.smallest)
    if tapers:
        return long.choice(min(long.smallest, long.cautious))
    slope = long.slope(short)
    if UNLIKELY[0] < slope < UNLIKELY[1] and not (long.ends_at_a_cliff or has_uneven_rows(trials.rows)):
        return long.choice(2.0**long.bottom * shorter ** min(0.0, max(STEEPEST, slope)))
    long = StepSearch(making(in_doubt), in_doubt, workers).search()
    return long.choice(long.smallest)


@dataclass(eq=False)
class StepSearch:
    """Trials of one length: the objective after each step size."""

    trials: TrialRunner
    updates: int
    threads: int = 1
    tried: dict[float, float] = field(default_factory=dict)

    def attempt(self, *steps: float) -> None:
        """Try step sizes, in parallel if the trials take longer than waking up another thread."""
        at_once = len(steps) > 1 and self.updates * self.trials.entries > SOON
        trial = partial(self.trials.objective, updates=self.updates)
        outcomes = in_parallel(trial, steps, self.threads if at_once else 1)
        self.tried.update(zip(steps, outcomes, strict=True))

    def search(self) -> StepSearch:
        """Try step sizes in both directions, at factors of 4, until the objective gets worse.

        Then try the two neighbours of the best step size, at factors of 2.
        """
        self.attempt(FIRST / 4, FIRST, FIRST * 4)
        self.widen(4.0)
        self.attempt(self.best / 2, self.best * 2)
        return self

    def around(self, step: float) -> StepSearch:
        """Try a step size and its neighbours at factors of 2, and continue in a direction while it improves."""
        self.attempt(step / 2, step, step * 2)
        self.widen(2.0)
        return self

    def widen(self, factor: float) -> None:
        """Extend the range by ``factor`` while the outermost step size is the best, and better than its neighbour."""
        going = True
        while going:
            best, going = self.best, False
            for end, times in ((min(self.tried), 1 / factor), (max(self.tried), factor)):
                better = self.tried[end] < self.tried[end / times] or math.isinf(self.tried[end])
                if best == end and better and LEAST <= end * times <= MOST:
                    self.attempt(end * times)
                    going = True

    @property
    def best(self) -> float:
        """The step size with the lowest objective."""
        return min(self.tried, key=lambda step: (self.tried[step], step))

    @property
    def smallest(self) -> float:
        """The smallest step size whose objective equals the lowest, up to a relative difference of ``EQUAL``."""
        least = self.tried[self.best]
        return min(step for step, value in self.tried.items() if value <= least + EQUAL * abs(least))

    @property
    def bottom(self) -> float:
        """The binary logarithm of the best step size, refined by a parabola through it and its two neighbours."""
        at, best = math.log2(self.best), self.tried[self.best]
        below, above = (self.tried.get(self.best * times, math.inf) - best for times in (0.5, 2.0))
        return at + 0.5 * (below - above) / (below + above) if 0 < below + above < math.inf else at

    @property
    def cautious(self) -> float:
        """A step size a little below the refined best one, rounded so that it is the same on every machine.

        >>> search = StepSearch(None, 1, tried={0.5: 0.30, 1.0: 0.20, 2.0: 0.30})
        >>> round(search.bottom, 2), search.cautious
        (0.0, 0.841)
        """
        return float(f"{2.0 ** (round((self.bottom - CAUTION) / ROUNDED) * ROUNDED):.3g}")

    @property
    def ends_at_a_cliff(self) -> bool:
        """Whether twice the best step size diverges.

        Instability then limits the step size, not noise, and the length of a trial shows nothing about it.
        """
        return self.tried.get(self.best * 2, math.inf) > CLIFF * self.tried[self.best]

    def slope(self, shorter: StepSearch) -> float:
        """Return the exponent with which the best step size depends on the length of a trial.

        The exponent compares these trials with ``shorter`` ones.
        """
        doublings = math.log2(self.updates / shorter.updates)
        return (self.bottom - shorter.bottom) / doublings if doublings else 0.0

    def choice(self, step: float) -> ChosenStep:
        """Return the choice of a step size, with these trials as its evidence."""
        return ChosenStep(step, sorted(self.tried.items()))
