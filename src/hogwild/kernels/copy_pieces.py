"""Copies of many pieces of memory by several threads, each of which enters Python once."""

# mypy: disable-error-code="call-arg, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hogwild.data.csr import Array
from hogwild.jit import compiled


def copy_pieces(pairs: Sequence[tuple[Array, Array]], threads: Executor, shares: int) -> None:
    """Copy arrays to others of the same type and size: (target, source); all of them are contiguous.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> target = np.zeros(5)
    >>> with ThreadPoolExecutor(2) as threads:
    ...     copy_pieces([(target[:2], np.ones(2)), (target[2:], np.arange(3.0))], threads, 2)
    >>> target
    array([1., 1., 0., 1., 2.])
    """
    targets, sources = (np.array([part[k].ctypes.data for part in pairs], np.int64) for k in (0, 1))
    sizes = np.array([source.nbytes for _, source in pairs], np.int64)
    for done in [threads.submit(_copy_share, targets, sources, sizes, share, shares) for share in range(shares)]:
        done.result()


@intrinsic
def copy_bytes(typingctx: Any, target: Any, source: Any, size: Any) -> Any:
    """Copy bytes from one address to another."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        places = [builder.inttoptr(address, cgutils.voidptr_t) for address in args[:2]]
        cgutils.raw_memcpy(builder, *places, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


@compiled
def _copy_share(targets: Any, sources: Any, sizes: Any, share: int, shares: int) -> None:
    """Copy one of equal shares of all bytes."""
    total, before = sizes.sum(), 0
    first, last = total * share // shares, total * (share + 1) // shares
    for k in range(len(sizes)):
        start, stop = max(first - before, 0), min(last - before, sizes[k])
        if start < stop:
            copy_bytes(targets[k] + start, sources[k] + start, stop - start)
        before += sizes[k]
