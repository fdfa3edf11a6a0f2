"""Evaluation of rows in two parts: the scores of a block of rows, and the sums of their losses.

The loop over the rows is compiled for each layout and precision of the data, and not for each loss. For each block of
scores it calls a C function at an address, which is compiled for each loss, and not for each layout. So a further loss
compiles a small function only, and predictions need no loop of their own.

The functions are templates, as in :mod:`hogwild.kernels.linear`: ``decide``, ``cost``, ``hit``, ``number_of_outputs``,
``loss`` and ``slopes`` stand for functions that :func:`hogwild.jit.specialise` and :func:`hogwild.jit.entry` bind.
"""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hogwild.data.csr import Array, CSRRows
from hogwild.data.dataset import EpochPlan
from hogwild.jit import Function, bind, entry, specialise
from hogwild.kernels.atomics import fetch_add, lock, unlock
from hogwild.kernels.work_queue import GATE, LAST, LEFT, LIMIT, NEXT, PARTS, bounds, new_queue, new_tally, pointer

# mypy: disable-error-code="name-defined, call-arg, unreachable, no-untyped-call, attr-defined, var-annotated"
# mypy: disable-error-code="no-any-return"
# ruff: noqa: F821

# Number of scores of a block, which stay in a core's cache.
BLOCK = 2048
# Types of the arguments of :func:`add_losses`.
ARGUMENTS = (*(types.intp,) * 12, types.float64)
_NO_BYTES = np.empty(0, np.uint8)
_NO_BYTES.flags.writeable = False
# Labels, weights, weights of classes and parameter of a loss, where there is no loss.
NO_TARGETS = _NO_BYTES, 0, _NO_BYTES, 0, np.empty(0), 0.0


def score_queue(
    queue: Any, starts: Any, tally: Any, data: Any, order: Any, parameters: Any, scores: Any, targets: Any, losses: Any,
    sums: Any,
) -> None:  # fmt: skip
    """Score the rows of claimed parts, one block of as many rows as ``scores`` at a time, and add up their losses.

    Each part has a row of ``sums``, whose last entry is the number of rows. ``losses`` is the address of the C function
    of a loss. If it is 0, the only result is the scores of the last block. ``targets`` are arguments of the C function:
    labels and weights as bytes, so that this loop is compiled once for both precisions, and the bytes of each number.
    """
    unlock(queue, GATE)
    labels, label_bytes, weights, weight_bytes, class_weights, parameter = targets
    parts, last, left, block = queue[PARTS], queue[LAST], tally[LIMIT], scores.shape[0]
    while left > 0:
        claimed = fetch_add(queue, NEXT, 1)
        if claimed >= last:
            break
        low, high = bounds(starts, parts, claimed)
        for first in range(low, high, block):
            some = order[first : min(first + block, high)]
            decide(*data, some, scores, *parameters)
            if losses != 0:
                call(
                    losses, some.size, scores.shape[1], scores, some, some.itemsize, labels, label_bytes, weights,
                    weight_bytes, class_weights, class_weights.size, sums[claimed], parameter,
                )  # fmt: skip
        sums[claimed, sums.shape[1] - 1] = high - low
        left -= 1
    tally[LEFT] = left <= 0
    lock(queue, GATE)


@intrinsic
def call(typingctx: Any, function: Any, *arguments: Any) -> Any:
    """Call the C function at an address, with integers of 64 bits, numbers of double precision, and arrays."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        given = []
        for number, kind in enumerate(signature_.args[1]):
            value = builder.extract_value(args[1], number)
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, value)
                value = builder.ptrtoint(array.data, context.get_value_type(types.intp))
            given.append(value)
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in given]).as_pointer()
        builder.call(builder.inttoptr(args[0], kind), given)
        return context.get_dummy_value()

    return types.void(types.intp, types.Tuple(arguments)), generate


def add_losses(
    rows: Any, outputs_: Any, scores_: Any, order: Any, order_bytes: Any, labels: Any, label_bytes: Any, weights: Any,
    weight_bytes: Any, class_weights_: Any, classes: Any, sums_: Any, parameter: Any,
) -> None:  # fmt: skip
    """Add the losses of scored rows to five sums; sizes and addresses of arrays are given.

    The sums are: weighted loss, weight, weighted hits (or squared error), weighted label, weighted squared label. Label
    and weight of a row are at its number. They have 4 or 8 bytes. Where every row weighs one, weights have 0 bytes.
    """
    outputs = number_of_outputs(outputs_)
    scores = numba.carray(pointer(scores_), (rows, outputs), np.float64)
    class_weights = numba.carray(pointer(class_weights_), (classes,), np.float64)
    sums = numba.carray(pointer(sums_), (5,), np.float64)
    single, slope = np.empty(outputs, np.float32), np.empty(outputs, np.float64)
    # Local sums avoid writes to ``sums``, whose cache line another worker may share.
    lost, weighed, hits, labelled, squared = sums[0], sums[1], sums[2], sums[3], sums[4]
    for at in range(rows):
        for k in range(outputs):
            single[k] = scores[at, k]
        i = row_at(order, order_bytes, at)
        y = number_at(labels, label_bytes, i)
        weight = number_at(weights, weight_bytes, i) if weight_bytes else 1.0
        if label_bytes == 4:
            # The arithmetic has the precision of the labels.
            lost += weight * cost(single, np.float32(y), parameter, class_weights, slope)
            hits += weight * hit(single, np.float32(y))
        else:
            lost += weight * cost(single, y, parameter, class_weights, slope)
            hits += weight * hit(single, y)
        weighed += weight
        labelled += weight * y
        squared += weight * y * y
    sums[0], sums[1], sums[2], sums[3], sums[4] = lost, weighed, hits, labelled, squared


def row_at(address: Any, size: Any, at: Any) -> Any:
    """Return a row number of an array of 4 or 8 bytes per number."""
    if size == 4:
        return np.uint64(numba.carray(pointer(address), (1,), np.uint32)[at])
    return numba.carray(pointer(address), (1,), np.uint64)[at]


def number_at(address: Any, size: Any, i: Any) -> Any:
    """Return a number of an array of 4 or 8 bytes per number."""
    if size == 4:
        return float(numba.carray(pointer(address), (1,), np.float32)[i])
    return numba.carray(pointer(address), (1,), np.float64)[i]


def one_output(outputs: Any) -> int:
    """Return 1, so that the compiler knows the number of outputs."""
    return 1


def all_outputs(outputs: Any) -> Any:
    """Return the number of outputs of a sheet."""
    return outputs


def one_cost(scores: Any, y: float, parameter: float, class_weights: Any, slope: Any) -> float:
    """Return the loss of a model with one output."""
    cost, _ = loss(float(scores[0]), y, parameter)
    return cost * class_weights[1 if y > 0 else 0]


def many_cost(scores: Any, y: float, parameter: float, class_weights: Any, slope: Any) -> float:
    """Return the loss of a model with one output per class."""
    return slopes(scores, int(y), parameter, class_weights, slope)


def one_slope(scores: Any, labels: Any, parameter: float, class_weights: Any, costs: Any, found: Any) -> None:
    """Write the loss of each row and its derivative by the row's only score."""
    for i in range(costs.size):
        y = float(labels[i])
        weight = class_weights[1 if y > 0 else 0]
        cost, slope = loss(float(scores[i, 0]), y, parameter)
        costs[i], found[i, 0] = weight * cost, weight * slope


def many_slopes(scores: Any, labels: Any, parameter: float, class_weights: Any, costs: Any, found: Any) -> None:
    """Write the loss of each row and its derivatives by the row's scores, one per class."""
    for i in range(costs.size):
        costs[i] = slopes(scores[i], int(labels[i]), parameter, class_weights, found[i])


def same_sign(scores: Any, y: float) -> float:
    """Return 1 if the score has the label's sign, else 0; a zero score counts as negative, as in prediction."""
    return 1.0 if (scores[0] > 0) == (y > 0) else 0.0


def largest_is(scores: Any, y: float) -> float:
    """Return 1 if the label's class has the largest score, else 0."""
    best = 0
    for k in range(1, scores.size):
        if scores[k] > scores[best]:
            best = k
    return 1.0 if best == int(y) else 0.0


def squared_error(scores: Any, y: float) -> float:
    """Return the squared error of a score that is itself the prediction."""
    error = float(scores[0]) - y
    return error * error


def squared_error_of_mean(scores: Any, y: float) -> float:
    """Return the squared error of a score whose exponential is the prediction."""
    error = np.exp(float(scores[0])) - y
    return error * error


HITS: dict[str, Function] = {
    "signs": same_sign,
    "classes": largest_is,
    "identity": squared_error,
    "exp": squared_error_of_mean,
}


@functools.cache
def losses(loss: Function | None, slopes: Function | None, hit: str, keep: bool) -> Any:
    """Return the C function that adds up the losses of one output (``loss``) or of one output per class (``slopes``).

    ``hit`` is the kind of the other sum: "signs", "classes", "identity" or "exp".
    """
    cost = bind(one_cost, loss=loss) if loss else bind(many_cost, slopes=_given(slopes))
    outputs = one_output if loss else all_outputs
    return entry(add_losses, ARGUMENTS, cache=keep, cost=cost, hit=HITS[hit], number_of_outputs=outputs)


@functools.cache
def slopes(loss: Function | None, slopes: Function | None, keep: bool) -> Any:
    """Return the compiled function that computes the losses of rows from their scores, and their derivatives."""
    if loss:
        return specialise(one_slope, cache=keep, loss=loss)
    return specialise(many_slopes, cache=keep, slopes=_given(slopes))


def _given(slopes: Function | None) -> Function:
    assert slopes is not None
    return slopes


def scoring(decide: Function) -> Any:
    """Return the compiled loop that scores rows with ``decide(indptr, indices, values, order, scores, ...)``."""
    return specialise(score_queue, decide=decide)


def evaluate_parts(
    kernel: Any, whole: EpochPlan, queue: Array, tally: Array, sums: Array, parameters: tuple[Any, ...], outputs: int,
    losses: Any, class_weights: Array, parameter: float,
) -> None:  # fmt: skip
    """Evaluate parts of an epoch until none is left to claim, and write one row of ``sums`` for each.

    ``kernel`` is a loop of :func:`scoring`, ``parameters`` are the further arguments of its ``decide``, and ``losses``
    is a function of :func:`losses`.
    """
    *data, labels, weights = whole.rows.arrays
    targets = (
        labels.view(np.uint8), labels.itemsize, weights.view(np.uint8), weights.itemsize if weights.size else 0,
        np.asarray(class_weights, np.float64), float(parameter),
    )  # fmt: skip
    scores = np.empty((max(1, min(BLOCK // outputs, len(whole.order))), outputs))
    order = np.ascontiguousarray(whole.order)
    kernel(queue, whole.starts, tally, tuple(data), order, parameters, scores, targets, losses.address, sums)


def scores_of(kernel: Any, rows: CSRRows, order: Array, parameters: tuple[Any, ...], outputs: int) -> Array:
    """Return the scores of the rows ``order``, with one line per row and one column per output."""
    scores, starts, sums = np.empty((len(order), outputs)), np.array([0, len(order)]), np.zeros((1, 1))
    if len(order):
        queue, tally, order = new_queue(), new_tally(), np.ascontiguousarray(order)
        kernel(queue, starts, tally, rows.arrays[:3], order, parameters, scores, NO_TARGETS, 0, sums)
    return scores


def read_only(array: Array) -> Array:
    """Return a view that is always of the type of a read-only array, for which the loops are compiled."""
    view = array.view()
    view.flags.writeable = False
    return view
