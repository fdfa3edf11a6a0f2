"""Synchronous strategy: all workers take each step together; and the recipe for the large minibatches that result."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.errors import ParameterError
from hogwild.messaging.job import RunConfig
from hogwild.messaging.node import Roles
from hogwild.registry import invalid_parameter
from hogwild.strategies.roles import synchronous_server_roles
from hogwild.strategies.strategy import Strategy, check_count, check_workers


@dataclass(frozen=True, slots=True)
class LargeMinibatch:
    """Recipe for large minibatches without loss of accuracy (Goyal et al. 2017).

    The step size of the optimiser is the right one for ``reference`` samples in a minibatch. A total batch of k times
    as many samples gets k times the step size, which rises to that value over the first ``warmup`` epochs.

    Four other rules of the paper hold with or without the recipe. The loss is normalised by the total batch. Weight
    decay is separate from the loss. Each epoch is one shuffle that is split between workers. Each worker has its own
    batch statistics.

    Parameters
    ----------
    reference : int, default 256
        Samples in the minibatch for which the step size of the optimiser is right.
    warmup : float, default 5.0
        Epochs over which the step size rises.
    momentum_correction : bool, default True
        Whether a change of the step size rescales the momentum, as if it had been accumulated with the new step size.
    decay_norms : bool, default False
        Whether weight decay applies to the parameters of normalisation layers as well.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> LargeMinibatch(warmup=-1)
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: The 'warmup' parameter must be a number of epochs. Got -1 instead.

    References
    ----------
    Goyal et al. 2017, arXiv 1706.02677.
    """

    reference: int = 256
    warmup: float = 5.0
    momentum_correction: bool = True
    decay_norms: bool = False

    def __post_init__(self) -> None:
        check_count("reference", self.reference)
        if not self.warmup >= 0:
            raise invalid_parameter("warmup", "a number of epochs", self.warmup)


@dataclass(frozen=True, slots=True)
class Synchronous(Strategy):
    """Synchronous SGD: all workers take each step together, along the mean of their gradients.

    The result is that of one worker that computes the gradient of the whole batch. The batch of a problem is that of
    one worker. A step uses ``accumulate`` batches of each worker, so the total batch is ``workers * accumulate *
    batch``.

    Parameters
    ----------
    workers : int, optional
        Number of workers. Left out, there is one worker per core.
    accumulate : int, default 1
        Batches of each worker in one step.
    recipe : LargeMinibatch, optional
        Changes of step size and weight decay for a large total batch, for a Module and ``runtime=Processes()``.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> Synchronous(workers=4, recipe=LargeMinibatch(reference=64)).total(batch=64)
    256
    """

    workers: int | None = None
    accumulate: int = 1
    recipe: LargeMinibatch | None = None

    passes_messages = True
    uses_all_reduce = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_count("accumulate", self.accumulate)
        if self.recipe is not None and not isinstance(self.recipe, LargeMinibatch):
            raise invalid_parameter("recipe", "LargeMinibatch() or None", self.recipe)

    @property
    def period(self) -> int:
        """The number of terms that a worker trains between two exchanges, in runs by messages."""
        return self.accumulate

    def roles(self, config: RunConfig) -> Roles:
        """Return functions that make the roles of a coordinator, one server and the workers.

        Raises
        ------
        ParameterError
            If there is a recipe, because runs by messages do not support it.
        """
        if self.recipe is not None:
            raise ParameterError("The recipe for large minibatches is for a Module and runtime=Processes().")
        return synchronous_server_roles(config, self.accumulate, together=True)

    def total(self, batch: int, workers: int | None = None) -> int:
        """Return the number of samples in one step.

        Parameters
        ----------
        batch : int
            Samples in the batch of one worker.
        workers : int, optional
            Number of workers. Left out, it is that of the strategy, or 1.

        Returns
        -------
        int
            ``workers * accumulate * batch``.
        """
        return (workers or self.workers or 1) * self.accumulate * batch
