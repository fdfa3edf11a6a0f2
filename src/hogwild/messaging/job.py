"""Jobs of a runtime by messages: the input of a run and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from hogwild.messaging.actions import Train
from hogwild.messaging.deltas import Floats
from hogwild.messaging.events import Trained
from hogwild.messaging.node import Role
from hogwild.messaging.run_config import RunConfig
from hogwild.messaging.trace import Trace


class LocalTrainer(Protocol):
    """Trainer of the bursts of one worker. A crash of the worker loses all state of its trainer but the parameters."""

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
    learner: Callable[[int], LocalTrainer]
    # Function that evaluates parameters and returns their figures.
    measure: Callable[[Floats], dict[str, float]]
    tell: Callable[..., None]  # Callback with the name of an event and its fields.
    seed: int = 0
    interrupted: Callable[[], bool] = bool  # Whether the user has asked to end the run.
    cores: int = 1  # Cores of each worker, which train a burst together.
    # Callback with a complete snapshot, called when every node has contributed its part.
    save: Callable[[dict[str, Any]], None] | None = None
    resumed: dict[str, Any] | None = None  # A snapshot from which the run resumes.


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
