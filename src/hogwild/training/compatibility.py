"""Compatibility of problems, strategies, runtimes and options, and the errors for combinations that cannot work.

========================  ====================  ==============================  =======================
problem                   strategies in memory  ``Synchronous``                 strategies by messages
========================  ====================  ==============================  =======================
of rows, as ``Linear``    Threads               Local, Simulator, Ray           Local, Simulator, Ray
of batches: ``Module``    Processes             Processes, Local, Simulator...  Local, Simulator, Ray
========================  ====================  ==============================  =======================
"""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any

from hogwild import strategies
from hogwild.data.sampling import Split
from hogwild.destination import named_path
from hogwild.errors import ParameterError
from hogwild.iterate_average import EMA
from hogwild.problems.problem import RowProblem
from hogwild.registry import check_arguments, flag, invalid_parameter, is_number
from hogwild.run import WarmStart
from hogwild.stopping import DIVERGENCE_FACTOR, RecordInterval
from hogwild.training.job import Job

Refusal = str | ParameterError


def check(job: Job) -> None:
    """Check that the parts of a job work together, before any data is read.

    Raises
    ------
    ParameterError
        With the reason, and a combination that works.
    """
    checks = _pair, _gpu, _duals, _delay, _average, _checkpoint, _budget, _options
    for refusal in itertools.chain(*(check_part(job) for check_part in checks)):
        raise ParameterError(refusal) if isinstance(refusal, str) else refusal


def _pair(job: Job) -> Iterator[Refusal]:
    """Check that the runtime can run the strategy's workers for this kind of problem."""
    strategy, runtime, name = job.strategy, job.runtime, type(job.problem).__name__
    batches, shares = job.problem.terms == "batches", job.problem.needs_shared_memory
    if runtime.passes_messages:
        if not strategy.passes_messages:
            here = "Processes()" if batches else "Threads()"
            instead = "" if shares else ", or a strategy by messages such as ParameterServer()"
            yield f"The strategy {strategy!r} has its workers in one memory: use runtime={here}{instead}."
        elif batches and strategy.within is not None and strategies.named(strategy.within) != strategies.Serial():
            yield (
                "Each node of a Module trains alone, on threads of PyTorch's: leave out 'within'. "
                f"Got {strategy.within!r}."
            )
    elif shares and not (runtime.trains_modules and (strategy.shares_memory or strategy.uses_all_reduce)):
        yield (
            f"This {name} is trained by processes in one memory, not by messages: use runtime=Processes() with "
            f"Hogwild(), Averaging() or Serial(). Got {runtime!r} with {strategy!r}."
        )
    elif batches and not runtime.trains_modules:
        yield (
            "A Module is trained by processes, or by messages: use runtime=Processes(), or Simulator() with a strategy "
            f"such as ParameterServer(). Got {runtime!r} instead."
        )
    elif not batches and not runtime.shares_memory:
        yield f"{name} is trained by threads: use runtime=Threads(). Got {runtime!r}."
    elif not strategy.shares_memory and not (strategy.uses_all_reduce and (batches or runtime.uses_gpu)):
        yield (
            f"Workers of {type(strategy).__name__} send each other messages: use runtime=Local() or Simulator(). In "
            "one memory there are 'hogwild', and 'averaging' for workers that descend apart and meet once an epoch."
        )


def _gpu(job: Job) -> Iterator[Refusal]:
    """Check that a run on a GPU asks for nothing that only threads have."""
    if not job.runtime.uses_gpu:
        return
    strategy = job.strategy
    alone = isinstance(strategy, strategies.Hogwild) and strategy.buffer == "auto"
    in_step = isinstance(strategy, strategies.Synchronous) and (strategy.accumulate, strategy.recipe) == (1, None)
    apart = isinstance(strategy, strategies.Averaging)
    if not alone and not in_step and not apart:
        yield (
            "A GPU trains rows without locks and replicas: use Hogwild(), Synchronous() for rows that take their steps "
            f"together, or Averaging() for parts of the rows that train apart. Got {strategy!r}."
        )
    elif strategy.workers is not None and not apart:
        yield f"A GPU has as many workers as suit it: leave out 'workers'. Got {strategy!r}."
    if job.options.count_conflicts:
        yield "Conflicts are not counted on a GPU: leave out 'count_conflicts', or use runtime=Threads()."


def _duals(job: Job) -> Iterator[Refusal]:
    """Check that a rule with a dual variable for each row has all rows in one memory, and suits the problem."""
    if job.problem.terms != "rows" or not job.rule.has_duals:
        return
    strategy, options, other = job.strategy, job.options, "use another rule, such as 'adagrad'."
    if not isinstance(job.problem, RowProblem) or not job.problem.suits_duals:
        yield f"The rule 'sdca' is for linear models with one output, a penalty l2 and no penalty l1: {other}"
    if job.problem.searches_penalty:
        yield "The rule 'sdca' needs a penalty l2 that is a number: choose the strength first, with another rule."
    if job.runtime.passes_messages or not strategy.loses_nothing:
        yield f"The rule 'sdca' goes with the strategies Serial() and Hogwild() on threads: {other} Got {strategy!r}."
    if job.runtime.delays_workers or options.count_conflicts:
        yield f"The rule 'sdca' has a loop of its own, without delays and counts of conflicts: {other}"
    if options.average or options.init is not None:
        yield f"The rule 'sdca' starts at zero, without an average: leave out 'init' and 'average', or {other}"
    if job.budget.seconds is not None and not job.schedule.is_constant:
        yield "The rule 'sdca' has a constant schedule where seconds limit the run: leave out 'schedule'."


def _delay(job: Job) -> Iterator[Refusal]:
    """Check that workers on threads can wait between the read and the write of an update."""
    if not job.runtime.delays_workers or not job.runtime.shares_memory or job.problem.terms != "rows":
        return
    strategy = job.strategy
    if strategy.access != "free":
        yield (
            f"Workers of {type(strategy).__name__} wait for each other around each row, and cannot be delayed between "
            "its read and its write: leave out 'delay', or use Hogwild(), Averaging() or Serial()."
        )
    if strategy.buffer not in (0, "auto"):
        yield (
            f"Workers with 'delay' have no replicas: use {type(strategy).__name__}(buffer=0). Got "
            f"buffer={strategy.buffer!r}."
        )
    if job.rule.single_worker:
        yield (
            f"The rule {type(job.rule).__name__} has a loop of its own, without delays: leave out 'delay', or use "
            "another rule, such as 'sgd'."
        )


def _average(job: Job) -> Iterator[Refusal]:
    """Check that the run supports the requested average of the iterates."""
    average = job.options.average
    if isinstance(average, EMA):
        if job.problem.terms != "batches":
            yield "An exponential moving average is for a Module: give 'average' a number between 0 and 1."
        elif job.runtime.passes_messages:
            yield "An exponential moving average is for runtime=Processes(): give 'average' a number between 0 and 1."
    elif not isinstance(average, int | float) or isinstance(average, bool) or not 0 <= average <= 1:
        yield invalid_parameter("average", "between 0 and 1", average)
    if average and job.problem.terms == "batches" and job.strategy.replicas and not job.runtime.passes_messages:
        yield "Averaging has a mean of its own: leave out 'average', or use another strategy."
    if average and job.problem.terms == "rows" and job.rule.average_from:
        yield "This rule averages by itself: leave out 'average', or give a rule that does not."


def _checkpoint(job: Job) -> Iterator[Refusal]:
    given = job.checkpoints
    if job.options.resume and given is None:
        yield "To resume, say where the checkpoints are: checkpoint=FOLDER."
    if given is not None and job.runtime.passes_messages:
        if not job.runtime.saves_checkpoints:
            yield (
                f"{type(job.runtime).__name__} writes no checkpoints: use runtime=Local() or Simulator(), or leave out "
                "'checkpoint'."
            )
        if given.seconds is not None:
            yield "Checkpoints of runs by messages are written after each epoch: leave out 'seconds'."


def _budget(job: Job) -> Iterator[Refusal]:
    """Check that the run has everything that the budget's limits need."""
    budget, in_memory = job.budget, job.problem.terms == "rows" and not job.runtime.passes_messages
    if budget.patience and job.options.test is None:
        yield "The 'patience' of a budget counts epochs without a better held-out loss: give test data."
    if budget.monitor == "score" and (job.options.test is None or budget.tolerance is None):
        yield "To monitor the score, give test data, and the budget a tolerance."
    elif budget.monitors_test and job.options.test is None:
        yield f"To monitor {budget.monitor!r}, give test data."
    elif budget.monitors_test and (budget.patience, budget.tolerance, budget.window) == (None, None, None):
        yield f"The budget monitors {budget.monitor!r} for nothing: give it patience, a tolerance or a window."
    if budget.monitor == "training_objective" and not (in_memory and job.rule.track_objective):
        yield (
            "To monitor the training objective takes a rule that tracks it, on threads: "
            "Sequential(track_objective=True)."
        )
    if job.problem.terms == "rows" and job.schedule.needs_stall and budget.tolerance is None:
        yield "The schedule 'adaptive' waits for the objective to stall: give the budget a tolerance."


def _callback(callback: Any) -> Iterator[Refusal]:
    """Check that a callback takes an event, and runs when it is called."""
    if not callable(callback):
        return
    check_arguments("callbacks", callback, 1, "(event) -> None")  # raises for others
    if inspect.iscoroutinefunction(callback) or inspect.isgeneratorfunction(callback):
        name = getattr(callback, "__name__", type(callback).__name__)
        yield f"The callback {name} would not run when it is called: write it with 'def', without 'yield'."


def _options(job: Job) -> Iterator[Refusal]:
    """Check that the options apply to this kind of run."""
    options, batches = job.options, job.problem.terms == "batches"
    init: Any = options.init  # a user may give anything
    callbacks: Any = options.callbacks
    folder: Any = options.folder
    seed: Any = options.seed
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        yield invalid_parameter("seed", "a whole number of at least 0", seed)
    for name in ("shuffle", "evaluate_every_epoch", "resume", "count_conflicts"):
        flag(name, getattr(options, name))  # raises for anything else
    if not is_number(options.divergence_factor) or not options.divergence_factor > 0:
        yield invalid_parameter("divergence_factor", "a positive number", options.divergence_factor)
    if init is not None and not isinstance(init, WarmStart):
        yield invalid_parameter("init", "WarmStart(run.state)", init)
    if not isinstance(callbacks, Iterable) or not all(map(callable, callbacks)):
        yield invalid_parameter("callbacks", "a list of functions of an event", callbacks)
    for callback in callbacks if isinstance(callbacks, Iterable) else ():
        yield from _callback(callback)
    if folder is not None and not isinstance(folder, (str, os.PathLike)):
        yield invalid_parameter("folder", "the path of a folder", folder)
    elif folder is not None:
        named_path(os.fspath(folder))  # raises for an address
    if options.count_conflicts and job.runtime.passes_messages:
        yield (
            "'count_conflicts' is for workers in one memory: leave it out. Workers that send each other messages "
            "always count how stale what they send is."
        )
    elif options.count_conflicts and batches and (job.strategy.replicas or job.strategy.uses_all_reduce):
        yield (
            f"Workers of {type(job.strategy).__name__} have parameters to themselves: there are no conflicts to count. "
            "Leave out 'count_conflicts', or use Hogwild()."
        )
    if batches and options.init is not None:
        yield "A Module starts from the parameters its net has: load them into it, and leave out 'init'."
    if batches and not options.shuffle:
        yield "A Module draws its samples as its 'sampling' says: leave out 'shuffle'."
    if isinstance(job.problem, RowProblem) and job.problem.sampling != Split() and not options.shuffle:
        yield (
            f"shuffle=False visits rows in the order in which they are stored, and {job.problem.sampling!r} draws them "
            "at random: leave out one of the two."
        )
    what = "a Module" if batches else "a strategy by messages"
    if not options.evaluate_every_epoch and (batches or job.runtime.passes_messages):
        yield f"'evaluate_every_epoch' is for problems in one memory: leave it out with {what}."
    if options.divergence_factor != DIVERGENCE_FACTOR and batches and not job.runtime.passes_messages:
        yield (
            "'divergence_factor' is not for a Module on processes, which stops with an error when a loss is not a "
            "number: leave it out."
        )
    RecordInterval.parse(options.every)  # raises for anything else
