"""The fit of several classes of sparse rows by a single worker, in one pass over the rows for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.estimators.output_fit import INTERRUPTIBLE, check_finite
from hogwild.kernels import linear_epochs as loop


@dataclass(frozen=True, slots=True, eq=False)
class ClassesFit:
    """Fit of all classes in one pass over the rows."""

    rows: CSRRows
    targets: Array
    sample_weights: Array
    squared_norms: Array
    order: Array
    class_weights: Array
    constants: Array
    kernel: Any

    def train(self, weights: Array, progress: Array, epochs: int, classes: Array) -> None:
        """Train some classes until the last one has converged, or for a number of epochs.

        The results replace the weights and the progress of these classes. Classes that have converged are left out
        where fewer vectors then hold the others.
        """
        running, self.constants[loop.MAX_EPOCHS] = classes, epochs
        while running.size:
            vectors = -(-running.size // loop.CLASSES_AT_A_TIME)
            width, fewer = loop.CLASSES_AT_A_TIME * vectors, loop.CLASSES_AT_A_TIME * (vectors - 1)
            columns, numbers = np.zeros((len(weights), width), weights.dtype), progress[running]
            columns[:, : running.size] = weights[:, running]
            self._run(columns, numbers, running, fewer)
            weights[:, running] = columns[:, : running.size] * numbers[:, loop.SCALE].astype(weights.dtype)
            numbers[:, loop.SQUARES] *= np.square(numbers[:, loop.SCALE])
            numbers[:, loop.SCALE] = 1.0
            progress[running] = numbers
            left = (numbers[:, loop.DONE] == loop.RUNNING) & (numbers[:, loop.EPOCHS] < self.constants[loop.MAX_EPOCHS])
            running = running[left]

    def _run(self, columns: Array, numbers: Array, classes: Array, fewest: int) -> None:
        """Train until at most ``fewest`` of these classes have not converged, or for all epochs."""
        rows, scores = self.rows, np.zeros((2, 1, columns.shape[1]), columns.dtype)
        place = np.full(len(self.class_weights), -1)
        place[classes] = np.arange(len(classes))
        targets, weights = place[self.targets], self.class_weights[classes]
        indptr, indices, values, *_ = rows.arrays
        updates = max(1, INTERRUPTIBLE * len(rows) // max(1, rows.nonzeros * columns.shape[1]))
        while True:
            self.kernel(
                indptr, indices, values, targets, self.sample_weights, self.squared_norms, self.order, columns,
                weights, scores[0], scores[1], numbers, self.constants, fewest, updates,
            )  # fmt: skip
            for one in numbers:
                check_finite(one)
            running = numbers[:, loop.DONE] == loop.RUNNING
            whole = numbers[0, loop.ROW] == 0
            if whole and (
                running.sum() <= fewest or numbers[running, loop.EPOCHS].min() >= self.constants[loop.MAX_EPOCHS]
            ):
                return
