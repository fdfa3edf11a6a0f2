"""Metrics of Ray for the nodes of a run; a Prometheus server scrapes them from the Ray nodes.

The driver records all metrics, with the tags ``run`` and ``participant``.
"""

from __future__ import annotations

from hogwild.runtimes.ray.node_stats import Throughput

TAGS = ("run", "participant")
STALENESS = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]  # bounds of the histogram, in deltas by other workers
COUNTED = {
    "updates": "Updates by a worker.",
    "bursts": "Bursts of updates by a worker.",
    "pushes": "Messages with parameters, or changes of them, by a participant.",
    "bytes": "Bytes in messages by a participant.",
    "restarts": "Times that a participant died and was started again.",
}


class Metrics:
    """Metrics of one run: the histogram ``ray_hogwild_staleness``, and counters such as ``ray_hogwild_pushes_total``.

    ``run`` is the identifier of the run, which tags each metric.
    """

    def __init__(self, run: str) -> None:
        from ray.util.metrics import Counter, Histogram

        self.run = run
        self._counters = {name: Counter(f"hogwild_{name}", words, TAGS) for name, words in COUNTED.items()}
        # Ray requires boundaries above zero. With an offset of 0.5, staleness 0 falls below the first boundary.
        boundaries = [bound + 0.5 for bound in STALENESS]
        words = "Changes by others between the reading and the arrival of a worker's change."
        self._staleness = Histogram("hogwild_staleness", words, boundaries, TAGS)

    def note(self, participant: str, done: Throughput) -> None:
        """Record the work of a node between two heartbeats."""
        for name in ("updates", "bursts", "pushes", "bytes"):
            self._count(name, participant, getattr(done, name))
        for worker, counts in done.delays.items():
            for delay, times in counts.items():
                for _ in range(times):
                    self._staleness.observe(delay, self._tags(worker))

    def restarted(self, participant: str) -> None:
        """Count a restart of a node."""
        self._count("restarts", participant, 1)

    def _count(self, name: str, participant: str, more: float) -> None:
        if more > 0:
            self._counters[name].inc(more, self._tags(participant))

    def _tags(self, participant: str) -> dict[str, str]:
        return {"run": self.run, "participant": participant}
