"""Bursts of workers: rows, step sizes, the descent of the problem, and what it has changed.

``descend`` and ``column`` are bound by :func:`hogwild.kernels.linear_build.event_loop`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.row_layouts import span
from hogwild.kernels.simulation.sparse_changes import append, new_change
from hogwild.kernels.simulation.table_access import (
    burst_step_sizes,
    feature_stamps,
    node_at,
    numbers_before,
    ordered_epochs,
    parameters,
    row_orders,
    step_sizes,
    touched_features,
)
from hogwild.kernels.simulation.tables import FIRST_WORKER, GO_ON, ORDER, RATES

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821


def train(run: Any, data: Any, rest: Any) -> Any:
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
    state = parameters(run, node.slot)
    touched = remember(run, data, node, rows, begin, state)
    done, loss = 0, 0.0
    while done < terms:
        epoch, first = (node.drawn + done) // rows, (node.drawn + done) % rows
        many = min(terms - done, rows - first)
        start = run.rows * place_of(run, epoch) + begin + first
        order = row_orders(run)[start : start + many]
        rates = burst_step_sizes(run)[done : done + many]
        loss += descend(*data, order, 0, 1, rates, state[: run.features], state[run.features :], *rest)
        done += many
    node.loss = loss
    node.change = new_change(run)
    for k in range(touched):
        u = touched_features(run)[k]
        for c in range(run.width):
            if state[u, c] != numbers_before(run)[run.width * k + c]:
                append(run, node.change, u * run.width + c, state[u, c] - numbers_before(run)[run.width * k + c])
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


def remember(run: Any, data: Any, node: Any, rows: Any, begin: Any, state: Any) -> Any:
    """Remember the numbers that a burst may change, each once; return for how many features."""
    indptr, indices = data[0], data[1]
    run.stamp += 1
    touched = 0
    for k in range(node.drawn, node.drawn + node.terms):
        row = row_orders(run)[run.rows * place_of(run, k // rows) + begin + k % rows]
        start, end = span(indptr, row)
        for j in range(start, end):
            u = np.int64(column(indices, j, start))
            if feature_stamps(run)[u] != run.stamp:
                feature_stamps(run)[u] = run.stamp
                touched_features(run)[touched] = u
                for c in range(run.width):
                    numbers_before(run)[run.width * touched + c] = state[u, c]
                touched += 1
    touched_features(run)[touched] = run.features
    for c in range(run.width):
        numbers_before(run)[run.width * touched + c] = state[run.features, c]
    return touched + 1


def place_of(run: Any, epoch: Any) -> Any:
    """Return where the order of an epoch is; -1 if it is not there."""
    for place in range(run.epochs_length):
        if ordered_epochs(run)[place] == epoch:
            return place
    return -1
