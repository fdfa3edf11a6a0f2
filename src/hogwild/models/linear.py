"""Trained linear model: scores, predictions, probabilities, and its file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hogwild import array_file
from hogwild.data.present_columns import PresentColumns
from hogwild.errors import ParameterError
from hogwild.models import FORMAT, predictions
from hogwild.models.predictions import Predictions
from hogwild.models.read_options import read_options
from hogwild.models.single_row import SingleRow, single_row

if TYPE_CHECKING:
    from onnx import ModelProto

    from hogwild.data.dataset import Dataset
    from hogwild.models.predictions import Rows
    from hogwild.onnx_graph import Inputs


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """Trained linear model: weights, intercept, and all that predictions need.

    >>> model = LinearModel(np.array([[2.0], [-1.0]], np.float32), np.zeros(1, np.float32), "logistic", (0.0, 1.0))
    >>> model.predict(np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([1., 0.])
    """

    weights: NDArray[Any] = field(repr=False)  # Weights, with one row per feature and one column per output.
    intercept: NDArray[Any] = field(repr=False)  # One number per output.
    loss: str
    classes: tuple[float, ...] | None = None  # Class labels; None if predictions are numbers.
    link: str = "none"
    reading: Mapping[str, Any] = field(default_factory=dict)  # Options with which the training file was read.
    training: Mapping[str, Any] = field(default_factory=dict, repr=False)  # Record of the training run.
    # Features that have a weight, where that is a small part of all; None if all have one.
    columns: PresentColumns | None = field(default=None, repr=False)

    @property
    def n_features(self) -> int:
        """The number of features of the model, with those that no row of the training data had."""
        return len(self.weights) if self.columns is None else self.columns.features

    def open(self, path: str | Path | Sequence[str | Path], **options: object) -> Dataset:
        """Open a file for prediction, in its own order; options that are not given are those of the training file."""
        from hogwild.data.open_dataset import open as open_data

        reading = read_options(self.reading, self.n_features, options)
        return open_data(path, reading=reading, shuffle=False)

    def _blocks(self, path: str | Path | Sequence[str | Path], **options: object) -> Iterator[Dataset]:
        from hogwild.data.row_blocks import row_blocks

        return row_blocks(path, read_options(self.reading, self.n_features, options))

    def decide(self, data: Rows) -> NDArray[np.float64]:
        """Return the scores of a data set or a matrix, with one line per row and one column per output.

        A single row may also be a mapping from columns to values. It takes microseconds, and no compiled code.

        Raises
        ------
        ParameterError
            If the data has more features than the model.
        """
        row = single_row(data, self.n_features)
        return self._scores_of_rows(data) if row is None else self._scores_of(row)

    def _scores_of(self, row: SingleRow) -> NDArray[np.float64]:
        columns, values, _ = row
        if self.columns is not None:
            columns, known = self.columns.numbers_of(columns)
            columns, values = columns[known], values[known]
        weights = self.weights.take(columns, 0).astype(np.float64)
        scores: NDArray[np.float64] = values.dot(weights) + self.intercept
        return scores.reshape(1, -1)

    def _scores_of_rows(self, data: Rows) -> NDArray[np.float64]:
        from hogwild.data.dataset import Dataset
        from hogwild.data.open_dataset import open as open_data
        from hogwild.kernels import linear_build
        from hogwild.models.chunk_scores import scores_of_chunks
        from hogwild.models.row_answers import is_file, scores_of_blocks, warn_if_shuffled

        if is_file(data):
            warn_if_shuffled(data)
            return scores_of_blocks(self._blocks(cast(Any, data)), self._scores_of_rows)
        if not isinstance(data, Dataset):
            data = open_data(data, reading=read_options(self.reading, self.n_features, {}))
        if data.all_features > self.n_features:
            raise ParameterError(f"The data has {data.all_features:,} features, the model {self.n_features:,}.")
        if data.columns is not None and data.columns is not self.columns:
            raise ParameterError(f"{data.name} is numbered by the features of another problem: open it again.")
        weights = np.ascontiguousarray(self.weights).reshape(-1, 1)
        parameters = linear_build.scoring_parameters(weights, self.intercept.reshape(-1, 1))
        columns = self.columns if data.columns is None else None  # None: the rows are numbered as the weights are.
        return scores_of_chunks(
            data, lambda rows: linear_build.scoring(rows.layout), parameters, len(self.intercept),
            (lambda rows: rows) if columns is None else columns.renumber,
        )  # fmt: skip

    def predict(self, data: Rows) -> NDArray[np.float64]:
        """Return the class, or the number, of each row."""
        return self.predictions_of(self.decide(data))

    def predict_proba(self, data: Rows) -> NDArray[np.float64]:
        """Return the probability of each class, for losses that define one; each row sums to 1."""
        return self.probabilities_of(self.decide(data))

    def predictions_of(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return predictions for the scores that :meth:`decide` returns."""
        return predictions.from_scores(scores, self.classes, self.link)

    def probabilities_of(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities for the scores that :meth:`decide` returns."""
        return predictions.probabilities(scores, self.classes, self.link, self.loss)

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
            predicted = self.predictions_of(scores)
            return self.probabilities_of(scores) if proba else predicted, predicted

        name = "probabilities" if proba else "predictions"
        return row_answers(self._blocks(path, **reading), answer, name, self.classes)

    def to_onnx(self, path: str | os.PathLike[str] | None = None, *, inputs: Inputs = "dense") -> ModelProto:
        """Return the model as an ONNX graph, and write it to ``path`` if a path is given.

        Parameters
        ----------
        path : str or Path, optional
            File that is written.
        inputs : {"dense", "sparse", "table"}, default "dense"
            Form of the rows: a float32 matrix ``X`` [N, features]; or ``columns`` (int64) and ``values`` (float32),
            both [N, M], where shorter rows are filled up with values of 0; or, for a model of a table, one input [N, 1]
            for each of its columns: double for numbers, with NaN for missing ones, and string for categories.

        Returns
        -------
        onnx.ModelProto
            Graph with the outputs ``label`` and ``probabilities`` (or ``scores``), or ``variable`` for numbers.
        """
        from hogwild import onnx_graph

        onnx_graph.check_size(4 * self.n_features * len(self.intercept))
        weights = self.weights if self.columns is None else self.columns.expand(self.weights)
        classes = None if self.classes is None else np.asarray(self.classes)
        end, outputs = onnx_graph.outputs_of(classes, self.link, self.loss)
        arrays = {"weights": np.ascontiguousarray(weights, np.float32), "intercept": np.asarray(self.intercept)}
        if inputs == "table":
            from hogwild.models.read_options import encoding_of
            from hogwild.models.table_onnx import labels_of_table, table_graph

            encoding = encoding_of(self.reading)
            table = table_graph(encoding)
            assert encoding is not None
            classes = labels_of_table(encoding, classes)
            end, outputs = onnx_graph.outputs_of(classes, self.link, self.loss)
            scores = onnx_graph.SUM_OF_LINES["sparse"].format(sum="sum", table="weights")
            return onnx_graph.build(
                table.declared, f"{table.program} {scores} raw = Add(sum, intercept) {end}", outputs,
                {**arrays, **table.arrays}, classes=classes, look_ups=table.look_ups, names=table.names, path=path,
            )  # fmt: skip
        rows = onnx_graph.rows_of(inputs, self.n_features)
        scores = onnx_graph.SUM_OF_LINES[inputs].format(sum="sum", table="weights")
        return onnx_graph.build(
            rows, f"{scores} raw = Add(sum, intercept) {end}", outputs, arrays, classes=classes, path=path
        )

    def save(self, path: str | Path) -> None:
        """Write the model to a file, atomically."""
        record = {
            "kind": "linear",
            "format": FORMAT,
            "loss": self.loss,
            "link": self.link,
            "classes": None if self.classes is None else list(self.classes),
            "reading": dict(self.reading),
            "training": dict(self.training),
        }
        arrays = {"weights": np.asarray(self.weights, np.float32), "intercept": np.asarray(self.intercept, np.float32)}
        if self.columns is not None:
            record["features"] = self.columns.features
            arrays["columns"] = self.columns.columns
        array_file.save(path, arrays, record)


def from_file(arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> LinearModel:
    """Return the model of a file.

    Raises
    ------
    ValueError
        If the arrays do not match each other.
    """
    weights, intercept = arrays["weights"], arrays["intercept"]
    classes = record["classes"]
    model = LinearModel(
        weights, intercept, str(record["loss"]), None if classes is None else tuple(float(c) for c in classes),
        str(record["link"]), dict(record["reading"]), dict(record["training"]), _columns(arrays, record),
    )  # fmt: skip
    outputs = 1 if model.classes is None or len(model.classes) == 2 else len(model.classes)
    fits = weights.dtype == intercept.dtype == np.float32 and weights.ndim == 2 and len(weights) > 0
    if not fits or weights.shape[1:] != (outputs,) or intercept.shape != (outputs,):
        raise ValueError(f"arrays of shape {weights.shape} and {intercept.shape} for {outputs} outputs")
    return model


def _columns(arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> PresentColumns | None:
    """Return the features that have a weight, where a file names them."""
    if "columns" not in arrays:
        return None
    columns, features = arrays["columns"], int(record["features"])
    rising = columns.ndim == 1 and columns.dtype.kind == "u" and bool((columns[1:] > columns[:-1]).all())
    if not rising or len(columns) != len(arrays["weights"]) or int(columns[-1]) >= features:
        raise ValueError(f"{len(columns):,} columns for {len(arrays['weights']):,} weights of {features:,} features")
    return PresentColumns(columns, features)
