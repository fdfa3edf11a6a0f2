"""Changes of parameters: lists of blocks of numbers and their indices, counted by reference."""

from __future__ import annotations

from typing import Any

from hogwild.kernels.simulation.table_access import (
    all_parameters,
    block_numbers,
    block_values,
    change_at,
    following_blocks,
)
from hogwild.kernels.simulation.tables import BLOCK, NUMBER_BYTES


def new_change(run: Any) -> Any:
    """Return an empty change with one reference."""
    found = run.free_change
    if found >= 0:
        run.free_change = change_at(run, found).following
    else:
        found = run.fresh_change
        run.fresh_change += 1
    run.changes += 1
    change = change_at(run, found)
    change.first, change.count, change.references, change.following = -1, 0, 1, -1
    return found


def append(run: Any, number: Any, index: Any, value: Any) -> None:
    """Append a number to a change. Blocks are in reverse order."""
    change = change_at(run, number)
    place = change.count % BLOCK
    if place == 0:
        block = new_block(run)
        following_blocks(run)[block] = change.first
        change.first = block
    block_numbers(run)[BLOCK * change.first + place] = index
    block_values(run)[BLOCK * change.first + place] = value
    change.count += 1


def new_block(run: Any) -> Any:
    """Return a free block."""
    run.blocks += 1
    found = run.free_block
    if found >= 0:
        run.free_block = following_blocks(run)[found]
        return found
    run.fresh_block += 1
    return run.fresh_block - 1


def release(run: Any, number: Any) -> None:
    """Drop a reference to a change, and the change with its last reference."""
    change = change_at(run, number)
    change.references -= 1
    if change.references > 0:
        return
    block = change.first
    while block >= 0:
        following = following_blocks(run)[block]
        following_blocks(run)[block] = run.free_block
        run.free_block = block
        run.blocks -= 1
        block = following
    change.following = run.free_change
    run.free_change = number
    run.changes -= 1


def add_change(run: Any, number: Any, slot: Any, weight: Any) -> None:
    """Add a multiple of a change to the parameters of a slot."""
    change, values, first = change_at(run, number), all_parameters(run), run.size * slot
    numbers, found = block_numbers(run), block_values(run)
    # The blocks are in reverse order, so that the first one is the one that may not be full.
    block, many = change.first, (change.count - 1) % BLOCK + 1
    while block >= 0:
        for k in range(BLOCK * block, BLOCK * block + many):
            values[first + numbers[k]] += weight * found[k]
        block, many = following_blocks(run)[block], BLOCK


def nbytes(run: Any, number: Any) -> Any:
    """Return the size of a change in bytes, sparse or dense, whichever is less."""
    return min(NUMBER_BYTES * change_at(run, number).count, 4 * run.size)
