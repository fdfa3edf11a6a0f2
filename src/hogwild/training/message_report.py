"""Summary of a message-passing run: staleness, traffic, and idle time of its workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from hogwild.messaging.job import Outcome


def summary(outcome: Outcome) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events that summarise a run, each with its name and its values."""
    yield "staleness", staleness(outcome.counts)
    yield "traffic", traffic(outcome)
    yield "waiting", waiting(outcome)
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
        "histogram": {str(delay): everything[delay] for delay in sorted(everything)},
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


def waiting(outcome: Outcome) -> dict[str, Any]:
    """Return the seconds that each worker was idle and busy, and the idle share of the running time of all workers."""
    idle = {
        name: max(0.0, there - outcome.busy.get(name, 0.0)) for name, there in sorted(outcome.alive.items()) if there
    }
    total = sum(outcome.alive.values())
    return {
        "idle_share": sum(idle.values()) / total if total else 0.0,
        "workers": {
            name: {
                "seconds": idle[name],
                "share": idle[name] / outcome.alive[name],
                "busy": outcome.busy.get(name, 0.0),
            }
            for name in idle
        },
        **outcome.more,
    }
