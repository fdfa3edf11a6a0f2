"""Tables of a compiled simulation: one record for the run, and one for each node, channel, message, event and change.

A node is a number: the coordinator, the server, and then the workers. Indices of -1 refer to nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

COORDINATOR, SERVER, FIRST_WORKER = 0, 1, 2

# Kinds of messages, and their names in records.
READY, BEGIN, PULL, REPLY, PUSH, REPORT, ASK, LEFT, REQUEST, PARAMETERS, STOP, STOPPED, LEAVE, ACK = range(14)
MESSAGE_NAMES = (
    "Ready", "Begin", "Pull", "PullReply", "Push", "Progress", "TermsRequest", "TermsReply", "ParametersRequest",
    "ParametersReply", "Stop", "Stopped", "Leave", "Ack",
)  # fmt: skip

# Kinds of distributions of durations, each with two parameters.
ALWAYS, NORMAL, LOG_NORMAL, EXPONENTIAL, HEAVY_TAIL = range(5)

# Kinds of events. TIMER, EVALUATED and INTERRUPTED are for the coordinator's role, which is not compiled.
STARTED, ARRIVED, ACKNOWLEDGED, TRAINED, RESEND, TIMER, EVALUATED, INTERRUPTED, DELIVERED = range(9)

# Reasons for which the loop returns: CALL: the coordinator's role has to react. FULL: a table has too little room.
# RATES and ORDER: step sizes, or the rows of an epoch, are missing. PAUSED: many events have passed. EMPTY: no event is
# left. FINISHED: the coordinator's role has ended the run.
GO_ON, CALL, FULL, RATES, ORDER, PAUSED, EMPTY, FINISHED = range(8)

BLOCK = 32  # Numbers in one block of a change.
NUMBER_BYTES = 8  # Bytes of one number of a sparse change, with its index.

EVENT = np.dtype(
    [("when", "f8"), ("count", "i8"), ("sequence", "i8"), ("number", "i8"), ("kind", "i8"), ("at", "i8")], align=True
)

MESSAGE = np.dtype(
    [
        ("sequence", "i8"), ("size", "i8"), ("clock", "i8"), ("read", "i8"), ("own", "i8"), ("terms", "i8"),
        ("members", "i8"), ("loss", "f8"), ("step", "f8"), ("kind", "i8"), ("following", "i8"), ("change", "i8"),
        ("arrived", "i8"),
    ],
    align=True,
)  # fmt: skip

CHANNEL = np.dtype(
    [
        ("next", "i8"),  # number of the next message
        ("received", "i8"),  # messages below this number are acknowledged
        ("mark", "i8"),  # messages below this number were sent before the sender's timer last fired
        ("expected", "i8"),  # number of the message that is delivered next
        ("held", "i8"),  # messages that have arrived and are not delivered
        ("first", "i8"), ("last", "i8"),  # first and last message that is not acknowledged
        ("awaited", "i8"),  # the message that is delivered next, if it is sent
        ("sender", "i8"), ("receiver", "i8"),
    ],
    align=True,
)  # fmt: skip

CHANGE = np.dtype([("first", "i8"), ("count", "i8"), ("references", "i8"), ("following", "i8")], align=True)

NODE = np.dtype(
    [
        # Network.
        ("uplink", "f8"), ("unacknowledged", "i8"), ("resent", "i8"), ("timer", "i8"), ("unpersisted", "i8"),
        ("by_name", "i8"),  # the node at this place in the order of names
        ("latency_factor", "f8"),
        # Parameters of a worker: the slots of those that it has and of those that it pulls.
        ("slot", "i8"), ("spare", "i8"), ("version", "i8"), ("progress", "i8"), ("members", "i8"), ("fresh", "i8"),
        ("reply_version", "i8"), ("reply_progress", "i8"), ("reply_members", "i8"),
        ("clock", "i8"), ("own", "i8"), ("pull_clock", "i8"), ("replied", "i8"),
        ("unseen", "i8"), ("unseen_bytes", "i8"), ("unseen_first", "i8"), ("unseen_last", "i8"),
        ("begun", "i8"), ("awaits", "i8"), ("stopping", "i8"), ("ended", "i8"),
        # Terms of a worker.
        ("drawn", "i8"), ("known", "i8"), ("sharing", "i8"), ("known_at", "i8"), ("asked_at", "i8"),
        ("report_terms", "i8"), ("report_loss", "f8"), ("report_clock", "i8"), ("report_step", "f8"),
        # The burst of a worker.
        ("wanted", "i8"), ("terms", "i8"), ("from_progress", "i8"), ("stride", "i8"),
        ("change", "i8"), ("loss", "f8"), ("step", "f8"),
        ("bursts", "i8"), ("busy", "f8"), ("factor", "f8"), ("delay", "f8"),
        # What the server knows of a worker.
        ("listed", "i8"), ("at_clock", "i8"), ("waits", "i8"), ("pending", "i8"), ("pending_read", "i8"),
        ("pending_own", "i8"), ("pending_terms", "i8"),
    ],
    align=True,
)  # fmt: skip

# A command of the coordinator's role: a message to a node, or an event for itself after some seconds.
COMMAND = np.dtype(
    [("after", "f8"), ("number", "i8"), ("terms", "i8"), ("members", "i8"), ("event", "i8"), ("kind", "i8"),
     ("to", "i8")],
    align=True,
)  # fmt: skip

TRAFFIC = np.dtype([("messages", "i8"), ("bytes", "i8"), ("receipts", "i8"), ("lost", "i8")], align=True)

# Tables whose addresses and lengths are in the record of the run, so that functions pass on that record alone.
NAMES = (
    "channels", "messages", "events", "changes", "block_numbers", "block_values", "block_following", "commands",
    "traffic", "values", "delays", "lags", "clocks", "waiting", "peers", "rates", "burst_rates", "orders", "epochs",
    "stamps", "touched", "row_starts", "columns", "burst_rows", "trained", "beside", "bits",
)  # fmt: skip

RUN = np.dtype(
    [
        ("nodes_address", "i8"), ("nodes", "i8"),
        *((f"{name}_{what}", "i8") for name in NAMES for what in ("address", "length")),
        ("now", "f8"), ("count", "i8"), ("events", "i8"),
        # Numbers of records in use, first free records, and numbers of records that were ever in use.
        ("queued", "i8"), ("messages", "i8"), ("free_message", "i8"), ("fresh_message", "i8"),
        ("changes", "i8"), ("free_change", "i8"), ("fresh_change", "i8"),
        ("blocks", "i8"), ("free_block", "i8"), ("fresh_block", "i8"), ("delays", "i8"),
        # Options of the run.
        ("workers", "i8"), ("size", "i8"), ("each", "i8"), ("epoch", "i8"), ("goal", "i8"),
        ("quota", "i8"), ("window", "i8"), ("patience", "f8"), ("push_every", "i8"), ("pull_every", "i8"),
        ("run_ahead", "i8"), ("bound", "i8"), ("reports", "i8"), ("requests", "i8"), ("mean", "i8"), ("rounds", "i8"),
        ("bandwidth", "f8"), ("loss", "f8"), ("duplication", "f8"), ("reordering", "f8"),
        ("update_kind", "i8"), ("update_first", "f8"), ("update_second", "f8"),
        ("latency_kind", "i8"), ("latency_first", "f8"), ("latency_second", "f8"),
        ("rows", "i8"), ("span", "i8"), ("alike", "i8"), ("most_blocks", "i8"), ("stamp", "i8"),
        ("descend", "i8"), ("order_bytes", "i8"), ("column_bytes", "i8"),
        # The server.
        ("begun", "i8"), ("version", "i8"), ("server_progress", "i8"), ("ended", "i8"), ("listed", "i8"),
        ("least", "i8"), ("answered_at", "i8"), ("round", "i8"), ("pending", "i8"), ("unpersisted", "i8"),
        ("waiting", "i8"), ("request", "i8"), ("request_last", "i8"),
        # The coordinator: what it has counted, the terms at which its role has to react, and what its role has decided.
        ("terms", "i8"), ("coordinator_loss", "f8"), ("clock", "i8"), ("step", "f8"), ("heard", "i8"),
        ("due", "i8"), ("loss_limit", "f8"), ("stopping", "i8"), ("training_workers", "i8"),
        # Why the loop has returned, and where it goes on.
        ("event", "i8"), ("message", "i8"), ("sender", "i8"), ("needed", "i8"), ("open", "i8"), ("called", "i8"),
        ("finished", "i8"), ("commands", "i8"), ("training", "i8"),
    ],
    align=True,
)  # fmt: skip

Table = NDArray[Any]


class Tables(NamedTuple):
    """All tables of a compiled simulation, with the records and arrays to which the run's addresses refer."""

    run: Table
    nodes: Table
    channels: Table  # to the coordinator, from it, to the server, from it: one of each for every node
    messages: Table
    events: Table  # a binary heap
    changes: Table
    block_numbers: Table
    block_values: Table
    block_following: Table
    commands: Table
    traffic: Table  # by kind of message
    values: Table  # parameters in slots: the numbers of each feature, and then those beside all features
    delays: Table  # pairs of a worker and the staleness of one of its changes
    lags: Table  # number of pulls by lag, with a bound on staleness
    clocks: Table  # number of workers at each clock, with a bound on staleness
    waiting: Table  # workers whose pulls the server has not answered, in the order of their pulls
    peers: Table  # nodes in the order in which the coordinator and the server first sent to them, and their number
    rates: Table  # step sizes by the number of updates of all workers
    burst_rates: Table
    orders: Table  # rows of all workers in the order of an epoch, for some epochs
    epochs: Table  # these epochs
    stamps: Table  # the last burst that touched a feature
    touched: Table  # features that a burst has touched
    row_starts: Table  # place of the first entry of each row
    columns: Table  # feature of each entry
    burst_rows: Table  # rows of a burst
    trained: Table  # parameters that the descent changes: those of features, and
    beside: Table  # those beside all features
    bits: Table  # addresses of the generators of random bits: of durations of updates, and of messages
