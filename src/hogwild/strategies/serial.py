"""One worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hogwild.strategies.shared_memory import Access


@dataclass(frozen=True, slots=True)
class Serial:
    """One worker, one term after the other: the same seed gives the same bits."""

    workers = 1
    access: ClassVar[Access] = "free"
    replicas = False
