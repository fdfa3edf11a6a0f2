"""Runtimes, which determine where workers run: threads, processes, a simulator or a Ray cluster."""

from __future__ import annotations

from hogwild.problems.problem import Problem
from hogwild.registry import kebab, lookup, not_an_object
from hogwild.runtimes.cuda import Cuda
from hogwild.runtimes.local import Local
from hogwild.runtimes.processes import Processes
from hogwild.runtimes.ray import Ray
from hogwild.runtimes.runtime import Runtime
from hogwild.runtimes.shared_memory.threads import Threads
from hogwild.runtimes.simulator import Simulator
from hogwild.strategies.strategy import Strategy

RUNTIMES: dict[str, type[Runtime]] = {
    kebab(kind.__name__): kind for kind in (Threads, Processes, Cuda, Simulator, Local, Ray)
}


def default_name(strategy: Strategy) -> str:
    """Return the name of a strategy's default runtime: "threads" if its workers share memory, else "local"."""
    return "threads" if strategy.shares_memory else "local"


def default_for(problem: Problem, strategy: Strategy) -> Runtime:
    """Return the default runtime of a problem and a strategy.

    Batches, with shared memory or all-reduce, run on processes. Everything else runs on the strategy's default.
    """
    if problem.terms == "batches" and (strategy.shares_memory or strategy.uses_all_reduce):
        return Processes()
    return named(default_name(strategy))


def named(runtime: str | Runtime) -> Runtime:
    """Return a runtime, given itself or its name.

    >>> named("threads")
    Threads()
    """
    if isinstance(runtime, Runtime):
        return runtime
    if not isinstance(runtime, str):
        raise not_an_object("runtime", "a runtime such as Threads() or its name", runtime, Runtime)
    return lookup("runtime", runtime, RUNTIMES)()


__all__ = [
    "RUNTIMES",
    "Cuda",
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
