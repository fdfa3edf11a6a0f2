"""Curvature of a loss: second derivatives with respect to the scores of a linear model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hogwild.data.csr import Array
from hogwild.errors import ParameterError
from hogwild.losses import SOFTMAX
from hogwild.problems.linear import Linear

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
