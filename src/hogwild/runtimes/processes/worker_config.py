"""Configuration that every worker process receives before it starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hogwild.delays import NONE, DelayOption
from hogwild.runtimes.processes.ddp.collectives import DDPConfig
from hogwild.schedules import Moment, Schedule
from hogwild.schedules.schedule import check_steps

if TYPE_CHECKING:
    from hogwild.runtimes.processes.conflict_monitor import ModuleConflictMonitor

Tensors = list[Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class StepSize:
    """Step sizes over global progress: the schedule times the initial step size of each parameter group."""

    schedule: Schedule | None  # schedule of the factor; None leaves the step sizes to the optimiser
    base: tuple[float, ...]  # initial step size of each parameter group
    samples: int  # samples of one epoch, summed over all workers
    epochs: int | None  # budget in epochs; None means no such limit
    seconds: float | None = None  # budget in seconds; None means no such limit

    def __call__(self, samples: int, seconds: float) -> tuple[float, ...]:
        """Return the step size of every parameter group after ``samples`` samples and ``seconds`` seconds."""
        factor = self.factor(samples, seconds)
        return tuple(factor * base for base in self.base)

    def factor(self, samples: int, seconds: float) -> float:
        """Return the schedule's factor: the step size that it gives for an initial step size of 1."""
        if self.schedule is None:
            return 1.0
        fraction = self.spent(samples, seconds)
        moment = Moment(np.array([samples + 1.0]), np.array([samples / self.samples]), np.array([fraction]))
        return float(check_steps(self.schedule, self.schedule(moment))[0])

    def spent(self, samples: int, seconds: float) -> float:
        """Return the share of the budget that is spent, in [0, 1]: the larger of epochs and seconds."""
        by_epochs = samples / (self.samples * self.epochs) if self.epochs else 0.0
        return min(1.0, max(by_epochs, seconds / self.seconds if self.seconds else 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class SharedAverage:
    """Running mean of the iterates: uniform over the last share of a run (Polyak), or exponential (EMA)."""

    tensors: Tensors  # the mean of each parameter, in shared memory
    begins: float  # share of the budget, in [0, 1], at which a uniform mean begins
    decay: float | None  # decay of the exponential mean per update; None weights all iterates equally


class CapturedSteps(Protocol):
    """Training steps that a GPU launches as one captured graph, instead of kernel by kernel."""

    def __call__(self, batch: Any) -> tuple[Tensor, int]:
        """Train on a batch; return its mean loss and its number of samples."""

    def set_rates(self, rates: Sequence[float]) -> None:
        """Set the step size of each parameter group for all following steps."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkerConfig:
    """Problem, optimiser and options of a run, identical for all workers."""

    problem: Any
    optimiser: torch.optim.Optimizer
    rate: StepSize
    epochs: int | None  # number of epochs; None trains until the supervisor stops the run
    seed: int
    workers: int
    threads: int  # arithmetic threads of each worker
    access: str  # write policy of the optimiser's steps: "free", "locked" or "turns"
    replicas: list[Tensors] | None  # shared copy of each worker's parameters and buffers; None if workers share them
    mean: SharedAverage | None
    labels: NDArray[Any] | None  # labels of the training samples, for samplers that need them
    random: Tensor  # state of each worker's random generators: one row of bytes for each worker
    resumed: bool = False  # whether the run continues from a checkpoint
    ddp: DDPConfig | None = None  # options of synchronous workers; None if workers are asynchronous
    earlier: float = 0.0  # seconds of training before the checkpoint from which this run resumes
    # Factory of graph-captured steps; None where the steps cannot be captured, such as on the CPU.
    steps: Callable[[Any, torch.optim.Optimizer], CapturedSteps] | None = None
    delay: DelayOption = NONE  # seconds that a worker waits with each update, for all workers or by rank
    conflicts: ModuleConflictMonitor | None = None  # counters of conflicts between workers; None counts none

    @property
    def values(self) -> Tensors:
        """The parameters and buffers of the model, in this order."""
        return [*self.problem.net.parameters(), *self.problem.net.buffers()]
