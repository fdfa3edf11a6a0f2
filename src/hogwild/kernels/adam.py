"""Step of Adam (Kingma and Ba 2015) on one tensor that workers share without a lock.

A worker can read the two moments of a coordinate while another worker is between its two writes. The mean then includes
that worker's gradient, but the mean of squares does not. A worker can also overwrite a newer mean of squares with an
older one. A step that divides by such a mean of squares is far too long.

For any sequence of gradients, the mean is at most a constant times the root of the mean of squares. The inequality of
Cauchy and Schwarz gives this constant, which is 7.27 for Adam's usual betas. A mean beyond the bound therefore comes
from another worker's unfinished step, and the kernel clips the mean to the bound.
"""

from __future__ import annotations

import math
from typing import Any

from hogwild.jit import compiled
from hogwild.rules.rule import TINY

CONSTANTS = 9
RATE, BETA1, BETA2, EPSILON, DECAY, SHRINK, SIGN, ROOT, BOUND = range(CONSTANTS)
# Factor on the bound, which allows for rounding errors.
SLACK = 1.001


def bound(beta1: float, beta2: float) -> float:
    """Return the largest possible ratio of the mean to the root of the mean of squares, for any gradients.

    >>> round(bound(0.9, 0.999), 2), bound(0.9, 0.8)
    (7.28, inf)
    """
    rest = (1 - beta2) * (1 - beta1 * beta1 / beta2) if beta2 else 0.0
    return SLACK * (1 - beta1) / math.sqrt(rest) if rest > 0 else math.inf


@compiled
def step(weights: Any, gradient: Any, mean: Any, square: Any, largest: Any, amsgrad: bool, constants: Any) -> None:
    """Step every weight along the mean of its gradients, divided by the root of the mean of squares.

    With ``amsgrad``, the divisor is the root of the ``largest`` mean of squares so far. Means that have come close to 0
    become 0, because arithmetic with them is slow.
    """
    rate, beta1, beta2, epsilon = constants[RATE], constants[BETA1], constants[BETA2], constants[EPSILON]
    decay, shrink, sign = constants[DECAY], constants[SHRINK], constants[SIGN]
    root, most = constants[ROOT], constants[BOUND]
    rest1, rest2 = weights.dtype.type(1) - beta1, weights.dtype.type(1) - beta2
    tiny, none = weights.dtype.type(TINY), weights.dtype.type(0)
    for i in range(weights.size):
        weight = weights[i]
        g = sign * gradient[i] + decay * weight
        m = mean[i]
        m += rest1 * (g - m)
        v = beta2 * square[i] + rest2 * g * g
        limit = most * math.sqrt(v)
        m = limit if m > limit else m
        m = -limit if m < -limit else m
        m = none if abs(m) < tiny else m
        v = none if v < tiny else v
        square[i] = v
        mean[i] = m
        if amsgrad:
            v = largest[i] if largest[i] > v else v
            largest[i] = v
        weights[i] = shrink * weight - rate * m / (math.sqrt(v) * root + epsilon)
