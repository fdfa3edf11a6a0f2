"""What goes out: together, not too much at once, and receipts when something else goes or after a while."""

import pytest

pytest.importorskip("msgpack", reason="pip install 'hogwild[ray]'")

from hogwild.messaging.messages import Ack, Envelope, JoinReply, Pull
from hogwild.runtimes.ray import batching_sender
from hogwild.runtimes.ray.batching_sender import BatchingSender
from hogwild.runtimes.ray.state_replication import EVERY, StateReplicator
from hogwild.runtimes.ray.wire_codec import decode_envelopes


class Wire:
    """Notes the calls, and answers them when it is told to."""

    def __init__(self):
        self.calls, self.answered, self.time = [], set(), 0.0
        self.sender = BatchingSender(self.call, self.unanswered, lambda: self.time)
        self.sender.connect("server-0", "a handle")

    def call(self, handle, parts):
        self.calls.append((handle, [each.body for each in decode_envelopes(parts, 10)]))
        return len(self.calls)

    def unanswered(self, calls):
        return [call for call in calls if call not in self.answered]

    def answer(self, *calls):
        self.answered.update(calls)
        self.time += batching_sender.POLL_INTERVAL

    def wait(self):
        self.time += batching_sender.MAX_DELAY
        self.sender.catch_up()


def message(body, sequence=0, to="server-0", receiver_incarnation=0):
    return Envelope("worker-0", 0, to, receiver_incarnation, sequence, 0, 0, body)


def test_one_call_for_a_turn():
    wire = Wire()
    for clock in range(5):
        wire.sender.put(message(Pull(clock), clock))
    assert wire.calls == []
    wire.sender.after_reaction()
    assert wire.calls == [("a handle", [Pull(clock) for clock in range(5)])]


def test_a_receipt_goes_with_what_is_said_next_and_the_last_says_all():
    wire = Wire()
    for received in (1, 2, 3):
        wire.sender.put(message(Ack(received, 0)))
        wire.sender.after_reaction()
    assert wire.calls == []
    assert wire.sender.pending.is_set()
    wire.sender.put(message(Pull(1)))
    wire.sender.after_reaction()
    assert wire.calls == [("a handle", [Ack(3, 0), Pull(1)])]


def test_receipts_do_not_wait_for_ever():
    wire = Wire()
    wire.sender.put(message(Ack(1, 0)))
    wire.sender.after_reaction()
    wire.sender.catch_up()
    assert wire.calls == []
    assert wire.sender.pending.is_set()
    wire.wait()
    assert wire.calls == [("a handle", [Ack(1, 0)])]
    assert not wire.sender.pending.is_set()
    for received in range(batching_sender.MAX_WAITING_ACKS):
        wire.sender.put(message(Ack(received, 0)))
        wire.sender.after_reaction()
    assert len(wire.calls) == 2


def test_what_is_short_waits_for_more_while_calls_are_answered_slowly():
    wire = Wire()
    for clock in range(batching_sender.BUSY + 5):
        wire.sender.put(message(Pull(clock), clock))
        wire.sender.after_reaction()
    assert len(wire.calls) == batching_sender.BUSY + 1
    assert wire.sender.pending.is_set()
    wire.answer(1, 2)
    last = batching_sender.BUSY + 5
    wire.sender.put(message(Pull(last), last))
    wire.sender.after_reaction()
    assert wire.calls[-1][1] == [Pull(clock) for clock in range(batching_sender.BUSY + 1, last + 1)]
    for received in range(100):
        wire.sender.put(message(Ack(received, 0)))
        wire.sender.after_reaction()
    assert len(wire.calls) == batching_sender.BUSY + 3


def test_what_waits_goes_out_when_enough_is_answered():
    wire = Wire()
    for clock in range(batching_sender.BUSY + 3):
        wire.sender.put(message(Pull(clock), clock))
        wire.sender.after_reaction()
    assert wire.sender.blocked.is_set()
    assert wire.sender.awaited() == [1]
    wire.sender.catch_up()
    assert len(wire.calls) == batching_sender.BUSY + 1
    wire.answer(1)
    wire.sender.catch_up()
    assert wire.calls[-1][1] == [Pull(batching_sender.BUSY + 1), Pull(batching_sender.BUSY + 2)]
    assert wire.sender.awaited() == []
    assert not wire.sender.blocked.is_set()


def test_a_full_call_waits_for_nothing_but_room(monkeypatch):
    monkeypatch.setattr(batching_sender, "FULL", 3 * message(Pull(0)).nbytes)
    wire = Wire()
    for clock in range(batching_sender.BUSY + 1):
        wire.sender.put(message(Pull(clock), clock))
        wire.sender.after_reaction()
    for clock in range(3 * batching_sender.WINDOW):
        wire.sender.put(message(Pull(clock), clock))
        wire.sender.after_reaction()
    assert [len(said) for _, said in wire.calls] == [1] * (batching_sender.BUSY + 1) + [3] * (
        batching_sender.WINDOW - batching_sender.BUSY - 1
    )
    assert wire.sender.awaited() == [1]
    wire.answer(1)
    wire.sender.catch_up()
    assert [len(said) for _, said in wire.calls[batching_sender.WINDOW :]] == [3]


def test_no_more_calls_than_the_window_and_no_more_messages_than_there_is_room_for():
    wire = Wire()
    for sequence in range(batching_sender.MOST_WAITING + 100):
        wire.sender.put(message(Pull(sequence), sequence))
        if sequence < 50:
            wire.wait()
    assert len(wire.calls) == batching_sender.WINDOW
    before = sum(len(said) for _, said in wire.calls)
    assert wire.sender.refused == 100 - before
    wire.answer(1, 2)
    wire.wait()
    assert len(wire.calls) == batching_sender.WINDOW + 2
    assert wire.calls[-1][1][0] == Pull(before + batching_sender.MOST_TOGETHER)
    assert wire.sender.pending.is_set()


def test_nothing_is_said_to_those_who_are_not_there():
    wire = Wire()
    wire.sender.put(message(Pull(1)))
    wire.sender.disconnect("server-0")
    wire.sender.after_reaction()
    wire.sender.put(message(Pull(2)))
    wire.sender.connect("server-0", "another handle")
    wire.sender.put(message(Pull(3)))
    wire.sender.after_reaction()
    assert wire.calls == [("another handle", [Pull(3)])]


class Store:
    """A state store that takes its time."""

    def __init__(self, replicated=None):
        self.stored, self.answers = [], {}
        self.replicator = StateReplicator(self.store, self.answers.get, dict(replicated or {}))

    def store(self, what):
        self.stored.append(what)
        return len(self.stored)


def test_kept_is_what_has_arrived():
    store, replicator = (one := Store()), one.replicator
    replicator.put(({"server-0": (0, 5)}, "state"))
    assert replicator.limit_ack(message(Ack(5, 5))).body == Ack(5, 0)
    assert replicator.catch_up(0.0) == []
    assert store.stored == [({"server-0": (0, 5)}, "state")]
    assert replicator.limit_ack(message(Ack(7, 7))).body == Ack(7, 0)
    store.answers[1] = True
    assert [each.body for each in replicator.catch_up(0.1)] == [Ack(7, 5)]
    assert replicator.limit_ack(message(Ack(9, 9), receiver_incarnation=1)).body == Ack(9, 0)
    assert not replicator.busy


def test_it_is_not_kept_too_often_and_what_was_refused_is_not_safe():
    store, replicator = (one := Store()), one.replicator
    for number in range(3):
        replicator.put(({"server-0": (0, number)}, number))
        replicator.catch_up(0.01 * number)
    store.answers[1] = False
    assert replicator.catch_up(0.1) == []
    assert len(store.stored) == 1
    replicator.catch_up(EVERY)
    assert [what for _, what in store.stored] == [0, 2]
    assert replicator.limit_ack(message(Ack(2, 2))).body == Ack(2, 0)


def test_after_a_crash_it_knows_what_is_safe():
    replicator = Store({"server-0": (3, 8)}).replicator
    assert replicator.limit_ack(message(Ack(9, 9), receiver_incarnation=3)).body == Ack(9, 8)


def test_who_enters_waits_until_that_is_kept():
    store, replicator = (one := Store()), one.replicator
    replicator.put(({}, "before"))
    replicator.catch_up(0.0)
    replicator.put(({}, "that somebody has entered"))
    replicator.hold(message(JoinReply(4)))
    store.answers[1] = True
    assert replicator.catch_up(0.01) == []
    assert store.stored[-1] == ({}, "that somebody has entered")
    store.answers[2] = True
    assert [each.body for each in replicator.catch_up(0.02)] == [JoinReply(4)]
