"""Objective of a linear model as a function of its parameters."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.errors import ParameterError
from hogwild.landscape.curvature import turned
from hogwild.landscape.design_matrix import Tables, deviations
from hogwild.landscape.surface import Vector
from hogwild.models.linear import LinearModel
from hogwild.problems.linear import Linear
from hogwild.registry import invalid_parameter
from hogwild.run import Run
from hogwild.training.job_defaults import opened_like


class LinearSurface:
    """Mean loss and penalty of a ``Linear``, over all rows of its data or of other data.

    A vector holds the weights, feature by feature and within a feature output by output. The intercepts of all outputs
    follow, if the model has any. All values are in double precision, in the coordinates of the data as given, without
    the standardisation used in training. The weights of one output are a block, and each intercept is a block.

    The Hessian leaves out an L1 penalty, whose only curvature is at weights of zero. Its derivative at zero counts as
    0.
    """

    def __init__(self, problem: Linear, data: Any = None) -> None:
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

    def at(self, run: Any) -> Vector:
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
            found += self._pulled(table.matrix, table.weights[:, None] * slopes)
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
            found += self._pulled(table.matrix, table.weights[:, None] * turns)
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

    def _pulled(self, matrix: Any, slopes: Array) -> Vector:
        """Return the sum over rows of the gradient, from the derivatives with respect to the scores."""
        weights = np.asarray(matrix.T @ slopes).ravel()
        return np.concatenate([weights, slopes.sum(axis=0)])[: self.size]
