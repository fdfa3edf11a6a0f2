"""How workers keep out of each other's way when they write: not at all, by a lock, by turns, or by meeting."""

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

TRIES = 400  # to take a lock, about half a millisecond, before a worker sleeps until it is free
SPINS = 200  # looks at the board before a worker sleeps between two of them


class StopRequested(Exception):  # noqa: N818  (nothing is wrong)
    """The run has been told to stop."""


def write_policy(
    access: str, rank: int, board: SharedCounters, rest: Callable[[], None]
) -> AbstractContextManager[Any]:
    """What a worker does around each of its updates."""
    if access == "locked":
        return StepLock(rank, board)
    if access == "turns":
        return RoundRobinTurn(rank, board, rest)
    return contextlib.nullcontext()


class StepLock:
    """One writes at a time. The lock is the system's, and is free again when a process that has it dies.

    A step takes some ten microseconds, waking up a process that sleeps on such a lock a millisecond: so a worker tries
    for a while before it sleeps.
    """

    def __init__(self, rank: int, board: SharedCounters) -> None:
        self._rank, self._board, self._fd = rank, board, board.block.fd

    def __enter__(self) -> None:
        self._board.sums[self._rank, at.BEAT] = float(
            "inf"
        )  # if one who has the lock is silent, others are not to blame
        if not any(self._try() for _ in range(TRIES)):
            fcntl.lockf(self._fd, fcntl.LOCK_EX)
        self._board.beat(self._rank)

    def _try(self) -> bool:
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another has it
            return False
        return True

    def __exit__(self, *failed: object) -> None:
        fcntl.lockf(self._fd, fcntl.LOCK_UN)


class RoundRobinTurn:
    """Workers write one after the other, in order; the turns of those that are gone or have finished are passed on."""

    def __init__(self, rank: int, board: SharedCounters, rest: Callable[[], None]) -> None:
        self._rank, self._board, self._rest = rank, board, rest

    def __enter__(self) -> None:
        for _ in poll(self._rest):
            if self._board.flags[at.TURN] == self._rank:
                return

    def __exit__(self, *failed: object) -> None:
        self._board.pass_turn(self._rank)


class EpochAveraging:
    """Workers with parameters of their own meet at the end of each epoch, and go on from their average."""

    def __init__(self, work: WorkerConfig, rank: int, board: SharedCounters, rest: Callable[[], None]) -> None:
        assert work.replicas is not None
        self._rank, self._board, self._rest, self._replicas = rank, board, rest, work.replicas
        self._shared = [tensor.detach() for tensor in work.values]
        for tensor in (*work.values, *_memory(work.optimiser)):
            tensor.data = tensor.data.clone()
        self._own = [tensor.detach() for tensor in work.values]

    def bring(self) -> None:
        """Let the others have one's own."""
        for place, own in zip(self._replicas[self._rank], self._own, strict=True):
            place.copy_(own)

    def average(self, over: Callable[[], None]) -> None:
        """Bring one's own, wait for the others, and take the mean of all; then the epoch is over."""
        self.bring()
        present = self._wait()
        average_tensors(self._own, [self._replicas[rank] for rank in present])
        if present[0] == self._rank:
            for shared, own in zip(self._shared, self._own, strict=True):
                shared.copy_(own)
        over()
        self._wait()  # nobody may bring the next one before all have read this one

    def _wait(self) -> list[int]:
        counts = self._board.counts
        counts[self._rank, at.MEETINGS] += 1
        number = counts[self._rank, at.MEETINGS]
        for _ in poll(self._rest):
            present = [
                rank for rank in self._board.living()
                if counts[rank, at.STATE] != at.FINISHED or counts[rank, at.MEETINGS] >= number
            ]  # fmt: skip
            if all(counts[rank, at.MEETINGS] >= number for rank in present):
                return present
        raise AssertionError  # patience has no end: the watcher stops a run in which somebody is missing


@torch.no_grad()
def average_tensors(into: Tensors, replicas: Sequence[Tensors]) -> None:
    """Let tensors be the mean of those of several workers."""
    for number, place in enumerate(into):
        mean = replicas[0][number].to(torch.float64)
        for replica in replicas[1:]:
            mean = mean + replica[number]
        place.copy_(mean / len(replicas))


def poll(rest: Callable[[], None]) -> Iterator[None]:
    """Look again and again, ever less often. The watcher's limit on silence sees that nobody waits for the dead."""
    for looked in range(2**63):
        yield
        rest()
        if looked > SPINS:
            time.sleep(0.0002)


def _memory(optimiser: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for state in optimiser.state.values():
        yield from (value for value in state.values() if isinstance(value, torch.Tensor))
