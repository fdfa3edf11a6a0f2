"""Message-passing strategies on a Ray cluster: each node is a Ray actor, which may crash and restart."""

from __future__ import annotations

from hogwild.runtimes.ray.config import Ray

__all__ = ["Ray"]
