"""Write policies of worker processes: free, locked, in turns, or averaged at the end of each epoch."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.worker_config import Tensors, WorkerConfig

DELAY_POLL_SECONDS = 0.01  # longest sleep of a delayed worker between two looks at the supervisor's flags
TRIES = 400  # attempts to take the lock, about 0.5 milliseconds, before a worker sleeps until the lock is free
SPINS = 200  # reads of the shared counters before a worker sleeps between two reads


class StopRequested(Exception):  # noqa: N818  (nothing is wrong)
    """Signal within a worker that the supervisor has stopped the run."""


def write_policy(
    access: str, rank: int, counters: SharedCounters, check_flags: Callable[[], None]
) -> AbstractContextManager[Any]:
    """Return the context in which a worker takes each step of its optimiser."""
    if access == "locked":
        return StepLock(rank, counters)
    if access == "turns":
        return RoundRobinTurn(rank, counters, check_flags)
    return contextlib.nullcontext()


def sleep_delay(seconds: float, rank: int, counters: SharedCounters) -> None:
    """Sleep for the delay of an update; return early if the supervisor requests a pause or the end of the run.

    The worker then completes the update, so that a checkpoint never has half of one.
    """
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and not (counters.flags[at.STOP] or counters.flags[at.PAUSE]):
        counters.beat(rank)
        time.sleep(min(left, DELAY_POLL_SECONDS))


class StepLock:
    """Lock that admits one writing worker at a time.

    The lock is a record lock of the operating system, which releases it when the process that holds it crashes. A step
    takes about 10 microseconds, but waking a process that sleeps on such a lock takes 1 millisecond. So a worker makes
    ``TRIES`` attempts before it sleeps.
    """

    def __init__(self, rank: int, counters: SharedCounters) -> None:
        self._rank, self._counters, self._fd = rank, counters, counters.block.fd

    def __enter__(self) -> None:
        # If the holder of the lock hangs, only the holder may time out: a waiting worker never does.
        self._counters.sums[self._rank, at.BEAT] = float("inf")
        if not any(self._try() for _ in range(TRIES)):
            fcntl.lockf(self._fd, fcntl.LOCK_EX)
        self._counters.beat(self._rank)

    def _try(self) -> bool:
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # Another worker holds the lock.
            return False
        return True

    def __exit__(self, *failed: object) -> None:
        fcntl.lockf(self._fd, fcntl.LOCK_UN)


class RoundRobinTurn:
    """Turns in the order of the ranks; a worker that has finished or terminated is skipped."""

    def __init__(self, rank: int, counters: SharedCounters, check_flags: Callable[[], None]) -> None:
        self._rank, self._counters, self._check_flags = rank, counters, check_flags

    def __enter__(self) -> None:
        for _ in poll(self._check_flags):
            if self._counters.flags[at.TURN] == self._rank:
                return

    def __exit__(self, *failed: object) -> None:
        self._counters.pass_turn(self._rank)


class EpochAveraging:
    """Averaging of workers' own parameters at the end of each epoch; workers continue from the average."""

    def __init__(
        self, work: WorkerConfig, rank: int, counters: SharedCounters, check_flags: Callable[[], None]
    ) -> None:
        assert work.replicas is not None
        self._rank, self._counters, self._check_flags, self._replicas = rank, counters, check_flags, work.replicas
        self._shared = [tensor.detach() for tensor in work.values]
        for tensor in (*work.values, *_state_tensors(work.optimiser)):
            tensor.data = tensor.data.clone()
        self._own = [tensor.detach() for tensor in work.values]

    def publish(self) -> None:
        """Publish this worker's parameters and buffers: copy them to its replica in shared memory."""
        for target, own in zip(self._replicas[self._rank], self._own, strict=True):
            target.copy_(own)

    def average(self, count_epoch: Callable[[], None]) -> None:
        """Publish this worker's parameters, wait for the other workers, and take the mean of all; then count the epoch.

        The first of these workers also writes the mean to the shared model.
        """
        self.publish()
        present = self._wait()
        average_tensors(self._own, [self._replicas[rank] for rank in present])
        if present[0] == self._rank:
            for shared, own in zip(self._shared, self._own, strict=True):
                shared.copy_(own)
        count_epoch()
        self._wait()  # No worker may publish its next parameters before all workers have read these.

    def _wait(self) -> list[int]:
        counts = self._counters.counts
        counts[self._rank, at.BARRIERS] += 1
        number = counts[self._rank, at.BARRIERS]
        for _ in poll(self._check_flags):
            present = [
                rank for rank in self._counters.running()
                if counts[rank, at.STATE] != at.FINISHED or counts[rank, at.BARRIERS] >= number
            ]  # fmt: skip
            if all(counts[rank, at.BARRIERS] >= number for rank in present):
                return present
        raise AssertionError  # Unreachable, as polling has no limit: the supervisor terminates a worker that hangs.


@torch.no_grad()
def average_tensors(into: Tensors, replicas: Sequence[Tensors]) -> None:
    """Overwrite tensors with the mean of several workers' replicas; the sum is computed in float64."""
    for number, target in enumerate(into):
        mean = replicas[0][number].to(torch.float64)
        for replica in replicas[1:]:
            mean = mean + replica[number]
        target.copy_(mean / len(replicas))


def poll(check_flags: Callable[[], None]) -> Iterator[None]:
    """Yield before each read of the shared counters: ``SPINS`` times without a sleep, then every 0.2 milliseconds.

    The iterator has no timeout of its own. The supervisor's heartbeat timeout ends a wait for a crashed worker.
    """
    for reads in range(2**63):
        yield
        check_flags()
        if reads > SPINS:
            time.sleep(0.0002)


def _state_tensors(optimiser: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for state in optimiser.state.values():
        yield from (value for value in state.values() if isinstance(value, torch.Tensor))
