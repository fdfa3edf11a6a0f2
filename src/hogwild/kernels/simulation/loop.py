"""Event loop of a compiled simulation, which returns where the coordinator's role has to react.

The loop is compiled once: it calls the descents of problems and rules as C functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import specialise
from hogwild.kernels.simulation.burst import train
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
from hogwild.kernels.simulation.table_access import (
    channel_at,
    command_at,
    message_at,
)
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

SPARE_RECORDS = 64


def process_events(runs: Any, descent: Any, most: Any) -> Any:
    """Process events of the only run in ``runs``, at most about ``most``; return why the loop has ended.

    ``descent`` is the record of arguments of the descent.
    """
    run = runs[0]
    if run.called:
        why = after_call(run)
        if run.finished:
            return FINISHED
        if why != GO_ON:
            return why
    stop = run.events + most
    while True:
        if run.training >= 0:
            why = train(run, descent)
            if why != GO_ON:
                return why
        if run.queued == 0:
            return EMPTY
        if run.events >= stop:
            return PAUSED
        if lacks_room(run):
            return FULL
        why = next_event(run)
        if why != GO_ON:
            return why


def lacks_room(run: Any) -> bool:
    """Return whether the records of the next event, however many they are, might not fit into the tables."""
    nodes = run.nodes
    # A node may send all of its messages again, each of which may arrive twice, or answer all others at once.
    events = 4 * nodes + 2 * run.messages + SPARE_RECORDS
    return bool(
        run.events_length - run.queued < events
        or run.messages_length - run.messages < 2 * nodes + SPARE_RECORDS
        or run.changes_length - run.changes < SPARE_RECORDS
        or run.block_following_length - run.blocks < run.most_blocks
        or run.delays_length // 2 - run.delays < nodes
    )


def next_event(run: Any) -> Any:
    """Process the next event; return CALL where the coordinator's role has to react, else GO_ON."""
    run.now, kind, at, number, sequence = take(run)
    run.events += 1
    if kind == ARRIVED:
        arrive(run, at, number, sequence)
        return deliver(run, at)
    if kind == ACKNOWLEDGED:
        acknowledged(run, at, number)
        settle(run, channel_at(run, at).sender)
    elif kind == TRAINED:
        trained(run, at)
        begin_burst(run, at)
        settle(run, at)
    elif kind == RESEND:
        resend(run, at)
        settle(run, at)
    elif kind == STARTED and at != COORDINATOR:
        send(run, new_message(run, READY, 0), at, COORDINATOR)
        settle(run, at)
    else:
        run.event, run.message, run.called = kind, number, 1
        return CALL
    return GO_ON


def deliver(run: Any, c: Any) -> Any:
    """Deliver the messages of a channel that are next in order, and acknowledge them."""
    way = channel_at(run, c)
    run.open = c
    number = deliverable(run, c)
    while number >= 0:
        if way.receiver > SERVER:
            worker_receives(run, number, way.receiver)
            begin_burst(run, way.receiver)
        elif way.receiver == SERVER:
            server_receives(run, number, way.sender)
        elif not counted(run, number, way.sender):
            run.event, run.message, run.sender, run.called = DELIVERED, number, way.sender, 1
            return CALL
        number = deliverable(run, c)
    run.open = -1
    acknowledge(run, c)
    settle(run, way.receiver)
    return GO_ON


def counted(run: Any, number: Any, sender: Any) -> bool:
    """React to a message for the coordinator that changes nothing but its counts; return whether it is one.

    Its role has to react to all others.
    """
    message = message_at(run, number)
    if message.kind == REPORT:
        mean = message.loss / max(1, message.terms)
        if run.terms + message.terms >= run.due or not (np.isfinite(mean) and mean <= run.loss_limit):
            return False
        run.terms += message.terms
        run.coordinator_loss += message.loss
        run.clock, run.step = max(run.clock, message.clock), message.step
    elif message.kind == ASK:
        if run.stopping == 0:
            found = new_message(run, LEFT, 0)
            message_at(run, found).terms, message_at(run, found).members = run.terms, run.training_workers
            send(run, found, COORDINATOR, sender)
    else:
        return False
    run.heard += 1
    return True


def settle(run: Any, node: Any) -> None:
    """End the reaction of a node: begin a burst that had to wait for acknowledgements, and set the timer."""
    if node > SERVER:
        begin_burst(run, node)
    set_timer(run, node)


def after_call(run: Any) -> Any:
    """Carry out the commands of the coordinator's role, and end the reaction of the coordinator."""
    run.called = 0
    for place in range(run.commands):
        command = command_at(run, place)
        if command.to >= 0:
            found = new_message(run, command.kind, 0)
            message_at(run, found).terms, message_at(run, found).members = command.terms, command.members
            send(run, found, COORDINATOR, command.to)
        else:
            schedule(run, run.now + command.after, command.event, COORDINATOR, command.number, 0)
    run.commands = 0
    if run.open >= 0:
        return deliver(run, run.open)
    settle(run, COORDINATOR)
    return GO_ON


# Multiplications and additions round separately, as in Python, so that both event loops have the same times.
simulate = specialise(process_events, arithmetic="separate")
