"""Access to the tables of a compiled simulation by the addresses in the record of the run.

Functions pass this one record on. To pass twenty tables would take longer than what the functions do.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from hogwild.kernels.simulation.tables import BLOCK, CHANGE, CHANNEL, COMMAND, EVENT, MESSAGE, NODE, TRAFFIC
from hogwild.kernels.work_queue import pointer

# mypy: disable-error-code="no-untyped-call, call-arg"


def node_at(run: Any, number: Any) -> Any:
    """Return the record of a node."""
    return numba.carray(pointer(run.nodes_address), (run.nodes,), NODE)[number]


def channel_at(run: Any, number: Any) -> Any:
    """Return the record of a channel."""
    return numba.carray(pointer(run.channels_address), (4 * run.nodes,), CHANNEL)[number]


def message_at(run: Any, number: Any) -> Any:
    """Return the record of a message."""
    return numba.carray(pointer(run.messages_address), (run.messages_length,), MESSAGE)[number]


def change_at(run: Any, number: Any) -> Any:
    """Return the record of a change."""
    return numba.carray(pointer(run.changes_address), (run.changes_length,), CHANGE)[number]


def command_at(run: Any, number: Any) -> Any:
    """Return the record of a command."""
    return numba.carray(pointer(run.commands_address), (run.commands_length,), COMMAND)[number]


def traffic_at(run: Any, kind: Any) -> Any:
    """Return the traffic of a kind of message."""
    return numba.carray(pointer(run.traffic_address), (run.traffic_length,), TRAFFIC)[kind]


def event_queue(run: Any) -> Any:
    """Return the heap of events."""
    return numba.carray(pointer(run.events_address), (run.events_length,), EVENT)


def block_numbers(run: Any, block: Any) -> Any:
    """Return the indices of a block of a change."""
    return numba.carray(pointer(run.block_numbers_address + 4 * BLOCK * block), (BLOCK,), np.uint32)


def block_values(run: Any, block: Any) -> Any:
    """Return the numbers of a block of a change."""
    return numba.carray(pointer(run.block_values_address + 4 * BLOCK * block), (BLOCK,), np.float32)


def following_blocks(run: Any) -> Any:
    """Return the block that follows each block."""
    return numba.carray(pointer(run.block_following_address), (run.block_following_length,), np.int64)


def parameters(run: Any, slot: Any) -> Any:
    """Return the parameters of a slot: a row for each feature, and one for the intercept."""
    address = run.values_address + 4 * run.size * slot
    return numba.carray(pointer(address), (run.features + 1, run.width), np.float32)


def flat_parameters(run: Any, slot: Any) -> Any:
    """Return the parameters of a slot as a vector."""
    return numba.carray(pointer(run.values_address + 4 * run.size * slot), (run.size,), np.float32)


def staleness_log(run: Any) -> Any:
    """Return pairs of a worker and the staleness of one of its changes."""
    return numba.carray(pointer(run.delays_address), (run.delays_length, 2), np.int64)


def lag_counts(run: Any) -> Any:
    """Return the number of pulls by lag."""
    return numba.carray(pointer(run.lags_address), (run.lags_length,), np.int64)


def clock_counts(run: Any) -> Any:
    """Return the number of workers at each clock."""
    return numba.carray(pointer(run.clocks_address), (run.clocks_length,), np.int64)


def waiting_workers(run: Any) -> Any:
    """Return the workers whose pulls are not answered."""
    return numba.carray(pointer(run.waiting_address), (run.nodes,), np.int64)


def known_peers(run: Any) -> Any:
    """Return the nodes in the order in which the coordinator and the server first sent to them, and their number."""
    return numba.carray(pointer(run.peers_address), (2, run.nodes + 1), np.int64)


def step_sizes(run: Any) -> Any:
    """Return step sizes by the number of updates of all workers."""
    return numba.carray(pointer(run.rates_address), (run.rates_length,), np.float32)


def burst_step_sizes(run: Any) -> Any:
    """Return the step sizes of a burst."""
    return numba.carray(pointer(run.burst_rates_address), (run.push_every,), np.float32)


def row_order(run: Any, place: Any) -> Any:
    """Return the rows of all workers in the order of an epoch."""
    return numba.carray(pointer(run.orders_address + 8 * run.rows * place), (run.rows,), np.int64)


def ordered_epochs(run: Any) -> Any:
    """Return the epochs whose rows are there in order."""
    return numba.carray(pointer(run.epochs_address), (run.epochs_length,), np.int64)


def feature_stamps(run: Any) -> Any:
    """Return the number of the last burst that touched each feature."""
    return numba.carray(pointer(run.stamps_address), (run.features + 1,), np.int64)


def touched_features(run: Any) -> Any:
    """Return the features that a burst has touched."""
    return numba.carray(pointer(run.touched_address), (run.touched_length,), np.int64)


def numbers_before(run: Any) -> Any:
    """Return the numbers of these features before the burst."""
    return numba.carray(pointer(run.before_address), (run.touched_length, run.width), np.float32)


def bit_addresses(run: Any) -> Any:
    """Return the addresses of two generators of random bits."""
    return numba.carray(pointer(run.bits_address), (2, 4), np.uint64)
