"""Wait for each other at every step, and the recipe for the large minibatches that makes."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.errors import ParameterError
from hogwild.messaging.run_config import RunConfig
from hogwild.registry import invalid_parameter
from hogwild.strategies.message_passing import synchronous_server_roles
from hogwild.strategies.strategy import Roles, Strategy, check_count, check_workers


@dataclass(frozen=True, slots=True)
class LargeMinibatch:
    """The recipe of Goyal et al. 2017 (arXiv 1706.02677): train with k times the minibatch, and lose no accuracy.

    The optimiser's step is the one that is right for ``reference`` samples in a minibatch. A total batch of k times as
    many has k times the step, which is risen to over the first ``warmup`` epochs. Parameters of normalisation layers
    have no weight decay, unless ``decay_norms``. When the step changes, what momentum has gathered is as if it had
    been gathered with the new step, unless ``momentum_correction`` is False. The paper's other rules hold with or
    without the recipe: the loss is normalised by the total batch, weight decay is apart from the loss, each epoch
    is one shuffle that is split between workers, and each worker has batch statistics of its own.

    >>> LargeMinibatch(warmup=-1)
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: The 'warmup' parameter must be a number of epochs. Got -1 instead.
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
    """Workers take each step together: the mean of their gradients, as if one had computed the gradient of all.

    The batch of a problem is that of one worker. A step is taken after ``accumulate`` batches of each, so the total
    batch is ``workers * accumulate * batch``. ``recipe`` says what to change for a total batch that is large.

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
        """Terms of one worker between two exchanges, where workers send each other messages."""
        return self.accumulate

    def roles(self, config: RunConfig) -> Roles:
        """The role of each node, where workers send each other messages."""
        if self.recipe is not None:
            raise ParameterError("The recipe for large minibatches is for a Module and runtime=Processes().")
        return synchronous_server_roles(config, self.accumulate, together=True)

    def total(self, batch: int, workers: int | None = None) -> int:
        """How many samples a step takes."""
        return (workers or self.workers or 1) * self.accumulate * batch
