"""``minimise``: the one verb."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hogwild import runtimes, schedules, strategies
from hogwild.averages import EMA
from hogwild.errors import ParameterError
from hogwild.jsonable import to_jsonable
from hogwild.problems.problem import Defaults
from hogwild.registry import invalid_parameter
from hogwild.run import Budget, Callback, Run, Start, budget_of
from hogwild.schedules import with_step
from hogwild.training.checkpoints import Checkpoints
from hogwild.training.conflict_report import conflict_monitor, conflict_report
from hogwild.training.divergence_guard import EXPLODED, DivergenceGuard
from hogwild.training.event_log import EventLog
from hogwild.training.job_defaults import (
    apply_defaults,
    held_out_for,
    load_initial_state,
    resolve_schedule,
    with_chosen_step,
)
from hogwild.training.loop import TrainingLoop
from hogwild.training.sigint import deferred_sigint

LEAST_WORK = 2**16  # non-zeros an epoch for each worker, some tenths of a millisecond, and
STARTING = 32  # times as many in the run: some milliseconds, no more than it takes to begin and to end with it
GUARDED_ROWS = 512  # rows whose loss at the start tells the guard what is normal


def minimise(
    problem: Any,
    rule: Any = None,
    schedule: Any = None,
    strategy: Any = "hogwild",
    runtime: Any = None,
    budget: Budget | int | None = None,
    *,
    test: Any = None,
    average: float | EMA = 0.0,
    start: Start | None = None,
    shuffle: bool = True,
    measure: bool = True,
    explosion: float = EXPLODED,
    seed: int = 0,
    callbacks: Iterable[Callback] = (),
    checkpoint: str | Path | Checkpoints | None = None,
    resume: bool = False,
    observe: bool = False,
) -> Run:
    """Minimise a problem by stochastic gradient descent.

    Every part is a name or an object; what is left out is what suits the problem: "threads", and mostly "adagrad" and
    "cosine", for data in memory or in files, Adam at its own constant step and "processes" for a ``Module``. ``test``
    is held-out data: anything that the problem itself can be made of, read in the same way. With ``average`` > 0 the
    result is the mean of the iterates over that last share of the budget (Polyak averaging). ``start`` begins from
    another run's parameters; without ``shuffle`` every epoch walks the rows in the order in which they are stored.
    Unless it is to ``measure`` after each epoch, which is another pass over the data, the loss of an epoch is what was
    met on the way, and there is no accuracy. A loss ``explosion`` times that at the start makes the run go back and
    halve its step. ``checkpoint`` is a folder; with ``resume`` the run goes on from what it finds there.

    To ``observe`` what workers in one memory do to each other, a loop is compiled that counts it: for each update how
    many others landed between its reading and its writing, which coordinates were changed meanwhile, and what was lost.
    It has no buffers and takes some times as long; the run's ``observation`` has what was seen.

    >>> import numpy as np
    >>> from hogwild import Linear, minimise
    >>> X = np.random.default_rng(0).standard_normal((500, 3)); y = X @ [1.0, -2.0, 0.5]
    >>> run = minimise(Linear((X, y), loss="squared"), strategy="serial", budget=10)
    >>> run.stopped, run.model.weights.round(2).ravel()
    ('epochs', array([ 1. , -2. ,  0.5], dtype=float32))
    """
    if hasattr(problem, "net"):
        from hogwild.training.module_launch import minimise_module

        _check_unobserved(observe)
        _check_options_of_module(start, shuffle, measure, explosion)
        return minimise_module(
            problem, rule, schedule, strategy, runtime, budget, test=test, average=average, seed=seed,
            callbacks=callbacks, checkpoint=checkpoint, resume=resume,
        )  # fmt: skip
    if not hasattr(problem, "descent"):
        raise invalid_parameter("problem", "a problem such as Linear((X, y))", type(problem).__name__)
    if isinstance(average, EMA):
        raise ParameterError("A fading mean is for a Module: give 'average' a number between 0 and 1.")
    usual = getattr(problem, "usual", Defaults())
    rule, schedule = apply_defaults(usual, rule, schedule)
    budget = budget_of(budget).usually(usual.epochs)
    problem = problem.suited(rule)
    strategy = strategies.named(strategy)
    runtime = runtimes.named(runtimes.usual(strategy) if runtime is None else runtime)
    if hasattr(runtime, "play"):
        from hogwild.training.message_rows import minimise_rows

        _check_unobserved(observe)
        _check_options_by_messages(measure, explosion)
        return minimise_rows(
            problem, rule, schedule, strategy, runtime, budget, test=test, average=average, start=start,
            shuffle=shuffle, seed=seed, callbacks=callbacks, checkpoint=checkpoint, resume=resume,
        )  # fmt: skip
    budget = budget.for_data(problem.data.nonzeros + problem.data.n_features)
    if not hasattr(runtime, "session"):
        raise ParameterError(f"{type(problem).__name__} is trained by threads: use runtime=Threads(). Got {runtime!r}.")
    checkpoints = Checkpoints(Path(checkpoint)) if isinstance(checkpoint, (str, os.PathLike)) else checkpoint
    _check(rule, schedule, strategy, budget, test, average, checkpoints, resume)
    held_out = held_out_for(problem, test)
    cores = strategies.worker_count(strategy)
    workers, why = (cores, "") if strategy.workers else useful_workers(cores, problem, rule, strategy, budget)
    journal = EventLog(callbacks)
    asked = to_jsonable({
        **problem.describe(), "rule": repr(rule), "schedule": repr(schedule), "average": average, "seed": seed,
        "held_out": None if held_out is None else held_out.fingerprint,
    })  # fmt: skip
    found = checkpoints.load() if checkpoints is not None and resume else None
    journal.tell(
        "started",
        time=time.time(),
        **asked,
        strategy=repr(strategy),
        workers=workers,
        runtime=repr(runtime),
        budget=repr(budget),
    )
    if workers < cores:
        message = f"{why} done sooner by {workers} than by {cores}"
        journal.tell("workers", workers=workers, cores=cores, message=message)
    seen = conflict_monitor(problem, rule, strategy, workers, budget) if observe else None
    session = runtime.session(problem, rule, strategy, workers, seen)
    try:
        journal.tell("compiled", seconds=session.compile_seconds)
        if session.planned is not None:
            journal.tell("buffers", **session.planned.describe())
        if start is not None:
            load_initial_state(start, session.state)
            load_initial_state(Start(problem.inward(session.state, rule)), session.state)
        if found is not None:
            schedule = with_step(schedule, found[1]["step"]) if found[1].get("step") else schedule
            schedule = resolve_schedule(problem, schedule)
        else:
            schedule = with_chosen_step(
                problem, rule, resolve_schedule(problem, schedule), budget, seed, workers, session.alone, journal
            )
        at_start = _loss_at_start(problem, session.state, seed)
        loop = TrainingLoop(
            problem, schedule, session, budget, held_out, average, seed, journal, checkpoints, asked,
            DivergenceGuard(at_start, explosion=explosion), shuffle=shuffle, measured=measure,
            earlier=0 if start is None else start.updates,
        )  # fmt: skip
        if found is not None:
            loop.restore(*found)
        elif resume:
            journal.tell("resumed", epoch=0, chunk=0, message="there is no checkpoint yet: from the beginning")
        session.take_buffers()
        journal.tell("training", loss=at_start)
        with deferred_sigint() as loop.interrupt:
            values = loop.run()
    finally:
        session.close()
    if seen is not None:
        journal.tell("observation", **conflict_report(seen, problem, seed))
    asked |= {"schedule": repr(schedule), "strategy": repr(strategy), "workers": workers, "budget": repr(budget)}
    model = problem.model(problem.outward(values, rule), asked)
    return Run(
        model, asked, loop.history, journal.events, loop.stopped, problem.outward(session.state, rule),
        loop.position.seconds, session.compile_seconds,
    )  # fmt: skip


def useful_workers(cores: int, problem: Any, rule: Any, strategy: Any, budget: Budget) -> tuple[int, str]:
    """How many workers are of use, and why no more.

    Each must have so much to do, in an epoch and in the run, that it is worth its while to begin; and workers who can
    have no copies of their own are in each other's way where parameters are few.
    """
    if getattr(strategy, "buffer", 0) == "auto" and hasattr(problem, "crowds") and problem.crowds(rule):
        return 1, "parameters that are so few, and cannot be copied with this rule, are"
    epochs = min(STARTING, budget.epochs or STARTING)
    work = getattr(problem, "work", problem.data.nonzeros)
    return max(1, min(cores, work * epochs // (STARTING * LEAST_WORK))), "so little is"


def _check(
    rule: Any,
    schedule: Any,
    strategy: Any,
    budget: Budget,
    test: Any,
    average: float,
    checkpoints: Checkpoints | None,
    resume: bool,
) -> None:
    """Refuse what cannot work before anything starts."""
    if hasattr(strategy, "cast") and not hasattr(strategy, "access"):
        raise ParameterError(
            f"Workers of {type(strategy).__name__} send each other messages: use runtime=Local() or Simulator(). In "
            "one memory there are 'hogwild', and 'averaging' for workers that descend apart and meet once an epoch."
        )
    if schedules.scales(schedule):
        raise ParameterError(
            "The schedule 'linear-scaling' goes by the samples in a batch, and here each has an update of its own: "
            "use the schedule within it alone."
        )
    if not hasattr(strategy, "access"):
        raise invalid_parameter("strategy", "a strategy such as Hogwild(workers=4) or its name", strategy)
    if budget.patience and test is None:
        raise ParameterError("The 'patience' of a budget counts epochs without a better held-out loss: give test data.")
    if budget.watch == "score" and (test is None or budget.tolerance is None):
        raise ParameterError("To watch the score give test data, and the budget a tolerance.")
    if hasattr(schedule, "after_stall") and budget.tolerance is None:
        raise ParameterError("The schedule 'adaptive' waits for the objective to stall: give the budget a tolerance.")
    if not 0 <= average <= 1:
        raise invalid_parameter("average", "between 0 and 1", average)
    if average and getattr(rule, "averages", 0):
        raise ParameterError("This rule averages by itself: leave out 'average', or give a rule that does not.")
    if budget.watch == "met" and not getattr(rule, "watches", False):
        raise ParameterError("To watch what is met on the way takes a rule Sequential(watches=True).")
    if resume and checkpoints is None:
        raise ParameterError("To resume, say where the checkpoints are: checkpoint=FOLDER.")


def _check_unobserved(observe: bool) -> None:
    if observe:
        raise ParameterError(
            "To 'observe' is for workers in one memory: leave it out. Workers that send each other messages always "
            "count how stale what they send is."
        )


def _check_options_by_messages(measure: bool, explosion: float) -> None:
    """Refuse what a run by messages would pass over in silence."""
    if not measure or explosion != EXPLODED:
        raise ParameterError(
            "'measure' and 'explosion' are for workers in one memory: leave them out with a strategy by messages."
        )


def _check_options_of_module(start: Any, shuffle: bool, measure: bool, explosion: float) -> None:
    """Refuse what a model trained by processes has no use for."""
    if start is not None:
        raise ParameterError(
            "A Module starts from the parameters its net has: load them into it, and leave out 'start'."
        )
    if not shuffle:
        raise ParameterError("A Module draws its samples as its 'sampling' says: leave out 'shuffle'.")
    if not measure or explosion != EXPLODED:
        raise ParameterError("'measure' and 'explosion' are for problems in one memory: leave them out with a Module.")


def _loss_at_start(problem: Any, state: Any, seed: int) -> float:
    sample = problem.sample(GUARDED_ROWS, seed)
    walk = sample.data.in_order()
    loss: float = sample.metrics(sum(sample.measure(walk[k], state) for k in range(len(walk))))["loss"]
    return loss
