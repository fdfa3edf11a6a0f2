"""Trained factorisation machine: scores, predictions, probabilities, and its file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hogwild import array_file
from hogwild.errors import ParameterError
from hogwild.models import FORMAT, predictions
from hogwild.models.predictions import Predictions
from hogwild.models.read_options import read_options
from hogwild.models.single_row import SingleRow, single_row

if TYPE_CHECKING:
    from onnx import ModelProto

    from hogwild.data.dataset import Dataset
    from hogwild.data.field_vocabulary import FieldVocabulary
    from hogwild.models.predictions import Rows
    from hogwild.onnx_graph import Inputs

NO_FIELDS = np.empty(0, np.uint32)
ONE = np.ones(1).tobytes()
LARGEST_KEPT = 256  # features of a row whose pairs are kept for the next row


def pairs_of(count: int) -> NDArray[np.intp]:
    """Return the places of all pairs in a square table of ``count`` lines: above its diagonal, and mirrored at it.

    >>> pairs_of(3)
    array([[1, 2, 5],
           [3, 6, 7]])
    """
    return kept_pairs(count) if count <= LARGEST_KEPT else pairs(count)


def pairs(count: int) -> NDArray[np.intp]:
    """Return what pairs_of does, made anew."""
    line, column = np.triu_indices(count, 1)
    return np.stack([line * count + column, column * count + line])


kept_pairs = lru_cache(32)(pairs)


@dataclass(frozen=True, slots=True, eq=False)
class FactorisationModel:
    """Trained factorisation machine: parameters, and all that predictions need; with ``fields``, it is field-aware.

    >>> factors = np.array([[[1.0, 0.0]], [[2.0, 1.0]]], np.float32)
    >>> model = FactorisationModel(np.zeros(2, np.float32), np.zeros(1, np.float32), factors, "squared")
    >>> model.predict(np.array([[1.0, 1.0], [3.0, 0.0]]))
    array([2., 0.])
    """

    weights: NDArray[Any] = field(repr=False)  # One weight per feature.
    intercept: NDArray[Any] = field(repr=False)  # Array of one number.
    # Factors by feature, by field of the other feature (or one row for all), and by factor.
    factors: NDArray[Any] = field(repr=False)
    loss: str
    classes: tuple[float, ...] | None = None  # Class labels; None if predictions are numbers.
    link: str = "none"
    normalise: bool = False  # Whether rows are scaled to length 1.
    fields: NDArray[Any] | None = field(default=None, repr=False)  # Field of each feature.
    # Key of each column, if a file names fields and features.
    keys: NDArray[Any] | None = field(default=None, repr=False)
    reading: Mapping[str, Any] = field(default_factory=dict)  # Options with which the training file was read.
    training: Mapping[str, Any] = field(default_factory=dict, repr=False)  # Record of the training run.

    @property
    def n_features(self) -> int:
        """The number of features of the model."""
        return len(self.weights)

    @property
    def rank(self) -> int:
        """The number of factors of a row."""
        return int(self.factors.shape[2])

    @property
    def kind(self) -> str:
        """The kind of the model in its files."""
        return "fm" if self.fields is None else "ffm"

    def open(self, path: str | Path | Sequence[str | Path], **options: object) -> Dataset:
        """Open a file for prediction, in its own order; options that are not given are those of the training file."""
        from hogwild.data.open_dataset import open as open_data

        reading = read_options(self.reading, self.n_features, options, self._vocabulary())
        return open_data(path, reading=reading, shuffle=False)

    def _blocks(self, path: str | Path | Sequence[str | Path], **options: object) -> Iterator[Dataset]:
        from hogwild.data.row_blocks import row_blocks

        return row_blocks(path, read_options(self.reading, self.n_features, options, self._vocabulary()))

    def _vocabulary(self) -> FieldVocabulary | None:
        from hogwild.data.field_vocabulary import FieldVocabulary

        return None if self.keys is None else FieldVocabulary(self.keys)

    def decide(self, data: Rows) -> NDArray[np.float64]:
        """Return the scores of a data set or a matrix, with one line per row and one column.

        A single row may also be a mapping from columns to values. It takes microseconds, and no compiled code.

        Raises
        ------
        ParameterError
            If the data has more features than the model.
        """
        row = single_row(data, self.n_features)
        return self._scores_of_rows(data) if row is None else self._scores_of(row)

    def _scores_of(self, row: SingleRow) -> NDArray[np.float64]:
        columns, values, squares = row
        columns = columns.astype(np.intp)  # what each of the following would convert them to
        if self.normalise and squares > 0:
            values = values / squares**0.5
        z = float(values.dot(self.weights.take(columns))) + float(self.intercept[0])
        return np.array([[z + self._pairs(columns, values) if len(columns) > 1 else z]])

    def _pairs(self, columns: NDArray[Any], values: NDArray[np.float64]) -> float:
        """Return the sum of the products of all pairs of features of a row."""
        factors = self.factors.take(columns, 0)
        if self.fields is not None:
            # A table with one line per feature, and one entry per feature that it is multiplied with.
            table = factors.take(self.fields.take(columns), 1)
            if values.tobytes() != ONE * len(values):
                table *= values.reshape(-1, 1, 1)
            entries = table.reshape(-1, table.shape[2]).take(pairs_of(len(values)), 0, mode="clip")
            return float(np.vdot(entries[0], entries[1]))
        # The sum is half of the difference between the sum of all products and those of a feature with itself.
        parts = factors[:, 0] * values.reshape(-1, 1)
        total, parts = parts.sum(0), parts.reshape(-1)
        return 0.5 * float(total.dot(total) - parts.dot(parts))

    def _scores_of_rows(self, data: Rows) -> NDArray[np.float64]:
        from hogwild.data.dataset import Dataset
        from hogwild.data.open_dataset import open as open_data
        from hogwild.kernels import factorisation_machine_build
        from hogwild.models.chunk_scores import scores_of_chunks
        from hogwild.models.row_answers import is_file, scores_of_blocks, warn_if_shuffled

        if is_file(data):
            warn_if_shuffled(data)
            return scores_of_blocks(self._blocks(cast(Any, data)), self._scores_of_rows)
        if not isinstance(data, Dataset):
            data = open_data(data, reading=read_options(self.reading, self.n_features, {}, self._vocabulary()))
        if data.n_features > self.n_features:
            raise ParameterError(
                f"{data.name} has {data.n_features:,} features, and the model knows {self.n_features:,}. Open it with "
                "features= and extra='ignore' to leave out the others."
            )
        kind = "any" if self.fields is None else "by field"
        return scores_of_chunks(
            data, lambda rows: factorisation_machine_build.scoring(kind, rows.layout, self.normalise),
            self._parameters(), 1,
        )  # fmt: skip

    def _parameters(self) -> tuple[Any, ...]:
        """Return the parameters for the kernels, with rows of factors padded to whole vectors."""
        from hogwild.kernels import factorisation_machine_build

        padded = -(-self.rank // 8) * 8
        factors = np.zeros((*self.factors.shape[:2], padded), np.float32)
        factors[:, :, : self.rank] = self.factors
        fields = NO_FIELDS if self.fields is None else np.append(self.fields, self.factors.shape[1]).astype(np.uint32)
        return factorisation_machine_build.scoring_parameters(
            self.weights.reshape(-1, 1), self.intercept.reshape(-1, 1), factors.reshape(-1, 1), fields, padded
        )

    def predict(self, data: Rows) -> NDArray[np.float64]:
        """Return the class, or the number, of each row."""
        return predictions.from_scores(self.decide(data), self.classes, self.link)

    def predict_proba(self, data: Rows) -> NDArray[np.float64]:
        """Return the probability of each class, for losses that define one; each row sums to 1."""
        return predictions.probabilities(self.decide(data), self.classes, self.link, self.loss)

    def answer(self, path: str | Path, *, proba: bool = False, **reading: object) -> Predictions:
        """Return predictions or probabilities for every row of a file, and their quality if the file has labels."""
        from hogwild.models.row_answers import warn_if_shuffled

        warn_if_shuffled(path)
        return predictions.joined(self.answers(path, proba=proba, **reading))

    def answers(self, path: str | Path, *, proba: bool = False, **reading: object) -> Iterator[Predictions]:
        """Yield what :meth:`answer` returns block by block, in memory that does not grow with the file."""
        from hogwild.models.row_answers import row_answers

        def answer(block: Dataset) -> tuple[NDArray[Any], NDArray[Any]]:
            scores = self.decide(block)
            predicted = predictions.from_scores(scores, self.classes, self.link)
            if not proba:
                return predicted, predicted
            return predictions.probabilities(scores, self.classes, self.link, self.loss), predicted

        name = "probabilities" if proba else "predictions"
        return row_answers(self._blocks(path, **reading), answer, name, self.classes)

    def to_onnx(
        self, path: str | os.PathLike[str] | None = None, *, inputs: Inputs = "dense",
        classes: NDArray[Any] | None = None,
    ) -> ModelProto:  # fmt: skip
        """Return the model as an ONNX graph, and write it to ``path`` if a path is given.

        Parameters
        ----------
        path : str or Path, optional
            File that is written.
        inputs : {"dense", "sparse", "table"}, default "dense"
            Form of the rows: a float32 matrix ``X`` [N, features]; or ``columns`` (int64) and ``values`` (float32),
            both [N, M], where shorter rows are filled up with values of 0; or, for a model of a table, one input [N, 1]
            for each of its columns: double for numbers, with NaN for missing ones, and string for categories. With the
            last two a field-aware model needs memory for M x M pairs.
        classes : array, optional
            Labels of the output. None is those of the model.

        Returns
        -------
        onnx.ModelProto
            Graph with the outputs ``label`` and ``probabilities`` (or ``scores``), or ``variable`` for numbers.
        """
        from hogwild.models.factorisation_onnx import to_onnx

        labels = None if self.classes is None else np.asarray(self.classes if classes is None else classes)
        return to_onnx(self, path, inputs, labels)

    def save(self, path: str | Path) -> None:
        """Write the model to a file, atomically."""
        record = {
            "kind": self.kind,
            "format": FORMAT,
            "loss": self.loss,
            "link": self.link,
            "normalise": self.normalise,
            "classes": None if self.classes is None else list(self.classes),
            "reading": dict(self.reading),
            "training": dict(self.training),
        }
        arrays = {"weights": self.weights, "intercept": self.intercept, "factors": self.factors}
        kept = {name: np.asarray(part, np.float32) for name, part in arrays.items()}
        if self.fields is not None:
            kept["fields"] = np.asarray(self.fields, np.uint32)
        if self.keys is not None:
            kept["keys"] = np.asarray(self.keys, np.uint64)
        array_file.save(path, kept, record)


def from_file(arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> FactorisationModel:
    """Return the model of a file.

    Raises
    ------
    ValueError
        If the arrays do not match each other.
    """
    weights, intercept, factors = arrays["weights"], arrays["intercept"], arrays["factors"]
    classes, fields = record["classes"], arrays["fields"] if record["kind"] == "ffm" else None
    model = FactorisationModel(
        weights, intercept, factors, str(record["loss"]), None if classes is None else tuple(float(c) for c in classes),
        str(record["link"]), bool(record["normalise"]), fields, arrays.get("keys"), dict(record["reading"]),
        dict(record["training"]),
    )  # fmt: skip
    single = weights.dtype == intercept.dtype == factors.dtype == np.float32
    rows = 1 if fields is None else int(fields.max()) + 1
    fits = weights.ndim == 1 and len(weights) > 0 and factors.ndim == 3 and intercept.shape == (1,)
    if not single or not fits or len(factors) != len(weights) or factors.shape[1] < rows or not factors.shape[2]:
        raise ValueError(f"arrays of shape {weights.shape}, {intercept.shape} and {factors.shape}")
    if fields is not None and (fields.shape != weights.shape or fields.dtype != np.uint32):
        raise ValueError(f"fields of shape {fields.shape} for {len(weights):,} features")
    if model.keys is not None and (model.keys.shape != weights.shape or model.keys.dtype != np.uint64):
        raise ValueError(f"keys of shape {model.keys.shape} for {len(weights):,} features")
    return model
