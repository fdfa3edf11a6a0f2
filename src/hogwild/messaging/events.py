"""What happens to a participant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hogwild.messaging.deltas import Floats
from hogwild.messaging.messages import Body, Envelope


@dataclass(frozen=True, slots=True, eq=False)
class Started:
    """It begins, or begins again after a crash, with what it last asked to keep. ``here`` are others who are there."""

    kept: Any = None
    here: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    """Something came over the wire."""

    envelope: Envelope


@dataclass(frozen=True, slots=True, eq=False)
class Delivered:
    """What another participant says, once and in order."""

    sender: str
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A burst is over: the parameters after it, how many terms and samples, their summed loss, and the mean step."""

    values: Floats
    terms: int
    samples: int
    loss: float
    step: float


@dataclass(frozen=True, slots=True)
class PeerLost:
    """A participant is gone."""

    peer: str
    incarnation: int = 0


@dataclass(frozen=True, slots=True)
class PeerJoined:
    """A participant is there, for the first time or again."""

    peer: str
    incarnation: int = 0


@dataclass(frozen=True, slots=True)
class TimerFired:
    """An alarm that it set."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """The figures of parameters it wanted measured."""

    number: int
    figures: dict[str, float]


@dataclass(frozen=True, slots=True)
class Resumed:
    """It goes on from a cut, in another sitting; the run has lasted so many seconds before."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Somebody wants the run to end soon, with what it has; the coordinator is told."""


Event = (
    Started | Received | Delivered | Trained | PeerLost | PeerJoined | TimerFired | Evaluated | Resumed | Interrupted
)
