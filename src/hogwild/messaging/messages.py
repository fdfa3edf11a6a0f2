"""Messages between the nodes of a run, and the envelope that carries each message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hogwild.messaging.deltas import Floats, Vector, nbytes

COORDINATOR = "coordinator"
HEADER = 48  # Bytes of an envelope, without the arrays in it.


def worker(number: int) -> str:
    """Return the name of a worker."""
    return f"worker-{number}"


def server(number: int) -> str:
    """Return the name of a server."""
    return f"server-{number}"


def is_worker(name: str) -> bool:
    """Return whether a name is that of a worker.

    >>> is_worker("worker-12"), is_worker("server-0")
    (True, False)
    """
    return name.startswith("worker-")


def is_server(name: str) -> bool:
    """Return whether a name is that of a server."""
    return name.startswith("server-")


def number_of(name: str) -> int:
    """Return the number of a worker or a server from its name.

    >>> number_of("worker-12")
    12
    """
    return int(name.rpartition("-")[2])


# Messages between the coordinator and all other nodes.


@dataclass(frozen=True, slots=True)
class Ready:
    """Announcement of a node to the coordinator that the node is started and can take part."""


@dataclass(frozen=True, slots=True, eq=False)
class Begin:
    """Order of the coordinator to take part in the run.

    It gives a node its shards, its first clock and the members of its membership view. A clock of -1 tells a worker to
    ask the servers for its first clock, because the worker joins a run that has begun.
    """

    shards: tuple[tuple[int, int], ...]  # Pairs of a shard and the number of terms drawn from it.
    clock: int
    progress: int  # Terms that all workers together have trained on.
    members: tuple[str, ...]
    view: int = 0
    values: Floats | None = None


@dataclass(frozen=True, slots=True)
class Assign:
    """Order of the coordinator that replaces the shards of a worker."""

    shards: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class StepScale:
    """Order of the coordinator that replaces the factor of the step sizes of a worker."""

    scale: float


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """Report of the coordinator to a worker: the share of the run's seconds that is spent, for schedules."""

    fraction: float


@dataclass(frozen=True, slots=True)
class Progress:
    """Report of a worker on one shard since its last report: terms, samples, their summed loss, and its clock now.

    ``step`` is the mean step size of its last burst.
    """

    shard: int
    terms: int
    samples: int
    loss: float
    clock: int
    step: float


@dataclass(frozen=True, slots=True)
class TermsRequest:
    """Request of a worker for the number of terms that all workers together have trained on."""


@dataclass(frozen=True, slots=True)
class TermsReply:
    """Number of terms that all workers together have reported, and the number of workers that train, at least 1.

    The reply contains all terms that the worker had trained before its request. At the goal the coordinator sends Stop
    instead.
    """

    terms: int
    members: int


@dataclass(frozen=True, slots=True)
class ParametersRequest:
    """Request of the coordinator for the parameters of a node.

    A server answers the ``last`` request of a run only when all workers have left it, because their deltas belong to
    the result.
    """

    number: int
    last: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ParametersReply:
    """Parameters of a node, and the offset at which they begin in the vector of all parameters."""

    number: int
    values: Floats
    start: int
    clock: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Order of the coordinator to end after the current burst."""


@dataclass(frozen=True, slots=True, eq=False)
class Stopped:
    """Report of a node that it has ended, with its counters."""

    counts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SnapshotMarker:
    """Message without content that announces a new snapshot.

    The number of the snapshot is in the envelope, as in the envelope of every message.
    """


# Messages between workers and servers.


@dataclass(frozen=True, slots=True, eq=False)
class Push:
    """Delta of a worker for one server.

    The worker pulled parameters that contained ``read`` deltas of all workers, and has pushed ``own`` deltas since. A
    server computes the staleness of the delta from both numbers.
    """

    change: Vector
    clock: int
    read: int
    own: int
    terms: int
    samples: int
    step: float


@dataclass(frozen=True, slots=True)
class Pull:
    """Request of a worker for parameters, for its burst number ``clock``."""

    clock: int


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """Request of a worker that joins late, for the clock that the server is at."""


@dataclass(frozen=True, slots=True)
class JoinReply:
    """Clock from which a server waits for a worker that joins late.

    The worker begins at the largest clock that any server names. Its first pull tells a server of a later clock.
    """

    clock: int


@dataclass(frozen=True, slots=True)
class Leave:
    """Announcement of a worker that it pushes no more deltas: the receiver no longer waits for the worker."""


@dataclass(frozen=True, slots=True, eq=False)
class PullReply:
    """Parameters of a server for the burst ``clock`` of a worker, and the counters that set its step sizes."""

    values: Floats
    clock: int
    version: int  # Deltas that the parameters contain.
    progress: int  # Terms that all workers together have trained on.
    members: int  # Number of workers that train, and at least 1.


@dataclass(frozen=True, slots=True)
class PullChanges:
    """Request of a worker for what other workers have changed since ``version``, for its burst number ``clock``."""

    clock: int
    version: int


@dataclass(frozen=True, slots=True, eq=False)
class ChangesReply:
    """Sum of the deltas of other workers since a version, for the burst ``clock`` of a worker; None if there are none.

    A server that no longer has all of these deltas sends a :class:`PullReply` with the parameters instead.
    """

    change: Vector | None
    clock: int
    version: int  # Deltas that the parameters of the worker contain then.
    progress: int  # Terms that all workers together have trained on.
    members: int  # Number of workers that train, and at least 1.


# Messages between workers.


@dataclass(frozen=True, slots=True, eq=False)
class GossipPush:
    """Parameters of a worker, or its delta, for one round of a membership view, and their weight."""

    vector: Vector
    clock: int
    view: int
    weight: float = 1.0
    # Deltas in the parameters that the vector was computed from; in AD-PSGD the progress of all workers, in terms.
    seen: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class GossipReply:
    """Vector that a partner subtracts from its parameters, so that both workers move to their midpoint.

    The vector is None if the worker that answers has ended.
    """

    vector: Vector | None
    clock: int
    seen: int = 0


# Messages between the coordinator and workers that hold the parameters, in runs without servers.


@dataclass(frozen=True, slots=True)
class ViewChange:
    """Announcement of the coordinator that a worker has joined or left.

    A member answers with :class:`ViewState`, and waits for the :class:`Begin` of the new membership view.
    """

    view: int


@dataclass(frozen=True, slots=True, eq=False)
class ViewState:
    """State of a worker for a new membership view: its clock, the progress of all, its parameters and their weight."""

    view: int
    clock: int
    progress: int  # Terms that all workers together have trained on.
    values: Floats | None = None  # None from a worker that has no parameters yet.
    weight: float = 1.0


Body = (
    Ready | Begin | Assign | StepScale | TimeSpent | Progress | TermsRequest | TermsReply | ParametersRequest
    | ParametersReply | Stop | Stopped | SnapshotMarker | Push | Pull | JoinRequest | JoinReply | Leave
    | PullReply | PullChanges | ChangesReply | GossipPush | GossipReply | ViewChange | ViewState
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ack:
    """Acknowledgement of messages from one sender.

    The sender retransmits messages from number ``received`` on. It may delete messages below number ``kept``, because a
    crash of the receiver cannot lose them any more.
    """

    received: int
    kept: int


@dataclass(frozen=True, slots=True, eq=False)
class Envelope:
    """Message with its sender, its receiver and its number.

    ``incarnation`` is that of the sender. ``receiver_incarnation`` is the one of the receiver that the message is for.
    """

    sender: str
    incarnation: int
    to: str
    receiver_incarnation: int
    sequence: int
    epoch: int
    clock: int
    body: Body | Ack
    cut: int = 0  # Number of the last snapshot that the sender took part in.

    @property
    def nbytes(self) -> int:
        """The size of the envelope and its arrays, in bytes."""
        return HEADER + size_of(self.body)


def size_of(body: Body | Ack) -> int:
    """Return the size of the arrays in a message, in bytes."""
    if isinstance(body, (Push, ChangesReply)):
        return nbytes(body.change)
    if isinstance(body, (GossipPush, GossipReply)):
        return nbytes(body.vector)
    if isinstance(body, (PullReply, ParametersReply, Begin, ViewState)):
        return nbytes(body.values)
    return 0
