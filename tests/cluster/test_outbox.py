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
        self.outbox = BatchingSender(self.call, self.unanswered, lambda: self.time)
        self.outbox.connect("server-0", "a handle")

    def call(self, handle, parts):
        self.calls.append((handle, [each.body for each in decode_envelopes(parts, 10)]))
        return len(self.calls)

    def unanswered(self, calls):
        return [call for call in calls if call not in self.answered]

    def answer(self, *calls):
        self.answered.update(calls)
        self.time += batching_sender.LOOK

    def wait(self):
        self.time += batching_sender.A_WHILE
        self.outbox.catch_up()


def message(body, sequence=0, to="server-0", life=0):
    return Envelope("worker-0", 0, to, life, sequence, 0, 0, body)


def test_one_call_for_a_turn():
    wire = Wire()
    for clock in range(5):
        wire.outbox.put(message(Pull(clock), clock))
    assert wire.calls == []
    wire.outbox.turned()
    assert wire.calls == [("a handle", [Pull(clock) for clock in range(5)])]


def test_a_receipt_goes_with_what_is_said_next_and_the_last_says_all():
    wire = Wire()
    for received in (1, 2, 3):
        wire.outbox.put(message(Ack(received, 0)))
        wire.outbox.turned()
    assert wire.calls == []
    assert wire.outbox.late.is_set()
    wire.outbox.put(message(Pull(1)))
    wire.outbox.turned()
    assert wire.calls == [("a handle", [Ack(3, 0), Pull(1)])]


def test_receipts_do_not_wait_for_ever():
    wire = Wire()
    wire.outbox.put(message(Ack(1, 0)))
    wire.outbox.turned()
    wire.outbox.catch_up()
    assert wire.calls == []
    assert wire.outbox.late.is_set()
    wire.wait()
    assert wire.calls == [("a handle", [Ack(1, 0)])]
    assert not wire.outbox.late.is_set()
    for received in range(batching_sender.RECEIPTS):
        wire.outbox.put(message(Ack(received, 0)))
        wire.outbox.turned()
    assert len(wire.calls) == 2


def test_what_is_short_waits_for_more_while_calls_are_answered_slowly():
    wire = Wire()
    for clock in range(batching_sender.BUSY + 5):
        wire.outbox.put(message(Pull(clock), clock))
        wire.outbox.turned()
    assert len(wire.calls) == batching_sender.BUSY + 1
    assert wire.outbox.late.is_set()
    wire.answer(1, 2)
    last = batching_sender.BUSY + 5
    wire.outbox.put(message(Pull(last), last))
    wire.outbox.turned()
    assert wire.calls[-1][1] == [Pull(clock) for clock in range(batching_sender.BUSY + 1, last + 1)]
    for received in range(100):
        wire.outbox.put(message(Ack(received, 0)))
        wire.outbox.turned()
    assert len(wire.calls) == batching_sender.BUSY + 3


def test_what_waits_goes_out_when_enough_is_answered():
    wire = Wire()
    for clock in range(batching_sender.BUSY + 3):
        wire.outbox.put(message(Pull(clock), clock))
        wire.outbox.turned()
    assert wire.outbox.stuck.is_set()
    assert wire.outbox.awaited() == [1]
    wire.outbox.catch_up()
    assert len(wire.calls) == batching_sender.BUSY + 1
    wire.answer(1)
    wire.outbox.catch_up()
    assert wire.calls[-1][1] == [Pull(batching_sender.BUSY + 1), Pull(batching_sender.BUSY + 2)]
    assert wire.outbox.awaited() == []
    assert not wire.outbox.stuck.is_set()


def test_a_full_call_waits_for_nothing_but_room(monkeypatch):
    monkeypatch.setattr(batching_sender, "FULL", 3 * message(Pull(0)).nbytes)
    wire = Wire()
    for clock in range(batching_sender.BUSY + 1):
        wire.outbox.put(message(Pull(clock), clock))
        wire.outbox.turned()
    for clock in range(3 * batching_sender.WINDOW):
        wire.outbox.put(message(Pull(clock), clock))
        wire.outbox.turned()
    assert [len(said) for _, said in wire.calls] == [1] * (batching_sender.BUSY + 1) + [3] * (
        batching_sender.WINDOW - batching_sender.BUSY - 1
    )
    assert wire.outbox.awaited() == [1]
    wire.answer(1)
    wire.outbox.catch_up()
    assert [len(said) for _, said in wire.calls[batching_sender.WINDOW :]] == [3]


def test_no_more_calls_than_the_window_and_no_more_messages_than_there_is_room_for():
    wire = Wire()
    for sequence in range(batching_sender.MOST_WAITING + 100):
        wire.outbox.put(message(Pull(sequence), sequence))
        if sequence < 50:
            wire.wait()
    assert len(wire.calls) == batching_sender.WINDOW
    before = sum(len(said) for _, said in wire.calls)
    assert wire.outbox.refused == 100 - before
    wire.answer(1, 2)
    wire.wait()
    assert len(wire.calls) == batching_sender.WINDOW + 2
    assert wire.calls[-1][1][0] == Pull(before + batching_sender.MOST_TOGETHER)
    assert wire.outbox.late.is_set()


def test_nothing_is_said_to_those_who_are_not_there():
    wire = Wire()
    wire.outbox.put(message(Pull(1)))
    wire.outbox.disconnect("server-0")
    wire.outbox.turned()
    wire.outbox.put(message(Pull(2)))
    wire.outbox.connect("server-0", "another handle")
    wire.outbox.put(message(Pull(3)))
    wire.outbox.turned()
    assert wire.calls == [("another handle", [Pull(3)])]


class Store:
    """A vault that takes its time."""

    def __init__(self, safe=None):
        self.stored, self.answers = [], {}
        self.keeping = StateReplicator(self.store, self.answers.get, dict(safe or {}))

    def store(self, what):
        self.stored.append(what)
        return len(self.stored)


def test_kept_is_what_has_arrived():
    store, keeping = (one := Store()), one.keeping
    keeping.keep(({"server-0": (0, 5)}, "state"))
    assert keeping.honest(message(Ack(5, 5))).body == Ack(5, 0)
    assert keeping.catch_up(0.0) == []
    assert store.stored == [({"server-0": (0, 5)}, "state")]
    assert keeping.honest(message(Ack(7, 7))).body == Ack(7, 0)
    store.answers[1] = True
    assert [each.body for each in keeping.catch_up(0.1)] == [Ack(7, 5)]
    assert keeping.honest(message(Ack(9, 9), life=1)).body == Ack(9, 0)
    assert not keeping.busy


def test_it_is_not_kept_too_often_and_what_was_refused_is_not_safe():
    store, keeping = (one := Store()), one.keeping
    for number in range(3):
        keeping.keep(({"server-0": (0, number)}, number))
        keeping.catch_up(0.01 * number)
    store.answers[1] = False
    assert keeping.catch_up(0.1) == []
    assert len(store.stored) == 1
    keeping.catch_up(EVERY)
    assert [what for _, what in store.stored] == [0, 2]
    assert keeping.honest(message(Ack(2, 2))).body == Ack(2, 0)


def test_after_a_crash_it_knows_what_is_safe():
    keeping = Store({"server-0": (3, 8)}).keeping
    assert keeping.honest(message(Ack(9, 9), life=3)).body == Ack(9, 8)


def test_who_enters_waits_until_that_is_kept():
    store, keeping = (one := Store()), one.keeping
    keeping.keep(({}, "before"))
    keeping.catch_up(0.0)
    keeping.keep(({}, "that somebody has entered"))
    keeping.hold(message(JoinReply(4)))
    store.answers[1] = True
    assert keeping.catch_up(0.01) == []
    assert store.stored[-1] == ({}, "that somebody has entered")
    store.answers[2] = True
    assert [each.body for each in keeping.catch_up(0.02)] == [JoinReply(4)]
