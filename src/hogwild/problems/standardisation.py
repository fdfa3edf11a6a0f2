"""Columns that are far from zero in every row are moved and scaled while a model is trained.

Such a column goes along with the intercept: a step along one undoes a step along the other, and no size of steps is
right for both. Less its middle it moves by itself. What is learnt is a model of the data as it is: with ``m`` and ``s``
the middle and the scale of the columns, ``v . ((x - m) s) + c`` is ``w . x + b`` for ``w = v s`` and ``b = c - w . m``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hogwild.data.csr import NO_INDICES, Array, CSRRows
from hogwild.data.dataset import Dataset
from hogwild.data.subsample import subsample
from hogwild.problems.problem import State

FAR = 2.0  #    standard deviations that the middle of a column is from zero
FULL = 0.5  #   share of the cells that are not zero: with fewer it is sparse data, which this would fill
ROWS = 10_000  # looked at: anything near the middle will do, if it is always the same
GLANCED = 500  # looked at first: most data is seen to be near zero at a glance
NARROW = 1e-6  # of its distance from zero: a column that varies less is as good as constant


@dataclass(frozen=True, slots=True, eq=False)
class Standardisation:
    """Where columns have their middle, and what they are multiplied with, while a model is trained."""

    middle: Array
    scale: Array

    def rows(self, rows: CSRRows) -> CSRRows:
        """The rows as a dense table of moved and scaled columns."""
        columns = len(self.middle)  # other data may lack the last ones, which are zero there
        indptr = np.arange(len(rows) + 1, dtype=np.int64) * columns
        values = ((_table(rows, columns) - self.middle) * self.scale).astype(rows.values.dtype).ravel()
        return replace(rows, indptr=indptr, indices=NO_INDICES, values=values, features=columns, layout="dense")

    def to_training_space(self, state: State, positions: tuple[int, ...]) -> State:
        """A model's parameters as those of moved columns. ``positions`` are the entries that say where one is."""
        weights, intercept = state[0].copy(), state[1].copy()
        intercept[:, positions] += self._shift(weights)[:, None]
        weights[:, positions] = (self._by_column(weights[:, positions]) / self.scale[:, None, None]).reshape(
            len(weights), -1
        )
        return weights, intercept

    def from_training_space(self, state: State, positions: tuple[int, ...]) -> State:
        """The parameters of moved columns as those of a model."""
        weights, intercept = state[0].copy(), state[1].copy()
        weights[:, positions] = self.unscaled(weights[:, positions])
        intercept[:, positions] -= self._shift(weights)[:, None]
        return weights, intercept

    def unscaled(self, weights: Array) -> Array:
        """The weights of a model, from those of scaled columns."""
        return (self._by_column(weights) * self.scale[:, None, None]).reshape(weights.shape)

    def _shift(self, weights: Array) -> Array:
        """What the intercept of each output gains when columns are moved."""
        return np.asarray(self.middle @ self._by_column(weights)[:, :, 0])

    def _by_column(self, weights: Array) -> Array:
        """Weights by column, output and entry."""
        return weights.reshape(len(self.middle), -1, weights.shape[1]).astype(np.float64)


def standardisation_for(data: Dataset, scaled: bool) -> Standardisation | None:
    """A frame in which these columns are trained sooner, if they are far from zero; None if they are not.

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
    """Whether a few rows show already that no column is far from zero: none is half as far as that takes."""
    middle, spread, varies = _columns(rows)
    return bool(varies.all() and (np.abs(middle) < FAR / 2 * spread).all())


def _columns(rows: CSRRows) -> tuple[Array, Array, Array]:
    """The middle of each column, its standard deviation, and whether it varies at all."""
    table = _table(rows, rows.features)
    middle, spread = table.mean(axis=0, dtype=np.float64), table.std(axis=0, dtype=np.float64)
    return middle, spread, spread > NARROW * np.abs(middle)


def _table(rows: CSRRows, columns: int) -> Array:
    """All cells of rows: one line per row, one column per feature."""
    start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
    table = np.zeros((len(rows), columns), rows.values.dtype)
    if rows.layout == "dense":
        table[:, : rows.features] = rows.values[start:stop].reshape(len(rows), rows.features)
    else:
        values = rows.values[start:stop] if rows.layout == "sparse" else 1
        table[np.repeat(np.arange(len(rows)), np.diff(rows.indptr)), rows.indices[start:stop]] = values
    return table
