"""Any ``torch.nn.Module`` as a problem: the mean loss of its outputs over a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader

from hogwild import schedules
from hogwild.data import samplers
from hogwild.data.samplers import Indices, Sampling, Whole, WorkerShare
from hogwild.errors import DataError, ParameterError
from hogwild.nn.batch_loader import BatchLoader, batch_loader, check_sampler
from hogwild.problems.problem import Defaults, Problem
from hogwild.registry import invalid_parameter

Metric = Callable[[Tensor, Any], Tensor]

BATCH = 32  # samples of one update, where nothing says how many
MEASURED = 8  # times the samples of an update are measured at once


@dataclass(frozen=True, eq=False)
class Module(Problem):
    """The mean of ``loss_fn(net(inputs), target)`` over a data set.

    ``dataset`` is a map-style data set or a ``DataLoader``, whose batch size, collate function and reading processes
    are then used. ``batch`` is the number of samples of one update of one worker. ``sampling`` says which samples each
    worker draws: "split" (each epoch one shuffle, dealt out), "replacement", "whole", or ``LabelSkew``, ``SizeSkew``.
    ``unpack`` turns a batch into inputs and target, if it is not ``(*inputs, target)``. ``buffers`` such as running
    means of batch normalisation are "shared" by the workers, or each worker's "own" (the first one's are kept).
    ``metrics`` are functions of outputs and target, averaged over held-out samples; without any, the accuracy is
    measured where targets are classes.

    >>> from torch.utils.data import TensorDataset
    >>> x = torch.arange(6.0).view(6, 1)
    >>> problem = Module(nn.Linear(1, 1), nn.functional.mse_loss, TensorDataset(x, 2 * x), batch=2)
    >>> len(problem), problem.n_parameters
    (6, 2)
    """

    net: nn.Module
    loss_fn: Callable[..., Tensor]
    dataset: Any = field(repr=False)
    batch: int | None = None
    sampling: str | Sampling = "split"
    buffers: str = "shared"
    unpack: Callable[[Any], tuple[Any, Any]] | None = None
    metrics: Mapping[str, Metric] | None = None

    terms = "batches"
    defaults = Defaults(epochs=10)

    def __post_init__(self) -> None:
        if not isinstance(self.net, nn.Module):
            raise invalid_parameter("net", "a torch.nn.Module", type(self.net).__name__)
        if not callable(self.loss_fn):
            raise invalid_parameter("loss_fn", "a function of outputs and target", self.loss_fn)
        batch = getattr(self.dataset, "batch_size", None) or BATCH if self.batch is None else self.batch
        if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
            raise invalid_parameter("batch", "a positive integer", batch)
        if self.buffers not in ("shared", "own"):
            raise invalid_parameter("buffers", "'shared' or 'own'", self.buffers)
        object.__setattr__(self, "batch", batch)
        object.__setattr__(self, "sampling", samplers.named(self.sampling))
        if len(self) == 0:
            raise DataError("the data set has no samples")

    def complete(self, rule: Any, schedule: Any) -> tuple[Any, Any]:
        """An optimiser of PyTorch and a schedule, as they are: the optimiser's defaults are known when it is made."""
        return rule, schedule if schedule is None else schedules.named(schedule)

    def __len__(self) -> int:
        return len(self.training)

    @cached_property
    def training(self) -> BatchLoader:
        """The samples to train on."""
        return self.feed()

    @property
    def device(self) -> str:
        """Where the model is."""
        return next((str(tensor.device) for tensor in self.net.parameters()), "cpu")

    @property
    def n_parameters(self) -> int:
        """How many numbers are learnt."""
        return sum(tensor.numel() for tensor in self.net.parameters() if tensor.requires_grad)

    def describe(self) -> dict[str, Any]:
        """What is minimised, in plain values."""
        return {
            "problem": "module", "net": type(self.net).__name__, "loss": _name(self.loss_fn), "samples": len(self),
            "parameters": self.n_parameters, "batch": self.batch, "sampling": repr(self.sampling),
            "buffers": self.buffers,
        }  # fmt: skip

    def feed(self, dataset: Any = None) -> BatchLoader:
        """The batches of its own data set, or of another that is read in the same way."""
        given = self.dataset if dataset is None else dataset
        loader = given if isinstance(given, DataLoader) else self.dataset
        samples = given.dataset if isinstance(given, DataLoader) else given
        feed = batch_loader(samples, loader, self.device)
        if dataset is None and isinstance(loader, DataLoader):
            check_sampler(loader, "give Module the data set, and its 'sampling' parameter the way to draw from it")
        return feed

    def share(
        self, worker: int, workers: int, epoch: int, seed: int, labels: NDArray[Any] | None = None
    ) -> WorkerShare:
        """What a worker must know to draw its samples."""
        assert self.batch is not None
        return WorkerShare(len(self), worker, workers, epoch, seed, self.batch, labels)

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        """A worker's batches of an epoch; without those that are smaller, if a DataLoader says ``drop_last``."""
        found = samplers.named(self.sampling).batches(share)
        return (batch for batch in found if len(batch) == self.batch) if self.drops_last else found

    @property
    def drops_last(self) -> bool:
        """Whether a batch that is smaller than the others is left out."""
        return isinstance(self.dataset, DataLoader) and self.dataset.drop_last

    def samples_of_epoch(self, workers: int, labels: NDArray[Any] | None) -> int:
        """How many samples all workers together draw in an epoch."""
        if not self.drops_last:
            return len(self) * (workers if isinstance(self.sampling, Whole) else 1)
        shares = (self.share(worker, workers, 0, 0, labels) for worker in range(workers))
        return sum(len(batch) for share in shares for batch in self.batches(share))

    def labels(self) -> NDArray[Any] | None:
        """The targets of all samples, where the way of sampling needs them."""
        if not samplers.named(self.sampling).needs_labels:
            return None
        found = [self._unpacked(batch)[1] for batch in self.feed().in_order(1024)]
        return np.concatenate([np.asarray(target.detach().cpu()).reshape(len(target), -1)[:, 0] for target in found])

    def loss(self, batch: Any) -> tuple[Tensor, int]:
        """The mean loss of a batch, and the number of its samples."""
        outputs, target = self.outputs(batch)
        loss = self.loss_fn(outputs, target)
        if not isinstance(loss, Tensor) or loss.dim() != 0:
            shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
            raise ParameterError(f"The loss function must give the mean loss of a batch, one number. Got {shape}.")
        return loss, _length(target)

    def outputs(self, batch: Any) -> tuple[Any, Any]:
        """What the model makes of a batch, and what it should have been."""
        inputs, target = self._unpacked(batch)
        if isinstance(inputs, dict):
            return self.net(**inputs), target
        return (self.net(*inputs) if isinstance(inputs, (tuple, list)) else self.net(inputs)), target

    @torch.no_grad()
    def measure(self, feed: BatchLoader) -> dict[str, float]:
        """Mean loss and metrics over a data set; the model is left in the mode it was in."""
        training = self.net.training
        self.net.eval()
        sums: dict[str, float] = {}
        count = 0
        try:
            for batch in feed.in_order(MEASURED * (self.batch or BATCH)):
                outputs, target = self.outputs(batch)
                size = _length(target)
                count += size
                for name, value in self._figures(outputs, target):
                    sums[name] = sums.get(name, 0.0) + float(value) * size
        finally:
            self.net.train(training)
        return {name: total / count for name, total in sums.items()}

    def _figures(self, outputs: Any, target: Any) -> Iterator[tuple[str, Tensor]]:
        yield "loss", self.loss_fn(outputs, target)
        if self.metrics is not None:
            yield from ((name, metric(outputs, target)) for name, metric in self.metrics.items())
        elif _are_classes(outputs, target):
            yield "accuracy", (outputs.argmax(1) == target).float().mean()

    def _unpacked(self, batch: Any) -> tuple[Any, Any]:
        if self.unpack is not None:
            return self.unpack(batch)
        if not isinstance(batch, (tuple, list)) or len(batch) < 2:
            raise ParameterError(
                f"A sample must be (*inputs, target). Got a {type(batch).__name__}: give Module(unpack=...), a "
                "function that turns a batch into inputs and target."
            )
        return tuple(batch[:-1]), batch[-1]


def _are_classes(outputs: Any, target: Any) -> bool:
    if not isinstance(outputs, Tensor) or not isinstance(target, Tensor):
        return False
    return outputs.dim() == 2 and target.dim() == 1 and not target.is_floating_point() and outputs.shape[1] > 1


def _length(target: Any) -> int:
    if isinstance(target, dict):
        return _length(next(iter(target.values())))
    several = isinstance(target, (tuple, list)) and isinstance(target[0], Tensor) and target[0].dim() > 0
    return len(target[0]) if several else len(target)


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)
