"""Bursts along the minibatches of a model's data set."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from numpy.typing import NDArray

from hogwild.data.samplers import Indices
from hogwild.errors import DataError, ParameterError
from hogwild.messaging.actions import Train
from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.events import Trained
from hogwild.messaging.state_codec import decode_state, encode_state
from hogwild.nn.batch_loader import BatchLoader
from hogwild.problems.module import Module
from hogwild.runtimes.processes import rng_state
from hogwild.runtimes.processes.worker_config import StepSize
from hogwild.training.local_trainers.flat_parameters import FlatParameters

Term = tuple[int, int, Indices]  # epoch, place in the shard's epoch, samples


@dataclass(eq=False)
class BatchSource:
    """The minibatches of each shard in each epoch, and the steps along them; the same for all workers.

    ``optimiser`` is as that of each worker begins. Where changes are added each in full, those of buffers would
    overshoot: a running mean that each of n workers moves a tenth of the way goes n tenths. So only ``damping`` of
    them is passed on.
    """

    problem: Module
    optimiser: torch.optim.Optimizer
    rate: StepSize
    seed: int
    workers: int
    labels: NDArray[Any] | None
    damping: float = 1.0
    remembers: bool = False  # whether what a learner knew before its last burst may be asked for
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
        """How many batches all shards together have in an epoch."""
        return sum(self.sizes)

    def drawn(self, shard: int, epoch: int) -> list[Indices]:
        """The batches of a shard in an epoch: what a process of that rank draws."""
        found = self._drawn(shard, epoch)
        if len(found) != self.sizes[shard]:
            raise ParameterError(
                f"The sampling {self.problem.sampling!r} gives worker {shard} {self.sizes[shard]} batches in the first "
                f"epoch and {len(found)} in epoch {epoch + 1}: by messages it must give as many in all."
            )
        return found

    def _drawn(self, shard: int, epoch: int) -> list[Indices]:
        share = self.problem.share(shard, self.workers, epoch, self.seed, self.labels)
        return [batch.copy() for batch in self.problem.batches(share)]  # pieces would keep the order of all samples

    def steps(self, progress: int) -> tuple[float, ...]:
        """The step of each of the optimiser's groups, after so many batches of all workers."""
        epochs, batches = divmod(progress, self.epoch)
        assert self.problem.batch is not None
        within = min(batches * self.problem.batch, self.rate.samples)  # only the last batch of an epoch is smaller
        return self.rate(epochs * self.rate.samples + within, 0.0)


class BatchTrainer:
    """A worker with a copy of the model and an optimiser of its own, whose memory is not sent to others.

    Random numbers, such as those of dropout, belong to the shard and the epoch, and go on from burst to burst.
    """

    def __init__(self, batches: BatchSource, feed: BatchLoader) -> None:
        self.batches, self.feed = batches, feed
        net, self.optimiser = copy.deepcopy((batches.problem.net, batches.optimiser))
        net.train()
        self.problem = replace(batches.problem, net=net)
        self.flat = FlatParameters(net)
        self._drawn: dict[int, tuple[int, list[Indices]]] = {}  # of each shard the epoch it is in
        self._chance: dict[int, tuple[int, rng_state.State]] = {}  # of each shard: before which term, random numbers
        self._before: tuple[Train, Any] | None = None  # the last burst, and what was known when it began

    def rehearse(self, start: Floats) -> None:
        """Have everything loaded before others wait for it; another does it, for this one would remember it."""
        BatchTrainer(self.batches, self.feed).burst(Train(start, (0, self.batches.workers), 0, 1, 0, 1))

    def burst(self, train: Train) -> Trained:
        """Descend along some minibatches, one after the other or all as one."""
        if self.batches.remembers:
            self._before = train, self._memory()
        self.flat.put(train.values, buffers=self.problem.buffers == "shared")
        shard, terms = train.shard[0], list(self._terms(train))
        self._begin(shard, train.first, *terms[0][:2])
        loss, samples, step = self._together(train, terms) if train.together else self._each(train, terms)
        self._chance[shard] = train.first + train.terms, rng_state.capture()
        return Trained(self._moved(train.values), train.terms, samples, loss, step)

    # What is beside the parameters

    def memory(self, train: Train | None) -> Any:
        """What is to be known to go on, with a burst that is to be done again if it was done already."""
        if train is not None and self._before is not None and self._before[0] is train:
            return self._before[1]
        return self._memory()

    def _memory(self) -> Any:
        states = {
            number: {name: plain_array(value) for name, value in state.items()}
            for number, state in self.optimiser.state_dict()["state"].items()
        }  # fmt: skip
        random = {
            shard: (first, (torchs.numpy(), numpys, pythons))
            for shard, (first, (torchs, numpys, pythons)) in self._chance.items()
        }
        buffers = [plain_array(buffer) for buffer in self.problem.net.buffers()]
        return encode_state({"optimiser": states, "random": random, "buffers": buffers})

    def remember(self, memory: Any) -> None:
        """Go on with what was known."""
        known = decode_state(memory, None)
        states = {
            number: {name: torch.tensor(value) if hasattr(value, "dtype") else value for name, value in state.items()}
            for number, state in known["optimiser"].items()
        }
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": states})
        for buffer, kept in zip(self.problem.net.buffers(), known["buffers"], strict=True):
            buffer.copy_(torch.tensor(kept))
        self._chance = {
            shard: (first, (torch.tensor(torchs), numpys, pythons))
            for shard, (first, (torchs, numpys, pythons)) in known["random"].items()
        }

    # One burst

    def _each(self, train: Train, terms: list[Term]) -> tuple[float, int, float]:
        loss, samples, total = 0.0, 0, 0.0
        for number, (epoch, place, indices) in enumerate(terms):
            if place == 0:
                rng_state.seed(self.batches.seed, train.shard[0], epoch)
            total += self._set_steps(train.progress + number * train.stride)
            met, size = self._gradient(indices, 1.0)
            self.optimiser.step()
            loss, samples = loss + met, samples + size
        return loss, samples, total / len(terms)

    def _together(self, train: Train, terms: list[Term]) -> tuple[float, int, float]:
        """One step along the mean gradient of all samples."""
        loss, samples, step = 0.0, 0, self._set_steps(train.progress)
        total = sum(len(indices) for _, _, indices in terms)
        self.optimiser.zero_grad(set_to_none=True)
        for epoch, place, indices in terms:
            if place == 0:
                rng_state.seed(self.batches.seed, train.shard[0], epoch)
            met, size = self._gradient(indices, len(indices) / total, fresh=False)
            loss, samples = loss + met, samples + size
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

    def _set_steps(self, progress: int) -> float:
        groups = self.optimiser.param_groups
        if self.batches.rate.schedule is not None:
            for group, step in zip(groups, self.batches.steps(progress), strict=True):
                group["lr"] = step
        return float(groups[0]["lr"])

    def _terms(self, train: Train) -> Iterator[Term]:
        """The batches of a burst: where one epoch of the shard ends, the next begins."""
        shard, size = train.shard[0], self.batches.sizes[train.shard[0]]
        for number in range(train.first, train.first + train.terms):
            epoch, place = divmod(number, size)
            if self._drawn.get(shard, (-1, []))[0] != epoch:
                self._drawn[shard] = epoch, self.batches.drawn(shard, epoch)
            yield epoch, place, self._drawn[shard][1][place]

    def _begin(self, shard: int, first: int, epoch: int, place: int) -> None:
        """Go on with the shard's random numbers; where another has drawn before, with new ones."""
        before, state = self._chance.get(shard, (-1, None))
        if state is not None and before == first:
            rng_state.restore(state)
        else:
            rng_state.seed(self.batches.seed, shard, epoch, place)

    def _moved(self, before: Floats) -> Floats:
        values, first = self.flat.values(), self.flat.parameters
        if self.batches.damping != 1.0:
            values[first:] = before[first:] + self.batches.damping * (values[first:] - before[first:])
        return frozen(values)


def plain_array(value: Any) -> Any:
    """A copy of a tensor as an array; anything else as it is.

    >>> plain_array(torch.ones(1, dtype=torch.bfloat16)), plain_array(3)
    (array([1.], dtype=float32), 3)
    """
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach().cpu()
    return (value.float() if value.dtype == torch.bfloat16 else value.clone()).numpy()
