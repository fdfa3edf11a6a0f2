"""Standardisation of dense columns that are far from zero, during training.

A column that is far from zero is nearly collinear with the intercept. A step along one undoes a step along the other,
and no step size suits both. A centred column moves independently. The result is a model of the original data. Let ``m``
and ``s`` be the centre and the scale of the columns. Then ``v . ((x - m) s) + c`` is ``w . x + b`` for ``w = v s`` and
``b = c - w . m``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hogwild.data.csr import NO_INDICES, Array, CSRRows
from hogwild.data.dataset import Dataset
from hogwild.data.subsample import subsample
from hogwild.problems.problem import State

FAR = 2.0  # Distance of a column's mean from zero, in standard deviations, above which the column is far.
# Minimum fraction of non-zero cells; data with fewer is sparse, and standardisation would fill it.
FULL = 0.5
# Number of rows sampled for means and deviations; any value near the mean suffices if it is always the same.
ROWS = 10_000
# Number of rows sampled first, which suffices to recognise most data as near zero.
GLANCED = 500
# Standard deviation of a column, relative to its distance from zero, below which the column counts as constant.
NARROW = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Standardisation:
    """Centre and scale factor of each column during training."""

    middle: Array
    scale: Array

    def rows(self, rows: CSRRows) -> CSRRows:
        """Return the rows as a dense table of centred and scaled columns."""
        columns = len(self.middle)  # Other data may lack the last columns, which are then zero.
        indptr = np.arange(len(rows) + 1, dtype=np.int64) * columns
        values = ((_table(rows, columns) - self.middle) * self.scale).astype(rows.values.dtype).ravel()
        return replace(rows, indptr=indptr, indices=NO_INDICES, values=values, features=columns, layout="dense")

    def to_training_space(self, state: State, positions: tuple[int, ...]) -> State:
        """Convert a model's parameters to those of standardised columns.

        ``positions`` are the state's location entries.
        """
        weights, intercept = state[0].copy(), state[1].copy()
        intercept[:, positions] += self._shift(weights)[:, None]
        weights[:, positions] = (self._by_column(weights[:, positions]) / self.scale[:, None, None]).reshape(
            len(weights), -1
        )
        return weights, intercept

    def from_training_space(self, state: State, positions: tuple[int, ...]) -> State:
        """Convert the parameters of standardised columns to those of a model."""
        weights, intercept = state[0].copy(), state[1].copy()
        weights[:, positions] = self.unscaled(weights[:, positions])
        intercept[:, positions] -= self._shift(weights)[:, None]
        return weights, intercept

    def unscaled(self, weights: Array) -> Array:
        """Convert weights of scaled columns to those of a model."""
        return (self._by_column(weights) * self.scale[:, None, None]).reshape(weights.shape)

    def _shift(self, weights: Array) -> Array:
        """Return the change of each output's intercept when columns are centred."""
        return np.asarray(self.middle @ self._by_column(weights)[:, :, 0])

    def _by_column(self, weights: Array) -> Array:
        """Reshape weights to columns, outputs and entries."""
        return weights.reshape(len(self.middle), -1, weights.shape[1]).astype(np.float64)


def standardisation_for(data: Dataset, scaled: bool) -> Standardisation | None:
    """Return a standardisation that speeds up training, or None if no column is far from zero.

    Return None also for sparse or binary data, and if the dense copy would exceed half of the free memory.

    >>> from hogwild.data import as_dataset
    >>> standardisation_for(as_dataset((np.array([[100.0, 0.0], [104.0, 1.0]]), [1, -1])), scaled=True)
    Standardisation(middle=array([102. ,   0.5]), scale=array([0.5, 2. ]))
    """
    if not data.n_rows or data.nonzeros < FULL * data.n_rows * data.n_features:
        return None
    if data.n_rows > GLANCED and _are_near(subsample(data, GLANCED).rows):
        return None
    rows = subsample(data, ROWS).rows
    if rows.layout == "binary":
        return None
    middle, spread, varies = _columns(rows)
    if not (np.abs(middle) > FAR * spread)[varies].any():
        return None
    copy = 0 if data.bounded else 4 * data.n_rows * data.n_features
    if copy > data.room / 2:
        return None
    return Standardisation(middle, 1 / np.where(varies, spread, 1.0) if scaled else np.ones(len(middle)))


def _are_near(rows: CSRRows) -> bool:
    """Return whether a small sample shows that no column is far from zero: all are within half of the threshold."""
    middle, spread, varies = _columns(rows)
    return bool(varies.all() and (np.abs(middle) < FAR / 2 * spread).all())


def _columns(rows: CSRRows) -> tuple[Array, Array, Array]:
    """Return each column's mean, its standard deviation, and whether it varies at all."""
    table = _table(rows, rows.features)
    middle, spread = table.mean(axis=0, dtype=np.float64), table.std(axis=0, dtype=np.float64)
    return middle, spread, spread > NARROW * np.abs(middle)


def _table(rows: CSRRows, columns: int) -> Array:
    """Return all cells of rows, with one line per row and one column per feature."""
    start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
    table = np.zeros((len(rows), columns), rows.values.dtype)
    if rows.layout == "dense":
        table[:, : rows.features] = rows.values[start:stop].reshape(len(rows), rows.features)
    else:
        values = rows.values[start:stop] if rows.layout == "sparse" else 1
        table[np.repeat(np.arange(len(rows)), np.diff(rows.indptr)), rows.indices[start:stop]] = values
    return table
