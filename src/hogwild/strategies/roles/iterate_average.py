"""The mean of what a worker's parameters were towards the end (Polyak)."""

from __future__ import annotations

import numpy as np

from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.run_config import RunConfig


class IterateAverage:
    """Averages parameters from when the config says on; until then they are what they are."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.count = 0
        self.mean: Floats | None = None

    def add(self, values: Floats, progress: int) -> None:
        """One more, after so many terms of all workers."""
        if not self.config.begins_mean(progress):
            return
        self.count += 1
        if self.mean is None:
            self.mean = values.astype(np.float64)
        else:
            self.mean += (values - self.mean) / self.count

    def best(self, values: Floats) -> Floats:
        """Their mean if it has begun, else these parameters; nobody writes to what is returned."""
        if self.mean is not None:
            return frozen(self.mean.astype(values.dtype))
        return frozen(values.copy()) if values.flags.writeable else values
