"""Strategies by messages on threads of this process: real time, real asynchrony."""

from __future__ import annotations

from hogwild.runtimes.local.config import Local

__all__ = ["Local"]
