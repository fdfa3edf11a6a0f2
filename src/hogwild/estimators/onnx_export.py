"""Export of a fitted linear estimator as an ONNX graph; see :mod:`hogwild.onnx_graph`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.utils.validation import check_is_fitted

from hogwild import onnx_graph
from hogwild.data.csr import Array
from hogwild.errors import ParameterError
from hogwild.estimators.sklearn_parameters import loss_of
from hogwild.onnx_graph import Inputs

if TYPE_CHECKING:
    from onnx import ModelProto

    from hogwild.estimators.linear_base import LinearEstimator


def to_onnx(
    model: LinearEstimator, path: str | os.PathLike[str] | None = None, *, inputs: Inputs = "dense"
) -> ModelProto:
    """Return the ONNX form of a fitted estimator, and write it to ``path`` if a path is given.

    >>> from hogwild import HogwildRegressor
    >>> model = HogwildRegressor(random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> [output.name for output in to_onnx(model).graph.output]
    ['variable']
    """
    check_is_fitted(model)
    if inputs == "table":
        return _of_table(model, path)
    coef, intercept = _parameters(model)
    loss, classes = loss_of(model._all_params()), model.classes_ if is_classifier(model) else None
    program, outputs = onnx_graph.outputs_of(classes, loss.link, loss.name)
    if is_outlier_detector(model):
        program, outputs = onnx_graph.ONE_CLASS, "int64[N] label, real[N] scores"
    if inputs == "dense":
        # One operator, and the weights as they are.
        scores, arrays = "raw = Gemm<transB = 1>(X, coef, intercept)", {"coef": coef, "intercept": intercept}
    else:
        scores = onnx_graph.SUM_OF_LINES["sparse"].format(sum="sum", table="coef") + " raw = Add(sum, intercept)"
        arrays = {"coef": np.ascontiguousarray(coef.T), "intercept": intercept}
    return onnx_graph.build(
        onnx_graph.rows_of(inputs, coef.shape[1]), f"{scores} {program}", outputs, arrays, dtype=coef.dtype,
        classes=classes, path=path,
    )  # fmt: skip


def _of_table(model: LinearEstimator, path: str | os.PathLike[str] | None) -> ModelProto:
    if is_outlier_detector(model):
        raise ParameterError("inputs='table' is for classifiers and regressors. Use inputs='sparse' or 'dense'.")
    found = model._model(model.intercept_)
    if is_classifier(model) and model.classes_.dtype.kind != "U":
        found = replace(found, classes=tuple(model.classes_.tolist()))
    return found.to_onnx(path, inputs="table")


def _parameters(model: LinearEstimator) -> tuple[Array, Array]:
    """Return one row of weights and one constant per output."""
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    constant = -model.offset_ if is_outlier_detector(model) else model.intercept_
    return np.ascontiguousarray(np.atleast_2d(coef)), np.asarray(constant, coef.dtype)
