"""Runtimes, which determine where workers run: threads, processes, a simulator or a Ray cluster.

Each is imported when it is first used: threads need neither messages nor a simulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hogwild.lazy import late_names
from hogwild.registry import kebab, lookup, not_an_object
from hogwild.runtimes.runtime import Runtime

if TYPE_CHECKING:
    from hogwild.problems.problem import Problem
    from hogwild.runtimes.cuda import Cuda as Cuda
    from hogwild.runtimes.local import Local as Local
    from hogwild.runtimes.processes import Processes as Processes
    from hogwild.runtimes.ray import Ray as Ray
    from hogwild.runtimes.shared_memory.threads import Threads as Threads
    from hogwild.runtimes.simulator import Simulator as Simulator
    from hogwild.strategies.strategy import Strategy

    RUNTIMES: dict[str, type[Runtime]]

_HOMES = {
    "Threads": "hogwild.runtimes.shared_memory.threads",
    "Processes": "hogwild.runtimes.processes",
    "Cuda": "hogwild.runtimes.cuda",
    "Simulator": "hogwild.runtimes.simulator",
    "Local": "hogwild.runtimes.local",
    "Ray": "hogwild.runtimes.ray",
}
_NAMES = {kebab(name): name for name in _HOMES}
_imported, __dir__ = late_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    return {known: _imported(kind) for known, kind in _NAMES.items()} if name == "RUNTIMES" else _imported(name)


def default_name(strategy: Strategy) -> str:
    """Return the name of a strategy's default runtime: "threads" if its workers share memory, else "local"."""
    return "threads" if strategy.shares_memory else "local"


def default_for(problem: Problem, strategy: Strategy) -> Runtime:
    """Return the default runtime of a problem and a strategy.

    Batches, with shared memory or all-reduce, run on processes. Everything else runs on the strategy's default.
    """
    if problem.terms == "batches" and (strategy.shares_memory or strategy.uses_all_reduce):
        return named("processes")
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
    found: Runtime = _imported(lookup("runtime", runtime, _NAMES))()
    return found


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
