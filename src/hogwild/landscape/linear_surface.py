"""The objective of a linear model as a surface: value, gradient and products with the Hessian over all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from hogwild.data.csr import Array, CSRRows, compact
from hogwild.data.dataset import Dataset
from hogwild.errors import ParameterError
from hogwild.landscape.surface import Vector
from hogwild.lazy import cached_property
from hogwild.losses import SOFTMAX
from hogwild.models.linear import LinearModel
from hogwild.problems.linear import Linear
from hogwild.registry import invalid_parameter
from hogwild.run import Run
from hogwild.training.job import opened_like


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Block of rows: a dense or sparse matrix, the label of each row and the weight of each row."""

    matrix: Any
    labels: Array
    weights: Array


class Tables:
    """All rows of a data set: one table if the data is in memory, else one table per chunk as it is read.

    >>> from hogwild.data import as_dataset
    >>> [table.matrix for table in Tables(as_dataset(([[1.0, 0.0], [0.0, 2.0]], [1, -1])), features=3)]
    [array([[1., 0., 0.],
           [0., 2., 0.]])]
    """

    def __init__(self, data: Dataset, features: int) -> None:
        self.n_rows, self.features = data.n_rows, features
        whole = _all_of(data)
        self._data = data
        self._kept = None if whole is None else table_of(*whole, features)

    def __iter__(self) -> Iterator[Table]:
        if self._kept is not None:
            yield self._kept
            return
        epoch = self._data.in_order()
        for number in range(len(epoch)):
            chunk = epoch[number]
            yield table_of(chunk.rows, chunk.order, self.features)
            epoch.done(number)


def table_of(rows: CSRRows, order: Array, features: int) -> Table:
    """Return the given rows in the given order, as a matrix with as many columns as the model."""
    here, order = compact(rows), order.astype(np.int64)
    matrix: Any
    if rows.layout == "dense":
        matrix = np.zeros((len(order), features))
        matrix[:, : rows.features] = here.values.reshape(len(rows), rows.features)[order]
    else:
        values = here.values.astype(np.float64) if rows.layout == "sparse" else np.ones(len(here.indices))
        matrix = csr_array((values, here.indices.astype(np.int64), here.indptr), shape=(len(rows), features))[order]
    weights = here.weights[order].astype(np.float64) if here.weights.size else np.ones(len(order))
    return Table(matrix, here.labels[order], weights)


def deviations(tables: Iterable[Table], features: int) -> Array:
    """Return the standard deviation of each column, with rows weighted by their weights.

    >>> matrix = np.array([[0.0, 5.0], [2.0, 5.0]])
    >>> deviations([Table(matrix, np.zeros(2), np.ones(2)), Table(matrix, np.zeros(2), np.ones(2))], 2)
    array([1., 0.])
    """
    total, sums = 0.0, np.zeros(features)
    for table in tables:
        total += float(table.weights.sum())
        sums += table.matrix.T @ table.weights
    middle = sums / total if total else sums
    squares = np.zeros(features)
    for table in tables:
        squares += _squares(table, middle)
    return np.asarray(np.sqrt(squares / total if total else squares))


def _squares(table: Table, middle: Array) -> Array:
    """Return the weighted sum of squared deviations from the mean per column, with unstored cells as zero."""
    if isinstance(table.matrix, np.ndarray):
        return np.asarray(table.weights @ np.square(table.matrix - middle))
    there, weights = table.matrix.copy(), table.weights
    apart = np.square(there.data - middle[there.indices])
    there.data = np.ones(len(there.data))
    absent = weights.sum() - there.T @ weights
    there.data = apart
    return np.asarray(there.T @ weights + absent * np.square(middle))


def _all_of(data: Dataset) -> tuple[CSRRows, Array] | None:
    kept = data.at_once()
    whole = None if kept is None else kept.in_order().whole()
    return None if whole is None else (whole.rows, whole.order[:])


# Second derivative of each loss with respect to the score z, for the label y and the parameter of the loss. At a kink
# of the first derivative the value is that of one side.
SECOND: dict[str, Callable[[Array, Array, float], Array]] = {
    "logistic": lambda z, y, parameter: 0.25 / np.square(np.cosh(np.clip(z, -700, 700) / 2)),
    "squared-hinge": lambda z, y, parameter: 2.0 * (z * y < 1),
    "modified-huber": lambda z, y, parameter: 2.0 * ((z * y < 1) & (z * y >= -1)),
    "squared": lambda z, y, parameter: np.ones_like(z),
    "huber": lambda z, y, width: 1.0 * (np.abs(z - y) <= width),
    "squared-epsilon-insensitive": lambda z, y, width: 2.0 * (np.abs(z - y) > width),
    "poisson": lambda z, y, parameter: np.exp(z),
}
SECOND[SOFTMAX.name] = SECOND["logistic"]  # softmax of two classes is logistic
STRAIGHT = {"hinge": "squared-hinge", "perceptron": "logistic", "quantile": "huber",
            "epsilon-insensitive": "squared-epsilon-insensitive"}  # fmt: skip
# Relative distance between a score and the two points at which derivatives are evaluated.
NEAR = float(np.cbrt(np.finfo(float).eps))


def turned(problem: Linear, weights: Array, scores: Array, labels: Array, moves: Array) -> Array:
    """Return the change of the derivatives with respect to the scores of each row, per unit of the given score moves.

    ``weights`` are the class weights. For a user's own loss the result is a central difference of derivatives.

    >>> problem = Linear((np.eye(2), [1.0, 2.0]), "squared")
    >>> turned(problem, np.ones(2), np.zeros((2, 1)), np.ones(2), np.array([[3.0], [4.0]]))
    array([[3.],
           [4.]])
    """
    check_bent(problem)
    loss = problem.loss
    if not (loss.ours and loss.name in SECOND):
        near = NEAR * np.maximum(1.0, np.abs(scores))
        above, below = (problem.slopes(scores + near, labels)[1], problem.slopes(scores - near, labels)[1])
        return np.asarray(moves * (above - below) / (2 * near))
    if problem.n_outputs == 1:
        weights = weights[(labels > 0).astype(int)][:, None]
        return np.asarray(weights * SECOND[loss.name](scores, labels[:, None], loss.parameter) * moves)
    classes = labels.astype(int)
    if loss.name == SOFTMAX.name:
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        return np.asarray(weights[classes][:, None] * odds * (moves - (odds * moves).sum(axis=1, keepdims=True)))
    own = np.arange(problem.n_outputs) == classes[:, None]
    bent = SECOND[loss.name](scores, np.where(own, 1.0, -1.0), loss.parameter)
    return np.asarray(np.where(own, weights, 1.0) * bent * moves)


def check_bent(problem: Linear) -> None:
    """Raise an error for a piecewise linear loss: its curvature is zero between kinks and infinite at kinks.

    >>> check_bent(Linear((np.eye(2), [1, -1]), "hinge"))
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: The loss 'hinge' is made of straight pieces: it has no Hessian. ...
    """
    name = problem.loss.name
    if problem.loss.ours and name in STRAIGHT:
        raise ParameterError(
            f"The loss '{name}' is made of straight pieces: it has no Hessian. Look at it with sphere(), sharpness() "
            f"or plane(), or at a model with the loss '{STRAIGHT[name]}'."
        )


class LinearSurface:
    """Mean loss and penalty of a ``Linear``, over all rows of its data or of other data.

    A vector holds the weights, feature by feature and within a feature output by output. The intercepts of all outputs
    follow, if the model has any. All values are in double precision, in the coordinates of the data as given, without
    the standardisation used in training. The weights of one output are a block, and each intercept is a block.

    The Hessian leaves out an L1 penalty, whose only curvature is at weights of zero. Its derivative at zero counts as
    0.
    """

    def __init__(self, problem: Linear, data: object = None) -> None:
        if problem.source.columns is not None:
            raise ParameterError(
                f"Problems of {problem.source.all_features:,} features have no landscape: use Linear(..., "
                "compact=False), or hash the features into fewer."
            )
        known = problem.source if data is None else opened_like(problem.source, data)
        if known.n_features > problem.source.n_features:
            raise ParameterError(
                f"{known.name} has {known.n_features:,} features, {problem.source.name} has "
                f"{problem.source.n_features:,}."
            )
        self.problem = problem
        self._features, self._outputs = problem.source.n_features, problem.n_outputs
        self._weights = self._features * self._outputs  # number of weights
        encoded = known.with_labels(partial(problem.labels.encode, name=known.name))
        self._tables = Tables(encoded, self._features)
        weights = problem.labels.weights(problem.class_weight, problem.source)
        self._class_weights = weights.astype(np.float64)

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self._weights + (self._outputs if self.problem.intercept else 0)

    @property
    def blocks(self) -> tuple[slice, ...]:
        """The blocks: the weights of each output, and each intercept."""
        weights = (slice(output, self._weights, self._outputs) for output in range(self._outputs))
        return (*weights, *(slice(place, place + 1) for place in range(self._weights, self.size)))

    def at(self, run: Run | LinearModel) -> Vector:
        """Return the parameters at the end of a run, or those of a model."""
        model = run.model if isinstance(run, Run) else run
        if not isinstance(model, LinearModel) or model.weights.shape != (self._features, self._outputs):
            raise invalid_parameter("run", "a run of this problem, or its model", type(model).__name__)
        return self.vector((model.weights, model.intercept))

    def vector(self, state: tuple[Array, ...]) -> Vector:
        """Return weights and intercepts as one vector."""
        weights, intercept = (np.asarray(part, np.float64).ravel() for part in state)
        return np.concatenate([weights, intercept])[: self.size]

    def loss(self, vector: Vector) -> float:
        """Compute the mean loss plus the penalty."""
        total = 0.0
        for table in self._tables:
            costs, _ = self.problem.slopes(self._scores(table.matrix, vector), table.labels)
            total += float(table.weights @ costs)
        weights, problem = vector[: self._weights], self.problem
        penalty = problem.l1 * np.abs(weights).sum() + problem.l2 / 2 * np.square(weights).sum()
        return float(total / self._tables.n_rows + penalty + problem.intercept_gradient * vector[self._weights :].sum())

    def gradient(self, vector: Vector) -> Vector:
        """Compute the derivative of the objective with respect to each parameter."""
        found = np.zeros(self.size)
        for table in self._tables:
            _, slopes = self.problem.slopes(self._scores(table.matrix, vector), table.labels)
            found += self._gradient_sum(table.matrix, table.weights[:, None] * slopes)
        found /= self._tables.n_rows
        weights = vector[: self._weights]
        found[: self._weights] += self.problem.l1 * np.sign(weights) + self.problem.l2 * weights
        found[self._weights :] += self.problem.intercept_gradient
        return found

    def times(self, vector: Vector, direction: Vector) -> Vector:
        """Compute the product of the Hessian at ``vector`` with a direction, exactly for losses of this package."""
        found = np.zeros(self.size)
        for table in self._tables:
            scores, moves = self._scores(table.matrix, vector), self._scores(table.matrix, direction)
            turns = turned(self.problem, self._class_weights, scores, table.labels, moves)
            found += self._gradient_sum(table.matrix, table.weights[:, None] * turns)
        found /= self._tables.n_rows
        found[: self._weights] += self.problem.l2 * direction[: self._weights]
        return found

    def units(self, vector: Vector) -> Vector:
        """Return one over the standard deviation of each weight's feature; 1 for intercepts and constant features."""
        spread = np.where(self._deviations > 0, self._deviations, 1.0)
        units = np.ones(self.size)
        units[: self._weights] = np.repeat(1 / spread, self._outputs)
        return units

    @cached_property
    def _deviations(self) -> Array:
        return deviations(self._tables, self._features)

    def _scores(self, matrix: Any, vector: Vector) -> Array:
        weights = vector[: self._weights].reshape(self._features, self._outputs)
        scores = np.ascontiguousarray(matrix @ weights)
        return scores + vector[self._weights :] if self.problem.intercept else scores

    def _gradient_sum(self, matrix: Any, slopes: Array) -> Vector:
        """Return the sum over rows of the gradient, from the derivatives with respect to the scores."""
        weights = np.asarray(matrix.T @ slopes).ravel()
        return np.concatenate([weights, slopes.sum(axis=0)])[: self.size]
