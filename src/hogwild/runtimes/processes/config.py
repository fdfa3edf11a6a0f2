"""``Processes``: workers that are processes around one model in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.machine import usable_cores
from hogwild.registry import invalid_parameter
from hogwild.runtimes.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Processes(Runtime):
    """Train a PyTorch model with processes that share its parameters and its optimiser's state.

    Processes are spawned from a fork server that has loaded PyTorch; the calling program is never forked.

    Parameters
    ----------
    on_worker_failure : {"stop", "continue"}, default "stop"
        What happens when a worker dies: the run stops with its traceback, or the others go on and take over its part
        of the data from the next epoch.
    heartbeat_timeout : float, default 600.0
        Seconds without a finished batch after which a worker counts as dead.
    startup_timeout : float, default 120.0
        Seconds that a worker has to load the model and the data.
    threads : int, optional
        Threads of each worker's own arithmetic; by default the usable cores divided by the number of workers.
    """

    on_worker_failure: str = "stop"
    heartbeat_timeout: float = 600.0
    startup_timeout: float = 120.0
    threads: int | None = None

    trains_modules = True

    def __post_init__(self) -> None:
        if self.on_worker_failure not in ("stop", "continue"):
            raise invalid_parameter("on_worker_failure", "'stop' or 'continue'", self.on_worker_failure)
        for name in ("heartbeat_timeout", "startup_timeout"):
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
