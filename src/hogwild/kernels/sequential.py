"""The inner loop of one worker alone, whose penalties pull every weight at every step, touched or not.

A template like those in :mod:`hogwild.kernels.linear`, with the names ``loss``, ``dot``, ``column``, ``value`` and
``pace`` to be put in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.rules.sequential import MEAN

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821

SMALLEST, SMALLEST_AVERAGED = 1e-9, 1e-3  # scales; sums of scales need digits to spare
PAID, SINCE = 1, 3  # what a weight remembers, besides its MEAN
OWED, REST = 1, 3  # what is kept beside the intercept: a sum in two halves, for one float32 would forget


def descend_alone(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, rates: Any, state: Any, bias: Any,
    intercept: Any, l1: Any, l2: Any, class_weights: Any, parameter: Any, bias_rate: Any, tilt: Any, averaging: Any,
) -> float:  # fmt: skip
    """Descend along the terms ``order`` of a model with one output; return their summed loss.

    L2 is a scale that all weights have in common, so that a step costs no more than its term (Bottou 2010). L1 is owed
    by all weights alike and paid when one is touched, down to zero at most (Tsuruoka et al. 2009). The mean of the
    iterates is brought up to date when a weight is touched, too: until then it was the same but for the scale.
    """
    scale, scales, owed, biases, total = 1.0, 0.0, 0.0, 0.0, 0.0
    if l1 > 0:
        owed = float(bias[0, OWED]) + float(bias[0, REST])
    if averaging:
        state[:, MEAN:] = 0
    for k in range(order.size):
        i = order[k]
        start, stop = indptr[i], indptr[i + 1]
        z = scale * dot(state, indices, values, start, stop) + float(bias[0, 0])
        cost, slope = loss(z, float(labels[i]), parameter)
        weight = class_weights[1 if labels[i] > 0 else 0] * (weights[i] if weights.size else np.float32(1))
        total += cost * weight
        pull = float(slope) * float(weight) * float(pace(rates[k], cost, values, start, stop))
        if l2 > 0:
            scale *= max(0.0, 1.0 - float(rates[k]) * l2)
            if scale < (SMALLEST_AVERAGED if averaging else SMALLEST):
                fold(state, scale, scales, averaging)
                scale, scales = 1.0, 0.0
        if averaging:
            for j in range(start, stop):
                catch_up(state, column(indices, j, start), scales)
        if pull != 0:
            change = state.dtype.type(pull / scale)
            for j in range(start, stop):
                state[column(indices, j, start), 0] -= change * value(values, j)
        if intercept:
            bias[0, 0] -= (pull + float(rates[k]) * tilt) * bias_rate
        if l1 > 0:
            owed += float(rates[k]) * l1
            for j in range(start, stop):
                pay(state, column(indices, j, start), owed, scale)
        scales += scale
        biases += float(bias[0, 0])
    fold(state, scale, scales, averaging)
    if l1 > 0:
        bias[0, OWED] = owed
        bias[0, REST] = owed - float(bias[0, OWED])
    if averaging and order.size > 0:
        state[:, MEAN] /= order.size
        bias[0, MEAN] = biases / order.size
    return total


def pay(state: Any, u: Any, owed: Any, scale: Any) -> None:
    """Let a weight pay what it owes and has not paid, until it is zero."""
    before, paid = float(state[u, 0]) * scale, float(state[u, PAID])
    after = before
    if before > 0:
        after = max(0.0, before - (owed + paid))
    elif before < 0:
        after = min(0.0, before + (owed - paid))
    if after != before:
        state[u, 0] = after / scale
        state[u, PAID] = paid + (after - before)


def catch_up(state: Any, u: Any, scales: Any) -> None:
    """Add to a weight's sum what it was in the terms since it was last touched."""
    state[u, MEAN] += state[u, 0] * (scales - state[u, SINCE])
    state[u, SINCE] = scales


def fold(state: Any, scale: Any, scales: Any, averaging: Any) -> None:
    """Multiply the common scale into the weights."""
    if averaging:
        for u in range(state.shape[0]):
            catch_up(state, u, scales)
            state[u, SINCE] = 0
    if scale != 1:
        for u in range(state.shape[0]):
            state[u, 0] *= scale
