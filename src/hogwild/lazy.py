"""Attributes that are computed when they are first read."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801  (the name of what it stands for)
        """``functools.cached_property`` without its lock, as in Python 3.12.

        The lock is one of all objects of a class. A process that is forked while another thread computes such an
        attribute has a copy of the lock that stays locked, and waits for it for ever.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


__all__ = ["cached_property"]
