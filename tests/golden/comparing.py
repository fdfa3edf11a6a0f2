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
# Results whose draws depend on the last bits of parameters. On other processors the draws are others, so only the
# objective is compared, which may be this far away, relatively.
DRAWN, OTHER_DRAWS = "ratings bpr", 0.05


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


def differences(result: str, expected: dict[str, Any], found: dict[str, Any], exact: bool) -> list[str]:
    """Where two results of a name differ."""
    if expected.keys() != found.keys():
        return [f"has {sorted(found)} instead of {sorted(expected)}"]
    said, drawn = [], result.startswith(DRAWN) and not exact
    elsewhere = OTHER_DRAWS if drawn else OTHER_MACHINES
    for name, one in expected.items():
        other = found[name]
        if (one["shape"], one["type"]) != (other["shape"], other["type"]):
            said.append(f"{name} is {other['type']} {other['shape']} instead of {one['type']} {one['shape']}")
        elif exact and name != MEASURED and one["digest"] != other["digest"]:
            said.append(f"{name} has other bits: {other['products']} instead of {one['products']}")
        elif (name == MEASURED or not drawn) and not _alike(one, other, SAME_MACHINE if exact else elsewhere):
            said.append(f"{name} is {other['products']} instead of {one['products']}")
    return said


def _alike(one: dict[str, Any], other: dict[str, Any], share: float) -> bool:
    return np.allclose(one["products"], other["products"], rtol=0, atol=share * (one["norm"] + 1e-9))
