"""Message-passing strategies on threads of this process, in real time and with real asynchrony."""

from __future__ import annotations

from hogwild.runtimes.local.config import Local

__all__ = ["Local"]
