"""A simulated run that is watched from outside: by what is trained on, sent and receipted, not by anybody's word."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from ledger import Ledger

from hogwild.messaging.deltas import plus
from hogwild.messaging.job import MessageJob, Outcome
from hogwild.messaging.messages import Ack, Envelope, Pull, Push, number_of
from hogwild.messaging.protocol import Action, Train, Transmit
from hogwild.runtimes.simulator import Simulator
from hogwild.runtimes.simulator.event_loop import EventLoop

MOST_EVENTS = 200_000

Life = tuple[str, int]  # of a worker


class Watched(EventLoop):
    """Fails if there is no end or no good one.

    Where what is done is ``lasting``, also if the result lacks something of a worker that was there to the end. Among
    ``steady`` workers, also if they train more terms than were left to them.
    """

    def __init__(
        self, simulator: Simulator, job: MessageJob, ledger: Ledger, lasting: bool = True, steady: bool = False
    ) -> None:
        super().__init__(simulator, job)
        self.ledger, self.lasting, self.steady = ledger, lasting, steady
        self.terms = 0  # of all workers
        # By worker: terms of all, and workers that share the rest, that it was told of before its last burst. A message
        # that came out of turn is told when its turn comes.
        self.known: dict[str, tuple[int, int]] = {}
        self.log: list[str] = []
        self.bursts: dict[Life, list[int]] = defaultdict(list)  # their places in the ledger

    def play(self) -> Outcome:
        """To its end, and look into the ledger then."""
        outcome = super().play()
        assert outcome.values is not None, f"it did not end well: {outcome.reason}"
        self._check_result(self.ledger.entries(outcome.values))
        if self.steady:
            self._check_goal()
        return outcome

    def _check_goal(self) -> None:
        """No worker has trained more than its part of what was left when it was told last."""
        goal = self.job.config.goal
        assert goal is not None
        told = max((known for known, _ in self.known.values()), default=0)
        most = told + sum(-(-(goal - known) // members) for known, members in self.known.values())
        assert self.terms <= most, f"{self.terms} terms instead of {goal}, of which at most {most} may be under way"

    def _check_result(self, entries: Any) -> None:
        for (name, incarnation), places in self.bursts.items():
            if self.lasting and self.incarnations.get(name) == incarnation and self.nodes[name].role.ended:  # type: ignore[attr-defined]
                missing = [place for place in places if not (entries[:, place] > 0).all()]
                assert not missing, f"{name} has ended, and bursts {missing} of it are not in the result"

    def _execute(self, name: str, action: Action) -> None:
        if isinstance(action, Train):
            self.bursts[name, self.incarnations[name]].append(self.ledger.given)
            self.terms += action.terms
            cursor = self.nodes[name].role.cursor  # type: ignore[attr-defined]  # the roles of workers have one
            self.known[name] = cursor.known, cursor.members
        super()._execute(name, action)

    def _next(self) -> None:
        assert self.events < MOST_EVENTS, f"{MOST_EVENTS:,} events, and still no end: it never ends"
        super()._next()

    def _start(self, name: str, first: bool = False) -> None:
        super()._start(name, first)
        if not first:
            self.log.append(f"{self.now:.4f} {name} is started, its incarnation {self.incarnations[name]}")

    def _crash(self, fault: Any) -> None:
        if fault.who in self.incarnations:
            self.log.append(f"{self.now:.4f} {fault.who} crashes")
        super()._crash(fault)


class Audited(Watched):
    """Fails too when a worker trains on parameters that are too old, or a push counts twice or is lost, with servers.

    With ``whole`` pushes are added as they are; else parts of them, and there is no telling whether one counts twice.
    """

    def __init__(
        self, simulator: Simulator, job: MessageJob, ledger: Ledger, staleness: int | None, whole: bool,
        steady: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(simulator, job, ledger, steady=steady)
        self.staleness, self.whole = staleness, whole
        self.began: dict[Life, int] = {}  # the clock of its first pull, and of its first burst
        self.pushed: dict[tuple[str, Life], list[tuple[int, int]]] = defaultdict(list)  # to a server: number, place
        self.safe: set[tuple[str, int]] = set()  # (server, place) of which a receipt says that it is kept

    def _execute(self, name: str, action: Action) -> None:
        if isinstance(action, Train) and self.staleness is not None:
            me = name, self.incarnations[name]
            began = self.began.setdefault(me, 0)  # Who keeps its parameters begins without a pull.
            self._check_bound(me, began + len(self.bursts[me]), self.ledger.entries(self._parameters(name, action)))
        elif isinstance(action, Transmit):
            self._sees(action.envelope)
        super()._execute(name, action)

    def _parameters(self, name: str, train: Train) -> Any:
        """The parameters that a burst begins from."""
        values = self._trainers[name].values if train.values is None else train.values
        return values if train.received is None else plus(values, train.received)

    def _sees(self, envelope: Envelope) -> None:
        sender, body = envelope.sender, envelope.body
        if isinstance(body, Pull):
            self.began.setdefault((sender, envelope.incarnation), body.clock)
        elif isinstance(body, Push):
            known = self.pushed[envelope.to, (sender, envelope.incarnation)]
            if not known or envelope.sequence > known[-1][0]:  # else it is sent again
                known.append((envelope.sequence, self.ledger.place(body.change)))
        elif isinstance(body, Ack) and sender.startswith("server"):
            known = self.pushed[sender, (envelope.to, envelope.receiver_incarnation)]
            self.safe |= {(sender, place) for sequence, place in known if sequence < body.kept}

    def _check_bound(self, me: Life, clock: int, entries: Any) -> None:
        """Of every worker that lives, all that it had to do before the bound is there."""
        assert self.staleness is not None
        for other, began in self.began.items():
            if self.incarnations.get(other[0]) != other[1]:
                continue
            needed = max(0, clock - self.staleness - began)
            done = self.bursts[other][:needed]
            assert len(done) == needed or self.nodes[other[0]].role.ended, (  # type: ignore[attr-defined]
                f"{me} trains at clock {clock}, and {other} has only come to {began + len(done)}"
            )
            missing = [place for place in done if not (entries[:, place] > 0).all()]
            assert not missing, f"{me} trains at clock {clock} on parameters without bursts {missing} of {other}"

    def _check_result(self, entries: Any) -> None:
        if self.whole:
            wrong = sorted(set(np.nonzero(self.ledger.wrong(entries))[1].tolist()))
            assert not wrong, f"not added once as a whole: bursts {wrong}"
        lost = [(name, place) for name, place in sorted(self.safe) if not entries[number_of(name), place] > 0]
        assert not lost, f"acknowledged as kept, but not in the result: {lost}"
        super()._check_result(entries)
