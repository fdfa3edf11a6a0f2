"""A problem whose parameters are a ledger: every burst adds one to a place of its own, in the part of every server."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hogwild.messaging.deltas import Floats, SparseDelta, Vector, add, change, frozen
from hogwild.messaging.protocol import Train, Trained

PLACES = 1024  # bursts of one execution, those included that a crash has made in vain


@dataclass(eq=False)
class Ledger:
    """Places are given out in the order in which bursts begin, whoever trains them."""

    parts: int
    scaled: bool = False  # whether a server may add a part of a burst
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

    def wrong(self, values: Floats) -> Floats:
        """Which entries are neither there once nor missing; once scaled, they may be there in part."""
        once = (values > -1e-6) & (values < 1 + 1e-6) if self.scaled else (values == 0) | (values == 1)
        return ~once

    @staticmethod
    def place(change: Vector) -> int:
        """Which burst made the change that was pushed to a server."""
        assert isinstance(change, SparseDelta)
        assert change.values.tolist() == [1.0]
        return int(change.indices[0])


@dataclass(eq=False)
class ResidentLedger:
    """Keeps its entries from burst to burst, and fails if another's change is added twice."""

    ledger: Ledger
    values: Floats | None = None

    def warm_up(self, start: Floats) -> None:
        """Nothing is compiled here."""

    def burst(self, train: Train) -> Trained:
        """Add one to the next place of every part, and return what has changed."""
        if train.values is not None:
            self.values = train.values.copy()
        assert self.values is not None, "a burst without parameters to begin from"
        if train.received is not None:
            add(self.values, train.received)
        twice = np.flatnonzero(self.ledger.wrong(self.values))
        assert not len(twice), f"the worker has bursts {sorted(set((twice % PLACES).tolist()))} more than once"
        before = self.values.copy()
        after = self.ledger.burst(Train(before, train.shard, train.first, train.terms, train.progress, train.stride))
        moved = change(before, after.values)
        add(self.values, moved)
        return Trained(before[:0], train.terms, train.terms, float(train.terms), 1.0, moved)
