"""Fits of one estimator, one after the other: two threads that fit the same object would mix its attributes."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

Given = ParamSpec("Given")
Result = TypeVar("Result")

_locks: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
_adding = threading.Lock()


def one_at_a_time(method: Callable[Concatenate[Any, Given], Result]) -> Callable[Concatenate[Any, Given], Result]:
    """Return a method that one thread at a time runs on an object; others wait.

    >>> class Counter:
    ...     count = 0
    ...     @one_at_a_time
    ...     def add(self, number):
    ...         self.count += number
    ...         return self.count
    >>> Counter().add(2)
    2
    """

    @functools.wraps(method)
    def alone(self: Any, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        with _adding:
            lock = _locks.setdefault(self, threading.RLock())
        with lock:
            return method(self, *args, **kwargs)

    return alone


def _begin_anew() -> None:
    """Forget the locks in a forked process, which lacks the threads that may hold them."""
    global _adding
    _locks.clear()
    _adding = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
