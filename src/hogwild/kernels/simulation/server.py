"""The parameter server, as :class:`hogwild.strategies.roles.parameter_server.ParameterServerRole` with one server."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.simulation.network import acknowledge, channel, new_message, send
from hogwild.kernels.simulation.sparse_changes import add_change, release
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


def server_receives(t: Any, number: Any, sender: Any) -> None:
    """React to a message."""
    run, message, node = t.run[0], t.messages[number], t.nodes[sender]
    if message.kind == PUSH:
        pushed(t, number, sender)
    elif message.kind == PULL:
        if node.waits < 0:
            t.waiting[run.waiting] = sender
            run.waiting += 1
        node.waits = message.clock
        at_least(t, sender, message.clock)
        advance(t)
        if node.waits >= 0:
            answer(t, sender)
            if node.waits < 0:
                run.waiting -= 1  # It is the last one that waits.
    elif message.kind == LEAVE:
        run.ended += node.listed
        node.waits = -1
        if node.listed:
            remove(t, sender)
            advance(t)
    elif message.kind == BEGIN:
        run.begun = 1
        for worker in range(FIRST_WORKER, t.nodes.size):
            at_least(t, worker, 0)
        persist(t)
        advance(t)
    elif message.kind == REQUEST:
        run.request, run.request_last = message.terms, message.members
        advance(t)


def pushed(t: Any, number: Any, sender: Any) -> None:
    """Add a change, or keep it until its round is complete."""
    run, message, node = t.run[0], t.messages[number], t.nodes[sender]
    if run.bound == 0:
        node.pending, node.pending_read = message.change, message.read
        node.pending_own, node.pending_terms = message.own, message.terms
        run.pending += 1
    else:
        note_delay(t, sender, message.read, message.own)
        weight = np.float32(1)
        if run.mean:
            weight = np.float32(1 / max(1, run.listed))
        add(t, message.change, weight, message.terms)
        run.version += 1
    message.change = -1
    at_least(t, sender, message.clock + 1)
    run.unpersisted += 1
    advance(t)
    if run.unpersisted >= max(1, run.listed):
        persist(t)


def note_delay(t: Any, worker: Any, read: Any, own: Any) -> None:
    """Note the staleness of a change."""
    run = t.run[0]
    t.delays[run.delays, 0] = worker - FIRST_WORKER
    t.delays[run.delays, 1] = max(0, run.version - read - own)
    run.delays += 1


def add(t: Any, change: Any, weight: Any, terms: Any) -> None:
    """Add a multiple of a change to the parameters, and drop the change."""
    add_change(t, change, SERVER_SLOT, weight)
    release(t, change)
    t.run[0].server_progress += terms


def add_round(t: Any) -> None:
    """Add the changes of a complete round, each with its share of the terms as weight."""
    run = t.run[0]
    total = 0
    for worker in range(FIRST_WORKER, t.nodes.size):
        if t.nodes[worker].pending >= 0:
            total += t.nodes[worker].pending_terms
    for worker in range(FIRST_WORKER, t.nodes.size):
        node = t.nodes[worker]
        if node.pending >= 0:
            note_delay(t, worker, node.pending_read, node.pending_own)
            weight = np.float32(node.pending_terms / total) if run.mean else np.float32(1)
            add(t, node.pending, weight, node.pending_terms)
            node.pending = -1
    run.version += run.pending
    run.pending = 0
    run.round += 1


def advance(t: Any) -> None:
    """Add a complete round, and answer the pulls and the request that no longer have to wait."""
    run = t.run[0]
    if run.begun == 0:
        return
    if run.pending > 0 and (run.listed == 0 or slowest(t) > run.round):
        add_round(t)
    if run.waiting > 0 and slowest(t) != run.answered_at:
        run.answered_at = slowest(t)
        kept = 0
        for place in range(run.waiting):
            worker = t.waiting[place]
            if t.nodes[worker].waits >= 0:
                answer(t, worker)
            if t.nodes[worker].waits >= 0:
                t.waiting[kept] = worker
                kept += 1
        run.waiting = kept
    if run.request >= 0 and (run.request_last == 0 or run.listed == 0):
        if run.request_last:
            send(t, new_message(t, STOPPED, 0), SERVER, COORDINATOR)
        found = new_message(t, PARAMETERS, 4 * run.size)
        t.messages[found].terms = run.request
        copy_parameters(t, ANSWER_SLOT)
        run.answer_version, run.request = run.version, -1
        send(t, found, SERVER, COORDINATOR)


def answer(t: Any, worker: Any) -> None:
    """Send a worker the parameters, if the bound on staleness allows it."""
    run, node = t.run[0], t.nodes[worker]
    if run.begun == 0 or (run.bound >= 0 and slowest(t) < node.waits - run.bound):
        return
    if run.bound >= 0:
        t.lags[max(0, node.waits - slowest(t))] += 1
    found = new_message(t, REPLY, 4 * run.size)
    reply = t.messages[found]
    reply.clock, reply.read, reply.terms = node.waits, run.version, run.server_progress
    reply.members = max(1, run.ended + run.listed)
    node.waits = -1
    # A worker has one pull on its way, so the slot is free until the worker has used the reply.
    copy_parameters(t, node.spare)
    send(t, found, SERVER, worker)


def copy_parameters(t: Any, slot: Any) -> None:
    """Copy the parameters of the server to a slot."""
    here, there = t.flat[SERVER_SLOT], t.flat[slot]
    for k in range(here.size):
        there[k] = here[k]


def persist(t: Any) -> None:
    """Acknowledge to all senders that what they have sent is persisted."""
    t.run[0].unpersisted = 0
    for place in range(t.nodes.size):
        sender = t.nodes[place].by_name
        if t.nodes[sender].unpersisted:
            t.nodes[sender].unpersisted = 0
            acknowledge(t, channel(t, sender, SERVER))


# Clocks of the workers. Without a bound on staleness nobody waits for the slowest of them.


def at_least(t: Any, worker: Any, clock: Any) -> None:
    """Raise the clock of a worker, and add the worker if it is new."""
    run, node = t.run[0], t.nodes[worker]
    if node.listed and clock <= node.at_clock:
        return
    if run.bound >= 0:
        if node.listed:
            t.clocks[node.at_clock] -= 1
        t.clocks[clock] += 1
    run.listed += 1 - node.listed
    node.listed, node.at_clock = 1, clock


def remove(t: Any, worker: Any) -> None:
    """Remove the clock of a worker that has left."""
    run, node = t.run[0], t.nodes[worker]
    slowest(t)  # The last worker may leave now, and then this value remains.
    if run.bound >= 0:
        t.clocks[node.at_clock] -= 1
    node.listed = 0
    run.listed -= 1


def slowest(t: Any) -> Any:
    """Return the clock of the slowest worker; 0 without a bound on staleness."""
    run = t.run[0]
    while run.bound >= 0 and run.listed > 0 and t.clocks[run.least] == 0:
        run.least += 1
    return run.least
