"""A simulated run that is watched from outside: by what is trained on, sent and receipted, not by anybody's word."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from ledger import Ledger

from hogwild.messages.actions import Action, Send, Train
from hogwild.messages.company import Company, Outcome
from hogwild.messages.message import Envelope, Pull, Push, Receipt
from hogwild.runtimes.simulator.runtime import Simulator
from hogwild.runtimes.simulator.stage import Stage

MOST_EVENTS = 200_000

Life = tuple[str, int]  # of a worker


class Watched(Stage):
    """Fails as soon as a worker trains on parameters that are older than the bound allows."""

    def __init__(self, simulator: Simulator, company: Company, ledger: Ledger, staleness: int | None) -> None:
        super().__init__(simulator, company)
        self.ledger, self.staleness = ledger, staleness
        self.began: dict[Life, int] = {}  # the clock of its first pull
        self.asks: dict[Life, int] = {}  # the clock of its last pull
        self.bursts: dict[Life, list[int]] = defaultdict(list)  # their places, by clock from the first on
        self.pushed: dict[tuple[str, Life, int], int] = {}  # (server, worker, number) -> the place it adds to
        self.safe: set[tuple[str, int]] = set()  # (server, place) of which a receipt says that it is kept
        self.log: list[str] = []

    def play(self) -> Outcome:
        """To its end, and check what is in the ledger then."""
        outcome = super().play()
        assert outcome.values is not None, f"it did not end well: {outcome.reason}"
        self._check_result(outcome.values)
        return outcome

    def _next(self) -> None:
        assert self.events < MOST_EVENTS, f"{MOST_EVENTS:,} events, and still no end: it never ends"
        super()._next()

    def _start(self, name: str, first: bool = False) -> None:
        super()._start(name, first)
        if not first:
            self.log.append(f"{self.now:.4f} {name} is started, its life {self.lives[name]}")

    def _crash(self, fault: Any) -> None:
        if fault.who in self.lives:
            self.log.append(f"{self.now:.4f} {fault.who} crashes")
        super()._crash(fault)

    def _carry_out(self, name: str, action: Action) -> None:
        if isinstance(action, Train):
            self._check_bound((name, self.lives[name]), action)
            self.bursts[name, self.lives[name]].append(self.ledger.given)
        elif isinstance(action, Send):
            self._sent_by(name, action.envelope)
        super()._carry_out(name, action)

    def _sent_by(self, name: str, envelope: Envelope) -> None:
        body = envelope.body
        if isinstance(body, Pull):
            self.began.setdefault((name, envelope.incarnation), body.clock)
        elif isinstance(body, Push):
            number = envelope.to, (name, envelope.incarnation), envelope.sequence
            place = self.pushed.setdefault(number, self.ledger.place(body.change))
            assert place == self.ledger.place(body.change), "two pushes have the same number"
        elif isinstance(body, Receipt) and name.startswith("server"):
            for (to, life, sequence), place in self.pushed.items():
                if to == name and life == (envelope.to, envelope.life) and sequence < body.kept:
                    self.safe.add((name, place))

    def _check_bound(self, me: Life, train: Train) -> None:
        """Of every worker that lives, all it has to do before the bound is in the parameters."""
        if self.staleness is None:
            return
        entries = self.ledger.entries(train.values)
        clock = self.began[me] + len(self.bursts[me])
        for other in list(self.began):
            if self.lives.get(other[0]) != other[1]:
                continue
            needed = max(0, clock - self.staleness - self.began[other])
            done = self.bursts[other][:needed]
            left = self.people[other[0]].role.ended
            assert left or len(done) == needed, (
                f"{me} is at clock {clock}, {other} only at {self.began[other] + len(done)}"
            )
            missing = [place for place in done if not (entries[:, place] == 1.0).all()]
            assert not missing, f"{me} trains at clock {clock} on parameters without bursts {missing} of {other}"

    def _check_result(self, values: Any) -> None:
        entries = self.ledger.entries(values)
        assert np.isin(entries, (0.0, 1.0)).all(), (
            f"added more than once: bursts {sorted(set(np.nonzero(entries > 1)[1].tolist()))}"
        )
        lost = [(name, place) for name, place in sorted(self.safe) if entries[int(name[7:]), place] != 1.0]
        assert not lost, f"acknowledged as kept, but not in the result: {lost}"
        for (name, life), places in self.bursts.items():
            if self.lives.get(name) == life and self.people[name].role.ended:
                assert (entries[:, places] == 1.0).all(), f"{name} has left, and not all that it did is in the result"
