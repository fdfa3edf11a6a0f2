"""Attributes of objects that are computed, and names of packages that are imported, when they are first read."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
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


def late_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that imports names when they are first read.

    ``homes`` has the module of each name.

    >>> find, _ = late_names("hogwild.rules", {"SGD": "hogwild.rules.sgd"})
    >>> find("SGD").__name__
    'SGD'
    >>> find("SDG")
    Traceback (most recent call last):
    AttributeError: module 'hogwild.rules' has no attribute 'SDG'
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    def names() -> list[str]:
        module = sys.modules[package]
        return sorted({*vars(module), *module.__all__})

    return find, names


__all__ = ["cached_property", "late_names"]
