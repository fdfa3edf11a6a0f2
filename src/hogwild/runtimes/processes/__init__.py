"""Worker processes that train one PyTorch model in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.delays import DelayOption, per_worker
from hogwild.machine import usable_cores
from hogwild.registry import invalid_parameter
from hogwild.runtimes.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Processes(Runtime):
    """Runtime of worker processes that share a PyTorch model's parameters and its optimiser's state.

    The runtime forks workers from a fork server that has loaded PyTorch. It never forks the calling program.

    Parameters
    ----------
    on_worker_failure : {"stop", "continue"}, default "stop"
        Reaction to the crash of a worker. With "stop" the run raises an error that has the worker's traceback. With
        "continue" the other workers take over its part of the data from the next epoch.
    heartbeat_timeout : float, default 600.0
        Seconds without a finished batch after which a worker counts as crashed.
    startup_timeout : float, default 120.0
        Seconds within which a worker must have loaded the model and the data.
    threads : int, optional
        Number of arithmetic threads of each worker. The default is the usable cores divided by the number of workers.
    delay : float, str, Delay, or mapping of int to these, default 0.0
        Seconds that a worker waits with each of its updates, for all workers or by worker number (`hogwild.delays`).
        The worker waits between the backward pass and the optimiser's step, so that its gradient becomes stale. In a
        model with tables that update themselves in the backward pass, it waits between the forward and the backward
        pass. Workers of ``Synchronous`` wait before each step. A pause for a checkpoint and the end of the run end a
        delay early.

    Raises
    ------
    ParameterError
        If an option is outside its range.
    """

    on_worker_failure: str = "stop"
    heartbeat_timeout: float = 600.0
    startup_timeout: float = 120.0
    threads: int | None = None
    delay: DelayOption = 0.0

    trains_modules = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", per_worker(self.delay))
        if self.on_worker_failure not in ("stop", "continue"):
            raise invalid_parameter("on_worker_failure", "'stop' or 'continue'", self.on_worker_failure)
        for name in ("heartbeat_timeout", "startup_timeout"):
            if not getattr(self, name) > 0:
                raise invalid_parameter(name, "a positive number of seconds", getattr(self, name))
        if self.threads is not None and (not isinstance(self.threads, int) or self.threads < 1):
            raise invalid_parameter("threads", "a positive integer, or None", self.threads)

    def threads_for(self, workers: int) -> int:
        """Return the number of arithmetic threads of each worker.

        Parameters
        ----------
        workers : int
            Number of workers of the run.

        Returns
        -------
        int
            ``threads`` where it is set, else the usable cores divided by ``workers``, and at least 1.

        Examples
        --------
        >>> Processes(threads=3).threads_for(2), Processes().threads_for(10**6)
        (3, 1)
        """
        return self.threads or max(1, usable_cores() // workers)
