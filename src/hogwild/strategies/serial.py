"""One worker."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.strategies.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Serial(Strategy):
    """One worker, one term after the other: the same seed gives the same bits."""

    workers = 1

    shares_memory = True
