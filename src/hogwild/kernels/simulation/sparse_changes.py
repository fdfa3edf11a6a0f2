"""Changes of parameters: lists of blocks of numbers and their indices, counted by reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.simulation.tables import BLOCK, NUMBER_BYTES


def new_change(t: Any) -> Any:
    """Return an empty change with one reference."""
    run = t.run[0]
    found = run.free_change
    if found >= 0:
        run.free_change = t.changes[found].following
    else:
        found = run.fresh_change
        run.fresh_change += 1
    run.changes += 1
    change = t.changes[found]
    change.first, change.count, change.references, change.following = -1, 0, 1, -1
    return found


def append(t: Any, number: Any, index: Any, value: Any) -> None:
    """Append a number to a change. Blocks are in reverse order."""
    change = t.changes[number]
    place = change.count % BLOCK
    if place == 0:
        block = new_block(t)
        t.block_following[block] = change.first
        change.first = block
    t.block_numbers[change.first, place] = index
    t.block_values[change.first, place] = value
    change.count += 1


def new_block(t: Any) -> Any:
    """Return a free block."""
    run = t.run[0]
    run.blocks += 1
    found = run.free_block
    if found >= 0:
        run.free_block = t.block_following[found]
        return found
    run.fresh_block += 1
    return run.fresh_block - 1


def release(t: Any, number: Any) -> None:
    """Drop a reference to a change, and the change with its last reference."""
    run, change = t.run[0], t.changes[number]
    change.references -= 1
    if change.references > 0:
        return
    block = np.int64(change.first)
    while block >= 0:
        following = np.int64(t.block_following[block])
        t.block_following[block] = run.free_block
        run.free_block = block
        run.blocks -= 1
        block = following
    change.following = run.free_change
    run.free_change = number
    run.changes -= 1


def add_change(t: Any, number: Any, slot: Any, weight: Any) -> None:
    """Add a multiple of a change to the parameters of a slot."""
    change, values = t.changes[number], t.flat[slot]
    # The blocks are in reverse order, so that the first one is the one that may not be full.
    block, many = np.int64(change.first), (np.int64(change.count) - 1) % BLOCK + 1
    while block >= 0:
        numbers, found = t.block_numbers[block], t.block_values[block]
        for k in range(many):
            values[numbers[k]] += weight * found[k]
        block, many = np.int64(t.block_following[block]), BLOCK


def nbytes(t: Any, number: Any) -> Any:
    """Return the size of a change in bytes, sparse or dense, whichever is less."""
    run = t.run[0]
    return min(NUMBER_BYTES * np.int64(t.changes[number].count), 4 * run.size)
