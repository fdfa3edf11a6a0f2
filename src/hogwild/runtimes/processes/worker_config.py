"""What every worker is told before it starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hogwild.runtimes.processes.ddp.collectives import DDPConfig
from hogwild.schedules import Moment, Schedule

Tensors = list[Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class StepSize:
    """The step over global progress: a schedule times the steps that the optimiser's groups began with."""

    schedule: Schedule | None  # None: as the optimiser has it
    base: tuple[float, ...]
    samples: int  # of an epoch, of all workers together
    epochs: int | None
    seconds: float | None = None

    def __call__(self, samples: int, seconds: float) -> tuple[float, ...]:
        """The step of every group when so many samples have been drawn and so many seconds are gone."""
        factor = self.factor(samples, seconds)
        return tuple(factor * base for base in self.base)

    def factor(self, samples: int, seconds: float) -> float:
        """What the schedule makes of a step of 1."""
        if self.schedule is None:
            return 1.0
        fraction = self.spent(samples, seconds)
        moment = Moment(np.array([samples + 1.0]), np.array([samples / self.samples]), np.array([fraction]))
        return float(self.schedule(moment)[0])

    def spent(self, samples: int, seconds: float) -> float:
        """The share of the budget that is gone."""
        by_epochs = samples / (self.samples * self.epochs) if self.epochs else 0.0
        return min(1.0, max(by_epochs, seconds / self.seconds if self.seconds else 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class IterateAverage:
    """A running mean of the iterates: over the last share of a run (Polyak), or fading with each update (EMA)."""

    tensors: Tensors
    begins: float  # at which share of the run
    decay: float | None  # None: all iterates count alike


class CapturedSteps(Protocol):
    """Steps that are launched as a whole, instead of kernel by kernel."""

    def __call__(self, batch: Any) -> tuple[Tensor, int]:
        """Train on a batch; its mean loss and the number of its samples."""

    def set_rates(self, rates: Sequence[float]) -> None:
        """The step of each group from now on."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkerConfig:
    """A problem, and how this run descends on it; the same for all workers."""

    problem: Any
    optimiser: torch.optim.Optimizer
    rate: StepSize
    epochs: int | None
    seed: int
    workers: int
    threads: int
    access: str  # "free", "locked" or "turns"
    replicas: list[Tensors] | None  # a place for each worker's parameters, where workers have parameters of their own
    mean: IterateAverage | None
    labels: NDArray[Any] | None
    random: Tensor  # a line for each worker's generator
    resumed: bool = False
    together: DDPConfig | None = None  # where all take their steps together
    earlier: float = 0.0  # seconds of sittings before this one
    steps: Callable[[Any, torch.optim.Optimizer], CapturedSteps] | None = None  # where a GPU can take them so

    @property
    def values(self) -> Tensors:
        """The parameters and buffers of the model."""
        return [*self.problem.net.parameters(), *self.problem.net.buffers()]
