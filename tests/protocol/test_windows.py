"""How much can be on its way, whom messages are for, and what becomes of a run without its coordinator."""

from __future__ import annotations

from typing import Any

import pytest
from executions import Execution
from ledger import Ledger
from watching import Audited

from hogwild.messaging.job import MessageJob, RunConfig
from hogwild.messaging.messages import Ready
from hogwild.messaging.protocol import PeerJoined, PeerLost
from hogwild.messaging.reliable_channel import WINDOW, ReliableChannel
from hogwild.runtimes.local import Local
from hogwild.runtimes.messaging.injected_faults import Crash
from hogwild.strategies import ParameterServer


def test_a_worker_waits_when_a_server_has_not_received_a_window_of_pushes(monkeypatch: pytest.MonkeyPatch) -> None:
    away: list[int] = []

    def start(self: Any, name: str, first: bool = False) -> None:
        if not first:
            away.append(self.ledger.given)
        original(self, name, first)

    original = Audited._start
    monkeypatch.setattr(Audited, "_start", start)
    crash = Crash("server-0", 0.0105, 0.5)  # after ten bursts, for as long as five hundred
    execution = Execution(ParameterServer(1, pull_every=300, combine="sum"), bursts=300, faults=(crash,))
    assert execution.play().reason == "epochs"
    assert WINDOW <= away[0] <= WINDOW + 12


def test_what_is_on_its_way_to_the_dead_does_not_count() -> None:
    channel = ReliableChannel("worker-0", 0, {"worker-1": 0}, patience=1.0)
    for _ in range(WINDOW + 1):
        channel.wrap("worker-1", Ready())
    assert channel.window_full
    channel.membership(PeerLost("worker-1", 0))
    assert not channel.window_full
    assert not list(channel.set_timer())


def test_a_new_life_is_written_to_from_the_first_number_on() -> None:
    channel = ReliableChannel("worker-0", 0, {"worker-1": 0}, patience=1.0)
    assert channel.wrap("worker-1", Ready()) is not None
    channel.membership(PeerLost("worker-1", 0))
    assert channel.wrap("worker-1", Ready()) is None
    channel.membership(PeerJoined("worker-1", 1))
    envelope = channel.wrap("worker-1", Ready())
    assert envelope is not None
    assert (envelope.receiver_incarnation, envelope.sequence) == (1, 0)


def test_a_letter_to_an_earlier_life_is_no_sign_of_life() -> None:
    dead = ReliableChannel("worker-1", 0, {"server-0": 0}, patience=1.0)
    envelope = dead.wrap("server-0", Ready())
    assert envelope is not None
    assert ReliableChannel("server-0", 1, {}, patience=1.0).implied_membership(envelope) == []
    assert ReliableChannel("server-0", 0, {}, patience=1.0).implied_membership(envelope) == [PeerJoined("worker-1", 0)]


def test_without_its_coordinator_a_run_is_over() -> None:
    execution = Execution(ParameterServer(2, combine="sum"), bursts=5, faults=(Crash("coordinator", 0.002, 0.1),))
    with pytest.raises(AssertionError, match="it did not end well: the coordinator crashed"):
        execution.play()


def test_on_threads_neither() -> None:
    ledger = Ledger(1)
    config = RunConfig(1, ledger.start, 10, 10)
    job = MessageJob(
        config, ParameterServer(1).roles(config), lambda worker: ledger, lambda values, exactly: {"loss": 1.0},
        lambda event, **what: None,
    )  # fmt: skip
    outcome = Local(faults=(Crash("coordinator", 0.0),)).play(job)
    assert outcome.values is None
    assert outcome.reason == "the coordinator crashed"


def test_the_expected_message_is_taken_however_many_later_ones_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hogwild.messaging.reliable_channel.MOST_HELD", 3)
    sender = ReliableChannel("worker-0", 0, {"server-0": 0}, patience=1.0)
    receiver = ReliableChannel("server-0", 0, {"worker-0": 0}, patience=1.0)
    first, *later = [sender.wrap("server-0", Ready()) for _ in range(5)]
    for envelope in (*later, first):
        assert envelope is not None
        receiver.receive(envelope)
    delivered = []
    while (body := receiver.deliver("worker-0")) is not None:
        delivered.append(body)
    assert len(delivered) == 4  # the fifth is sent again later
