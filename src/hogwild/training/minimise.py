"""``minimise``: the one verb."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hogwild.averages import EMA
from hogwild.problems.problem import Problem
from hogwild.run import Budget, Callback, Run, WarmStart
from hogwild.runtimes.runtime import Runtime
from hogwild.schedules.schedule import Schedule
from hogwild.strategies.strategy import Strategy
from hogwild.training.checkpoints import Checkpoints
from hogwild.training.compatibility import check
from hogwild.training.divergence_guard import DIVERGENCE_FACTOR
from hogwild.training.drivers import driver_for
from hogwild.training.job import Job, Options


def minimise(
    problem: Problem,
    rule: Any = None,
    schedule: Schedule | str | float | None = None,
    strategy: Strategy | str = "hogwild",
    runtime: Runtime | str | None = None,
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
    options = Options(
        test, average, init, shuffle, evaluate_every_epoch, divergence_factor, seed, callbacks, checkpoint, resume,
        count_conflicts,
    )  # fmt: skip
    job = Job.resolve(problem, rule, schedule, strategy, runtime, budget, options)
    check(job)
    return driver_for(job)(job)
