"""Entry point ``minimise``: resolves a job, checks it, and passes it to its driver."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hogwild.events import Callback
from hogwild.iterate_average import EMA
from hogwild.keywords import advised
from hogwild.problems.problem import Problem
from hogwild.run import Run, WarmStart
from hogwild.runtimes.runtime import Runtime
from hogwild.schedules.schedule import Schedule
from hogwild.stopping import DIVERGENCE_FACTOR, Budget
from hogwild.strategies.strategy import Strategy
from hogwild.training.checkpoints import Checkpoints
from hogwild.training.compatibility import check
from hogwild.training.job import Job, Options, driver_for


@advised(
    epochs="Write budget=3 for three epochs, or budget=hogwild.Budget(epochs=3, seconds=60).",
    limit="Write budget=hogwild.Budget(seconds=60).",
    step="Write schedule=0.1 for a constant step, or schedule=hogwild.Cosine(0.1). Without it, trials choose.",
    workers="Write strategy=hogwild.Hogwild(workers=4).",
    rule="Write rule='adagrad', or with a Module, rule=partial(torch.optim.SGD, lr=0.1).",
    penalty="The problem has the penalty: hogwild.Linear(data, loss='logistic', l2=1e-5).",
    loss="The problem has the loss: hogwild.Linear(data, loss='logistic'), or hogwild.Module(net, loss_fn, data).",
    batch="The problem has the size of a batch: hogwild.Module(net, loss_fn, data, batch=32).",
    seed="Write seed=0.",
    test="Write test=data.",
    progress="Write callbacks=[hogwild.callbacks.Progress()].",
)
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
    checkpoint: str | Path | Checkpoints | bool | None = None,
    resume: bool = False,
    count_conflicts: bool = False,
    folder: str | Path | None = None,
    every: int | str | None = None,
) -> Run:
    """Minimise a problem by stochastic gradient descent.

    Every part is a name or an object. Parts that are left out suit the problem. Data in memory or in files is trained
    on threads by AdaGrad with a cooldown, or by SDCA where that is faster. A ``Module`` is trained on processes by Adam
    at a constant step size.

    Parameters
    ----------
    problem : Problem
        Objective to minimise, such as ``Linear((X, y))`` or ``Module(net, loss, dataset)``.
    rule : Rule or str, optional
        Update rule, such as "sgd" or "adagrad". For a ``Module`` it is an optimiser class or instance of PyTorch.
    schedule : Schedule, str or float, optional
        Step size over the run, such as "cosine" or ``Constant(0.1)``. By default "cooldown" with AdaGrad and FTRL, and
        "cosine" with other rules.
    strategy : Strategy or str, default "hogwild"
        Way in which workers share the parameters.
    runtime : Runtime or str, optional
        Place where workers run: threads, processes, a simulator or a cluster.
    budget : Budget or int, optional
        Limits of the run; an integer is a number of epochs. By default the size of the data decides.
    test : data, optional
        Held-out data, in any form that the problem accepts for its training data; it is read in the same way.
    average : float or EMA, default 0.0
        Last share of the run over which iterates are averaged (Polyak averaging); 0 is no averaging.
    init : WarmStart, optional
        Parameters of another run to start from.
    shuffle : bool, default True
        Whether every epoch visits the rows in a new random order, or as the problem's ``sampling`` says; else in the
        order in which they are stored.
    evaluate_every_epoch : bool, default True
        Whether the loss is evaluated after each epoch. On large data, records before the last are evaluated on a sample
        of the rows, unless the training loss decides when the run ends. Otherwise the loss of an epoch is the mean loss
        of its updates, and there is no accuracy.
    divergence_factor : float, default 1000.0
        Multiple of the initial loss above which a loss counts as diverged. The run then returns to its last good epoch,
        or to its beginning if workers send messages, and halves the step size.
    seed : int, default 0
        Seed of the order of rows and of all other random choices.
    callbacks : iterable of callable, default ()
        Functions that are called with each event.
    checkpoint : path, Checkpoints or True, optional
        Folder for checkpoints; True is the folder "checkpoints" in ``folder``.
    resume : bool, default False
        Whether to continue from the checkpoint in that folder.
    count_conflicts : bool, default False
        Whether to count conflicts; see ``Run.conflicts``. The counts are the updates by others between an update's read
        and its write, the coordinates that collided, and the writes that were lost. Only for workers in one memory. The
        instrumented updates of rows or of a ``Module`` have no replicas, and take several times as long.
    folder : path, optional
        Folder for the record of the run ("run.json"), its events ("events.jsonl") and its model, which
        ``Run.load`` and ``hogwild report`` read.
    every : int or str, optional
        Interval of records between those of epochs: a number of updates such as 1000 (samples of a ``Module``), or of
        seconds such as "0.5s". A record is made at the first opportunity after it, between two chunks or messages. The
        number of workers that train does not depend on it.

    Returns
    -------
    Run
        Model, history of epochs, and all events.

    Raises
    ------
    ParameterError
        If the parts cannot work together, before any data is read.
    DivergedError
        If the loss diverges again after five halvings of the step size.
    CheckpointError
        If a checkpoint cannot be read, belongs to another run, or if another run writes to the folder.

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
        count_conflicts, folder, every,
    )  # fmt: skip
    job = Job.resolve(problem, rule, schedule, strategy, runtime, budget, options)
    check(job)
    return driver_for(job)(job)
