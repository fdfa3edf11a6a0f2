"""The fit of one output by a single worker, and the held-out rows by which early stopping judges it."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from hogwild.data import InMemoryDataset
from hogwild.data.csr import Array, CSRRows
from hogwild.data.dataset import Dataset
from hogwild.estimators.inputs import Reshuffled, matrix_of
from hogwild.estimators.sklearn_parameters import Parts
from hogwild.kernels import linear_epochs as loop

# Values that a call passes over: some tenths of a second between two checks for Ctrl-C.
INTERRUPTIBLE = 2**25
NO_SHUFFLE = -1


def targets_of(labels: Array, classes: Array | None, k: int) -> Array:
    """Return numbers as they are, or 1 for a class and -1 for others: of two classes the second, else class ``k``."""
    if classes is None:
        return np.asarray(labels, np.float64)
    return np.where(labels == classes[1 if len(classes) == 2 else k], 1.0, -1.0)


def check_finite(progress: Array) -> None:
    """Raise FloatingPointError if a parameter is not finite any more."""
    if progress[loop.DONE] == loop.OVERFLOWED:
        raise FloatingPointError(f"a parameter is not finite after epoch {int(progress[loop.EPOCHS])}")


@dataclass(frozen=True, slots=True, eq=False)
class OutputFit:
    """Fit of one output: its rows, its parameters, and the numbers that the compiled code carries from call to call."""

    rows: CSRRows
    targets: Array
    sample_weights: Array
    squared_norms: Array
    order: Array
    weights: Array
    columns: Array
    progress: Array
    constants: Array
    kernel: Any

    @property
    def epochs(self) -> int:
        """The number of complete epochs."""
        return int(self.progress[loop.EPOCHS])

    def train(self, k: int, parts: Parts, held_out: HeldOut | None, *, verbose: bool) -> None:
        """Train output ``k`` until the fit has converged, or for all epochs of the budget."""
        epochs = parts.budget.epochs
        assert epochs is not None
        if held_out is None and not verbose and len(self.order) == len(self.rows):
            return self.run(epochs)
        ids, seed = self.order.copy(), self.constants[loop.SEED]
        order, self.constants[loop.SEED] = Reshuffled(len(self.rows)), NO_SHUFFLE
        while self.epochs < epochs and self.progress[loop.DONE] == loop.RUNNING:
            if seed != NO_SHUFFLE:
                self.order[:] = order(ids, int(seed), self.epochs)
            self.run(self.epochs + 1)
            if held_out is not None and parts.budget.tolerance is not None:
                loop.check_convergence(self.progress, self.constants, -held_out.score(k, *self.mean()))
            if verbose:
                sys.stdout.write(self.line())
        return None

    def run(self, epochs: int, last_update: float = math.inf) -> None:
        """Train until the fit has converged, or has made this number of epochs, or has come to an update.

        Raises
        ------
        FloatingPointError
            If a parameter is not finite any more.
        """
        rows, progress = self.rows, self.progress
        self.constants[loop.MAX_EPOCHS] = epochs
        updates = max(1, INTERRUPTIBLE * len(rows) // max(1, rows.nonzeros))
        indptr, indices, values, *_ = rows.arrays
        while progress[loop.DONE] == loop.RUNNING and self.epochs < epochs and progress[loop.UPDATES] < last_update:
            updates = (
                min(updates, math.ceil(last_update - progress[loop.UPDATES])) if last_update < math.inf else updates
            )
            self.kernel(
                indptr, indices, values, self.targets, self.sample_weights, self.squared_norms, self.order,
                self.weights, self.columns, progress, self.constants, updates,
            )  # fmt: skip
        check_finite(progress)

    def last(self) -> tuple[Array, Array]:
        """Return the last iterate: weights and intercept."""
        scale = self.weights.dtype.type(self.progress[loop.SCALE])
        return self.weights * scale, self.progress[loop.INTERCEPT : loop.INTERCEPT + 1].astype(self.weights.dtype)

    def mean(self) -> tuple[Array, Array]:
        """Return the mean of the averaged iterates, or the last iterate if none is averaged."""
        averaged = self.progress[loop.AVERAGED]
        if not averaged:
            return self.last()
        sums = self.columns[:, loop.SUM] + self.weights * (self.progress[loop.SCALES] - self.columns[:, loop.SINCE])
        return sums / averaged, self.progress[loop.INTERCEPTS : loop.INTERCEPTS + 1] / averaged

    def line(self) -> str:
        """Return a line about the last epoch."""
        objective, loss = self.progress[[loop.OBJECTIVE, loop.MEAN_LOSS]]
        return f"-- Epoch {self.epochs}: objective {objective:.6f}, loss {loss:.6f}\n"


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Rows that early stopping judges by."""

    matrix: Any
    labels: Array
    weights: Array | None
    classes: Array | None

    @classmethod
    def of(cls, data: Dataset, classes: Array | None) -> HeldOut:
        """Return the rows of a data set in memory as a matrix."""
        assert isinstance(data, InMemoryDataset)
        assert data.ids is not None
        rows, ids, matrix = data.rows, data.ids, matrix_of(data.rows)[data.ids]
        return cls(matrix, rows.labels[ids], rows.weights[ids] if rows.weights.size else None, classes)

    def score(self, k: int, weights: Array, intercept: Array) -> float:
        """Return the accuracy of output ``k``, or its R²."""
        scores, targets = self.matrix @ weights + intercept, targets_of(self.labels, self.classes, k)
        if self.classes is None:
            return float(r2_score(targets, scores, sample_weight=self.weights))
        return float(np.average((scores > 0) == (targets > 0), weights=self.weights))
