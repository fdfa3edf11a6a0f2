"""What a participant does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hogwild.messaging.deltas import Floats
from hogwild.messaging.messages import Body, Envelope


@dataclass(frozen=True, slots=True, eq=False)
class Send:
    """Tell another participant something."""

    to: str
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Transmit:
    """Put something on the wire. Roles say; the post sends."""

    envelope: Envelope


@dataclass(frozen=True, slots=True, eq=False)
class Train:
    """Descend from these parameters along some terms of a shard; :class:`Trained` follows.

    ``shard`` is which of how many, ``first`` the number of its terms drawn before. Steps go by global progress: that of
    the first term, and how much of it goes by with each.
    """

    values: Floats
    shard: tuple[int, int]
    first: int
    terms: int
    progress: int
    stride: int
    together: bool = False  # whether all terms descend from the same parameters, as one large batch


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Set an alarm; :class:`Rang` follows."""

    name: str
    after: float  # seconds


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate:
    """Have parameters measured; :class:`Measured` follows, some time."""

    number: int
    values: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Emit:
    """Record that something happened."""

    event: str
    what: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Persist:
    """Write something down that is there after a crash."""

    what: Any


@dataclass(frozen=True, slots=True)
class BeginSnapshot:
    """Have everybody note what it knows at one moment, from which the run can go on."""


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotPart:
    """Put what this participant knew at a cut beside what the others did."""

    number: int
    what: dict[str, Any]
    training: Train | None = None  # the burst that is going on, or is to begin


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """The run is over, for all: its parameters, or why it failed."""

    values: Floats | None
    reason: str
    figures: dict[str, Any] = field(default_factory=dict)


Action = Send | Transmit | Train | SetTimer | Evaluate | Emit | Persist | BeginSnapshot | SnapshotPart | Finish
