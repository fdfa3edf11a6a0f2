"""Proximal operators of losses, for dual coordinate ascent.

``prox(v, t, y, parameter, start)`` returns the score u that minimises ``t loss(u, y) + (u - v)^2 / 2``. The functions
are compiled into kernels like the losses themselves. ``start`` is a score near the result, which only iterations use.
"""

from __future__ import annotations

from math import exp

# Most steps of Newton's method, of which two or three are usual, and relative change of the score that ends them.
NEWTON_STEPS, NEWTON_CHANGE = 30, 1e-3
HALVINGS = 40  # of the interval in which the proximal point of any other loss lies


def hinge(v: float, t: float, y: float, parameter: float, start: float) -> float:
    """Return the proximal point of the hinge loss."""
    gap = 1.0 - v * y
    return v + y * min(t, gap) if gap > 0.0 else v


def perceptron(v: float, t: float, y: float, parameter: float, start: float) -> float:
    """Return the proximal point of the perceptron's loss."""
    gap = -v * y
    return v + y * min(t, gap) if gap > 0.0 else v


def squared_hinge(v: float, t: float, y: float, parameter: float, start: float) -> float:
    """Return the proximal point of the squared hinge loss."""
    return (v + 2.0 * t * y) / (1.0 + 2.0 * t) if v * y < 1.0 else v


def modified_huber(v: float, t: float, y: float, parameter: float, start: float) -> float:
    """Return the proximal point of the modified Huber loss."""
    if v * y >= 1.0:
        return v
    u = (v + 2.0 * t * y) / (1.0 + 2.0 * t)
    return u if u * y >= -1.0 else v + 4.0 * t * y


def logistic(v: float, t: float, y: float, parameter: float, start: float) -> float:
    """Return the proximal point of the logistic loss, by Newton's method within an interval that shrinks."""
    low, high = (v, v + t) if y > 0.0 else (v - t, v)
    wanted = 1.0 if y > 0.0 else 0.0
    u = min(max(start, low), high)
    for _ in range(NEWTON_STEPS):
        e = exp(-abs(u))
        chance = 1.0 / (1.0 + e) if u >= 0.0 else e / (1.0 + e)
        excess = u - v + t * (chance - wanted)
        if excess > 0.0:
            high = u
        else:
            low = u
        after = u - excess / (1.0 + t * chance * (1.0 - chance))
        if not low <= after <= high:
            after = 0.5 * (low + high)
        change, u = abs(after - u), after
        if change <= NEWTON_CHANGE * (1.0 + abs(u)):
            break
    return u


def squared(v: float, t: float, y: float, parameter: float, start: float) -> float:
    """Return the proximal point of the squared loss."""
    return (v + t * y) / (1.0 + t)


def huber(v: float, t: float, y: float, width: float, start: float) -> float:
    """Return the proximal point of the Huber loss."""
    r = v - y
    if abs(r) <= (1.0 + t) * width:
        return y + r / (1.0 + t)
    return v - t * width if r > 0.0 else v + t * width


def epsilon_insensitive(v: float, t: float, y: float, width: float, start: float) -> float:
    """Return the proximal point of the epsilon-insensitive loss."""
    r = v - y
    over = abs(r) - width
    if over <= 0.0:
        return v
    return v - min(t, over) if r > 0.0 else v + min(t, over)


def squared_epsilon_insensitive(v: float, t: float, y: float, width: float, start: float) -> float:
    """Return the proximal point of the squared epsilon-insensitive loss."""
    r = v - y
    over = abs(r) - width
    if over <= 0.0:
        return v
    change = over * 2.0 * t / (1.0 + 2.0 * t)
    return v - change if r > 0.0 else v + change


def quantile(v: float, t: float, y: float, share: float, start: float) -> float:
    """Return the proximal point of the quantile loss."""
    r = v - y
    if r > 0.0:
        return v - min(t * (1.0 - share), r)
    return v + min(t * share, -r)


def by_bisection(v: float, t: float, y: float, parameter: float, start: float) -> float:
    """Return the proximal point of any convex loss, which lies between ``v`` and ``v - t x derivative at v``."""
    # ``loss`` is bound when the kernel is compiled.
    slope = loss(v, y, parameter)[1]  # type: ignore[name-defined]  # noqa: F821
    low, high = (v, v - t * slope) if slope < 0.0 else (v - t * slope, v)
    for _ in range(HALVINGS):
        u = 0.5 * (low + high)
        if u - v + t * loss(u, y, parameter)[1] > 0.0:  # type: ignore[name-defined]  # noqa: F821
            high = u
        else:
            low = u
    return 0.5 * (low + high)
