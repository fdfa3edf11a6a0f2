"""Jobs of a runtime by messages: the configuration that every node has, the input of a run and its outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from hogwild.messaging.compiled_job import CompiledJob
from hogwild.messaging.deltas import Floats
from hogwild.messaging.node import Role
from hogwild.messaging.protocol import Train, Trained
from hogwild.messaging.reliable_channel import WINDOW
from hogwild.messaging.trace import Trace
from hogwild.stopping import Budget, RecordInterval


@dataclass(frozen=True, slots=True, eq=False)
class RunConfig:
    """Configuration of a run by messages.

    A term is one summand of the objective, a row or a minibatch: one term is one update. ``late`` are the numbers of
    the workers that are absent at the start and join later.
    """

    workers: int
    start: Floats = field(repr=False)  # Initial values of all exchanged numbers.
    epoch: int  # Terms of all workers in one epoch.
    goal: int | None  # Terms of the whole run; None if only another limit ends the run.
    average: float = 0.0  # Fraction of the run, at its end, whose averaged iterates are the result.
    budget: Budget = field(default_factory=Budget)  # Conditions on the losses, on which the run stops.
    seconds: float | None = None  # Limit of the duration of the run, in seconds.
    silence: float = 600.0  # Seconds without any message, after which the run fails.
    late: frozenset[int] = frozenset()
    # The exchanged values that are parameters. The others are state of the update rule, or buffers of a network.
    parameters: slice = field(default_factory=partial(slice, None))
    group: int = 1  # Number of consecutive values, of one coordinate or several, that one server has.
    saves: bool = False  # Whether each epoch ends with a snapshot from which the run can resume.
    run_ahead: int = 0  # Most pushes of a worker while a pull is on its way.
    every: RecordInterval = field(default_factory=RecordInterval)  # Interval of records between those of epochs.
    # Whether trainers keep their parameters between bursts, so that workers exchange only what has changed.
    resident: bool = False
    holds_back: bool = False  # Whether these trainers keep some changes for later exchanges.
    # Where trainers keep their parameters: number of deltas of each worker, since those of a delta were read, up to
    # which it counts in full.
    fresh: float = 2.0
    seed: int = 0
    loss_limit: float = math.inf  # Loss above which the run counts as diverged.
    stall_scales: tuple[float, ...] = ()  # Factors of the step size after each stall of the objective.

    @property
    def size(self) -> int:
        """The number of values that nodes exchange: parameters and state of the update rule."""
        return len(self.start)

    def parameters_between(self, start: int, stop: int) -> slice:
        """Return which of the values from index ``start`` up to ``stop`` are parameters.

        >>> import numpy as np
        >>> config = RunConfig(1, np.zeros(12), 1, 1, parameters=slice(0, None, 3))
        >>> np.arange(4, 10)[config.parameters_between(4, 10)], np.arange(6, 8)[config.parameters_between(6, 8)]
        (array([6, 9]), array([6]))
        """
        every = range(*self.parameters.indices(self.size))
        first = every.start + every.step * max(0, -(-(start - every.start) // every.step))
        return slice(first - start, max(0, min(every.stop, stop) - start), every.step)

    @property
    def quota(self) -> int:
        """The number of terms of each worker, in runs whose workers all have the same number."""
        assert self.goal is not None
        return -(-self.goal // self.workers)

    @property
    def window(self) -> int:
        """The most unacknowledged messages to one peer with which a burst may begin: pushes, pulls and reports."""
        return max(WINDOW, 3 * self.run_ahead)

    def begins_mean(self, progress: int) -> bool:
        """Return whether the average of the iterates includes the iterate after ``progress`` terms."""
        return bool(self.average) and self.goal is not None and progress > (1 - self.average) * self.goal


class LocalTrainer(Protocol):
    """Trainer of the bursts of one worker. A crash of the worker loses all state of its trainer but the parameters."""

    def warm_up(self, start: Floats) -> None:
        """Prepare for bursts from these parameters: load libraries and compile, so that the first burst is not slow."""

    def burst(self, train: Train) -> Trained:
        """Train on the terms of a burst."""


@runtime_checkable
class StatefulTrainer(LocalTrainer, Protocol):
    """Trainer with state besides the parameters, such as the moving averages of an optimiser."""

    def memory(self, train: Train | None) -> Any:
        """Return the state of the trainer. During a burst it is the state before the burst."""

    def remember(self, memory: Any) -> None:
        """Restore a state that ``memory`` returned."""


@dataclass(frozen=True, slots=True, eq=False)
class MessageJob:
    """Input of a run by messages: its nodes, their trainers, and the callbacks of the driver."""

    config: RunConfig
    roles: Mapping[str, Callable[[], Role]]  # Functions that make the role of each node, by name of the node.
    # Function of a worker number that makes the trainer of an incarnation of that worker.
    make_trainer: Callable[[int], LocalTrainer]
    # Function that evaluates parameters, exactly or on a sample of large training data, and returns their figures.
    measure: Callable[[Floats, bool], dict[str, float]]
    emit: Callable[..., None]  # Callback with the name of an event and its fields.
    seed: int = 0
    interrupted: Callable[[], bool] = bool  # Whether the user has asked to end the run.
    cores: int = 1  # Cores of each worker, which train a burst together.
    # Callback with a complete snapshot, called when every node has contributed its part.
    save: Callable[[dict[str, Any]], None] | None = None
    resumed: dict[str, Any] | None = None  # A snapshot from which the run resumes.
    # The same run for a compiled event loop; None where there is none for it.
    compiled: CompiledJob | None = None
    # Packed folders that the machine of a worker must have, by worker number. A worker that is not named needs none.
    folders: Mapping[int, Sequence[Path]] = field(default_factory=dict)


@dataclass(slots=True)
class Traffic:
    """Counters of the messages of one kind."""

    messages: int = 0  # Messages sent, without acknowledgements.
    bytes: int = 0  # Bytes of messages and acknowledgements.
    receipts: int = 0  # Acknowledgements sent.
    lost: int = 0  # Messages that a simulated network lost.
    resent: int = 0  # Messages retransmitted. Runtimes count them under the kind "all" only.


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Outcome of a run by messages."""

    values: Floats | None
    reason: str
    record: dict[str, Any]
    counts: dict[str, dict[str, Any]]  # Counters of each node.
    seconds: float
    traffic: dict[str, Traffic] = field(repr=False)  # Traffic by kind of message.
    busy: dict[str, float] = field(repr=False)  # Seconds that each worker has trained.
    alive: dict[str, float] = field(repr=False)  # Seconds that each worker was running.
    more: dict[str, Any] = field(default_factory=dict)
    trace: Trace | None = field(default=None, repr=False)  # Recorded durations, if the runtime recorded them.
