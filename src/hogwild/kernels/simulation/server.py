"""The parameter server, as :class:`hogwild.strategies.roles.parameter_server.ParameterServerRole` with one server."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.simulation.network import acknowledge, channel, new_message, send
from hogwild.kernels.simulation.sparse_changes import add_change, release
from hogwild.kernels.simulation.table_access import (
    all_parameters,
    clock_counts,
    lag_counts,
    message_at,
    node_at,
    staleness_log,
    waiting_workers,
)
from hogwild.kernels.simulation.tables import (
    BEGIN,
    COORDINATOR,
    FIRST_WORKER,
    LEAVE,
    PARAMETERS,
    PULL,
    PUSH,
    REPLY,
    REQUEST,
    SERVER,
    STOPPED,
)

# Slots of the server's parameters and of those that it has sent to the coordinator.
SERVER_SLOT, ANSWER_SLOT = 0, 1


def server_receives(run: Any, number: Any, sender: Any) -> None:
    """React to a message."""
    message, node = message_at(run, number), node_at(run, sender)
    if message.kind == PUSH:
        pushed(run, number, sender)
    elif message.kind == PULL:
        if node.waits < 0:
            waiting_workers(run)[run.waiting] = sender
            run.waiting += 1
        node.waits = message.clock
        at_least(run, sender, message.clock)
        advance(run)
        if node.waits >= 0:
            answer(run, sender)
            if node.waits < 0:
                run.waiting -= 1  # It is the last one that waits.
    elif message.kind == LEAVE:
        run.ended += node.listed
        node.waits = -1
        if node.listed:
            remove(run, sender)
            advance(run)
    elif message.kind == BEGIN:
        run.begun = 1
        for worker in range(FIRST_WORKER, run.nodes):
            at_least(run, worker, 0)
        persist(run)
        advance(run)
    elif message.kind == REQUEST:
        run.request, run.request_last = message.terms, message.members
        advance(run)


def pushed(run: Any, number: Any, sender: Any) -> None:
    """Add a change, or keep it until its round is complete."""
    message, node = message_at(run, number), node_at(run, sender)
    if run.bound == 0:
        node.pending, node.pending_read = message.change, message.read
        node.pending_own, node.pending_terms = message.own, message.terms
        run.pending += 1
    else:
        note_delay(run, sender, message.read, message.own)
        weight = np.float32(1)
        if run.mean:
            weight = np.float32(1 / max(1, run.listed))
        add(run, message.change, weight, message.terms)
        run.version += 1
    message.change = -1
    at_least(run, sender, message.clock + 1)
    run.unpersisted += 1
    advance(run)
    if run.unpersisted >= max(1, run.listed):
        persist(run)


def note_delay(run: Any, worker: Any, read: Any, own: Any) -> None:
    """Note the staleness of a change."""
    staleness_log(run)[2 * run.delays] = worker - FIRST_WORKER
    staleness_log(run)[2 * run.delays + 1] = max(0, run.version - read - own)
    run.delays += 1


def add(run: Any, change: Any, weight: Any, terms: Any) -> None:
    """Add a multiple of a change to the parameters, and drop the change."""
    add_change(run, change, SERVER_SLOT, weight)
    release(run, change)
    run.server_progress += terms


def add_round(run: Any) -> None:
    """Add the changes of a complete round, each with its share of the terms as weight."""
    total = 0
    for worker in range(FIRST_WORKER, run.nodes):
        if node_at(run, worker).pending >= 0:
            total += node_at(run, worker).pending_terms
    for worker in range(FIRST_WORKER, run.nodes):
        node = node_at(run, worker)
        if node.pending >= 0:
            note_delay(run, worker, node.pending_read, node.pending_own)
            weight = np.float32(node.pending_terms / total) if run.mean else np.float32(1)
            add(run, node.pending, weight, node.pending_terms)
            node.pending = -1
    run.version += run.pending
    run.pending = 0
    run.round += 1


def advance(run: Any) -> None:
    """Add a complete round, and answer the pulls and the request that no longer have to wait."""
    if run.begun == 0:
        return
    if run.pending > 0 and (run.listed == 0 or slowest(run) > run.round):
        add_round(run)
    if run.waiting > 0 and slowest(run) != run.answered_at:
        run.answered_at = slowest(run)
        kept = 0
        for place in range(run.waiting):
            worker = waiting_workers(run)[place]
            if node_at(run, worker).waits >= 0:
                answer(run, worker)
            if node_at(run, worker).waits >= 0:
                waiting_workers(run)[kept] = worker
                kept += 1
        run.waiting = kept
    if run.request >= 0 and (run.request_last == 0 or run.listed == 0):
        if run.request_last:
            send(run, new_message(run, STOPPED, 0), SERVER, COORDINATOR)
        found = new_message(run, PARAMETERS, 4 * run.size)
        message_at(run, found).terms = run.request
        copy_parameters(run, ANSWER_SLOT)
        message_at(run, found).read = run.version
        run.request = -1
        send(run, found, SERVER, COORDINATOR)


def answer(run: Any, worker: Any) -> None:
    """Send a worker the parameters, if the bound on staleness allows it."""
    node = node_at(run, worker)
    if run.begun == 0 or (run.bound >= 0 and slowest(run) < node.waits - run.bound):
        return
    if run.bound >= 0:
        lag_counts(run)[max(0, node.waits - slowest(run))] += 1
    found = new_message(run, REPLY, 4 * run.size)
    reply = message_at(run, found)
    reply.clock, reply.read, reply.terms = node.waits, run.version, run.server_progress
    reply.members = max(1, run.ended + run.listed)
    node.waits = -1
    # A worker has one pull on its way, so the slot is free until the worker has used the reply.
    copy_parameters(run, node.spare)
    send(run, found, SERVER, worker)


def copy_parameters(run: Any, slot: Any) -> None:
    """Copy the parameters of the server to a slot."""
    values, here, there = all_parameters(run), run.size * SERVER_SLOT, run.size * slot
    for k in range(run.size):
        values[there + k] = values[here + k]


def persist(run: Any) -> None:
    """Acknowledge to all senders that what they have sent is persisted."""
    run.unpersisted = 0
    for place in range(run.nodes):
        sender = node_at(run, place).by_name
        if node_at(run, sender).unpersisted:
            node_at(run, sender).unpersisted = 0
            acknowledge(run, channel(run, sender, SERVER))


# Clocks of the workers. Without a bound on staleness no worker waits for the slowest of them.


def at_least(run: Any, worker: Any, clock: Any) -> None:
    """Raise the clock of a worker, and add the worker if it is new."""
    node = node_at(run, worker)
    if node.listed and clock <= node.at_clock:
        return
    if run.bound >= 0:
        if node.listed:
            clock_counts(run)[node.at_clock] -= 1
        clock_counts(run)[clock] += 1
    run.listed += 1 - node.listed
    node.listed, node.at_clock = 1, clock


def remove(run: Any, worker: Any) -> None:
    """Remove the clock of a worker that has left."""
    node = node_at(run, worker)
    slowest(run)  # The last worker may leave now, and then this value remains.
    if run.bound >= 0:
        clock_counts(run)[node.at_clock] -= 1
    node.listed = 0
    run.listed -= 1


def slowest(run: Any) -> Any:
    """Return the clock of the slowest worker; 0 without a bound on staleness."""
    while run.bound >= 0 and run.listed > 0 and clock_counts(run)[run.least] == 0:
        run.least += 1
    return run.least
