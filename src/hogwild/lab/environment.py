"""Environment of an experiment: the machine, its speed, and the versions of packages."""

from __future__ import annotations

import functools
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from hogwild.machine import this_machine

PACKAGES = ("hogwild", "numpy", "numba", "scipy", "scikit-learn", "torch")
# Seconds of the speed test on the reference machine, to which the durations of experiments refer.
USUAL = 0.079


def about() -> dict[str, dict[str, str]]:
    """Return a description of the machine and the versions of packages, in words."""
    here = this_machine()
    return {
        "machine": {
            "processor": here.processor,
            "cores": f"{here.usable_cores} of {here.logical_cores}",
            "memory": f"{here.memory / 2**30:.0f} GiB",
            "system": here.system,
        },
        "versions": {"Python": platform.python_version(), **{name: found for name in PACKAGES if (found := _of(name))}},
    }


@functools.cache
def pace() -> float:
    """Measure the speed of this machine, and return its time relative to the reference machine, at least 0.2."""
    numbers = np.random.default_rng(0).random(2**18)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(8):
            np.sort(numbers)
        times.append(time.perf_counter() - started)
    return max(0.2, min(times) / USUAL)


def in_words(seconds: float) -> str:
    """Return a duration in words.

    >>> in_words(40), in_words(200), in_words(9_000)
    ('40 seconds', '3 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5_400 else f"{seconds / 3600:.1f} hours"


def _of(package: str) -> Any:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
