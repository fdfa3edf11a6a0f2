"""Local trainer of a PyTorch module: bursts along the minibatches of its data set."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hogwild.data.sampling import Indices
from hogwild.errors import DataError, ParameterError
from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.protocol import Train, Trained
from hogwild.messaging.state_codec import decode_state, encode_state
from hogwild.nn.batch_loader import BatchLoader
from hogwild.problems.module import Module
from hogwild.runtimes.processes import rng_state
from hogwild.runtimes.processes.worker_config import StepSize


class FlatParameters:
    """Floating-point numbers of a model as one vector in single precision: its parameters, then its buffers.

    Integer buffers, such as a count of batches, are left out.

    >>> net = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
    >>> flat = FlatParameters(net)
    >>> flat.parameters, flat.size
    (5, 7)
    >>> flat.put(np.arange(7, dtype=np.float32)); net[0].bias.item(), net[1].running_var.item()
    (2.0, 6.0)
    """

    def __init__(self, net: nn.Module) -> None:
        numbers = [*net.parameters(), *net.buffers()]
        if any(tensor.is_complex() for tensor in numbers):
            raise ParameterError("Complex numbers cannot be sent: keep their real and imaginary parts in the model.")
        parameters = [tensor for tensor in net.parameters() if tensor.is_floating_point()]
        self._parameters = len(parameters)
        self._tensors = [*parameters, *(tensor for tensor in net.buffers() if tensor.is_floating_point())]
        self.parameters = sum(tensor.numel() for tensor in parameters)
        self.size = sum(tensor.numel() for tensor in self._tensors)

    def values(self) -> Floats:
        """Return a copy of all numbers as one vector."""
        values = np.empty(self.size, np.float32)
        whole, first = torch.from_numpy(values), 0
        for tensor in self._tensors:
            whole[first : first + tensor.numel()].copy_(tensor.detach().reshape(-1))
            first += tensor.numel()
        return values

    @torch.no_grad()
    def put(self, values: Floats, buffers: bool = True) -> None:
        """Copy a vector into the model's parameters and, with ``buffers``, into its buffers."""
        # Received arrays are read-only, and PyTorch accepts only writable ones.
        whole, first = torch.from_numpy(np.array(values, np.float32)), 0
        for tensor in self._tensors if buffers else self._tensors[: self._parameters]:
            tensor.copy_(whole[first : first + tensor.numel()].view_as(tensor))
            first += tensor.numel()


Term = tuple[int, int, Indices]  # epoch, place in the shard's epoch, and indices of the samples of one minibatch


@dataclass(eq=False)
class BatchSource:
    """Minibatches of each shard in each epoch, and their step sizes, the same for all workers.

    ``optimiser`` is the initial optimiser of each worker. Where the deltas of all workers are added in full, the deltas
    of buffers overshoot. A running mean that each of n workers moves a tenth of the way moves n tenths. So workers pass
    on only ``damping`` times the deltas of buffers.
    """

    problem: Module
    optimiser: torch.optim.Optimizer
    rate: StepSize
    seed: int
    workers: int
    labels: NDArray[Any] | None
    damping: float = 1.0
    keeps_previous_state: bool = False  # whether a checkpoint may need the state of a trainer before its last burst
    scale: float = 1.0  # factor of all step sizes, below 1 after a divergence
    sizes: tuple[int, ...] = field(init=False)  # batches of each shard in an epoch

    def __post_init__(self) -> None:
        self.sizes = tuple(len(self._drawn(shard, 0)) for shard in range(self.workers))
        if 0 in self.sizes:
            raise DataError(
                f"worker {self.sizes.index(0)} of {self.workers} has no batch of {self.problem.batch} samples",
                remedy="Use a smaller batch, or fewer workers.",
            )

    @property
    def epoch(self) -> int:
        """The number of batches of all shards in an epoch."""
        return sum(self.sizes)

    def drawn(self, shard: int, epoch: int) -> list[Indices]:
        """Return the batches of a shard in an epoch, the same as a worker process of that rank draws.

        Raises
        ------
        ParameterError
            If the sampling gives another number of batches than in the first epoch.
        """
        found = self._drawn(shard, epoch)
        if len(found) != self.sizes[shard]:
            raise ParameterError(
                f"The sampling {self.problem.sampling!r} gives worker {shard} {self.sizes[shard]} batches in the first "
                f"epoch and {len(found)} in epoch {epoch + 1}: by messages it must give as many in all."
            )
        return found

    def _drawn(self, shard: int, epoch: int) -> list[Indices]:
        share = self.problem.share(shard, self.workers, epoch, self.seed, self.labels)
        # Without the copies, each batch would keep the permutation of all samples in memory.
        return [batch.copy() for batch in self.problem.batches(share)]

    def steps(self, progress: int, spent: float = 0.0) -> tuple[float, ...]:
        """Return the step size of each parameter group, after ``progress`` batches and a share of the time."""
        epochs, batches = divmod(progress, self.epoch)
        assert self.problem.batch is not None
        # Only the last batch of an epoch is smaller than the others.
        within = min(batches * self.problem.batch, self.rate.samples)
        return self.rate(epochs * self.rate.samples + within, spent * (self.rate.seconds or 0.0))


class BatchTrainer:
    """Local trainer of one worker, with its own copy of the model and its own optimiser, whose state is not exchanged.

    Random numbers, such as those of dropout, depend on the shard and the epoch, and continue from burst to burst.
    """

    def __init__(self, batches: BatchSource, feed: BatchLoader) -> None:
        self.batches, self.feed = batches, feed
        net, self.optimiser = copy.deepcopy((batches.problem.net, batches.optimiser))
        net.train()
        self.problem = replace(batches.problem, net=net)
        self.flat = FlatParameters(net)
        self._drawn: dict[int, tuple[int, list[Indices]]] = {}  # epoch of each shard, with its batches
        # Random state of each shard, with the number of the term before which it was captured.
        self._random_states: dict[int, tuple[int, rng_state.State]] = {}
        self._before: tuple[Train, Any] | None = None  # last burst, and the state before it

    def warm_up(self, start: Floats) -> None:
        """Run one burst before training, so that libraries are loaded before other nodes wait for this worker.

        A second trainer runs the burst, because the burst changes the optimiser state and random states of its trainer.
        """
        BatchTrainer(self.batches, self.feed).burst(Train(start, (0, self.batches.workers), 0, 1, 0, 1))

    def burst(self, train: Train) -> Trained:
        """Train on the minibatches of a burst, one after the other or all as one step."""
        assert train.values is not None
        if self.batches.keeps_previous_state:
            self._before = train, self._memory()
        self.flat.put(train.values, buffers=self.problem.buffers == "shared")
        shard, terms = train.shard[0], list(self._terms(train))
        self._begin(shard, train.first, *terms[0][:2])
        loss, samples, step = self._together(train, terms) if train.together else self._each(train, terms)
        self._random_states[shard] = train.first + train.terms, rng_state.capture()
        return Trained(self._moved(train.values), train.terms, samples, loss, step)

    # State besides the parameters

    def memory(self, train: Train | None) -> object:
        """Return the state for a checkpoint; if ``train`` is the last burst, the state before that burst.

        After a resume the worker repeats a burst whose result it had not sent.
        """
        if train is not None and self._before is not None and self._before[0] is train:
            return self._before[1]
        return self._memory()

    def _memory(self) -> object:
        states = {
            number: {name: plain_array(value) for name, value in state.items()}
            for number, state in self.optimiser.state_dict()["state"].items()
        }  # fmt: skip
        random = {
            shard: (first, (torchs.numpy(), numpys, pythons))
            for shard, (first, (torchs, numpys, pythons)) in self._random_states.items()
        }
        buffers = [plain_array(buffer) for buffer in self.problem.net.buffers()]
        return encode_state({"optimiser": states, "random": random, "buffers": buffers})

    def remember(self, memory: object) -> None:
        """Restore a state that ``memory`` returned."""
        known = decode_state(memory, None)
        states = {
            number: {name: torch.tensor(value) if hasattr(value, "dtype") else value for name, value in state.items()}
            for number, state in known["optimiser"].items()
        }
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": states})
        for buffer, kept in zip(self.problem.net.buffers(), known["buffers"], strict=True):
            buffer.copy_(torch.tensor(kept))
        self._random_states = {
            shard: (first, (torch.tensor(torchs), numpys, pythons))
            for shard, (first, (torchs, numpys, pythons)) in known["random"].items()
        }

    # Bursts

    def _each(self, train: Train, terms: list[Term]) -> tuple[float, int, float]:
        loss, samples, total = 0.0, 0, 0.0
        for number, (epoch, place, indices) in enumerate(terms):
            if place == 0:
                rng_state.seed(self.batches.seed, train.shard[0], epoch)
            total += self._set_steps(train.progress + number * train.stride, train)
            loss_sum, size = self._gradient(indices, 1.0)
            self.problem.clip_gradients(self.optimiser)
            self.optimiser.step()
            loss, samples = loss + loss_sum, samples + size
        return loss, samples, total / len(terms)

    def _together(self, train: Train, terms: list[Term]) -> tuple[float, int, float]:
        """Take one step along the mean gradient of all samples.

        Return the summed loss, the number of samples and the step size.
        """
        loss, samples, step = 0.0, 0, self._set_steps(train.progress, train)
        total = sum(len(indices) for _, _, indices in terms)
        self.optimiser.zero_grad(set_to_none=True)
        for epoch, place, indices in terms:
            if place == 0:
                rng_state.seed(self.batches.seed, train.shard[0], epoch)
            loss_sum, size = self._gradient(indices, len(indices) / total, fresh=False)
            loss, samples = loss + loss_sum, samples + size
        self.problem.clip_gradients(self.optimiser)
        self.optimiser.step()
        return loss, samples, step

    def _gradient(self, indices: Indices, weight: float, fresh: bool = True) -> tuple[float, int]:
        """Add the gradient of a batch; return the summed loss of its samples and their number."""
        (batch,) = self.feed.batches([indices])
        loss, size = self.problem.loss(batch)
        if fresh:
            self.optimiser.zero_grad(set_to_none=True)
        (loss if weight == 1.0 else loss * weight).backward()  # type: ignore[no-untyped-call]
        return loss.item() * size, size

    def _set_steps(self, progress: int, train: Train) -> float:
        groups, scale = self.optimiser.param_groups, train.scale * self.batches.scale
        if self.batches.rate.schedule is not None:
            steps = self.batches.steps(progress, train.spent)
        elif scale != 1.0:
            steps = tuple(group["lr"] for group in self.batches.optimiser.param_groups)
        else:
            return float(groups[0]["lr"])
        for group, step in zip(groups, steps, strict=True):
            group["lr"] = step * scale
        return float(groups[0]["lr"])

    def _terms(self, train: Train) -> Iterator[Term]:
        """Yield the batches of a burst; after the last batch of the shard's epoch, the next epoch begins."""
        shard, size = train.shard[0], self.batches.sizes[train.shard[0]]
        for number in range(train.first, train.first + train.terms):
            epoch, place = divmod(number, size)
            if self._drawn.get(shard, (-1, []))[0] != epoch:
                self._drawn[shard] = epoch, self.batches.drawn(shard, epoch)
            yield epoch, place, self._drawn[shard][1][place]

    def _begin(self, shard: int, first: int, epoch: int, place: int) -> None:
        """Restore the shard's random state; if another worker has drawn from the shard since, seed a new one."""
        before, state = self._random_states.get(shard, (-1, None))
        if state is not None and before == first:
            rng_state.restore(state)
        else:
            rng_state.seed(self.batches.seed, shard, epoch, place)

    def _moved(self, before: Floats) -> Floats:
        values, first = self.flat.values(), self.flat.parameters
        if self.batches.damping != 1.0:
            values[first:] = before[first:] + self.batches.damping * (values[first:] - before[first:])
        return frozen(values)


def plain_array(value: object) -> object:
    """Return a copy of a tensor as an array; return any other value as it is.

    >>> plain_array(torch.ones(1, dtype=torch.bfloat16)), plain_array(3)
    (array([1.], dtype=float32), 3)
    """
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach().cpu()
    return (value.float() if value.dtype == torch.bfloat16 else value.clone()).numpy()
