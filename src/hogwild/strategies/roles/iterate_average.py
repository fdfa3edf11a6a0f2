"""Average of a worker's iterates towards the end of a run (Polyak averaging)."""

from __future__ import annotations

import numpy as np

from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.run_config import RunConfig


class IterateAverage:
    """Polyak average of the iterates in the last part of a run, whose start the configuration sets."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.count = 0
        self.mean: Floats | None = None

    def add(self, values: Floats, progress: int) -> None:
        """Add an iterate to the average, if the average has begun after ``progress`` terms of all workers."""
        if not self.config.begins_mean(progress):
            return
        self.count += 1
        if self.mean is None:
            self.mean = values.astype(np.float64)
        else:
            self.mean += (values - self.mean) / self.count

    def best(self, values: Floats) -> Floats:
        """Return the average of the iterates, or ``values`` before the average has begun, as a read-only array."""
        if self.mean is not None:
            return frozen(self.mean.astype(values.dtype))
        return frozen(values.copy()) if values.flags.writeable else values
