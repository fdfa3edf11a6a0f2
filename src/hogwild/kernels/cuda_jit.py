"""Compilation of kernel templates for GPUs, as :mod:`hogwild.jit` does for processors.

Losses and rules are the same plain functions. :func:`kernel` binds them into a template, and compiles them and all that
they call. Under Numba's simulator (``NUMBA_ENABLE_CUDASIM=1``) they run as plain Python.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

import functools
import warnings
from types import FunctionType
from typing import Any

import numpy as np

# numba-cuda uses the name ``row_stack``, which NumPy 2.5 has removed.
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack  # type: ignore[attr-defined, unused-ignore]

from numba import config
from numba import cuda as cuda

from hogwild.jit import Function, bind
from hogwild.kernels.cuda_kernel_cache import kept_on_disk

LAUNCHES = 1024  # Configurations of a kernel that are remembered: making one takes as long as a short launch.
FAST = True  # GPUs divide and take roots approximately, within two units in the last place.


def simulated() -> bool:
    """Return whether kernels run in Numba's simulator instead of on a GPU."""
    return bool(config.ENABLE_CUDASIM)


def kernel(template: Function, **parts: Any) -> Any:
    """Return a GPU kernel in which each global name in ``parts`` refers to the given function or number."""
    return _kernel(template, tuple(sorted(parts.items(), key=lambda item: item[0])))


@functools.cache
def _kernel(template: Function, parts: tuple[tuple[str, Any], ...]) -> Any:
    return compiled(_with_device_calls(bind(template, **dict(parts))), fastmath=FAST)


def compiled(function: Function, **options: Any) -> Any:
    """Return a GPU kernel that is compiled on its first launch, and kept on disk."""
    found = cuda.jit(function, **options)
    if simulated():
        return found
    found.configure = functools.lru_cache(LAUNCHES)(functools.partial(_configured, found.configure))
    return kept_on_disk(found, **options)


def _configured(configure: Function, *size: Any) -> Any:
    """Return a kernel for a number of threads. Numba warns of few, which are usual at the end of an epoch."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*under-utilization")
        return configure(*size)


@functools.cache
def device_function(function: Function) -> Any:
    """Return a plain function in the form that GPU kernels can call."""
    return cuda.jit(device=True)(_with_device_calls(function))


def _with_device_calls(function: Function) -> Function:
    """Return a copy of a function in which the plain Python functions that it calls are compiled."""
    called = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    return bind(function, **{name: device_function(f) for name, f in called.items() if isinstance(f, FunctionType)})
