"""Problem of any ``torch.nn.Module``: the mean loss of its outputs over a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader

from hogwild import schedules
from hogwild.data import sampling
from hogwild.data.sampling import Blocks, Indices, Sampling, Split, WeightedRandom, WorkerShare
from hogwild.errors import DataError, ParameterError
from hogwild.keywords import advised
from hogwild.lazy import cached_property
from hogwild.nn.batch_loader import BatchLoader, batch_loader, check_sampler, weighted_draws
from hogwild.nn.gradient_clipping import ClipNorm, ClipValue, clip_of
from hogwild.nn.lr_scheduler import schedule_of
from hogwild.nn.record_loader import RecordLoader
from hogwild.problems.batch_errors import checked_loss, figure, noting, with_gradient
from hogwild.problems.problem import Defaults, Problem
from hogwild.registry import check_arguments, invalid_parameter, is_count, not_an_object
from hogwild.schedules import Schedule

Metric = Callable[[Tensor, Any], Tensor]

# Number of samples of one update, if neither the user nor a DataLoader gives it.
BATCH = 32
# Number of updates' samples in one batch of an evaluation.
MEASURED = 8


@advised(
    batch="Write batch=32.",
    loss="Write hogwild.Module(net, loss_fn, dataset).",
    epochs="minimise takes it: hogwild.minimise(problem, budget=3).",
    step="The optimiser has it: hogwild.minimise(problem, rule=partial(torch.optim.SGD, lr=0.1)).",
    workers="minimise takes them: hogwild.minimise(problem, strategy=hogwild.Hogwild(workers=4)).",
    rule="minimise takes it: hogwild.minimise(problem, rule=partial(torch.optim.SGD, lr=0.1)).",
    penalty="The optimiser has it: rule=partial(torch.optim.SGD, lr=0.1, weight_decay=1e-4) of hogwild.minimise.",
    seed="minimise takes it: hogwild.minimise(problem, seed=0).",
    test="minimise takes it: hogwild.minimise(problem, test=dataset).",
)
@dataclass(frozen=True, eq=False)
class Module(Problem):
    """Mean of ``loss_fn(net(inputs), target)`` over a data set.

    Parameters
    ----------
    net : torch.nn.Module
        The network to train.
    loss_fn : callable
        Function of outputs and target that returns the mean loss of a batch.
    dataset : Dataset or DataLoader of PyTorch, CSRDataset or RecordLoader
        A map-style data set, or a ``DataLoader``, whose batch size, collate function and reading processes are used. A
        ``CSRDataset`` of a packed folder and a ``RecordLoader`` may be larger than memory.
    batch : int, optional
        Number of samples of one update of one worker; by default that of the loader, or 32.
    sampling : str or Sampling, default "split"
        Choice of each worker's samples: "split" (each epoch one shuffle, divided among the workers), "replacement",
        "whole", ``LabelSkew``, ``SizeSkew``, or ``WeightedRandom(weights)``, which a ``DataLoader`` with a
        ``WeightedRandomSampler`` stands for. The split of data on disk is shuffled in blocks.
    buffers : {"shared", "own"}, default "shared"
        Whether workers share buffers such as the running means of batch normalisation, or each has its own. In the
        second case the run keeps those of the first worker.
    unpack : callable, optional
        Function that turns a batch into inputs and target, if a batch is not ``(*inputs, target)``.
    metrics : mapping of str to callable, optional
        Further figures of held-out samples by name: functions of outputs and target that return one number, the mean
        over a batch. The loss is always evaluated, and the accuracy if targets are classes.
    clip : float, ClipNorm or ClipValue, optional
        Clipping of the gradient of each step, before the optimiser takes it: the largest norm of all gradients
        together, or :class:`hogwild.ClipNorm` or :class:`hogwild.ClipValue`. By default nothing is clipped.

    Raises
    ------
    ParameterError
        If a parameter is invalid.
    DataError
        If the data set has no samples.

    Examples
    --------
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
    clip: float | ClipNorm | ClipValue | None = None

    terms = "batches"
    defaults = Defaults(epochs=10)

    def __post_init__(self) -> None:
        given: Any = self.net
        if not isinstance(given, nn.Module):
            got = given if isinstance(given, type) else type(given).__name__
            raise not_an_object("net", "a torch.nn.Module", got, nn.Module)
        if not callable(self.loss_fn) or isinstance(self.loss_fn, type):
            raise not_an_object("loss_fn", "a function of outputs and target", self.loss_fn, object)
        check_arguments("loss_fn", self.loss_fn, 2, "(outputs, target) -> mean loss")
        if (
            isinstance(self.dataset, (tuple, list))
            and len(self.dataset) == 2
            and all(isinstance(part, (Tensor, np.ndarray)) for part in self.dataset)
        ):
            raise ParameterError(
                "The data of a Module is a data set of samples. Of two tensors torch.utils.data.TensorDataset(inputs, "
                "targets) makes one; torch.as_tensor makes a tensor of an array."
            )
        batch = getattr(self.dataset, "batch_size", None) or BATCH if self.batch is None else self.batch
        if not is_count(batch):
            raise invalid_parameter("batch", "a positive integer", batch)
        if self.unpack is not None:
            if not callable(self.unpack):
                raise invalid_parameter("unpack", "a function that turns a batch into inputs and target", self.unpack)
            check_arguments("unpack", self.unpack, 1, "(batch) -> (inputs, target)")
        if self.buffers not in ("shared", "own"):
            raise invalid_parameter("buffers", "'shared' or 'own'", self.buffers)
        object.__setattr__(self, "batch", int(batch))
        object.__setattr__(self, "metrics", _checked_metrics(self.metrics))
        object.__setattr__(self, "clip", self._checked_clip())
        chosen = sampling.batch_sampling(self.sampling)
        if len(self) == 0:
            raise DataError("the data set has no samples")
        chosen = self._sampling_of_loader(chosen)
        chosen.check(len(self))
        object.__setattr__(self, "sampling", self._sampling_on_disk(chosen))

    def _checked_clip(self) -> ClipNorm | ClipValue | None:
        found = clip_of(self.clip)
        if found is not None and any(getattr(part, "updates_in_backward", False) for part in self.net.modules()):
            raise ParameterError(
                "A SparseTable is updated in the backward pass, before all gradients are known, and cannot be clipped: "
                "leave out 'clip', or use torch.nn.EmbeddingBag(sparse=True)."
            )
        return found

    def clip_gradients(self, optimiser: torch.optim.Optimizer) -> None:
        """Clip the gradients of a step as ``clip`` says, after the backward pass and before the optimiser's step."""
        if isinstance(self.clip, (ClipNorm, ClipValue)):
            self.clip(optimiser)

    def _sampling_of_loader(self, chosen: Sampling) -> Sampling:
        """Return the sampling method, which is that of a loader with a ``WeightedRandomSampler``."""
        found = weighted_draws(self.dataset) if isinstance(self.dataset, DataLoader) else None
        if found is None or isinstance(chosen, WeightedRandom):
            return chosen
        if chosen != Split():
            raise ParameterError(
                f"The DataLoader draws by weight, and the 'sampling' parameter is {chosen!r}: leave out one of them."
            )
        return found

    def _sampling_on_disk(self, chosen: Sampling) -> Sampling:
        """Return the sampling method; the split of data on disk goes block by block."""
        samples = self.training.stored
        if samples is None or samples.blocks is None:
            return chosen
        if chosen == Split():
            return samples.blocks
        if samples.in_sequence and not isinstance(chosen, Blocks):
            raise ParameterError(
                f"Files of a RecordLoader are read from beginning to end, and cannot be sampled by {chosen!r}. Leave "
                "out 'sampling', or pack the files (hogwild pack) and give CSRDataset(folder)."
            )
        return chosen

    @property
    def in_sequence(self) -> bool:
        """Whether the samples are in files that can be read only from beginning to end."""
        return self.training.stored is not None and self.training.stored.in_sequence

    @property
    def needs_shared_memory(self) -> bool:
        """Whether workers cannot send each other messages.

        A table that is updated in the backward pass has no gradient to send. Of files that can be read only from
        beginning to end, workers by messages would read different places in turn.
        """
        return self.in_sequence or any(getattr(part, "updates_in_backward", False) for part in self.net.modules())

    def complete(self, rule: object, schedule: Schedule | str | float | None) -> tuple[Any, Any]:
        """Return the optimiser of PyTorch unchanged, and the schedule as an object.

        The optimiser's defaults are known only after its construction.
        """
        return rule, schedule if schedule is None else schedules.named(schedule_of(schedule))

    def __len__(self) -> int:
        return len(self.training)

    @cached_property
    def training(self) -> BatchLoader:
        """The samples to train on."""
        return self.feed()

    @property
    def device(self) -> str:
        """The device of the network."""
        return next((str(tensor.device) for tensor in self.net.parameters()), "cpu")

    @property
    def n_parameters(self) -> int:
        """The number of trainable parameters."""
        return sum(tensor.numel() for tensor in self.net.parameters() if tensor.requires_grad)

    def describe(self) -> dict[str, Any]:
        """Return the problem's parameters as plain values, for records."""
        return {
            "problem": "module", "net": type(self.net).__name__, "loss": _name(self.loss_fn), "samples": len(self),
            "parameters": self.n_parameters, "batch": self.batch, "sampling": repr(self.sampling),
            "buffers": self.buffers, **({} if self.clip is None else {"clip": repr(self.clip)}),
            **(self.training.stored.describe() if self.training.stored is not None else {}),
        }  # fmt: skip

    def feed(self, dataset: object = None) -> BatchLoader:
        """Return the batches of the problem's data set, or of another data set that is read in the same way."""
        given = self.dataset if dataset is None else dataset
        if isinstance(given, RecordLoader):
            return BatchLoader(given.samples, device=self.device)
        loader = given if isinstance(given, DataLoader) else self.dataset
        samples = given.dataset if isinstance(given, DataLoader) else given
        feed = batch_loader(samples, loader, self.device)
        if dataset is None and isinstance(loader, DataLoader) and weighted_draws(loader) is None:
            check_sampler(loader, "give Module the data set, and its 'sampling' parameter the way to draw from it")
        return feed

    def share(
        self, worker: int, workers: int, epoch: int, seed: int, labels: NDArray[Any] | None = None
    ) -> WorkerShare:
        """Return all that a worker needs to draw its samples of an epoch."""
        assert self.batch is not None
        return WorkerShare(len(self), worker, workers, epoch, seed, self.batch, labels)

    def batches(self, share: WorkerShare) -> Iterator[Indices]:
        """Return a worker's batches of an epoch, without a smaller last one if a loader has ``drop_last``."""
        found = sampling.batch_sampling(self.sampling).batches(share)
        return (batch for batch in found if len(batch) == self.batch) if self.drops_last else found

    @property
    def drops_last(self) -> bool:
        """Whether a batch that is smaller than the others is dropped."""
        return isinstance(self.dataset, (DataLoader, RecordLoader)) and self.dataset.drop_last

    def samples_of_epoch(self, workers: int, labels: NDArray[Any] | None) -> int:
        """Return the number of samples that all workers together draw in an epoch."""
        if not self.drops_last:
            return sampling.batch_sampling(self.sampling).epoch_size(len(self), workers)
        shares = (self.share(worker, workers, 0, 0, labels) for worker in range(workers))
        return sum(len(batch) for share in shares for batch in self.batches(share))

    def labels(self) -> NDArray[Any] | None:
        """Return the targets of all samples, if the sampling needs them; else None."""
        if not sampling.batch_sampling(self.sampling).needs_labels:
            return None
        found = [self._unpacked(batch)[1] for batch in self.feed().in_order(1024)]
        return np.concatenate([np.asarray(target.detach().cpu()).reshape(len(target), -1)[:, 0] for target in found])

    def loss(self, batch: object) -> tuple[Tensor, int]:
        """Return the mean loss of a batch, and the number of its samples.

        Raises
        ------
        ParameterError
            If the loss function does not return one number, or if that number depends on no parameter.
        """
        outputs, target = self.outputs(batch)
        with noting(f"the loss function {_name(self.loss_fn)}", outputs=outputs, target=target):
            loss = self.loss_fn(outputs, target)
        return with_gradient(checked_loss(loss)), _length(target)

    def outputs(self, batch: object) -> tuple[Any, Any]:
        """Return the network's outputs for a batch, and the target."""
        inputs, target = self._unpacked(batch)
        with noting(f"the network {type(self.net).__name__}", inputs=inputs):
            if isinstance(inputs, dict):
                return self.net(**inputs), target
            return (self.net(*inputs) if isinstance(inputs, (tuple, list)) else self.net(inputs)), target

    def measure(self, feed: BatchLoader) -> dict[str, float]:
        """Return the mean loss and the metrics over a data set, and restore the network's training mode."""
        return self._measured(feed.in_order(MEASURED * (self.batch or BATCH)))

    def try_to_measure(self, feed: BatchLoader) -> None:
        """Compute the loss and the metrics of one batch, so that those that fail do so before training begins."""
        self._measured(feed.batches([np.arange(min(self.batch or BATCH, len(feed)))]))

    @torch.no_grad()
    def _measured(self, batches: Iterator[Any]) -> dict[str, float]:
        training = self.net.training
        self.net.eval()
        sums: dict[str, float] = {}
        count = 0
        try:
            for batch in batches:
                outputs, target = self.outputs(batch)
                size = _length(target)
                count += size
                # A metric of the user's that is called "accuracy" takes the place of ours.
                for name, value in dict(self._figures(outputs, target)).items():
                    sums[name] = sums.get(name, 0.0) + figure(name, value) * size
        finally:
            self.net.train(training)
        return {name: total / count for name, total in sums.items()}

    def _figures(self, outputs: Any, target: Any) -> Iterator[tuple[str, Tensor]]:
        with noting(f"the loss function {_name(self.loss_fn)}", outputs=outputs, target=target):
            loss = self.loss_fn(outputs, target)
        yield "loss", checked_loss(loss)
        if _are_classes(outputs, target):
            yield "accuracy", (outputs.argmax(1) == target).float().mean()
        for name, metric in (self.metrics or {}).items():
            with noting(f"the metric {name!r}", outputs=outputs, target=target):
                value = metric(outputs, target)
            yield name, value

    def _unpacked(self, batch: object) -> tuple[Any, Any]:
        if self.unpack is not None:
            found: Any = self.unpack(batch)  # a user's function may return anything
            if not isinstance(found, (tuple, list)) or len(found) != 2:
                raise ParameterError(
                    "The function 'unpack' must return inputs and target, as in (batch['x'], batch['y']). Got a "
                    f"{type(found).__name__}{f' of {len(found)}' if isinstance(found, (tuple, list)) else ''}."
                )
            return found[0], found[1]
        if not isinstance(batch, (tuple, list)) or len(batch) < 2:
            raise ParameterError(
                f"A sample must be (*inputs, target). Got a {type(batch).__name__}: give Module(unpack=...), a "
                "function that turns a batch into inputs and target."
            )
        return tuple(batch[:-1]), batch[-1]


def _checked_metrics(metrics: object) -> Mapping[str, Metric] | None:
    """Return the metrics of the user; raise ParameterError unless they are functions by name."""
    if metrics is None:
        return None
    if not isinstance(metrics, Mapping):
        raise invalid_parameter(
            "metrics", "a mapping of names to functions of outputs and target, such as {'f1': f1}", metrics
        )
    for name, metric in metrics.items():
        if not isinstance(name, str) or not callable(metric):
            raise invalid_parameter("metrics", "a mapping of names to functions of outputs and target", metrics)
        if name in ("loss", "objective"):
            raise ParameterError(f"The metric {name!r} has the name of a figure that every record has: rename it.")
        check_arguments("metrics", metric, 2, "(outputs, target) -> number")
    return metrics


def _are_classes(outputs: object, target: object) -> bool:
    if not isinstance(outputs, Tensor) or not isinstance(target, Tensor):
        return False
    return outputs.dim() == 2 and target.dim() == 1 and not target.is_floating_point() and outputs.shape[1] > 1


def _length(target: Any) -> int:
    if isinstance(target, dict):
        return _length(next(iter(target.values())))
    several = isinstance(target, (tuple, list)) and isinstance(target[0], Tensor) and target[0].dim() > 0
    return len(target[0]) if several else len(target)


def _name(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)
