"""What a rule is: how a gradient becomes an update of one coordinate, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

ZERO, ONE = np.float32(0), np.float32(1)  # a bare 1 would turn float32 arithmetic into float64


class Rule(Protocol):
    """How a gradient becomes an update.

    Each coordinate owns a short row of ``state``: its value first, then whatever the rule remembers about it.
    ``step(state, p, g, rate, l1, l2, constants)`` applies one gradient ``g`` to row ``p``, together with this term's
    share of the penalty ``l1 |w| + l2 w^2 / 2``. Only coordinates that a term touches are ever stepped, so every rule
    is lazily sparse. ``step`` is compiled into the kernels: plain arithmetic in float32.

    A rule whose own steps get smaller as it goes says ``tapers = True``: one rate then suits runs of any length.
    """

    @property
    def initial(self) -> tuple[float, ...]:
        """What a fresh row of state holds; the first is the value itself."""

    @property
    def constants(self) -> tuple[float, ...]:
        """The rule's constants, as ``step`` gets them; at least one."""

    @property
    def step(self) -> Callable[..., None]:
        """The function that is compiled into the kernels."""

    @property
    def rests(self) -> bool:
        """Whether a zero gradient changes nothing, so that a satisfied row can be skipped."""


def positions(rule: Any) -> tuple[int, ...]:
    """Which entries of a coordinate's row say where it is, and so change when it is moved from outside.

    The value does, if the rule says nothing else; with a rule that works ``alone`` nothing may be moved.

    >>> from hogwild.rules import FTRL, SGD, Sequential
    >>> positions(SGD()), positions(FTRL()), positions(Sequential())
    ((0,), (0, 1), ())
    """
    return () if getattr(rule, "alone", False) else getattr(rule, "positions", (0,))


def shrink(w: Any, rate: Any, l1: Any, l2: Any) -> Any:
    """Where ``l1 |w| + l2 w^2 / 2`` pulls ``w`` in a step of size ``rate``: exactly, so that no step overshoots zero.

    >>> float(shrink(1.0, 0.5, 0.0, 2.0)), float(shrink(0.3, 0.5, 1.0, 0.0))
    (0.5, 0.0)
    """
    # Where a penalty is known to be zero when this is compiled, its part of the code is not there.
    if l1 != 0:
        pull = rate * l1
        w = max(w - pull, ZERO) + min(w + pull, ZERO)
    if l2 != 0:
        w = w / (ONE + rate * l2)
    return w
