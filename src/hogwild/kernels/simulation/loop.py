"""Event loop of a compiled simulation, which returns where the coordinator's role has to react.

``train`` is bound by :func:`hogwild.kernels.linear_build.event_loop`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.simulation.event_heap import schedule, take
from hogwild.kernels.simulation.network import (
    acknowledge,
    acknowledged,
    arrive,
    deliverable,
    new_message,
    resend,
    send,
    set_timer,
)
from hogwild.kernels.simulation.server import server_receives
from hogwild.kernels.simulation.tables import (
    ACKNOWLEDGED,
    ARRIVED,
    ASK,
    CALL,
    COORDINATOR,
    DELIVERED,
    EMPTY,
    FINISHED,
    FULL,
    GO_ON,
    LEFT,
    PAUSED,
    READY,
    REPORT,
    RESEND,
    SERVER,
    STARTED,
    TRAINED,
)
from hogwild.kernels.simulation.worker import begin_burst, trained, worker_receives

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821

SPARE_RECORDS = 64


def simulate(t: Any, data: Any, rest: Any, most: Any) -> Any:
    """Process events, at most about ``most``; return why the loop has ended."""
    run = t.run[0]
    if run.called:
        why = after_call(t)
        if run.finished:
            return FINISHED
        if why != GO_ON:
            return why
    stop = run.events + most
    while True:
        if run.training >= 0:
            why = train(t, data, rest)
            if why != GO_ON:
                return why
        if run.queued == 0:
            return EMPTY
        if run.events >= stop:
            return PAUSED
        if lacks_room(t):
            return FULL
        why = next_event(t)
        if why != GO_ON:
            return why


def lacks_room(t: Any) -> bool:
    """Return whether the records of the next event, however many they are, might not fit into the tables."""
    run, nodes = t.run[0], t.nodes.size
    # A node may send all of its messages again, each of which may arrive twice, or answer all others at once.
    events = 4 * nodes + 2 * run.messages + SPARE_RECORDS
    return bool(
        t.events.size - run.queued < events
        or t.messages.size - run.messages < 2 * nodes + SPARE_RECORDS
        or t.changes.size - run.changes < SPARE_RECORDS
        or t.block_following.size - run.blocks < run.most_blocks
        or len(t.delays) - run.delays < nodes
    )


def next_event(t: Any) -> Any:
    """Process the next event; return CALL where the coordinator's role has to react, else GO_ON."""
    run = t.run[0]
    run.now, kind, at, number, sequence = take(t)
    run.events += 1
    if kind == ARRIVED:
        arrive(t, at, number, sequence)
        return deliver(t, at)
    if kind == ACKNOWLEDGED:
        acknowledged(t, at, number)
        settle(t, t.channels[at].sender)
    elif kind == TRAINED:
        trained(t, at)
        begin_burst(t, at)
        settle(t, at)
    elif kind == RESEND:
        resend(t, at)
        settle(t, at)
    elif kind == STARTED and at != COORDINATOR:
        send(t, new_message(t, READY, 0), at, COORDINATOR)
        settle(t, at)
    else:
        run.event, run.message, run.called = kind, number, 1
        return CALL
    return GO_ON


def deliver(t: Any, c: Any) -> Any:
    """Deliver the messages of a channel that are next in order, and acknowledge them."""
    run, way = t.run[0], t.channels[c]
    run.open = c
    number = deliverable(t, c)
    while number >= 0:
        if way.receiver > SERVER:
            worker_receives(t, number, way.receiver)
            begin_burst(t, way.receiver)
        elif way.receiver == SERVER:
            server_receives(t, number, way.sender)
        elif not counted(t, number, way.sender):
            run.event, run.message, run.sender, run.called = DELIVERED, number, way.sender, 1
            return CALL
        number = deliverable(t, c)
    run.open = -1
    acknowledge(t, c)
    settle(t, way.receiver)
    return GO_ON


def counted(t: Any, number: Any, sender: Any) -> bool:
    """React to a message for the coordinator that changes nothing but its counts; return whether it is one.

    Its role has to react to all others.
    """
    run, message = t.run[0], t.messages[number]
    if message.kind == REPORT:
        mean = message.loss / max(1, message.terms)
        if run.terms + message.terms >= run.due or not (np.isfinite(mean) and mean <= run.loss_limit):
            return False
        run.terms += message.terms
        run.coordinator_loss += message.loss
        run.clock, run.step = max(run.clock, message.clock), message.step
    elif message.kind == ASK:
        if run.stopping == 0:
            found = new_message(t, LEFT, 0)
            t.messages[found].terms, t.messages[found].members = run.terms, run.training_workers
            send(t, found, COORDINATOR, sender)
    else:
        return False
    run.heard += 1
    return True


def settle(t: Any, node: Any) -> None:
    """End the reaction of a node: begin a burst that had to wait for acknowledgements, and set the timer."""
    if node > SERVER:
        begin_burst(t, node)
    set_timer(t, node)


def after_call(t: Any) -> Any:
    """Carry out the commands of the coordinator's role, and end the reaction of the coordinator."""
    run = t.run[0]
    run.called = 0
    for place in range(run.commands):
        command = t.commands[place]
        if command.to >= 0:
            found = new_message(t, command.kind, 0)
            t.messages[found].terms, t.messages[found].members = command.terms, command.members
            send(t, found, COORDINATOR, command.to)
        else:
            schedule(t, run.now + command.after, command.event, COORDINATOR, command.number, 0)
    run.commands = 0
    if run.open >= 0:
        return deliver(t, run.open)
    settle(t, COORDINATOR)
    return GO_ON
