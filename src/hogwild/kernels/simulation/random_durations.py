"""Random durations in compiled code: the numbers that NumPy's generators and :mod:`hogwild.delays` would draw."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.random.distributions import random_exponential, random_normal, random_pareto
from numba.np.random.generator_core import next_double
from numpy.typing import NDArray

from hogwild.jit import UNCALLED, UNFUSED
from hogwild.kernels.simulation.tables import ALWAYS, EXPONENTIAL, LOG_NORMAL, NORMAL

# mypy: disable-error-code="no-untyped-call, misc, call-arg"

# The functions of Numba below are compiled as Numba wants them, not as parts of kernels.
_part = numba.njit(**UNFUSED, **UNCALLED)
_BITS = types.NumPyRandomBitGeneratorType("bit_generator")


def addresses(random: np.random.Generator) -> NDArray[np.uint64]:
    """Return the addresses of a generator's state and functions; the generator must outlive their use."""
    found = random.bit_generator.ctypes
    functions = found.next_uint64, found.next_uint32, found.next_double
    return np.array([found.state_address, *(ctypes.cast(each, ctypes.c_void_p).value for each in functions)], np.uint64)


@intrinsic
def bits_at(typingctx: Any, state: Any, next_uint64: Any, next_uint32: Any, next_double: Any) -> Any:
    """Return the generator of random bits at these addresses.

    A generator as an argument of a compiled function would take a tenth of a millisecond at each call.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = cgutils.create_struct_proxy(_BITS)(context, builder)
        made.state_address = made.state = args[0]
        made.fnptr_next_uint64, made.fnptr_next_uint32, made.fnptr_next_double = args[1:]
        return made._getvalue()

    return _BITS(*[types.uintp] * 4), generate


def bits_of(table: Any, row: Any) -> Any:
    """Return one of several generators of random bits, each of which has four addresses in a table."""
    return bits_at(table[4 * row], table[4 * row + 1], table[4 * row + 2], table[4 * row + 3])


@_part
def draw(bits: Any, kind: Any, first: Any, second: Any) -> Any:
    """Return a random duration in seconds."""
    if kind == ALWAYS:
        return first
    if kind == NORMAL:
        return max(first / 10, random_normal(bits, first, second))
    if kind == LOG_NORMAL:
        return first * math.exp(random_normal(bits, 0.0, second))
    if kind == EXPONENTIAL:
        return random_exponential(bits, first)
    return first * (1.0 + random_pareto(bits, second))


@_part
def uniform(bits: Any) -> Any:
    """Return a random number of at least 0 and below 1."""
    return next_double(bits)
