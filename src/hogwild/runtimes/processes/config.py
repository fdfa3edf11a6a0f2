"""``Processes``: workers that are processes around one model in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.machine import usable_cores
from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True)
class Processes:
    """Workers are processes, started afresh (never forked), that share one model and its optimiser's memory.

    If a worker dies, the run stops with its traceback, or, with ``failures="continue"``, the others go on and share
    what was its part of the data from the next epoch on. A worker that is not heard of for ``silence`` seconds counts
    as dead; to start, it may take ``patience`` seconds. Each worker has ``threads`` for its own arithmetic, by default
    its fair part of the cores.
    """

    failures: str = "stop"
    silence: float = 600.0
    patience: float = 120.0
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.failures not in ("stop", "continue"):
            raise invalid_parameter("failures", "'stop' or 'continue'", self.failures)
        for name in ("silence", "patience"):
            if not getattr(self, name) > 0:
                raise invalid_parameter(name, "a positive number of seconds", getattr(self, name))
        if self.threads is not None and (not isinstance(self.threads, int) or self.threads < 1):
            raise invalid_parameter("threads", "a positive integer, or None", self.threads)

    def threads_for(self, workers: int) -> int:
        """How many threads each worker has for its own arithmetic.

        >>> Processes(threads=3).threads_for(2), Processes().threads_for(10**6)
        (3, 1)
        """
        return self.threads or max(1, usable_cores() // workers)
