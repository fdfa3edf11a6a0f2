"""Serial strategy: one worker."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.strategies.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Serial(Strategy):
    """Serial SGD: one worker processes one term after the other. The same seed gives the same bits."""

    workers = 1

    shares_memory = True
