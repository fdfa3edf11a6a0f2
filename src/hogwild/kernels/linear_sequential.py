"""Inner loop of a single worker, whose penalties apply to every weight at every step, touched or not.

The loop is a template like those in :mod:`hogwild.kernels.linear`, and binds the names ``loss``, ``dot``, ``column``,
``value`` and ``pace``. Sums, products and roundings have the same order as in scikit-learn. With large steps, a
difference in the last digit grows into another model. So the same path as scikit-learn's means the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.row_layouts import span
from hogwild.rules.sklearn_sgd import (
    ABSOLUTES,
    AVERAGED,
    MET,
    OWED,
    PAID,
    SCALE,
    SEEN,
    SINCE,
    SQUARES,
    SUM,
)

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821

# Values of the common scale below which it is multiplied into the weights, in double and in single precision.
SMALLEST, SMALLEST_SINGLE = 1e-9, 1e-6
# Smallest ratio of the current scale to the largest summed scale; below it, the sum would lose the small scales.
CLOSE = 1e-3


def descend_alone(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, rates: Any, state: Any, bias: Any,
    intercept: Any, alpha: Any, share1: Any, penalised: Any, class_weights: Any, parameter: Any, bias_rate: Any,
    tilt: Any, averages: Any, watches: Any, weighs: Any,
) -> float:  # fmt: skip
    """Descend along the terms ``order`` of a model with one output; return their summed loss.

    The penalty is ``alpha`` times a mixture of L1, with the share ``share1``, and L2. L2 is a common scale of all
    weights, so that a step costs no more than its term (Bottou 2010). L1 accumulates as a debt that is the same for all
    weights. A weight pays its debt when a term touches it, down to zero at most (Tsuruoka et al. 2009).

    From update number ``averages`` on (0: never), the kernel sums the iterates. A weight is added to its sum when a
    term touches the weight, because until then only the common scale has changed.

    With ``watches``, the kernel sums the objective of the terms during training. With ``weighs``, this objective
    includes the penalty. As in scikit-learn, that is the penalty of those weights that were touched last.
    """
    of_weights = state.dtype.type
    l1, l2 = (penalised[0], penalised[1])
    scale, owed, seen = bias[0, SCALE], bias[0, OWED], bias[0, SEEN]
    squares, absolutes, met = bias[0, SQUARES], bias[0, ABSOLUTES], bias[0, MET]
    smallest = SMALLEST if state.itemsize == 8 else SMALLEST_SINGLE
    scales, widest, total = 0.0, scale, 0.0
    if weighs and squares < 0:
        squares, absolutes = lengths(state)
    for k in range(order.size):
        i, rate = order[k], rates[k]
        start, stop = span(indptr, i)
        z = np.float64(of_weights(scale * dot(state, indices, values, start, stop))) + bias[0, 0]
        cost, slope = loss(z, np.float64(labels[i]), parameter)
        weight = class_weights[1 if labels[i] > 0 else 0] * (weights[i] if weights.size else np.float32(1))
        total += cost * np.float64(weight)
        if watches:
            met += cost + tilt * bias[0, 0]
        if weighs:
            met += alpha * ((1.0 - share1) * 0.5 * squares + share1 * absolutes)
        pull = np.float64(pace(rate, cost, values, start, stop)) * slope * np.float64(weight)
        averaging = 0 < averages <= seen + 1
        if l2:
            decay = np.float64(of_weights(max(0.0, 1.0 - (1.0 - share1) * rate * alpha)))
            scale, squares, absolutes = scale * decay, squares * (decay * decay), absolutes * decay
            if averages and scale < CLOSE * widest:
                join(state, scales)
                scales, widest = 0.0, scale
            if scale < smallest:
                if averages:
                    join(state, scales)
                    scales = 0.0
                fold(state, scale)
                scale = widest = 1.0
        if averaging:
            for j in range(start, stop):
                catch_up(state, column(indices, j, start), scales)
        if pull != 0:
            change = np.float64(of_weights(pull) / of_weights(scale))
            if weighs:
                squares, absolutes = add_and_measure(state, indices, values, start, stop, change)
                squares, absolutes = squares * (scale * scale), absolutes * scale
            else:
                add(state, indices, values, start, stop, change)
        if intercept:
            bias[0, 0] -= (pull + rate * tilt) * bias_rate
        if l1:
            owed += share1 * rate * alpha
            for j in range(start, stop):
                pay(state, column(indices, j, start), owed, scale)
        if averaging:
            scales += scale
            bias[0, SUM] += bias[0, 0]
            bias[0, AVERAGED] += 1
        seen += 1
    if averages:
        join(state, scales)
    bias[0, SCALE], bias[0, OWED], bias[0, SEEN] = scale, owed, seen
    bias[0, SQUARES], bias[0, ABSOLUTES], bias[0, MET] = squares, absolutes, met
    return total


def add(state: Any, indices: Any, values: Any, start: Any, stop: Any, change: Any) -> None:
    """Subtract ``change`` times the term's values from its weights."""
    for j in range(start, stop):
        u = column(indices, j, start)
        state[u, 0] = np.float64(state[u, 0]) - np.float64(value(values, j)) * change


def add_and_measure(state: Any, indices: Any, values: Any, start: Any, stop: Any, change: Any) -> Any:
    """Subtract ``change`` times the term's values from its weights.

    Return their new sums of squares and of absolute values.
    """
    squares = absolutes = 0.0
    for j in range(start, stop):
        u = column(indices, j, start)
        state[u, 0] = np.float64(state[u, 0]) - np.float64(value(values, j)) * change
        squares += np.float64(state[u, 0] * state[u, 0])
        absolutes += abs(np.float64(state[u, 0]))
    return squares, absolutes


def lengths(state: Any) -> Any:
    """Return the sums of the squares and of the absolute values of all weights."""
    squares = absolutes = 0.0
    for u in range(state.shape[0]):
        squares += np.float64(state[u, 0] * state[u, 0])
        absolutes += abs(np.float64(state[u, 0]))
    return squares, absolutes


def pay(state: Any, u: Any, owed: Any, scale: Any) -> None:
    """Subtract the unpaid L1 debt from a weight, down to zero at most."""
    before, paid = np.float64(state[u, 0]), np.float64(state[u, PAID])
    if scale * before > 0:
        state[u, 0] = max(0.0, before - (owed + paid) / scale)
    elif scale * before < 0:
        state[u, 0] = min(0.0, before + (owed - paid) / scale)
    state[u, PAID] = paid + scale * (np.float64(state[u, 0]) - before)


def catch_up(state: Any, u: Any, scales: Any) -> None:
    """Add a weight's iterates since it was last touched to its sum."""
    state[u, SUM] += state[u, 0] * (scales - state[u, SINCE])
    state[u, SINCE] = scales


def join(state: Any, scales: Any) -> None:
    """Bring the sums of all weights up to date, and restart the sum of scales."""
    for u in range(state.shape[0]):
        catch_up(state, u, scales)
        state[u, SINCE] = 0


def fold(state: Any, scale: Any) -> None:
    """Multiply the common scale into the weights."""
    for u in range(state.shape[0]):
        state[u, 0] *= of_type(state, scale)


def of_type(state: Any, number: Any) -> Any:
    """Return a number in the precision of the weights."""
    return state.dtype.type(number)
