"""A problem whose parameters are a ledger: every burst adds one to a place of its own, in the part of every server."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hogwild.messaging.deltas import Floats, SparseDelta, Vector, frozen
from hogwild.messaging.protocol import Train, Trained

PLACES = 1024  # bursts of one execution, those included that a crash has made in vain


@dataclass(eq=False)
class Ledger:
    """Places are given out in the order in which bursts begin, whoever trains them."""

    parts: int
    given: int = 0
    start: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.start = frozen(np.zeros(self.parts * PLACES, np.float32))

    def warm_up(self, start: Floats) -> None:
        """Nothing is compiled here."""

    def burst(self, train: Train) -> Trained:
        """Add one to the next place of every part."""
        assert self.given < PLACES, f"{PLACES} bursts, and still no end: it never ends"
        values = train.values.copy()
        values[self.given :: PLACES] += 1.0
        self.given += 1
        return Trained(frozen(values), train.terms, train.terms, float(train.terms), 1.0)

    def entries(self, values: Floats) -> Floats:
        """A row for each part, a column for each burst so far."""
        return values.reshape(self.parts, PLACES)[:, : self.given]

    @staticmethod
    def place(change: Vector) -> int:
        """Which burst made the change that was pushed to a server."""
        assert isinstance(change, SparseDelta)
        assert change.values.tolist() == [1.0]
        return int(change.indices[0])
