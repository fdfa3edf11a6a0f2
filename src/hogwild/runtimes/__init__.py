"""Runtimes: where workers run."""

from __future__ import annotations

from typing import Any

from hogwild.registry import kebab, lookup
from hogwild.runtimes.local.config import Local
from hogwild.runtimes.processes.config import Processes
from hogwild.runtimes.ray.config import Ray
from hogwild.runtimes.shared_memory.threads import Threads
from hogwild.runtimes.simulator.config import Simulator

RUNTIMES: dict[str, Any] = {kebab(kind.__name__): kind for kind in (Threads, Processes, Simulator, Local, Ray)}


def usual(strategy: Any) -> str:
    """Where the workers of a strategy run unless something else is asked for: in one memory if they can."""
    return "local" if hasattr(strategy, "cast") and not hasattr(strategy, "access") else "threads"


def named(runtime: str | Any) -> Any:
    """A runtime from its name, or from itself.

    >>> named("threads")
    Threads()
    """
    return lookup("runtime", runtime, RUNTIMES)() if isinstance(runtime, str) else runtime


__all__ = ["RUNTIMES", "Local", "Processes", "Ray", "Simulator", "Threads", "named", "usual"]
