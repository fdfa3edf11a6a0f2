"""A step of Adam on one tensor, safe for workers that share it without a lock.

Another worker may be in the middle of a step: its gradient is in the mean and its square is not yet in the mean of
squares, or an older mean of squares was written over a newer one. Whoever divides by it then steps far too far. But
whatever the gradients were, the mean is at most a constant times the root of the mean of squares (Cauchy and Schwarz;
7.27 with Adam's usual betas). A mean beyond that is half of somebody's step, and is cut back to the bound.
"""

from __future__ import annotations

import math
from typing import Any

from hogwild.jit import compiled

CONSTANTS = 9
RATE, BETA1, BETA2, EPSILON, DECAY, SHRINK, SIGN, ROOT, BOUND = range(CONSTANTS)
SLACK = 1.001  # for rounding


def bound(beta1: float, beta2: float) -> float:
    """How many times the root of the mean of squares the mean can be, whatever the gradients were.

    >>> round(bound(0.9, 0.999), 2), bound(0.9, 0.8)
    (7.28, inf)
    """
    rest = (1 - beta2) * (1 - beta1 * beta1 / beta2) if beta2 else 0.0
    return SLACK * (1 - beta1) / math.sqrt(rest) if rest > 0 else math.inf


@compiled
def step(weights: Any, gradient: Any, mean: Any, square: Any, largest: Any, amsgrad: bool, constants: Any) -> None:
    """Step along the mean of gradients over the root of the mean of squares (or of its ``largest`` values so far)."""
    rate, beta1, beta2, epsilon = constants[RATE], constants[BETA1], constants[BETA2], constants[EPSILON]
    decay, shrink, sign = constants[DECAY], constants[SHRINK], constants[SIGN]
    root, most = constants[ROOT], constants[BOUND]
    rest1, rest2 = weights.dtype.type(1) - beta1, weights.dtype.type(1) - beta2
    for i in range(weights.size):
        weight = weights[i]
        g = sign * gradient[i] + decay * weight
        m = mean[i]
        m += rest1 * (g - m)
        v = beta2 * square[i] + rest2 * g * g
        limit = most * math.sqrt(v)
        m = limit if m > limit else m
        m = -limit if m < -limit else m
        square[i] = v
        mean[i] = m
        if amsgrad:
            v = largest[i] if largest[i] > v else v
            largest[i] = v
        weights[i] = shrink * weight - rate * m / (math.sqrt(v) * root + epsilon)
