"""Predictions of models: conversion of scores, and one form for all kinds of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hogwild.errors import ParameterError

if TYPE_CHECKING:
    from scipy.sparse import sparray, spmatrix

    from hogwild.data.dataset import Dataset

    # Rows to predict: an open data set, an array, a data frame, a sparse matrix, a file, or one row by its columns.
    Rows: TypeAlias = Dataset | ArrayLike | sparray | spmatrix | str | Path | Mapping[int, float]


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Predictions for rows of a file in their order, and their quality if the file has labels.

    In a block of the rows, the quality and further entries are those of all rows up to its last one.
    """

    values: NDArray[Any]  # One number or one line per row.
    name: str = "predictions"  # Name of the predictions in a record.
    scores: Mapping[str, float] = field(default_factory=dict)  # Quality of the predictions, such as {"accuracy": 0.9}.
    more: Mapping[str, Any] = field(default_factory=dict)  # Further entries of a record.


def joined(blocks: Iterable[Predictions]) -> Predictions:
    """Return the predictions of all blocks of a file.

    >>> joined([Predictions(np.zeros(1)), Predictions(np.ones(2), scores={"r2": 0.5})])
    Predictions(values=array([0., 1., 1.]), name='predictions', scores={'r2': 0.5}, more={})
    """
    found = list(blocks)
    return replace(found[-1], values=np.concatenate([block.values for block in found]))


Classes = Sequence[float] | None  # Class labels; None if predictions are numbers.


def from_scores(scores: NDArray[np.float64], classes: Classes, link: str) -> NDArray[np.float64]:
    """Return the class, or the number, for each line of scores.

    >>> from_scores(np.array([[-1.0], [2.0]]), (3.0, 7.0), "sigmoid")
    array([3., 7.])
    """
    if classes is None:
        return np.asarray(np.exp(scores[:, 0])) if link == "exp" else scores[:, 0]
    if len(scores) == 1:  # A server waits for a single row, and arrays of one number take microseconds.
        return np.array([classes[int(scores[0, 0] > 0) if len(classes) == 2 else int(scores[0].argmax())]], np.float64)
    number = (scores[:, 0] > 0).astype(int) if len(classes) == 2 else np.argmax(scores, axis=1)
    found: NDArray[np.float64] = np.asarray(classes, np.float64)[number]
    return found


def probabilities(scores: NDArray[np.float64], classes: Classes, link: str, loss: str) -> NDArray[np.float64]:
    """Return the probability of each class, for losses that define one; each line sums to 1.

    Raises
    ------
    ParameterError
        If the loss defines no probabilities.

    Examples
    --------
    >>> probabilities(np.array([[0.0]]), (-1.0, 1.0), "sigmoid", "logistic")
    array([[0.5, 0.5]])
    """
    if classes is None or link not in ("sigmoid", "huber"):
        raise ParameterError(f"The loss '{loss}' gives no probabilities. Train with 'logistic' or 'softmax'.")
    if len(scores) == 1 and len(classes) == 2 and link == "sigmoid":  # A single row, as in from_scores.
        second = 1 / (1 + exp(-min(max(float(scores[0, 0]), -500.0), 500.0)))
        return np.array([[1 - second, second]])
    if loss == "softmax" and len(classes) > 2:
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))
    p = 1 / (1 + np.exp(-np.clip(scores, -500, 500))) if link == "sigmoid" else (np.clip(scores, -1, 1) + 1) / 2
    if len(classes) == 2:
        return np.hstack([1 - p, p])
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1), 1 / p.shape[1])


@dataclass(slots=True, eq=False)
class Quality:
    """Accuracy or R^2 of predictions that come block by block; nothing if all labels are equal, or some is missing.

    >>> quality = Quality((1.0, 2.0))
    >>> quality.add(np.array([1.0, 1.0]), np.array([1.0, 1.0])), quality.scores()
    (None, {})
    >>> quality.add(np.array([1.0]), np.array([2.0])), quality.scores()["accuracy"].__round__(3)
    (None, 0.667)
    """

    classes: Classes  # Class labels; None if predictions are numbers.
    rows: int = 0
    _first: float = 0.0  # Label of the first row.
    _differ: bool = False  # Whether some label differs from the first one.
    _known: bool = True  # Whether every label is a class, or a number. That of a row without label is NaN.
    _right: int = 0
    _mean: float = 0.0
    _deviations: float = 0.0  # Sum of the squares of the differences between labels and their mean.
    _errors: float = 0.0  # Sum of the squares of the errors.

    def add(self, predicted: NDArray[Any], labels: NDArray[np.float64]) -> None:
        """Take the predictions of further rows, and their labels, into account."""
        if len(labels) == 0:
            return
        if self.rows == 0:
            self._first = float(labels[0])
        before, self.rows = self.rows, self.rows + len(labels)
        self._differ = self._differ or bool((labels != self._first).any())
        if self.classes is not None:
            self._known = self._known and bool(np.isin(labels, self.classes).all())
            self._right += int((predicted == labels).sum())
            return
        self._known = self._known and not bool(np.isnan(labels).any())
        mean = float(labels.mean())
        apart, self._mean = mean - self._mean, self._mean + (mean - self._mean) * len(labels) / self.rows
        self._deviations += float(((labels - mean) ** 2).sum()) + apart**2 * before * len(labels) / self.rows
        self._errors += float(((predicted - labels) ** 2).sum())

    def scores(self) -> dict[str, float]:
        """Return the quality by its name."""
        if not self._differ or not self._known:
            return {}
        if self.classes is not None:
            return {"accuracy": self._right / self.rows}
        return {"r2": 1 - self._errors / self._deviations}
