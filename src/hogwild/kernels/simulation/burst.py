"""Bursts of workers: rows, step sizes, the descent of the problem, and what it has changed.

The descent is the C function that a real worker calls. It changes the parameters of the features of its rows, and those
beside all features, in arrays to which they are copied before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.argument_record import call_with_record
from hogwild.kernels.simulation.sparse_changes import append, new_change
from hogwild.kernels.simulation.table_access import (
    all_parameters,
    burst_step_sizes,
    entry_columns,
    feature_stamps,
    long_entry_columns,
    long_row_numbers,
    node_at,
    numbers_beside,
    ordered_epochs,
    row_numbers,
    row_orders,
    row_starts,
    step_sizes,
    touched_features,
    trained_numbers,
)
from hogwild.kernels.simulation.tables import FIRST_WORKER, GO_ON, ORDER, RATES

# mypy: disable-error-code="call-arg, unreachable"


def train(run: Any, descent: Any) -> Any:
    """Compute the burst that a worker has begun; return GO_ON, or what is missing for it."""
    node = node_at(run, run.training)
    terms = node.terms
    last = node.from_progress + node.stride * (terms - 1)
    if last >= run.rates_length:
        run.needed = last
        return RATES
    shard = run.training - FIRST_WORKER
    few, more = run.rows // run.workers, run.rows % run.workers
    rows, begin = few + (1 if shard < more else 0), shard * few + min(shard, more)
    for epoch in range(node.drawn // rows, (node.drawn + terms - 1) // rows + 1):
        if place_of(run, epoch) < 0:
            run.needed = epoch
            return ORDER
    find_rates(run, node)
    find_rows(run, node, rows, begin)
    touched = copy_touched(run, node)
    done, loss = 0, 0.0
    while done < terms:
        many = min(terms - done, rows - (node.drawn + done) % rows)  # The next epoch is another chunk.
        loss += call_with_record(run.descend, descent, done, done + many, 0)
        done += many
    node.loss = loss
    note_change(run, node, touched)
    run.training = -1
    return GO_ON


def find_rates(run: Any, node: Any) -> None:
    """Find the step sizes of the terms of a burst, and their mean."""
    first, stride, terms = node.from_progress, node.stride, node.terms
    # As in hogwild.training.row_trainer: beyond a table of step sizes, several terms have the same one.
    alike = run.alike if first % run.span + stride * (terms - 1) >= run.span else 1
    total = 0.0
    for k in range(terms):
        rate = step_sizes(run)[first + stride * (k - k % alike)]
        burst_step_sizes(run)[k] = rate
        total += rate
    node.step = np.float32(total / terms)


def find_rows(run: Any, node: Any, rows: Any, begin: Any) -> None:
    """Find the rows of a burst."""
    for k in range(node.terms):
        drawn = node.drawn + k
        row = row_orders(run)[run.rows * place_of(run, drawn // rows) + begin + drawn % rows]
        if run.order_bytes == 4:
            row_numbers(run)[k] = row
        else:
            long_row_numbers(run)[k] = row


def place_of(run: Any, epoch: Any) -> Any:
    """Return where the order of an epoch is; -1 if it is not there."""
    place = epoch % run.epochs_length
    return place if ordered_epochs(run)[place] == epoch else -1


def copy_touched(run: Any, node: Any) -> Any:
    """Copy the numbers that a burst may change to the arrays of the descent; return for how many features."""
    values, first = all_parameters(run), run.size * node.slot
    run.stamp += 1
    touched = 0
    for k in range(node.terms):
        row = row_numbers(run)[k] if run.order_bytes == 4 else long_row_numbers(run)[k]
        for j in range(row_starts(run)[row], row_starts(run)[row + 1]):
            u = np.int64(entry_columns(run)[j] if run.column_bytes == 4 else long_entry_columns(run)[j])
            if feature_stamps(run)[u] != run.stamp:
                feature_stamps(run)[u] = run.stamp
                touched_features(run)[touched] = u
                touched += 1
                for c in range(u * run.each, (u + 1) * run.each):
                    trained_numbers(run)[c] = values[first + c]
    for c in range(run.each):
        numbers_beside(run)[c] = values[first + run.size - run.each + c]
    return touched


def note_change(run: Any, node: Any, touched: Any) -> None:
    """Note what a burst has changed, and copy it back to the parameters of the worker."""
    values, first = all_parameters(run), run.size * node.slot
    node.change = new_change(run)
    for k in range(touched):
        u = touched_features(run)[k]
        for c in range(u * run.each, (u + 1) * run.each):
            note_number(run, node, values, first, c, trained_numbers(run)[c])
    for c in range(run.each):
        note_number(run, node, values, first, run.size - run.each + c, numbers_beside(run)[c])


def note_number(run: Any, node: Any, values: Any, first: Any, index: Any, value: Any) -> None:
    """Note a number of a worker's parameters, if it has changed."""
    before = values[first + index]
    if value != before:
        append(run, node.change, index, value - before)
        values[first + index] = value
