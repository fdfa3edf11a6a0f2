"""Actions that a node returns, for its runtime to carry out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hogwild.messaging.deltas import Floats
from hogwild.messaging.messages import Body, Envelope


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

    values: Floats
    shard: tuple[int, int]
    first: int
    terms: int
    progress: int
    stride: int
    together: bool = False  # Whether all terms use the same parameters, as one large batch does.


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


@dataclass(frozen=True, slots=True, eq=False)
class Emit:
    """Record of an event of the run, for its history and its callbacks."""

    event: str
    what: dict[str, Any]


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
