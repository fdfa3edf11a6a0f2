"""Runtimes: where workers run."""

from __future__ import annotations

from hogwild.problems.problem import Problem
from hogwild.registry import invalid_parameter, kebab, lookup
from hogwild.runtimes.local.config import Local
from hogwild.runtimes.processes.config import Processes
from hogwild.runtimes.ray.config import Ray
from hogwild.runtimes.runtime import Runtime
from hogwild.runtimes.shared_memory.threads import Threads
from hogwild.runtimes.simulator.config import Simulator
from hogwild.strategies.strategy import Strategy

RUNTIMES: dict[str, type[Runtime]] = {
    kebab(kind.__name__): kind for kind in (Threads, Processes, Simulator, Local, Ray)
}


def default_name(strategy: Strategy) -> str:
    """Where the workers of a strategy run unless something else is asked for: in one memory if they can."""
    return "threads" if strategy.shares_memory else "local"


def default_for(problem: Problem, strategy: Strategy) -> Runtime:
    """Where a problem is trained unless something else is asked for."""
    if problem.terms == "batches" and (strategy.shares_memory or strategy.uses_all_reduce):
        return Processes()
    return named(default_name(strategy))


def named(runtime: str | Runtime) -> Runtime:
    """A runtime from its name, or from itself.

    >>> named("threads")
    Threads()
    """
    if isinstance(runtime, Runtime):
        return runtime
    if not isinstance(runtime, str):
        raise invalid_parameter("runtime", "a runtime such as Threads() or its name", runtime)
    return lookup("runtime", runtime, RUNTIMES)()


__all__ = [
    "RUNTIMES",
    "Local",
    "Processes",
    "Ray",
    "Runtime",
    "Simulator",
    "Threads",
    "default_for",
    "default_name",
    "named",
]
