"""What every tool is seen as: ways of fitting the same model, each with an effort that can be raised."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.sets import Split

# The same for all tools that count epochs or iterations, so that none is measured more finely.
EPOCHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 65, 80, 100, 130, 160, 200, 250, 300, 400, 500, 650, 800)


@dataclass(frozen=True, eq=False)
class Fit:
    """A model, and how long the fit alone took."""

    weights: Any
    intercept: float
    seconds: float
    note: str = ""  # where the time went, if the tool says so


@dataclass(frozen=True, eq=False)
class Way:
    """One way of using a tool: its settings by name, and a fit with an effort and a seed."""

    name: str
    fit: Callable[[float, int], Fit]
    ladder: Sequence[float] = EPOCHS  # efforts that rise
    effort: str = "epochs"


@dataclass(frozen=True, eq=False)
class Tool:
    """A tool: how it loads a set, and its ways of fitting a loss to what it loaded.

    ``load(split)`` and what it returns are the tool's own; a tool without a way for a loss does not know that loss.
    """

    name: str
    package: str
    load: Callable[[Split], Any]
    ways: Callable[[Any, Split, str], list[Way]]
    from_arrays: bool = True  # whether the time to read the arrays belongs to its loading
    remark: str = ""


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What a piece of work returns, and the seconds it took.

    >>> timed(lambda: 1 + 1)[0]
    2
    """
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started
