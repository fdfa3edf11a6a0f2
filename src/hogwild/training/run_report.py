"""Figures of a run about asynchrony: staleness, traffic and idle time of messages, and conflicts in shared memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hogwild.data.statistics import describe
from hogwild.errors import ParameterError
from hogwild.kernels.conflict_counters import LOST, MET, MISSED, WRITES
from hogwild.runtimes.shared_memory.conflict_monitor import MOST, ConflictMonitor
from hogwild.stopping import Budget

if TYPE_CHECKING:
    from hogwild.messaging.job import Outcome
    from hogwild.runtimes.processes.conflict_monitor import ModuleConflictMonitor


def summary(outcome: Outcome) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events that summarise a run, each with its name and its values."""
    yield "staleness", staleness(outcome.counts)
    yield "traffic", traffic(outcome)
    yield "idle", idle(outcome)
    if outcome.trace is not None:
        yield "trace", outcome.trace.summary()


def staleness(counts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the distribution of staleness: in total, by worker, and by the server or worker that received a delta."""
    everything: Counter[int] = Counter()
    workers: dict[str, Counter[int]] = {}
    lags: Counter[int] = Counter()
    shards: dict[str, dict[str, float]] = {}
    for name, counted in sorted(counts.items()):
        here: Counter[int] = Counter()
        for sender, histogram in counted.get("delays", {}).items():
            here.update(histogram)
            workers.setdefault(sender, Counter()).update(histogram)
        lags.update(counted.get("lags", {}))
        everything.update(here)
        if here:
            shards[name] = figures(here)
    return {
        **figures(everything),
        "histogram": {delay: everything[delay] for delay in sorted(everything)},
        "workers": {name: figures(workers[name]) for name in sorted(workers)},
        "shards": shards,
        "most_clocks_behind": max(lags, default=0),
    }


def figures(histogram: Counter[int]) -> dict[str, float]:
    """Return the mean, median, 95th percentile, maximum and count of a histogram.

    >>> figures(Counter({0: 8, 3: 1, 10: 1}))
    {'mean': 1.3, 'median': 0, 'p95': 10, 'most': 10, 'count': 10}
    """
    count = histogram.total()
    if not count:
        return {"mean": 0.0, "median": 0, "p95": 0, "most": 0, "count": 0}
    return {
        "mean": sum(delay * times for delay, times in histogram.items()) / count,
        "median": _quantile(histogram, 0.5), "p95": _quantile(histogram, 0.95), "most": max(histogram), "count": count,
    }  # fmt: skip


def _quantile(histogram: Counter[int], share: float) -> int:
    left = share * histogram.total()
    for delay in sorted(histogram):
        left -= histogram[delay]
        if left <= 0:
            return delay
    return max(histogram)


def traffic(outcome: Outcome) -> dict[str, Any]:
    """Return the numbers of messages and bytes, in total and by kind of message."""
    sent = outcome.traffic
    return {
        "messages": sum(each.messages for each in sent.values()),
        "bytes": sum(each.bytes for each in sent.values()),
        "receipts": sum(each.receipts for each in sent.values()),
        "lost": sum(each.lost for each in sent.values()),
        "resent": sum(each.resent for each in sent.values()),
        "kinds": {
            kind: {"messages": each.messages + each.receipts, "bytes": each.bytes}
            for kind, each in sorted(sent.items()) if each.messages or each.receipts
        },
    }  # fmt: skip


def idle(outcome: Outcome) -> dict[str, Any]:
    """Return the seconds that each worker was idle and busy, and the idle share of the running time of all workers."""
    seconds = {
        name: max(0.0, there - outcome.busy.get(name, 0.0)) for name, there in sorted(outcome.alive.items()) if there
    }
    total = sum(outcome.alive.values())
    return {
        "idle_share": sum(seconds.values()) / total if total else 0.0,
        "workers": {
            name: {
                "seconds": seconds[name],
                "share": seconds[name] / outcome.alive[name],
                "busy": outcome.busy.get(name, 0.0),
            }
            for name in seconds
        },
        **outcome.more,
    }


def conflict_monitor(problem: Any, rule: Any, strategy: Any, workers: int, budget: Budget) -> ConflictMonitor:
    """Return a monitor of the conflicts of a run's workers.

    Raises
    ------
    ParameterError
        If the problem, rule or strategy has no conflicts that can be counted.
    """
    if not problem.counts_conflicts or rule.single_worker:
        raise ParameterError(
            "'count_conflicts' takes a Linear problem with one output, and a rule for several "
            "workers: leave out 'count_conflicts', or learn one class against the rest."
        )
    if strategy.replicas:
        raise ParameterError("Workers of Averaging have parameters to themselves: there are no conflicts to count.")
    return ConflictMonitor(problem, rule, workers, problem.data.n_rows * (budget.epochs or 10))


def conflict_probability(frequencies: NDArray[Any], rows: int) -> float:
    """Return the mean number of coordinates that two different rows share.

    A row is not paired with itself, because no two workers process the same row at the same time.

    >>> conflict_probability(np.array([2, 1]), rows=2)
    1.0
    """
    counts = frequencies.astype(np.float64)
    return float(counts @ (counts - 1)) / max(1, rows * (rows - 1))


class ConflictCounts(Protocol):
    """Counts of conflicts between workers in one memory, of rows or of a module."""

    @property
    def collided(self) -> int:
        """The number of updates of which another worker changed a coordinate between read and write."""

    @property
    def delays(self) -> NDArray[np.int64]:
        """The staleness histogram of each worker."""

    @property
    def tally(self) -> NDArray[np.int64]:
        """The counts of each group of coordinates."""

    @property
    def heat(self) -> NDArray[np.int64]:
        """The number of writes, by worker, interval of the run and group."""


def conflict_report(seen: ConflictMonitor, problem: Any, seed: int) -> dict[str, Any]:
    """Return the measured and predicted conflicts of workers along rows as plain values.

    - ``staleness`` is the distribution of the number of updates by others between a worker's read and its write.
    - ``collided`` is the share of updates of which at least one coordinate was changed between read and write.
    - ``met`` is the number of such coordinates per update.
    - ``missed`` is the number of such changes per update.
    - ``lost`` is the number of changes by others that an update overwrote unseen.
    - ``predicted`` has the predictions from Omega, Delta, rho and the number of workers. The entries with the suffix
      ``_by_staleness`` follow from the measured staleness.
    - ``groups`` has the counts of each group of coordinates, from the most frequent to the rarest.
    - ``heat[worker][moment][group]`` is the number of writes of a worker to a group, in each interval of the run.
    """
    measured, statistics = _measured(seen), describe(problem.source, seed=seed)
    expected, mean = statistics.collisions(measured["workers"]), measured["staleness"]["mean"]
    return {
        **measured,
        "predicted": {
            "omega": statistics.omega, "delta": statistics.delta, "rho": statistics.overlap.rho, "collided":
            expected.probability, "missed": expected.coordinates, "collided_by_staleness": min(1.0, mean *
            statistics.overlap.mean), "missed_by_staleness": mean *
            conflict_probability(problem.source.frequencies(), problem.source.n_rows),
        },
        "groups": [
            {
                "from_rank": int(first), "coordinates": int(last - first),
                "share_of_rows": float(seen.shares[first:last].mean()),
                "writes": int(row[WRITES]), "met": int(row[MET]), "missed": int(row[MISSED]), "lost": int(row[LOST]),
            }
            for first, last, row in zip(seen.starts[:-1], seen.starts[1:], seen.tally, strict=True)
        ],
    }  # fmt: skip


def module_conflict_report(seen: ModuleConflictMonitor) -> dict[str, Any]:
    """Return the measured and predicted conflicts of workers that train a module as plain values.

    The values are those of :func:`conflict_report`, where a coordinate is one parameter. Each of ``groups`` is a tensor
    or a block of rows of a table, by its name. ``lost_change`` is the share of all changes, by their sizes, that was
    overwritten unseen.
    """
    return {
        **_measured(seen), "lost_change": seen.lost_change, "predicted": seen.predicted(), "groups": seen.groups(),
    }  # fmt: skip


def _measured(seen: ConflictCounts) -> dict[str, Any]:
    """Return what was counted, except for the counts of single groups."""
    tally, workers = seen.tally, len(seen.delays)
    histograms = [Counter({delay: int(n) for delay, n in enumerate(each) if n}) for each in seen.delays]
    everything = sum(histograms, Counter())
    updates = everything.total()
    each = max(1, updates)
    return {
        "workers": workers,
        "updates": updates,
        "staleness": {
            **figures(everything),
            "histogram": {delay: everything[delay] for delay in sorted(everything)},
            "workers": {f"worker-{number}": figures(counts) for number, counts in enumerate(histograms)},
            "counted_up_to": MOST - 1,
        },
        "collided": seen.collided / each,
        "met": int(tally[:, MET].sum()) / each,
        "missed": int(tally[:, MISSED].sum()) / each,
        "lost": int(tally[:, LOST].sum()) / each,
        "writes": int(tally[:, WRITES].sum()),
        "lost_writes": int(tally[:, LOST].sum()),
        "heat": seen.heat.tolist(),
    }
