"""Events that a node reacts to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hogwild.messaging.deltas import Floats
from hogwild.messaging.messages import Body, Envelope


@dataclass(frozen=True, slots=True, eq=False)
class Started:
    """Start of a node, or its restart after a crash.

    ``kept`` is the state that the node persisted last. ``here`` are the other nodes that are running.
    """

    kept: Any = None
    here: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    """Arrival of an envelope from the network."""

    envelope: Envelope


@dataclass(frozen=True, slots=True, eq=False)
class Delivered:
    """Delivery of a message of another node, exactly once and in the order of sending."""

    sender: str
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """End of a burst: the parameters after it, its terms and samples, their summed loss, and the mean step size."""

    values: Floats
    terms: int
    samples: int
    loss: float
    step: float


@dataclass(frozen=True, slots=True)
class PeerLost:
    """Crash or departure of another node, as the failure detector of the runtime reports it."""

    peer: str
    incarnation: int = 0


@dataclass(frozen=True, slots=True)
class PeerJoined:
    """Start of another node, for the first time or after a crash."""

    peer: str
    incarnation: int = 0


@dataclass(frozen=True, slots=True)
class TimerFired:
    """Expiry of a timer that the node set."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """Result of an evaluation that the node requested: figures of the parameters, by name."""

    number: int
    figures: dict[str, float]


@dataclass(frozen=True, slots=True)
class Resumed:
    """Continuation of a run from a snapshot, in another process or at a later time.

    ``seconds`` is the duration of the run up to the snapshot, in seconds.
    """

    seconds: float


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Request of the user to end the run early and to keep its result. Only the coordinator gets the event."""


Event = (
    Started | Received | Delivered | Trained | PeerLost | PeerJoined | TimerFired | Evaluated | Resumed | Interrupted
)
