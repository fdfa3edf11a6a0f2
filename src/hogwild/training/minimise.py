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
from hogwild.problems.problem import Problem
from hogwild.registry import invalid_parameter
from hogwild.run import Budget, Callback, Run, WarmStart, budget_of
from hogwild.schedules import with_step
from hogwild.training.checkpoints import Checkpoints
from hogwild.training.conflict_report import conflict_monitor, conflict_report
from hogwild.training.divergence_guard import DIVERGENCE_FACTOR, DivergenceGuard
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
    init: WarmStart | None = None,
    shuffle: bool = True,
    evaluate_every_epoch: bool = True,
    divergence_factor: float = DIVERGENCE_FACTOR,
    seed: int = 0,
    callbacks: Iterable[Callback] = (),
    checkpoint: str | Path | Checkpoints | None = None,
    resume: bool = False,
    count_conflicts: bool = False,
) -> Run:
    """Minimise a problem by stochastic gradient descent.

    Every part is a name or an object; what is left out suits the problem: AdaGrad with a cosine schedule on threads for
    data in memory or in files, Adam at a constant step on processes for a ``Module``.

    Parameters
    ----------
    problem : Problem
        What to minimise, such as ``Linear((X, y))`` or ``Module(net, loss, dataset)``.
    rule : Rule or str, optional
        The update rule, such as "sgd" or "adagrad"; for a ``Module`` an optimiser class or instance of PyTorch.
    schedule : Schedule or str, optional
        The step size over the run, such as "cosine" or ``Constant(0.1)``.
    strategy : Strategy or str, default "hogwild"
        How workers share the parameters.
    runtime : Runtime or str, optional
        Where workers run: threads, processes, a simulator or a cluster.
    budget : Budget or int, optional
        When to stop; a number is a number of epochs. By default the size of the data decides.
    test : data, optional
        Held-out data: anything that the problem itself can be made of, read in the same way.
    average : float or EMA, default 0.0
        The last share of the run over which iterates are averaged (Polyak averaging); 0 is no averaging.
    init : WarmStart, optional
        Parameters of another run to start from.
    shuffle : bool, default True
        Whether every epoch visits the rows in a new random order; else in the order in which they are stored.
    evaluate_every_epoch : bool, default True
        Whether the loss is evaluated after each epoch, which is another pass over the data. Else the loss of an epoch
        is the mean loss of its updates, and there is no accuracy.
    divergence_factor : float, default 1000.0
        A loss so many times that at the start counts as diverged: the run goes back to its last good epoch and halves
        the step.
    seed : int, default 0
        Seed of the order of rows and of everything else that is random.
    callbacks : iterable of callable, default ()
        Called with each event.
    checkpoint : path or Checkpoints, optional
        Folder for checkpoints.
    resume : bool, default False
        Whether to continue from the checkpoint found there.
    count_conflicts : bool, default False
        Whether to count, for each update, how many others landed between its read and its write, which coordinates
        collided, and which writes were lost; see ``Run.conflicts``. For workers in one memory; the instrumented loop
        has no replicas and is several times slower.

    Returns
    -------
    Run
        The model, the history of epochs, and all events.

    Examples
    --------
    >>> import numpy as np
    >>> from hogwild import Linear, minimise
    >>> X = np.random.default_rng(0).standard_normal((500, 3)); y = X @ [1.0, -2.0, 0.5]
    >>> run = minimise(Linear((X, y), loss="squared"), strategy="serial", budget=10)
    >>> run.stop_reason, run.model.weights.round(2).ravel()
    ('epochs', array([ 1. , -2. ,  0.5], dtype=float32))
    """
    if hasattr(problem, "net"):
        from hogwild.training.module_launch import minimise_module

        _check_unobserved(count_conflicts)
        _check_options_of_module(init, shuffle, evaluate_every_epoch, divergence_factor)
        return minimise_module(
            problem, rule, schedule, strategy, runtime, budget, test=test, average=average, seed=seed,
            callbacks=callbacks, checkpoint=checkpoint, resume=resume,
        )  # fmt: skip
    if not isinstance(problem, Problem):
        raise invalid_parameter("problem", "a problem such as Linear((X, y))", type(problem).__name__)
    if isinstance(average, EMA):
        raise ParameterError("A fading mean is for a Module: give 'average' a number between 0 and 1.")
    usual = problem.defaults
    rule, schedule = apply_defaults(usual, rule, schedule)
    budget = budget_of(budget).usually(usual.epochs)
    problem = problem.for_rule(rule)
    strategy = strategies.named(strategy)
    runtime = runtimes.named(runtimes.usual(strategy) if runtime is None else runtime)
    if runtime.passes_messages:
        from hogwild.training.message_rows import minimise_rows

        _check_unobserved(count_conflicts)
        _check_options_by_messages(evaluate_every_epoch, divergence_factor)
        return minimise_rows(
            problem, rule, schedule, strategy, runtime, budget, test=test, average=average, init=init,
            shuffle=shuffle, seed=seed, callbacks=callbacks, checkpoint=checkpoint, resume=resume,
        )  # fmt: skip
    budget = budget.for_data(problem.data.nonzeros + problem.data.n_features)
    if not runtime.shares_memory:
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
    seen = conflict_monitor(problem, rule, strategy, workers, budget) if count_conflicts else None
    session = runtime.session(problem, rule, strategy, workers, seen)
    try:
        journal.tell("compiled", seconds=session.compile_seconds)
        if session.planned is not None:
            journal.tell("buffers", **session.planned.describe())
        if init is not None:
            load_initial_state(init, session.state)
            load_initial_state(WarmStart(problem.to_training_space(session.state, rule)), session.state)
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
            DivergenceGuard(at_start, factor=divergence_factor), shuffle=shuffle, measured=evaluate_every_epoch,
            earlier=0 if init is None else init.updates,
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
        journal.tell("conflicts", **conflict_report(seen, problem, seed))
    asked |= {"schedule": repr(schedule), "strategy": repr(strategy), "workers": workers, "budget": repr(budget)}
    model = problem.model(problem.from_training_space(values, rule), asked)
    return Run(
        model, asked, loop.history, journal.events, loop.stop_reason, problem.from_training_space(session.state, rule),
        loop.position.seconds, session.compile_seconds,
    )  # fmt: skip


def useful_workers(cores: int, problem: Any, rule: Any, strategy: Any, budget: Budget) -> tuple[int, str]:
    """How many workers are of use, and why no more.

    Each must have so much to do, in an epoch and in the run, that it is worth its while to begin; and workers who can
    have no copies of their own are in each other's way where parameters are few.
    """
    if strategy.buffer == "auto" and problem.always_contended(rule):
        return 1, "parameters that are so few, and cannot be copied with this rule, are"
    epochs = min(STARTING, budget.epochs or STARTING)
    return max(1, min(cores, problem.work * epochs // (STARTING * LEAST_WORK))), "so little is"


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
    if strategy.passes_messages and not strategy.shares_memory:
        raise ParameterError(
            f"Workers of {type(strategy).__name__} send each other messages: use runtime=Local() or Simulator(). In "
            "one memory there are 'hogwild', and 'averaging' for workers that descend apart and meet once an epoch."
        )
    if schedules.scales(schedule):
        raise ParameterError(
            "The schedule 'linear-scaling' goes by the samples in a batch, and here each has an update of its own: "
            "use the schedule within it alone."
        )
    if not strategy.shares_memory:
        raise invalid_parameter("strategy", "a strategy such as Hogwild(workers=4) or its name", strategy)
    if budget.patience and test is None:
        raise ParameterError("The 'patience' of a budget counts epochs without a better held-out loss: give test data.")
    if budget.monitor == "score" and (test is None or budget.tolerance is None):
        raise ParameterError("To monitor the score, give test data, and the budget a tolerance.")
    if schedule.needs_stall and budget.tolerance is None:
        raise ParameterError("The schedule 'adaptive' waits for the objective to stall: give the budget a tolerance.")
    if not 0 <= average <= 1:
        raise invalid_parameter("average", "between 0 and 1", average)
    if average and rule.average_from:
        raise ParameterError("This rule averages by itself: leave out 'average', or give a rule that does not.")
    if budget.monitor == "training_objective" and not rule.track_objective:
        raise ParameterError(
            "To monitor the training objective takes a rule that tracks it: Sequential(track_objective=True)."
        )
    if resume and checkpoints is None:
        raise ParameterError("To resume, say where the checkpoints are: checkpoint=FOLDER.")


def _check_unobserved(count_conflicts: bool) -> None:
    if count_conflicts:
        raise ParameterError(
            "'count_conflicts' is for workers in one memory: leave it out. Workers that send each other messages "
            "always count how stale what they send is."
        )


def _check_options_by_messages(evaluate_every_epoch: bool, divergence_factor: float) -> None:
    """Refuse what a run by messages would pass over in silence."""
    if not evaluate_every_epoch or divergence_factor != DIVERGENCE_FACTOR:
        raise ParameterError(
            "'evaluate_every_epoch' and 'divergence_factor' are for workers in one memory: leave them out with a "
            "strategy by messages."
        )


def _check_options_of_module(init: Any, shuffle: bool, evaluate_every_epoch: bool, divergence_factor: float) -> None:
    """Refuse what a model trained by processes has no use for."""
    if init is not None:
        raise ParameterError(
            "A Module starts from the parameters its net has: load them into it, and leave out 'init'."
        )
    if not shuffle:
        raise ParameterError("A Module draws its samples as its 'sampling' says: leave out 'shuffle'.")
    if not evaluate_every_epoch or divergence_factor != DIVERGENCE_FACTOR:
        raise ParameterError(
            "'evaluate_every_epoch' and 'divergence_factor' are for problems in one memory: leave them out with a "
            "Module."
        )


def _loss_at_start(problem: Any, state: Any, seed: int) -> float:
    sample = problem.sample(GUARDED_ROWS, seed)
    walk = sample.data.in_order()
    loss: float = sample.metrics(sum(sample.measure(walk[k], state) for k in range(len(walk))))["loss"]
    return loss
