"""What is kept of a result: a digest of its bits, for the machine that made it, and a few numbers for all others.

Compiled loops round differently on processors with other instructions, so bits are compared on one kind only.
"""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
import numpy as np

GOLDEN = Path(__file__).parent / "golden.json"
DIRECTIONS = 4
MEASURED = "objective"  # a sum, of which the compiler may round a term differently when a function is called otherwise
SAME_MACHINE = 1e-8  # how far, relatively, that may be
OTHER_MACHINES = 1e-3  # how far, relatively, results of other processors may be


def machine() -> str:
    return f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()} numba {numba.__version__}"


def summary(array: Any) -> dict[str, Any]:
    """The shape of an array, a digest of its bits, and its products with a few random directions."""
    found = np.ascontiguousarray(array)
    flat = found.astype(np.float64).ravel()
    directions = np.random.default_rng(0).standard_normal((DIRECTIONS, flat.size))
    return {
        "shape": list(found.shape),
        "type": str(found.dtype),
        "digest": hashlib.sha256(found.tobytes()).hexdigest()[:16],
        "products": (directions @ flat).tolist(),
        "norm": float(np.linalg.norm(flat)),
    }


def differences(expected: dict[str, Any], found: dict[str, Any], exact: bool) -> list[str]:
    """Where two results differ."""
    if expected.keys() != found.keys():
        return [f"has {sorted(found)} instead of {sorted(expected)}"]
    said = []
    for name, one in expected.items():
        other = found[name]
        if (one["shape"], one["type"]) != (other["shape"], other["type"]):
            said.append(f"{name} is {other['type']} {other['shape']} instead of {one['type']} {one['shape']}")
        elif exact and name != MEASURED and one["digest"] != other["digest"]:
            said.append(f"{name} has other bits: {other['products']} instead of {one['products']}")
        elif not _alike(one, other, SAME_MACHINE if exact else OTHER_MACHINES):
            said.append(f"{name} is {other['products']} instead of {one['products']}")
    return said


def _alike(one: dict[str, Any], other: dict[str, Any], share: float) -> bool:
    return np.allclose(one["products"], other["products"], rtol=0, atol=share * (one["norm"] + 1e-9))
