"""Problems: what is minimised. One file and one line here each."""

from __future__ import annotations

from hogwild.problems.linear import Linear

__all__ = ["Linear"]
