"""How Python functions become machine code here.

Losses, rules and ways of sharing are small plain functions. A kernel is written once against their *names*;
:func:`specialise` makes a compiled copy of it in which those names mean the functions asked for. The copy is
compiled on its first call and kept on disk, under a name that contains a digest of everything that went into it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import numba

Function = Callable[..., Any]

# Multiply-adds may be fused; nothing else about floating point is relaxed, so that NaN stays visible to the
# divergence guard and one seed gives the same bits.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def compiled(function: Function) -> Any:
    """Compile a function on first use, keep the result on disk, and let other threads run meanwhile.

    >>> @compiled
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """
    return numba.njit(cache=_has_file(function), **OPTIONS)(function)


@functools.cache
def device_function(function: Function) -> Any:
    """Compile a small function that is called from kernels and inlined there."""
    return numba.njit(**OPTIONS)(function)


@functools.cache
def _specialised(template: Function, cache: bool, parts: tuple[tuple[str, Function], ...]) -> Any:
    name = "_".join([template.__name__, *(part.__name__.strip("<>") for _, part in parts), _digest(template, parts)])
    globals_ = {**template.__globals__, **{name: device_function(part) for name, part in parts}}
    copy = FunctionType(template.__code__, globals_, template.__name__, template.__defaults__)
    copy.__module__, copy.__qualname__ = template.__module__, name
    return numba.njit(cache=cache, **OPTIONS)(copy)


def specialise(template: Function, *, cache: bool = True, **parts: Function) -> Any:
    """Compile a copy of ``template`` in which each global name in ``parts`` is the function given for it.

    >>> def apply_twice(x):
    ...     return part(part(x))
    >>> def increment(x):
    ...     return x + 1
    >>> specialise(apply_twice, cache=False, part=increment)(40)
    42
    """
    return _specialised(template, cache, tuple(sorted(parts.items())))


def _has_file(function: Function) -> bool:
    return not function.__code__.co_filename.startswith("<")


def _digest(template: Function, parts: tuple[tuple[str, Function], ...]) -> str:
    """Names what was compiled, so that a changed loss never meets the machine code of the old one."""
    sha = hashlib.sha256()
    for name, part in (("template", template), *parts):
        sha.update(name.encode())
        _feed(sha, part, set())
    return sha.hexdigest()[:12]


def _feed(sha: Any, function: Any, seen: set[str]) -> None:
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType) or function.__qualname__ in seen:
        return
    seen.add(function.__qualname__)
    _feed_code(sha, function.__code__)
    for name in function.__code__.co_names:  # functions it calls, and constants it reads, count as well
        value = function.__globals__.get(name)
        if callable(getattr(value, "py_func", value)):
            _feed(sha, value, seen)
        elif isinstance(value, (int, float, str, bool)):
            sha.update(f"{name}={value!r}".encode())


def _feed_code(sha: Any, code: CodeType) -> None:
    sha.update(code.co_code)
    sha.update(repr([c for c in code.co_consts if not isinstance(c, CodeType)]).encode())
    sha.update(repr(code.co_names).encode())
