"""Choice of the number of updates between two exchanges of a worker (``push_every="auto"``, ``period="auto"``)."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hogwild.messaging.deltas import Floats, add, change, plus
from hogwild.messaging.job import LocalTrainer
from hogwild.messaging.protocol import Train, Trained
from hogwild.runtimes.runtime import SimulatedCosts

# Share of a worker's time that exchanges may take, and the least number of exchanges of a worker in an epoch whatever
# they take. With fewer, workers learn less from each other. Sums of squared gradients that are averaged make up for it.
SHARE, LEAST_EXCHANGES, LEAST_WITH_MEANS = 0.1, 16, 8
# The same where an exchange takes more than ``SLOW`` seconds.
LARGE_SHARE, SOME_EXCHANGES, SLOW = 0.5, 8, 5e-3
# Least number of exchanges of a worker in an epoch where servers could not keep up, or where all workers are as one
# after each.
FEW_EXCHANGES = 4
ALONE_SECONDS = 1.0  # seconds between two exchanges of a single worker, if an epoch takes longer
TIMED_UPDATES = 2_000  # updates of the burst that is timed


@dataclass(frozen=True, slots=True)
class ExchangeInterval:
    """Chosen number of updates between two exchanges, and the measured seconds on which the choice depends."""

    updates: int
    update_seconds: float
    exchange_seconds: float

    @property
    def message(self) -> str:
        """The choice in one sentence.

        >>> ExchangeInterval(500, 1e-6, 5e-5).message
        'workers exchange changes every 500 updates: an exchange takes 0.05 ms, as long as 50 updates'
        """
        many = max(1, round(self.exchange_seconds / self.update_seconds))
        takes = f"an exchange takes {1e3 * self.exchange_seconds:.2g} ms, as long as {many:,} updates"
        return f"workers exchange changes every {self.updates:,} updates: {takes}"


def choose_interval(
    trainer: LocalTrainer, start: Floats, workers: int, rows: int, message_seconds: float, servers: int = 1,
    least_slow: int | None = SOME_EXCHANGES, shard: int = 0, least: int = LEAST_EXCHANGES,
) -> ExchangeInterval:  # fmt: skip
    """Measure an update and an exchange, and choose an interval at which exchanges take little time.

    An epoch has at least ``least`` exchanges, or ``least_slow`` if they take long and it is not None. This machine
    has the rows of ``shard``. ``message_seconds`` are those of a push and a pull without their contents.
    """
    share = max(1, rows // workers)
    timed = min(TIMED_UPDATES, share)

    def burst(updates: int, values: Floats | None = start) -> tuple[float, Trained]:
        began = time.perf_counter()
        trained = trainer.burst(Train(values, (shard, workers), 0, updates, 0, workers))
        return time.perf_counter() - began, trained

    trainer.warm_up(start)
    first = burst(timed)[1]
    begin = start if first.change is None else None  # A trainer may keep its parameters.
    once, (all_of_them, trained) = min(burst(1, begin)[0] for _ in range(2)), burst(timed, begin)
    adding = _seconds_to_add(start, trained)
    exchange = once + adding + message_seconds
    update = max(1e-9, (all_of_them - once) / timed)
    if workers == 1 and trained.change is not None:
        return ExchangeInterval(max(1, min(share, round(ALONE_SECONDS / update))), update, exchange)
    # In an interval a server adds the changes of all workers, and sums them up for each worker.
    sums = 0.0 if trained.change is None else workers**2 * adding / servers
    return _chosen(share, update, exchange, sums, least, least_slow)


def simulated_interval(
    trainer: LocalTrainer, start: Floats, workers: int, rows: int, costs: SimulatedCosts, servers: int = 1,
    least_slow: int | None = SOME_EXCHANGES, least: int = LEAST_EXCHANGES,
) -> ExchangeInterval:  # fmt: skip
    """Choose an interval from the costs of a simulated run; the size of a change is that of a burst."""
    share = max(1, rows // workers)
    trainer.warm_up(start)
    trained = trainer.burst(Train(start, (0, workers), 0, max(1, share // least), 0, workers))
    if workers == 1 and trained.change is not None:
        return ExchangeInterval(max(1, min(share, round(ALONE_SECONDS / costs.update))), costs.update, costs.message)
    size = (change(start, trained.values) if trained.change is None else trained.change).nbytes
    exchange = costs.message + 2 * size / costs.bandwidth
    # In an interval a server handles a push and a pull of each worker, and sends each of them the changes of all.
    each = 2 * costs.handling + min(workers * size, start.nbytes) / costs.bandwidth
    busy = 0.0 if trained.change is None else workers * each / servers
    return _chosen(share, costs.update, exchange, busy, least, least_slow)


def _chosen(
    share: int, update: float, exchange: float, busy: float, least: int, least_slow: int | None
) -> ExchangeInterval:
    """Return the interval for the seconds of an update, of an exchange, and of a server for those of all workers."""
    usual = min(exchange / (SHARE * update), share // least)
    rare = least_slow is not None and exchange > SLOW
    slow = min(exchange / (LARGE_SHARE * update), share // (least_slow or 1)) if rare else 0.0
    crowded = min(busy / update, share // FEW_EXCHANGES)
    return ExchangeInterval(max(1, round(max(usual, slow, crowded))), update, exchange)


def _seconds_to_add(start: Floats, trained: Trained) -> float:
    """Return the seconds in which a server adds the change of a burst, and another worker as well."""
    if trained.change is None:
        began = time.perf_counter()
        plus(start, change(start, trained.values))
        return time.perf_counter() - began
    whole = start.copy()
    add(whole, trained.change)  # The first call compiles.
    began = time.perf_counter()
    add(whole, trained.change)
    return 2 * (time.perf_counter() - began)
