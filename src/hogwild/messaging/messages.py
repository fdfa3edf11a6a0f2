"""What can be said, and the envelope it is sent in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hogwild.messaging.deltas import Floats, Vector, nbytes

COORDINATOR = "coordinator"
HEADER = 48  # bytes of an envelope besides the arrays within


def worker(number: int) -> str:
    """The name of a worker."""
    return f"worker-{number}"


def server(number: int) -> str:
    """The name of a server."""
    return f"server-{number}"


def number_of(name: str) -> int:
    """The number of a worker or a server.

    >>> number_of("worker-12")
    12
    """
    return int(name.rpartition("-")[2])


# Between the coordinator and all others


@dataclass(frozen=True, slots=True)
class Ready:
    """I am here."""


@dataclass(frozen=True, slots=True, eq=False)
class Begin:
    """Take part: with these shards, of which so many terms were drawn, from this clock on."""

    shards: tuple[tuple[int, int], ...]  # (shard, terms drawn)
    clock: int
    progress: int
    members: tuple[str, ...]
    view: int = 0
    values: Floats | None = None


@dataclass(frozen=True, slots=True)
class Assign:
    """From now on these shards are yours."""

    shards: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """So many terms of a shard and samples more have been trained on, with this summed loss; and the clock now."""

    shard: int
    terms: int
    samples: int
    loss: float
    clock: int


@dataclass(frozen=True, slots=True)
class ParametersRequest:
    """What are your parameters? The last time: when all workers have left."""

    number: int
    last: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ParametersReply:
    """My parameters, and where they begin among all."""

    number: int
    values: Floats
    start: int
    clock: int


@dataclass(frozen=True, slots=True)
class Stop:
    """End after this burst."""


@dataclass(frozen=True, slots=True, eq=False)
class Stopped:
    """I have ended, and this is what I counted."""

    counts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SnapshotMarker:
    """Nothing but what comes with everything that is said: that there is a new cut."""


# Between workers and servers


@dataclass(frozen=True, slots=True, eq=False)
class Push:
    """A change of the parameters, made with those that had had ``read`` changes and then ``own`` of this worker."""

    change: Vector
    clock: int
    read: int
    own: int
    terms: int
    samples: int
    step: float


@dataclass(frozen=True, slots=True)
class Pull:
    """Parameters, please, for the burst of this clock."""

    clock: int


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """I come late: at which clock are you?"""


@dataclass(frozen=True, slots=True)
class JoinReply:
    """From this clock on you are waited for; say if it is a later one."""

    clock: int


@dataclass(frozen=True, slots=True)
class Leave:
    """Wait for me no longer."""


@dataclass(frozen=True, slots=True, eq=False)
class PullReply:
    """Parameters after so many changes, for the burst of a clock; and how far all have come together."""

    values: Floats
    clock: int
    version: int
    progress: int
    members: int


# Between workers


@dataclass(frozen=True, slots=True, eq=False)
class GossipPush:
    """My parameters (or my change of them) of a round, and their weight."""

    vector: Vector
    clock: int
    view: int
    weight: float = 1.0
    seen: int = 0  # changes that were in the parameters it comes from, or how far all are


@dataclass(frozen=True, slots=True, eq=False)
class GossipReply:
    """Add this, so that we meet half way; or nothing, for I have ended."""

    vector: Vector | None
    clock: int
    seen: int = 0


# Between the coordinator and workers that have the parameters themselves


@dataclass(frozen=True, slots=True)
class ViewChange:
    """Somebody has come or gone: say where you are, and wait for the beginning of this view."""

    view: int


@dataclass(frozen=True, slots=True, eq=False)
class ViewState:
    """Where I am: my clock, how far all are, my parameters (none if I am new) and their weight."""

    view: int
    clock: int
    progress: int
    values: Floats | None = None
    weight: float = 1.0


Body = (
    Ready | Begin | Assign | Progress | ParametersRequest | ParametersReply | Stop | Stopped | SnapshotMarker
    | Push | Pull | JoinRequest | JoinReply | Leave | PullReply | GossipPush | GossipReply | ViewChange | ViewState
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ack:
    """All up to here has come, and up to there nothing can take it away any more."""

    received: int
    kept: int


@dataclass(frozen=True, slots=True, eq=False)
class Envelope:
    """A message on its way. ``life`` is the incarnation it is for."""

    sender: str
    incarnation: int
    to: str
    life: int
    sequence: int
    epoch: int
    clock: int
    body: Body | Ack
    cut: int = 0  # the last one that the sender took part in

    @property
    def nbytes(self) -> int:
        """How many bytes it takes to send."""
        return HEADER + size_of(self.body)


def size_of(body: Any) -> int:
    """How many bytes the arrays of a body take."""
    if isinstance(body, Push):
        return nbytes(body.change)
    if isinstance(body, (GossipPush, GossipReply)):
        return nbytes(body.vector)
    if isinstance(body, (PullReply, ParametersReply, Begin, ViewState)):
        return nbytes(body.values)
    return 0
