"""Everything a runtime needs to run a strategy by messages, and what it hands back."""

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
    """Trains bursts for one worker; what it remembers besides the parameters is lost with it."""

    def burst(self, train: Train) -> Trained:
        """Descend along some terms."""


@runtime_checkable
class StatefulTrainer(LocalTrainer, Protocol):
    """A learner that remembers something besides the parameters, such as an optimiser's means."""

    def memory(self, train: Train | None) -> Any:
        """What it remembers, or remembered before the burst that is going on."""

    def remember(self, memory: Any) -> None:
        """Go on with that."""


@dataclass(frozen=True, slots=True, eq=False)
class MessageJob:
    """Who takes part, how they learn, and whom to tell."""

    config: RunConfig
    roles: Mapping[str, Callable[[], Role]]
    learner: Callable[[int], LocalTrainer]  # (worker) -> its learner, a fresh one for each life
    measure: Callable[[Floats], dict[str, float]]
    tell: Callable[..., None]  # (event, **what)
    seed: int = 0
    interrupted: Callable[[], bool] = bool
    cores: int = 1  # of each worker, that train a burst together
    save: Callable[[dict[str, Any]], None] | None = None  # what all know at a cut, once all have said so
    resumed: dict[str, Any] | None = None  # such a cut, to go on from


@dataclass(slots=True)
class Traffic:
    """What was sent by somebody."""

    messages: int = 0
    bytes: int = 0
    receipts: int = 0
    lost: int = 0
    resent: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """How it ended."""

    values: Floats | None
    reason: str
    record: dict[str, Any]
    counts: dict[str, dict[str, Any]]  # what each participant has counted
    seconds: float
    traffic: dict[str, Traffic] = field(repr=False)  # by kind of message
    busy: dict[str, float] = field(repr=False)  # seconds each worker has trained
    alive: dict[str, float] = field(repr=False)  # seconds each worker was there
    more: dict[str, Any] = field(default_factory=dict)
    trace: Trace | None = field(default=None, repr=False)  # what took how long, where that was recorded
