"""Strategies by messages on a Ray cluster: participants are actors, which may die."""

from __future__ import annotations

from hogwild.runtimes.ray.config import Ray

__all__ = ["Ray"]
