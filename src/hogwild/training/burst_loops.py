"""Loops that train the bursts of a worker: one thread, or all cores of a node with a strategy in one memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from hogwild import strategies
from hogwild.data.dataset import Chunk, EpochPlan
from hogwild.errors import ParameterError
from hogwild.messaging.deltas import Floats
from hogwild.problems.problem import State
from hogwild.rules.rule import Rule
from hogwild.runtimes.shared_memory.threads import Session


class BurstLoop(Protocol):
    """Loop along the rows of a burst, with the parameters that it changes."""

    state: State

    def __call__(self, chunk: Chunk, rates: Floats) -> float:
        """Train on rows with the given step sizes; return the sum of their losses."""


class SingleThreadLoop:
    """Loop of the calling thread."""

    def __init__(self, problem: Any, rule: Rule, alone: bool) -> None:
        self.state: State = problem.start(rule)
        self._descend = problem.kernel(rule, "free", 1, alone)
        self._sync = problem.sync_buffer("free")

    def __call__(self, chunk: Chunk, rates: Floats) -> float:
        """Train on rows with the given step sizes; return the sum of their losses."""
        loss: float = self._descend(chunk, rates, self.state, self._sync)
        return loss


class TeamLoop:
    """Loop of a node's cores: the threads, locks and hot replicas that a run on one machine has."""

    def __init__(self, session: Session) -> None:
        self.session, self.state = session, session.state
        session.enable_replicas()

    def __call__(self, chunk: Chunk, rates: Floats) -> float:
        """Train on rows with the given step sizes; return the sum of their losses."""
        session, epoch = self.session, _BurstEpoch(chunk, self._pieces(len(chunk.order)))
        halt, at, done, loss = threading.Event(), 0, 0, 0.0
        while at < len(epoch):  # A segment ends early when hot replicas begin.
            halt.clear()
            segment = session.advance(
                epoch, at, done, lambda before, terms: rates[before : before + terms], halt, _idle
            )
            at, done, loss = segment.next_chunk, segment.updates, loss + segment.loss
            if not np.isfinite(segment.loss):
                break
        return loss

    def _pieces(self, rows: int) -> int:
        return 1 if self.session.access == "turns" else min(rows, self.session.workers)


class _BurstEpoch:
    """Rows of a burst, in as many chunks as there are threads."""

    def __init__(self, chunk: Chunk, pieces: int) -> None:
        self._rows, self._order = chunk.rows, chunk.order
        self._starts = np.linspace(0, len(chunk.order), max(1, pieces) + 1).astype(np.int64)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> Chunk:
        return Chunk(self._rows, self._order[self._starts[number] : self._starts[number + 1]])

    def done(self, number: int) -> None:
        """Release nothing: the rows belong to the trainer."""

    def whole(self) -> EpochPlan:
        """Return all chunks. Threads wait for each other at the start, because a burst is short."""
        return EpochPlan(self._rows, self._order, self._starts, self._starts)


def _idle(updates: int) -> None:
    """Do nothing: there is no clock to watch within a burst."""


@dataclass(eq=False)
class NodeCores:
    """Strategy in one memory with which each node trains on its own cores, and the loops made with it."""

    strategy: strategies.Strategy
    workers: int  # threads of each node
    _loops: list[TeamLoop] = field(default_factory=list)

    def loop(self, problem: Any, rule: Rule) -> TeamLoop:
        """Return a loop with threads of its own."""
        made = TeamLoop(Session(problem, rule, self.strategy, self.workers))
        self._loops.append(made)
        return made

    def close(self) -> None:
        """End the threads of all loops."""
        for made in self._loops:
            made.session.close()

    def __reduce__(self) -> tuple[Callable[..., NodeCores], tuple[strategies.Strategy, int]]:
        """Pickle without the loops: another process makes its own."""
        return NodeCores, (self.strategy, self.workers)


def inner_strategy(within: strategies.Strategy | str | None) -> strategies.Strategy | None:
    """Return the strategy of a node on its own cores; None for one worker per node.

    >>> inner_strategy("serial"), inner_strategy(strategies.Locked(workers=2))
    (None, Locked(workers=2))
    """
    if within is None:
        return None
    found = strategies.named(within)
    if not found.shares_memory:
        raise ParameterError(
            f"'within' is a strategy in one memory, such as Hogwild(workers=2). Got {found!r} instead."
        )
    return None if strategies.worker_count(found) == 1 else found


@contextmanager
def cores_of(within: strategies.Strategy | str | None) -> Iterator[NodeCores | None]:
    """Yield the cores of each node; None where each node has one."""
    strategy = inner_strategy(within)
    if strategy is None:
        yield None
        return
    cores = NodeCores(strategy, strategies.worker_count(strategy))
    try:
        yield cores
    finally:
        cores.close()
