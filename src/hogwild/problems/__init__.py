"""Problems: objectives that are sums of many terms."""

from __future__ import annotations

from hogwild.problems.linear import Linear

__all__ = ["Linear"]
