"""Workers, as :class:`hogwild.strategies.roles.parameter_server_worker.ParameterServerWorker` and its cursor."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.simulation.event_heap import schedule
from hogwild.kernels.simulation.network import new_message, send, window_full
from hogwild.kernels.simulation.random_durations import bits_of, draw
from hogwild.kernels.simulation.sparse_changes import add_change, nbytes, release
from hogwild.kernels.simulation.table_access import (
    bit_addresses,
    change_at,
    message_at,
    node_at,
)
from hogwild.kernels.simulation.tables import (
    ASK,
    BEGIN,
    COORDINATOR,
    LEAVE,
    LEFT,
    PULL,
    PUSH,
    REPLY,
    REPORT,
    SERVER,
    STOP,
    STOPPED,
    TRAINED,
)

UPDATES = 0  # Row of the random bits of durations of updates.


def worker_receives(run: Any, number: Any, worker: Any) -> None:
    """React to a message."""
    message, node = message_at(run, number), node_at(run, worker)
    if message.kind == BEGIN and node.ended == 0:
        node.begun, node.known, node.sharing, node.known_at = 1, message.terms, message.members, 0
        if run.rounds and terms_left(run, worker) == 0:
            leave(run, worker)
        else:
            node.awaits = 1
            pull(run, worker)
    elif message.kind == LEFT:
        node.known, node.sharing, node.known_at, node.asked_at = message.terms, message.members, node.asked_at, -1
        if node.awaits:
            go_on(run, worker)
    elif message.kind == REPLY and message.clock == node.pull_clock:
        node.replied, node.reply_version = 1, message.read
        node.reply_progress, node.reply_members = message.terms, message.members
        if node.awaits:
            go_on(run, worker)
    elif message.kind == STOP and node.ended == 0:
        node.stopping = 1
        if node.awaits or node.begun == 0:
            leave(run, worker)


def pull(run: Any, worker: Any) -> None:
    """Request parameters."""
    node = node_at(run, worker)
    forget_unseen(run, worker)
    node.pull_clock, node.replied = node.clock, 0
    found = new_message(run, PULL, 0)
    message_at(run, found).clock = node.clock
    send(run, found, worker, SERVER)


def go_on(run: Any, worker: Any) -> None:
    """Adopt parameters that have arrived, pull the next, and train, unless the worker is too far ahead."""
    node = node_at(run, worker)
    if node.pull_clock >= 0 and node.replied:
        adopt(run, worker)
    if node.pull_clock < 0 and node.own >= run.pull_every:
        pull(run, worker)
    terms = terms_left(run, worker)
    if terms == 0:
        report(run, worker)
        ask(run, worker)
    node.awaits = 1 if terms == 0 or (node.pull_clock >= 0 and node.unseen >= run.run_ahead) else 0
    if node.awaits == 0:
        node.wanted, node.terms, node.stride = 1, terms, node.members
        node.from_progress = node.progress + node.own * run.push_every * node.members


def adopt(run: Any, worker: Any) -> None:
    """Continue from the reply to the pull, plus the changes that were pushed since."""
    node = node_at(run, worker)
    node.slot, node.spare = node.spare, node.slot
    change = node.unseen_first
    while change >= 0:
        add_change(run, change, node.slot, np.float32(1))
        change = change_at(run, change).following
    node.version, node.progress, node.members = node.reply_version, node.reply_progress, node.reply_members
    node.own, node.fresh = node.unseen, min(1, node.unseen)
    node.pull_clock, node.replied = -1, 0
    forget_unseen(run, worker)


def forget_unseen(run: Any, worker: Any) -> None:
    """Drop the list of changes that the parameters on their way do not contain."""
    node = node_at(run, worker)
    change = node.unseen_first
    while change >= 0:
        following = change_at(run, change).following
        release(run, change)
        change = following
    node.unseen, node.unseen_bytes, node.unseen_first, node.unseen_last = 0, 0, -1, -1


def terms_left(run: Any, worker: Any) -> Any:
    """Return the number of terms of the next burst; 0 if none are left to the worker for now."""
    node = node_at(run, worker)
    if run.rounds:
        return max(0, min(run.push_every, run.quota - node.clock * run.push_every))
    return max(0, min(run.push_every, part(run, worker) - (node.drawn - node.known_at)))


def part(run: Any, worker: Any) -> Any:
    """Return the part of a worker in the terms that were left when it last heard of them."""
    node = node_at(run, worker)
    return -((node.known - run.goal) // node.sharing)


def trained(run: Any, worker: Any) -> None:
    """Push the change of a burst, report progress, and go on."""
    node = node_at(run, worker)
    found = new_message(run, PUSH, nbytes(run, node.change))
    push = message_at(run, found)
    push.change, push.clock, push.read, push.own, push.terms = (
        node.change,
        node.clock,
        node.version,
        node.own,
        node.terms,
    )
    send(run, found, worker, SERVER)
    node.clock += 1
    node.own += 1
    node.fresh = 1
    if node.pull_clock >= 0:
        remember_unseen(run, worker)
    node.drawn += node.terms
    node.report_terms += node.terms
    node.report_loss += node.loss
    node.report_clock, node.report_step = node.clock, node.step
    if node.report_terms * run.workers * run.reports >= run.epoch:
        report(run, worker)
    if run.rounds == 0 and run.requests * (node.drawn - node.known_at) >= part(run, worker):
        ask(run, worker)
    if node.stopping or (run.rounds and terms_left(run, worker) == 0):
        leave(run, worker)
    else:
        go_on(run, worker)


def remember_unseen(run: Any, worker: Any) -> None:
    """Remember the change just pushed, which the parameters on their way do not contain."""
    node = node_at(run, worker)
    change_at(run, node.change).references += 1
    change_at(run, node.change).following = -1
    if node.unseen_first < 0:
        node.unseen_first = node.change
    else:
        change_at(run, node.unseen_last).following = node.change
    node.unseen_last = node.change
    node.unseen += 1
    node.unseen_bytes += nbytes(run, node.change)


def report(run: Any, worker: Any) -> None:
    """Report the progress since the last report."""
    node = node_at(run, worker)
    if node.report_terms == 0:
        return
    found = new_message(run, REPORT, 0)
    message = message_at(run, found)
    message.terms, message.loss, message.clock = node.report_terms, node.report_loss, node.report_clock
    message.step = node.report_step
    node.report_terms, node.report_loss = 0, 0.0
    send(run, found, worker, COORDINATOR)


def ask(run: Any, worker: Any) -> None:
    """Ask how many terms are left, unless a reply is on its way."""
    node = node_at(run, worker)
    if node.asked_at < 0:
        node.asked_at = node.drawn
        report(run, worker)
        send(run, new_message(run, ASK, 0), worker, COORDINATOR)


def leave(run: Any, worker: Any) -> None:
    """End: no more changes follow."""
    node = node_at(run, worker)
    node.ended, node.awaits, node.pull_clock = 1, 0, -1
    report(run, worker)
    send(run, new_message(run, LEAVE, 0), worker, SERVER)
    send(run, new_message(run, STOPPED, 0), worker, COORDINATOR)


def begin_burst(run: Any, worker: Any) -> None:
    """Schedule the end of the burst that a worker wants, unless too many of its messages are unacknowledged.

    Its result is computed before the next event.
    """
    node = node_at(run, worker)
    if node.wanted == 0 or window_full(run, worker):
        return
    each = (
        draw(bits_of(bit_addresses(run), UPDATES), run.update_kind, run.update_first, run.update_second) * node.factor
    )
    seconds = node.terms * each + node.terms * node.delay
    node.wanted = 0
    node.bursts += 1
    node.busy += seconds
    schedule(run, run.now + seconds, TRAINED, worker, 0, 0)
    run.training = worker
