"""What was seen of workers in one memory, beside what was to be expected of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.data.statistics import describe
from hogwild.errors import ParameterError
from hogwild.kernels.conflict_counters import LOST, MET, MISSED, WRITES
from hogwild.run import Budget
from hogwild.runtimes.shared_memory.conflict_monitor import MOST, ConflictMonitor
from hogwild.training.message_report import figures


def conflict_monitor(problem: Any, rule: Any, strategy: Any, workers: int, budget: Budget) -> ConflictMonitor:
    """Eyes for the workers of a run; refuse what cannot be watched."""
    if not problem.counts_conflicts or rule.single_worker:
        raise ParameterError(
            "'count_conflicts' takes a Linear problem with one output, and a rule for several "
            "workers: leave out 'count_conflicts', or learn one class against the rest."
        )
    if strategy.replicas:
        raise ParameterError("Workers of Averaging have parameters to themselves: there are no conflicts to count.")
    return ConflictMonitor(problem, rule, workers, problem.data.n_rows * (budget.epochs or 10))


def conflict_probability(frequencies: NDArray[Any], rows: int) -> float:
    """How many coordinates two different rows have in common, on average: nobody meets a worker with its own row.

    >>> conflict_probability(np.array([2, 1]), rows=2)
    1.0
    """
    counts = frequencies.astype(np.float64)
    return float(counts @ (counts - 1)) / max(1, rows * (rows - 1))


def conflict_report(seen: ConflictMonitor, problem: Any, seed: int) -> dict[str, Any]:
    """What was seen, as plain values.

    ``staleness`` is how many updates by others landed between a worker's look at a term and its own update. Of an
    update, ``collided`` is how likely it was that some coordinate of its term had been changed meanwhile, ``met`` how
    many of them had, ``missed`` how often, and ``lost`` how many changes by others it overwrote unseen.

    ``predicted`` has what Omega, Delta, rho and the number of workers say about that, and what the staleness that was
    measured does. ``groups`` has the same for coordinates from the most frequent to the rarest, and ``heat`` how often
    each worker wrote to each at each moment: ``heat[worker][moment][group]``.
    """
    tally, workers = seen.tally, len(seen.eyes)
    histograms = [Counter({delay: int(n) for delay, n in enumerate(each) if n}) for each in seen.delays]
    everything = sum(histograms, Counter())
    updates, statistics = everything.total(), describe(problem.source, seed=seed)
    expected, stale = statistics.collisions(workers), figures(everything)
    each = max(1, updates)
    return {
        "workers": workers,
        "updates": updates,
        "staleness": {
            **stale,
            "histogram": {str(delay): everything[delay] for delay in sorted(everything)},
            "workers": {f"worker-{number}": figures(counts) for number, counts in enumerate(histograms)},
            "counted_up_to": MOST - 1,
        },
        "collided": seen.collided / each,
        "met": int(tally[:, MET].sum()) / each,
        "missed": int(tally[:, MISSED].sum()) / each,
        "lost": int(tally[:, LOST].sum()) / each,
        "writes": int(tally[:, WRITES].sum()),
        "lost_writes": int(tally[:, LOST].sum()),
        "predicted": {
            "omega": statistics.omega, "delta": statistics.delta, "rho": statistics.overlap.rho, "collided":
            expected.probability, "missed": expected.coordinates, "collided_by_staleness": min(1.0, stale["mean"] *
            statistics.overlap.mean), "missed_by_staleness": stale["mean"] *
            conflict_probability(problem.source.frequencies(), problem.source.n_rows),
        },
        "groups": [
            {
                "from_rank": int(first), "coordinates": int(last - first),
                "share_of_rows": float(seen.shares[first:last].mean()),
                "writes": int(row[WRITES]), "met": int(row[MET]), "missed": int(row[MISSED]), "lost": int(row[LOST]),
            }
            for first, last, row in zip(seen.starts[:-1], seen.starts[1:], tally, strict=True)
        ],
        "heat": seen.heat.tolist(),
    }  # fmt: skip
