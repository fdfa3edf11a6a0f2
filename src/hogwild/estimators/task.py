"""Input and result of one fit of a linear estimator, and its messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.dataset import Dataset
from hogwild.problems.label_encoding import LabelEncoding

# Factor on the step size of the intercept for sparse data, as in scikit-learn: a rare feature is updated by few rows,
# the intercept by all of them.
SPARSE_INTERCEPT_STEP = 0.01

NOT_CONVERGED = (
    "Maximum number of iteration reached before convergence. Consider increasing max_iter to improve the fit."
)
REMEDY = "Scale the features with StandardScaler or MinMaxScaler, or give another learning_rate or a smaller eta0."

State = tuple[Array, Array]


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Input of one fit: training data, label encoding, initial parameters, held-out data and seeds."""

    data: Dataset
    labels: LabelEncoding
    start: State
    class_weight: Any = None
    held_out: Dataset | None = None
    intercept_gradient: float = 0.0
    earlier: int = 0  # number of updates made by earlier calls
    seeds: tuple[int, ...] = (0,)  # seed of the run, or one seed for the run of each class
    threads: int = 1  # most threads where one worker trains each class: classes side by side, copies of rows


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """Result of one fit: one column of weights and one intercept per output, and the state to continue from.

    The state is None where weights and intercepts are all there is to it.
    """

    weights: Array
    intercept: Array
    state: State | None
    epochs: int
    step: float | None  # step size chosen by trials; None if the step size was given
    convergence_warnings: frozenset[str]
    workers: int  # Number of workers, on the same weights or on classes side by side.


def state_of(coef: Array, intercept: Array) -> State:
    """Return parameters in the memory order of the kernels: the values of all outputs, feature by feature.

    >>> state_of(np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros(2))[0].ravel()
    array([1., 3., 2., 4.])
    """
    return np.ascontiguousarray(np.atleast_2d(coef).T).reshape(-1, 1), np.asarray(intercept).reshape(-1, 1)


def overflow_message(when: str, details: str) -> str:
    """Return the message about weights or values that are not finite, which begins as scikit-learn's.

    >>> overflow_message("epoch #3", "A smaller eta0 might help too.")[:70]
    'Floating-point under-/overflow occurred at epoch #3. Scaling input dat'
    """
    return (
        f"Floating-point under-/overflow occurred at {when}. Scaling input data with StandardScaler or MinMaxScaler "
        f"might help. {details}"
    )


def diverged_message(start: float, end: float) -> str:
    """Return the message about a loss that has risen by far."""
    return f"The fit diverged: the loss went from {start:.3g} to {end:.3g}. {REMEDY}"
