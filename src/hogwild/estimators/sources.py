"""What an estimator is fitted to: arrays as scikit-learn takes them, or files and data sets as ``hogwild`` does."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hogwild.data import Memory
from hogwild.data import open as open_data
from hogwild.data.dataset import Dataset
from hogwild.data.extents import row_numbers
from hogwild.data.rows import Array
from hogwild.errors import ParameterError

FLOATS = [np.float64, np.float32]


def is_source(X: Any) -> bool:
    """Whether this is a file, several files or an open data set rather than arrays.

    >>> is_source("clicks.svm"), is_source([[0.0, 1.0]])
    (True, False)
    """
    if hasattr(X, "in_order"):
        return True
    several = isinstance(X, (list, tuple)) and len(X) > 0 and all(isinstance(x, (str, os.PathLike)) for x in X)
    return isinstance(X, (str, os.PathLike)) or several


def open_source(X: Any, y: Any, sample_weight: Any, memory: Any) -> Dataset:
    """Open a file or a data set, which has its own labels and weights."""
    if y is not None or sample_weight is not None:
        raise ParameterError(
            "A file or data set has labels and weights of its own. Leave out 'y' and 'sample_weight', or give arrays."
        )
    return open_data(X, memory=memory)


def parted(data: Memory, aside: Array) -> tuple[Dataset, Dataset]:
    """The rows that are not in ``aside``, and those that are; nothing is copied.

    >>> data = open_data(np.eye(4), np.arange(4))
    >>> [part.labels().tolist() for part in parted(data, np.array([2]))]
    [[0.0, 1.0, 3.0], [2.0]]
    """
    numbers = row_numbers(0, data.n_rows)
    chosen = np.zeros(data.n_rows, bool)
    chosen[aside] = True
    rest, part = (Memory(data.rows, shuffled=False, ids=numbers[which]) for which in (~chosen, chosen))
    return rest, part


def rows_to_validate(y: Array, weights: Array | None, fraction: float, random_state: Any, *, stratified: bool) -> Array:
    """The rows that early stopping sets aside, the same as scikit-learn's."""
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

    splitter = StratifiedShuffleSplit if stratified else ShuffleSplit
    rest, aside = next(splitter(test_size=fraction, random_state=random_state).split(np.zeros((len(y), 1)), y))
    if weights is not None and not np.any(weights[aside] > 0):
        raise ValueError("The sample weights for validation set are all zero, consider using a different random state.")
    if len(rest) == 0 or len(aside) == 0:
        raise ValueError(
            f"Splitting {len(y)} samples into a train set and a validation set with validation_fraction={fraction!r} "
            f"led to an empty set ({len(rest)} and {len(aside)} samples). Please either change validation_fraction, "
            "increase number of samples, or disable early_stopping."
        )
    return np.asarray(aside)
