"""Protocol between a node and its runtime: events that a node reacts to, and actions that it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hogwild.messaging.deltas import Floats, Vector
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
    """End of a burst: the parameters after it, its terms and samples, their summed loss, and the mean step size.

    A trainer that keeps its parameters returns the ``change`` of the burst instead of the parameters.
    """

    values: Floats
    terms: int
    samples: int
    loss: float
    step: float
    change: Vector | None = None


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


@dataclass(frozen=True, slots=True, eq=False)
class Send:
    """Send of a message to another node. The reliable channel turns it into a :class:`Transmit`."""

    to: str
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Transmit:
    """Transmission of an envelope over the network. Roles return :class:`Send`; only the reliable channel transmits."""

    envelope: Envelope


@dataclass(frozen=True, slots=True, eq=False)
class Train:
    """Burst of training on consecutive terms of a shard. :class:`Trained` follows.

    ``shard`` is the number of the shard and the number of shards. ``first`` is the number of terms drawn from the shard
    before. Step sizes depend on the progress of all workers together. ``progress`` is that progress at the first term,
    in terms, and ``stride`` is its increase with each term.
    """

    values: Floats | None  # Parameters to begin from; None for those that the trainer has kept.
    shard: tuple[int, int]
    first: int
    terms: int
    progress: int
    stride: int
    together: bool = False  # Whether all terms use the same parameters, as one large batch does.
    scale: float = 1.0  # Factor of the step sizes.
    spent: float = 0.0  # Share of the run's seconds that is spent, on which step sizes may depend.
    received: Vector | None = None  # Changes of other workers, to be added to the parameters before the burst.


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Start of a timer. :class:`TimerFired` follows after the given number of seconds."""

    name: str
    after: float  # Seconds until the timer fires.


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate:
    """Request to evaluate parameters. :class:`Evaluated` follows, after an unspecified time."""

    number: int
    values: Floats
    exactly: bool = True  # Whether a sample of large training data does not do.


@dataclass(frozen=True, slots=True, eq=False)
class Emit:
    """Record of an event of the run, for its history and its callbacks."""

    event: str
    what: dict[str, Any]
    values: Floats | None = None  # The parameters that the event describes, for callbacks.


@dataclass(frozen=True, slots=True, eq=False)
class Persist:
    """Write of a state that survives a crash of the node. :class:`Started` returns it after the restart."""

    what: Any


@dataclass(frozen=True, slots=True)
class BeginSnapshot:
    """Start of a snapshot: every node records its state at one consistent cut, from which the run can resume."""


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotPart:
    """Contribution of one node to a snapshot: the node's state at the cut."""

    number: int
    what: dict[str, Any]
    training: Train | None = None  # The burst that runs at the cut, or is about to begin.


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """End of the run for all nodes: its parameters, or the reason of its failure."""

    values: Floats | None
    reason: str
    figures: dict[str, Any] = field(default_factory=dict)


Action = Send | Transmit | Train | SetTimer | Evaluate | Emit | Persist | BeginSnapshot | SnapshotPart | Finish
