"""GPU kernel that adds up the mean of several arrays, one of them after the other."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from typing import Any

from hogwild.kernels import cuda_jit
from hogwild.kernels.cuda_device import whole_device
from hogwild.kernels.cuda_jit import cuda


def add_share(total: Any, part: Any, share: Any, kept: Any) -> None:
    """Multiply ``total`` by ``kept``, which is 0 or 1, and add a share of ``part``."""
    for k in range(cuda.grid(1), len(part), cuda.gridsize(1)):
        before = total[k] if kept > 0 else 0 * part[k]  # Memory that is new may hold anything.
        total[k] = before + share * part[k]


def accumulate(total: Any, part: Any, share: Any, first: bool) -> None:
    """Add a share of an array to another one of the same shape, which counts as zero before the ``first``."""
    kernel = cuda_jit.kernel(add_share)
    kernel[whole_device()](total.reshape(total.size), part.reshape(part.size), share, 0 if first else 1)
