"""The fit of up to eight classes of sparse rows by a single worker, in one pass over the rows for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.estimators.output_fit import INTERRUPTIBLE, check_finite
from hogwild.kernels import linear_epochs as loop


@dataclass(frozen=True, slots=True, eq=False)
class ClassesFit:
    """Fit of some of the classes in one pass over the rows."""

    rows: CSRRows
    targets: Array
    sample_weights: Array
    squared_norms: Array
    order: Array
    class_weights: Array
    constants: Array
    kernel: Any

    def train(self, start: Array, progress: Array, epochs: int, classes: slice, coef: Array) -> None:
        """Train these classes until the last one has converged, or for a number of epochs.

        Their columns of ``start``, which has a row for each feature, are where they begin. The results are written to
        their rows of ``coef``, which has a row for each class, and to their rows of ``progress``.
        """
        self.constants[loop.MAX_EPOCHS] = epochs
        numbers, found = progress[classes], coef[classes]
        weights = np.zeros((coef.shape[1], loop.CLASSES_AT_A_TIME), coef.dtype)
        weights[:, : len(found)] = start[:, classes]
        self._run(weights, numbers, classes)
        for k, factor in enumerate(numbers[:, loop.SCALE]):
            np.multiply(weights[:, k], coef.dtype.type(factor), out=found[k])

    def _run(self, weights: Array, numbers: Array, classes: slice) -> None:
        rows, scores = self.rows, np.zeros((2, 1, weights.shape[1]), weights.dtype)
        targets = self.targets - classes.start  # Numbers of other classes match none of these.
        indptr, indices, values, *_ = rows.arrays
        updates = max(1, INTERRUPTIBLE * len(rows) // max(1, rows.nonzeros * weights.shape[1]))
        while True:
            self.kernel(
                indptr, indices, values, targets, self.sample_weights, self.squared_norms, self.order, weights,
                self.class_weights[classes], scores[0], scores[1], numbers, self.constants, updates,
            )  # fmt: skip
            for one in numbers:
                check_finite(one)
            running = numbers[:, loop.DONE] == loop.RUNNING
            if not running.any() or numbers[running, loop.EPOCHS].min() >= self.constants[loop.MAX_EPOCHS]:
                return
