"""What everybody does, as metrics of Ray, which a Prometheus server reads from the nodes.

All are recorded where the run is watched, with the tags ``run`` and ``participant``.
"""

from __future__ import annotations

from hogwild.runtimes.ray.node_stats import Throughput

TAGS = ("run", "participant")
STALENESS = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
COUNTED = {
    "updates": "Updates by a worker.",
    "bursts": "Bursts of updates by a worker.",
    "pushes": "Messages with parameters, or changes of them, by a participant.",
    "bytes": "Bytes in messages by a participant.",
    "restarts": "Times that a participant died and was started again.",
}


class Metrics:
    """The metrics of one run: ``ray_hogwild_staleness``, ``ray_hogwild_pushes_total`` and so on."""

    def __init__(self, run: str) -> None:
        from ray.util.metrics import Counter, Histogram

        self.run = run
        self._counters = {name: Counter(f"hogwild_{name}", words, TAGS) for name, words in COUNTED.items()}
        # Ray wants boundaries above zero; what is not stale at all is below the first.
        boundaries = [bound + 0.5 for bound in STALENESS]
        words = "Changes by others between the reading and the arrival of a worker's change."
        self._staleness = Histogram("hogwild_staleness", words, boundaries, TAGS)

    def note(self, participant: str, done: Throughput) -> None:
        """Somebody has done something."""
        for name in ("updates", "bursts", "pushes", "bytes"):
            self._count(name, participant, getattr(done, name))
        for worker, counts in done.delays.items():
            for delay, times in counts.items():
                for _ in range(times):
                    self._staleness.observe(delay, self._tags(worker))

    def restarted(self, participant: str) -> None:
        """Somebody is started again."""
        self._count("restarts", participant, 1)

    def _count(self, name: str, participant: str, more: float) -> None:
        if more > 0:
            self._counters[name].inc(more, self._tags(participant))

    def _tags(self, participant: str) -> dict[str, str]:
        return {"run": self.run, "participant": participant}
