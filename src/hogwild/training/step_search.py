"""``step="auto"``: short trial runs on a sample choose the step."""

from __future__ import annotations

import math
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hogwild.schedules import Schedule
from hogwild.training.step_trials import TrialRunner, has_uneven_rows, updates_of_trials

LONGER = 8  #   times as long as the short trials, which find out where to look, are those that decide
FIRST = 0.5  #  step that is tried
LEAST, MOST = 2.0**-30, 2.0**14
EQUAL = 1e-3  # objectives that differ by no more are as good as each other
STEEPEST = -0.5  # power of a run's length with which its best step falls at most: where noise alone limits it
CLIFF = 10.0  # times the best objective: a step that came to more has exploded
SOON = 2**18  # non-zeros that one thread has walked along before another is awake
UNLIKELY = -0.75, 0.1  # powers beyond which it was chance that made the difference between trials


@dataclass(frozen=True, slots=True)
class ChosenStep:
    """The step that was chosen, and what came of the trials that decided: (step, objective)."""

    step: float
    trials: list[tuple[float, float]]


def choose_step(
    problem: Any, rule: Any, schedule: Schedule, epochs: float, seed: int, workers: int = 1, alone: bool = True
) -> ChosenStep:
    """Try steps on a sample of the rows, from one half in both directions, until the objective gets worse.

    Short trials find out where to look, longer ones decide. Of the best and its equals the smallest is chosen: with
    many workers, or on all of the data, a large step turns bad before a small one does.

    With a rule that does not taper the best step falls with the length of a run. How fast, short and longer trials
    tell, and that is followed to the length of the run itself. Where they tell nothing, as with columns of very
    different size, the trials are nearly as long as the run.

    Trials that need not know of each other's outcome are made at the same time, by up to as many threads as there are
    ``workers``, unless they are very short: the choice is the same for any number of them. They take the loop that the
    workers of the run have, who are ``alone`` with their parameters or not, so that no other need be compiled.
    """
    data, tapers = problem.data, rule.self_annealing
    usual, in_doubt = updates_of_trials(data.n_rows, data.nonzeros, epochs, tapers)
    making = partial(TrialRunner, problem, rule, schedule, epochs, seed, alone)
    with ThreadPoolExecutor(workers, thread_name_prefix="hogwild-trial") as pool:
        trials = making(usual)
        if trials.lack_a_class and usual < in_doubt:
            trials, usual = making(in_doubt), in_doubt
        short = StepSearch(trials, max(1, usual // LONGER), pool).search()
        long = StepSearch(trials, usual, pool).around(short.best)
        shorter = data.n_rows * epochs / usual  # than the run
        if tapers or shorter <= 1:
            return long.choice(long.smallest)
        slope = long.slope(short)
        if UNLIKELY[0] < slope < UNLIKELY[1] and not (long.ends_at_a_cliff or has_uneven_rows(trials.rows)):
            return long.choice(2.0**long.bottom * shorter ** min(0.0, max(STEEPEST, slope)))
        long = StepSearch(making(in_doubt), in_doubt, pool).search()
        return long.choice(long.smallest)


@dataclass(eq=False)
class StepSearch:
    """What steps came to in trials of one length."""

    trials: TrialRunner
    updates: int
    pool: Executor
    tried: dict[float, float] = field(default_factory=dict)

    def attempt(self, *steps: float) -> None:
        """Try these as well, at the same time unless that takes less long than waking another thread."""
        at_once = len(steps) > 1 and self.updates * self.trials.entries > SOON
        outcomes = (self.pool.map if at_once else map)(partial(self.trials.objective, updates=self.updates), steps)
        self.tried.update(zip(steps, outcomes, strict=True))

    def search(self) -> StepSearch:
        """Try steps in both directions until it gets worse, and then the neighbours in between."""
        self.attempt(FIRST / 4, FIRST, FIRST * 4)
        self.widen(4.0)
        self.attempt(self.best / 2, self.best * 2)
        return self

    def around(self, step: float) -> StepSearch:
        """Try a step and its neighbours, and theirs as long as it gets better."""
        self.attempt(step / 2, step, step * 2)
        self.widen(2.0)
        return self

    def widen(self, factor: float) -> None:
        """Go on beyond the outermost step, as long as it is the best and better than its neighbour."""
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
        """The step that came furthest."""
        return min(self.tried, key=lambda step: (self.tried[step], step))

    @property
    def smallest(self) -> float:
        """The smallest step that came as far as the best."""
        least = self.tried[self.best]
        return min(step for step, value in self.tried.items() if value <= least + EQUAL * abs(least))

    @property
    def bottom(self) -> float:
        """Where a parabola through the best step and its neighbours has its lowest point, as a power of two."""
        at, best = math.log2(self.best), self.tried[self.best]
        below, above = (self.tried.get(self.best * times, math.inf) - best for times in (0.5, 2.0))
        return at + 0.5 * (below - above) / (below + above) if 0 < below + above < math.inf else at

    @property
    def ends_at_a_cliff(self) -> bool:
        """Whether twice the best step explodes: then it is no noise that limits the step, and length tells nothing."""
        return self.tried.get(self.best * 2, math.inf) > CLIFF * self.tried[self.best]

    def slope(self, shorter: StepSearch) -> float:
        """By which power of their length the best step of trials changes, from what shorter ones came to."""
        doublings = math.log2(self.updates / shorter.updates)
        return (self.bottom - shorter.bottom) / doublings if doublings else 0.0

    def choice(self, step: float) -> ChosenStep:
        """A choice that is due to these trials."""
        return ChosenStep(step, sorted(self.tried.items()))
