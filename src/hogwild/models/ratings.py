"""Trained model of ratings: predictions, recommendations, similar items, and its file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hogwild import array_file
from hogwild.data.ids import Ids
from hogwild.errors import DataError
from hogwild.models import FORMAT
from hogwild.models.predictions import Predictions
from hogwild.registry import invalid_parameter, is_count

if TYPE_CHECKING:
    from onnx import ModelProto

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RatingsModel:
    """Factors and biases of users and items, and their names.

    >>> users, items = Ids.of(["ann"]), Ids.of([7, 9])
    >>> model = RatingsModel(np.ones((1, 1)), np.array([[1.0], [-1.0]]), np.zeros(1), np.zeros(2), 3.0, (1.0, 5.0),
    ...                      users, items)
    >>> model.predict(["ann", "ann", "bob"], [7, 9, 9])
    array([4., 2., 3.])
    >>> model.recommend("ann", 1)
    (array([7]), array([4.]))
    """

    user_factors: NDArray[Any] = field(repr=False)
    item_factors: NDArray[Any] = field(repr=False)
    user_biases: NDArray[Any] = field(repr=False)
    item_biases: NDArray[Any] = field(repr=False)
    mean: float
    bounds: tuple[float, float]  # Lowest and highest prediction.
    users: Ids = field(repr=False)
    items: Ids = field(repr=False)
    loss: str = "squared"
    reading: Mapping[str, Any] = field(default_factory=dict)  # Options with which the training file was read.
    training: Mapping[str, Any] = field(default_factory=dict, repr=False)  # Record of the training run.

    @property
    def rank(self) -> int:
        """The number of factors of a user or an item."""
        return int(self.user_factors.shape[1])

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return the predicted rating of each pair of a user and an item.

        For an unknown user or item, the prediction consists of the remaining parts, such as the mean rating. One name
        each, instead of arrays, is one pair.

        Raises
        ------
        DataError
            If there are not as many users as items, or if a name is missing.
        """
        user, item = _single(users), _single(items)
        if user is not None and item is not None:
            return self._score_of(self.users.number_of(user), self.items.number_of(item))
        user_numbers, item_numbers = self.users.numbers_of(users), self.items.numbers_of(items)
        if len(user_numbers) != len(item_numbers):
            raise DataError(
                f"there are {len(user_numbers):,} users and {len(item_numbers):,} items, and a pair is one of each"
            )
        return self.scores_of(user_numbers, item_numbers)

    def _score_of(self, user: int, item: int) -> Floats:
        """Return the predicted rating of one pair, without masks."""
        score = self.mean
        if user >= 0:
            score += float(self.user_biases[user])
        if item >= 0:
            score += float(self.item_biases[item])
            if user >= 0:
                score += float(self.user_factors[user] @ self.item_factors[item])
        low, high = self.bounds
        return np.array([min(max(score, low), high)])

    def scores_of(self, users: NDArray[Any], items: NDArray[Any]) -> Floats:
        """Return the predicted rating of each pair of a user's and an item's number; -1 means unknown."""
        known_user, known_item = users >= 0, items >= 0
        both = known_user & known_item
        scores = np.full(len(users), self.mean, np.float64)
        scores[known_user] += self.user_biases[users[known_user]]
        scores[known_item] += self.item_biases[items[known_item]]
        scores[both] += np.einsum("nk,nk->n", self.user_factors[users[both]], self.item_factors[items[both]])
        return np.clip(scores, *self.bounds)

    def scores_of_items(self, user: int) -> Floats:
        """Return the scores of all items for the user of this number, not clipped to the bounds."""
        scores = self.item_biases + self.mean
        if user >= 0:
            scores = scores + self.item_factors @ self.user_factors[user] + self.user_biases[user]
        return np.asarray(scores, np.float64)

    def recommend(
        self, user: object, n: int = 10, without: NDArray[Any] | Sequence[str] | Sequence[int] = ()
    ) -> tuple[NDArray[Any], Floats]:
        """Return the names and the scores of the ``n`` items with the highest scores, best first.

        The items in ``without`` are left out.
        """
        scores = self.scores_of_items(int(self.users.numbers_of([user])[0]))
        if len(without):
            numbers = self.items.numbers_of(without)
            scores[numbers[numbers >= 0]] = -np.inf
        best = _largest(scores, n)
        return self.items.names[best], np.clip(scores[best], *self.bounds)

    def similar_items(self, item: object, n: int = 10) -> tuple[NDArray[Any], Floats]:
        """Return the names of the ``n`` items with the most similar factors, and the cosines of their angles.

        Raises
        ------
        KeyError
            If there is no such item.
        """
        number = int(self.items.numbers_of([item])[0])
        if number < 0:
            raise KeyError(f"There is no item {item!r}.")
        lengths = np.maximum(np.linalg.norm(self.item_factors, axis=1), np.finfo(np.float32).tiny)
        cosines = (self.item_factors @ self.item_factors[number] / (lengths * lengths[number])).astype(np.float64)
        cosines[number] = -np.inf
        best = _largest(cosines, n)
        return self.items.names[best], cosines[best]

    def answer(self, path: str | Path, *, proba: bool = False, **reading: Any) -> Predictions:
        """Return predictions for every line of a file of users and items, and their quality if the file has ratings.

        Raises
        ------
        ParameterError
            If an option is for linear models only.
        """
        from hogwild.data.ratings.open_ratings import read_columns
        from hogwild.data.ratings.text import Columns
        from hogwild.errors import ParameterError

        if proba or "base" in reading:
            raise ParameterError("--proba and --base are for linear models: this is one of ratings.")
        known = {name: self.reading.get(name) for name in ("user", "item", "rating")}
        format = reading.get("format", self.reading.get("format", "auto"))
        users, items, ratings = read_columns(path, Columns(**known), format, unlabelled=True)
        numbers = self.users.numbers_of(users), self.items.numbers_of(items)
        predicted = self.scores_of(*numbers)
        unknown = {"unknown_users": int((numbers[0] < 0).sum()), "unknown_items": int((numbers[1] < 0).sum())}
        if ratings is None or self.loss != "squared":
            return Predictions(predicted, more=unknown)
        return Predictions(
            predicted, scores={"rmse": float(np.sqrt(np.mean((predicted - ratings) ** 2)))}, more=unknown
        )

    def answers(self, path: str | Path, *, proba: bool = False, **reading: Any) -> Iterator[Predictions]:
        """Yield what :meth:`answer` returns, in one block."""
        yield self.answer(path, proba=proba, **reading)

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> ModelProto:
        """Return the model as an ONNX graph, and write it to ``path`` if a path is given.

        Its inputs ``user`` and ``item`` are names, int64 or strings as in the model, of shape [N]. Its output
        ``scores`` [N] is what :meth:`predict` returns, also for unknown names.
        """
        from hogwild.models.ratings_onnx import to_onnx

        return to_onnx(self, path)

    def save(self, path: str | Path) -> None:
        """Write the model to a file, atomically."""
        record = {
            "kind": "ratings",
            "format": FORMAT,
            "loss": self.loss,
            "mean": self.mean,
            "bounds": [None if np.isinf(bound) else bound for bound in self.bounds],
            "reading": dict(self.reading),
            "training": dict(self.training),
        }
        numbers = {
            "user_factors": self.user_factors,
            "item_factors": self.item_factors,
            "user_biases": self.user_biases,
            "item_biases": self.item_biases,
        }
        arrays = {name: np.asarray(part, np.float32) for name, part in numbers.items()}
        array_file.save(path, arrays | self.users.arrays("user") | self.items.arrays("item"), record)


def from_file(arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> RatingsModel:
    """Return the model of a file.

    Raises
    ------
    ValueError
        If the arrays do not match each other.
    """
    low, high = record["bounds"]
    model = RatingsModel(
        arrays["user_factors"], arrays["item_factors"], arrays["user_biases"], arrays["item_biases"],
        float(record["mean"]), (-np.inf if low is None else float(low), np.inf if high is None else float(high)),
        Ids.from_arrays(arrays, "user"), Ids.from_arrays(arrays, "item"), str(record["loss"]),
        dict(record["reading"]), dict(record["training"]),
    )  # fmt: skip
    for factors, biases, names in (
        (model.user_factors, model.user_biases, model.users), (model.item_factors, model.item_biases, model.items),
    ):  # fmt: skip
        if factors.ndim != 2 or factors.shape != (len(names), model.rank) or biases.shape != (len(names),):
            raise ValueError(f"factors of shape {factors.shape}, biases of {biases.shape} and {len(names)} names")
    return model


def _single(names: ArrayLike) -> str | int | None:
    """Return the only name, or None if there are several, or if it has to be converted."""
    if isinstance(names, (list, tuple)) and len(names) == 1:
        names = names[0]
    return names if type(names) is str or type(names) is int else None


def _largest(scores: Floats, n: int) -> NDArray[Any]:
    """Return the positions of the ``n`` largest finite scores, the largest first."""
    if not is_count(n):
        raise invalid_parameter("n", "a positive integer", n)
    n = min(int(n), int(np.isfinite(scores).sum()))
    some = np.argpartition(-scores, n - 1)[:n] if 0 < n < len(scores) else np.arange(len(scores))
    chosen: NDArray[Any] = some[np.argsort(-scores[some], kind="stable")][:n]
    return chosen
