"""Search for the strength of the penalties (``l2="auto"``): a path of strengths, judged on held-out rows or ratings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hogwild.events import EventLog
from hogwild.problems.problem import RowProblem
from hogwild.run import Run, WarmStart
from hogwild.runtimes import Threads
from hogwild.stopping import Budget
from hogwild.strategies import Hogwild
from hogwild.training import thread_driver
from hogwild.training.job import Job, Options

# Strengths that are tried, as multiples of the default penalties of the problem, from the strongest.
PATH = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
WORSE = 2  # number of consecutive strengths with a higher held-out loss after which the path ends
SHARE = 8  # divisor of the epochs of the run, for a strength that begins from the one before
LEAST_EPOCHS = 3
HELD_OUT = 0.1  # share of the rows or ratings that judge where the user gives no held-out data


@dataclass(frozen=True, slots=True)
class ChosenPenalty:
    """Chosen multiple of the default penalties, and the (multiple, held-out loss) pairs of the path."""

    times: float
    path: list[tuple[float, float]]


def run(train: Callable[[Job], Run], job: Job) -> Run:
    """Choose the penalties of a job's problem, and train it with them.

    The trials are short runs on all cores of this machine, whatever the strategy of the job is. They go from strong to
    weak penalties, each from the result of the one before, as long as the held-out loss falls. A factorisation, of rows
    or of ratings, begins anew each time and trains as many epochs as the run, because strong penalties bring all
    factors to zero, from where no step leads away, and because its held-out loss depends on the number of epochs.
    Without held-out data, a tenth of the rows or ratings judges; the run itself trains on all of them.
    """
    problem, test = job.problem, job.options.test
    assert isinstance(problem, RowProblem)
    event_log = EventLog(job.options.callbacks)
    part, judge = (problem, test) if test is not None else problem.split(HELD_OUT, job.options.seed)
    found = choose_penalty(replace(job, problem=part), judge)
    chosen = problem.with_penalty(found.times)
    event_log.emit("penalty chosen", penalties=dict(chosen.penalties), path=found.path)
    trained = train(replace(job, problem=chosen))
    return replace(trained, events=[*event_log.events, *trained.events])


def choose_penalty(job: Job, held_out: Any) -> ChosenPenalty:
    """Return the multiple of the default penalties with the lowest held-out loss, and the path that was tried."""
    path: list[tuple[float, float]] = []
    last: Run | None = None
    for times in PATH:
        last = _trial(job, times, held_out, last)
        path.append((times, float(last.history[-1]["test_loss"])))
        losses = [loss for _, loss in path]
        if len(path) > WORSE and min(losses[-WORSE:]) > min(losses[:-WORSE]):
            break
    return ChosenPenalty(min(path, key=lambda one: one[1])[0], path)


def _trial(job: Job, times: float, held_out: Any, last: Run | None) -> Run:
    problem = job.problem
    assert isinstance(problem, RowProblem)
    warm = WarmStart(last.state) if last is not None and problem.warm_starts else None
    whole = job.budget.for_data(problem.data.nonzeros + problem.data.n_features)
    share = SHARE if problem.warm_starts else 1
    few = Budget(
        epochs=None if whole.epochs is None else max(LEAST_EPOCHS, whole.epochs // share),
        seconds=None if whole.seconds is None else whole.seconds / SHARE,
    )
    options = Options(test=held_out, init=warm, shuffle=job.options.shuffle, seed=job.options.seed)
    return thread_driver.run(
        replace(
            job, problem=problem.with_penalty(times), strategy=Hogwild(), runtime=Threads(), budget=few, options=options
        )
    )
