"""Job: one call of ``minimise`` with all its parts resolved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hogwild import runtimes, strategies
from hogwild.averages import EMA
from hogwild.problems.problem import Problem
from hogwild.registry import invalid_parameter
from hogwild.run import Budget, Callback, WarmStart, budget_of
from hogwild.runtimes.runtime import Runtime
from hogwild.strategies.strategy import Strategy
from hogwild.training.checkpoints import Checkpoints
from hogwild.training.divergence_guard import DIVERGENCE_FACTOR


@dataclass(frozen=True, eq=False)
class Options:
    """Keyword arguments of :func:`~hogwild.training.minimise.minimise`, which documents them."""

    test: Any = None
    average: float | EMA = 0.0
    init: WarmStart | None = None
    shuffle: bool = True
    evaluate_every_epoch: bool = True
    divergence_factor: float = DIVERGENCE_FACTOR
    seed: int = 0
    callbacks: Iterable[Callback] = ()
    checkpoint: str | Path | Checkpoints | None = None
    resume: bool = False
    count_conflicts: bool = False


@dataclass(frozen=True, eq=False)
class Job:
    """Problem, rule, schedule, strategy, runtime and budget of a run, as objects instead of names.

    ``rule`` is a :class:`~hogwild.rules.Rule`, and ``schedule`` a :class:`~hogwild.schedules.Schedule`. A ``Module``
    has an optimiser of PyTorch instead of a rule. Its schedule may be None: the optimiser's own step size is then used.
    """

    problem: Problem
    rule: Any
    schedule: Any
    strategy: Strategy
    runtime: Runtime
    budget: Budget
    options: Options

    @classmethod
    def resolve(
        cls, problem: Problem, rule: Any, schedule: Any, strategy: Strategy | str, runtime: Runtime | str | None,
        budget: Budget | int | None, options: Options,
    ) -> Job:  # fmt: skip
        """Return a job in which names are replaced by objects, and missing parts by defaults that suit the problem."""
        if not isinstance(problem, Problem):
            raise invalid_parameter("problem", "a problem such as Linear((X, y))", type(problem).__name__)
        rule, schedule = problem.complete(rule, schedule)
        found = strategies.named(strategy)
        where = runtimes.default_for(problem, found) if runtime is None else runtimes.named(runtime)
        problem = problem.for_rule(rule)
        if isinstance(options.callbacks, Iterator):  # the check and the run both go through them
            options = replace(options, callbacks=tuple(options.callbacks))
        return cls(problem, rule, schedule, found, where, budget_of(budget).usually(problem.defaults.epochs), options)

    @property
    def workers(self) -> int:
        """The number of workers of the strategy on this machine."""
        return strategies.worker_count(self.strategy)

    @property
    def checkpoints(self) -> Checkpoints | None:
        """The folder of the checkpoints; None if the run has none."""
        given = self.options.checkpoint
        if given is None or isinstance(given, Checkpoints):
            return given
        if not isinstance(given, (str, os.PathLike)):
            raise invalid_parameter("checkpoint", "a folder, or Checkpoints(folder, seconds)", given)
        return Checkpoints(Path(given))
