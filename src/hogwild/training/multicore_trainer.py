"""Local trainer of a node with several cores: bursts along rows by several threads that share the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from hogwild import strategies
from hogwild.data.dataset import Chunk
from hogwild.errors import ParameterError
from hogwild.kernels.sync_policies import restart
from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.protocol import Train, Trained
from hogwild.problems.problem import State
from hogwild.runtimes.shared_memory.epoch_runner import average_replicas
from hogwild.training.row_trainer import RowSource, RowTrainer, pack_state, unpack_state


@dataclass(frozen=True, slots=True, eq=False)
class CoreTeam:
    """Strategy of each node's threads in one memory, and the thread pool of all nodes in this process."""

    strategy: strategies.Strategy
    workers: int  # worker threads of each node
    pool: ThreadPoolExecutor

    def __reduce__(self) -> tuple[Callable[..., CoreTeam], tuple[strategies.Strategy, int]]:
        """Pickle without the pool: another process makes a pool for one node."""
        return _of_one_node, (self.strategy, self.workers)


def _of_one_node(strategy: strategies.Strategy, workers: int) -> CoreTeam:
    return CoreTeam(strategy, workers, ThreadPoolExecutor(workers, thread_name_prefix="hogwild-node"))


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
    if found.buffer not in (0, "auto"):
        raise ParameterError(
            f"Bursts are too short for buffers: use within=Hogwild(workers=...) without 'buffer'. Got {found!r}."
        )
    return None if strategies.worker_count(found) == 1 else found


@contextmanager
def cores_of(within: strategies.Strategy | str | None, nodes: int) -> Iterator[CoreTeam | None]:
    """Yield the threads of the nodes; None where each node has one worker."""
    strategy = inner_strategy(within)
    if strategy is None:
        yield None
        return
    workers = strategies.worker_count(strategy)
    # The pool has as many threads as can work at the same time. With fewer, a thread that waits for its turn could keep
    # the holder of the turn from running.
    with ThreadPoolExecutor(nodes * workers, thread_name_prefix="hogwild-node") as pool:
        yield CoreTeam(strategy, workers, pool)


class MulticoreTrainer:
    """Local trainer on rows that divides each burst among the threads of a node, which share one memory."""

    def __init__(self, rows: RowSource, cores: CoreTeam, weights: Floats | None = None) -> None:
        self.rows, self.cores, self.weights = rows, cores, weights
        problem, strategy = rows.problem, cores.strategy
        self.single_core = RowTrainer(rows, weights)
        self.state: State = problem.start(rows.rule)
        self.descend = problem.kernel(rows.rule, strategy.access, 1 if strategy.replicas else cores.workers, False)
        self.sync = problem.sync_buffer(strategy.access)

    def warm_up(self, start: Floats) -> None:
        """Run one burst before training, so that kernels are compiled before other nodes wait for this worker."""
        self.single_core.warm_up(start)
        self.burst(Train(start, (0, self.rows.workers), 0, 2 * self.cores.workers, 0, 1))

    def burst(self, train: Train) -> Trained:
        """Train on the rows of a burst, on all cores; use one core for fewer than two rows per core."""
        if train.together or train.terms < 2 * self.cores.workers:
            return self.single_core.burst(train)
        assert train.values is not None
        rates = self.rows.burst_rates(train)
        unpack_state(train.values, self.state)
        loss, done = 0.0, 0
        for chunk in self.rows.chunks(train):
            terms = len(chunk.order)
            loss += self._train_chunk(chunk, rates[done : done + terms])
            done += terms
        values = pack_state(self.state)
        values = values if self.weights is None else train.values + self.weights * (values - train.values)
        return Trained(frozen(values), train.terms, train.terms, loss, float(rates.mean()))

    def _train_chunk(self, chunk: Chunk, rates: Floats) -> float:
        strategy, count = self.cores.strategy, self.cores.workers
        if strategy.access == "turns":
            restart(self.sync)
            return self._all(lambda worker: self.descend(chunk, rates, self.state, self.sync, worker, count))
        states = [self.state] * count
        if strategy.replicas:
            states = [tuple(part.copy("K") for part in self.state) for _ in range(min(count, len(chunk.order)))]

        def own(worker: int) -> float:
            """Train on every n-th row, so that all threads have similar step sizes."""
            order = np.ascontiguousarray(chunk.order[worker::count])
            part = Chunk(chunk.rows, order)
            loss: float = self.descend(part, np.ascontiguousarray(rates[worker::count]), states[worker], self.sync)
            return loss

        loss = self._all(own, len(states))
        average_replicas(states if strategy.replicas else [], self.state)
        return loss

    def _all(self, work: Callable[[int], float], count: int | None = None) -> float:
        """Run ``work`` on all threads at the same time, this one included; return the sum of the results."""
        futures = [self.cores.pool.submit(work, worker) for worker in range(1, count or self.cores.workers)]
        try:
            loss = work(0)
        finally:
            losses = [future.result() for future in futures]
        return loss + sum(losses)
