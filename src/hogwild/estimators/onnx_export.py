"""Export of a fitted estimator as an ONNX graph of standard operators, for runtimes without Python and ``hogwild``."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.utils.validation import check_is_fitted

from hogwild.data.csr import Array
from hogwild.errors import MissingExtraError, ParameterError
from hogwild.estimators.sklearn_parameters import loss_of
from hogwild.files import format_size, replacing

if TYPE_CHECKING:
    from onnx import ModelProto

    from hogwild.estimators.linear_base import LinearEstimator

# Opset 17 and IR version 8, of 2022: they have all operators used here, and older runtimes read them.
OPERATORS, FORMAT = 17, 8
# Maximum size of the weights in bytes: a protocol-buffer file cannot exceed 2 GiB, and the graph gets 1 MiB of that.
LARGEST = 2**31 - 2**20

# Programs in ONNX's text notation, from the raw scores (one column per output) to the outputs.
REGRESSOR = {"none": "variable = Identity(raw)", "exp": "variable = Exp(raw)"}
ONE_CLASS = "scores = Reshape(raw, flat) inside = GreaterOrEqual(scores, zero) label = Where(inside, inlier, outlier)"
TWO_CLASSES = "pair = MatMul(raw, halves) number = ArgMax<axis = 1, keepdims = 0>(pair) label = Gather(classes, number)"
CLASSES = "number = ArgMax<axis = 1, keepdims = 0>(raw) label = Gather(classes, number)"
OF_TWO = {
    "none": "scores = Reshape(raw, flat)",
    # The softmax of -z/2 and z/2 is the sigmoid of -z and of z.
    "sigmoid": "probabilities = Softmax<axis = 1>(pair)",
    "huber": "cut = Clip(pair, minus_half, half) probabilities = Add(cut, half)",
}
OF_MANY = {
    "none": "scores = Identity(raw)",
    "softmax": "probabilities = Softmax<axis = 1>(raw)",
    # Sigmoids divided by their sum. Single precision suffices, because the graph computes with their logarithms,
    # min(z, 0) - log(1 + exp(-|z|)).
    "sigmoid": (
        "z = Clip(raw, lowest, highest) size = Abs(z) minus = Neg(size) small = Exp(minus) more = Add(one, small) "
        "tail = Log(more) low = Min(z, zero) logs = Sub(low, tail) probabilities = Softmax<axis = 1>(logs)"
    ),
    "huber": (
        "cut = Clip(raw, minus_one, one) shares = Add(cut, one) total = ReduceSum<keepdims = 1>(shares, columns) "
        "any = Greater(total, zero) parts = Div(shares, total) "
        "probabilities = Where(any, parts, even)"
    ),
}


def to_onnx(model: LinearEstimator, path: str | os.PathLike[str] | None = None) -> ModelProto:
    """Return the ONNX form of a fitted estimator, and write it to ``path`` if a path is given.

    >>> from hogwild import HogwildRegressor
    >>> model = HogwildRegressor(random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> [output.name for output in to_onnx(model).graph.output]
    ['variable']
    """
    check_is_fitted(model)
    try:
        from onnx import helper, numpy_helper, parser
    except ImportError:
        raise MissingExtraError("Exporting to ONNX", "onnx", "onnx") from None
    coef, intercept = _parameters(model)
    if coef.nbytes > LARGEST:
        raise ParameterError(
            f"An ONNX file cannot hold these weights: they take {format_size(coef.nbytes)}, of 2 GiB at most. "
            "Hash the features into fewer columns, or fit to float32."
        )
    program, outputs = _program(model)
    real = "double" if coef.dtype == np.float64 else "float"
    graph = parser.parse_graph(
        f"hogwild ({real}[N, {coef.shape[1]}] X) => ({outputs.replace('real', real)}) "
        f"{{ raw = Gemm<transB = 1>(X, coef, intercept) {program} }}"
    )
    named = {"coef": coef, "intercept": intercept, **_constants(model, coef)}
    for name in sorted(set(re.findall(r"\w+", program)) & set(named) | {"coef", "intercept"}):
        graph.initializer.append(numpy_helper.from_array(named[name], name))
    found = helper.make_model(
        graph, producer_name="hogwild", opset_imports=[helper.make_opsetid("", OPERATORS)], ir_version=FORMAT
    )
    if path is not None:
        with replacing(os.fspath(path)) as file:
            file.write(found.SerializeToString())
    return found


def _parameters(model: LinearEstimator) -> tuple[Array, Array]:
    """Return one row of weights and one constant per output."""
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    constant = -model.offset_ if is_outlier_detector(model) else model.intercept_
    return np.ascontiguousarray(np.atleast_2d(coef)), np.asarray(constant, coef.dtype)


def _program(model: LinearEstimator) -> tuple[str, str]:
    """Return the program that follows the raw scores, and the declaration of its outputs, named as in skl2onnx."""
    loss = loss_of(model._all_params())
    if is_outlier_detector(model):
        return ONE_CLASS, "int64[N] label, real[N] scores"
    if not is_classifier(model):
        return REGRESSOR["exp" if loss.link == "exp" else "none"], "real[N, 1] variable"
    count, label = len(model.classes_), f"{_labels(model.classes_)[0]}[N] label"
    link = loss.link if loss.link in ("sigmoid", "huber") else "none"
    if count == 2:
        program, shape = f"{TWO_CLASSES} {OF_TWO[link]}", "N"
    else:
        program, shape = f"{CLASSES} {OF_MANY['softmax' if loss.name == 'softmax' else link]}", f"N, {count}"
    return program, f"{label}, " + (f"real[{shape}] scores" if link == "none" else f"real[N, {count}] probabilities")


def _labels(classes: Array) -> tuple[str, Array]:
    """Return the classes as ONNX stores them: the name of their type, and an array."""
    if classes.dtype.kind in "iu":
        return "int64", classes.astype(np.int64)
    if classes.dtype.kind == "b":
        return "bool", classes
    if classes.dtype.kind == "f":
        return "double", classes.astype(np.float64)
    return "string", classes.astype(str).astype(object)


def _constants(model: LinearEstimator, coef: Array) -> dict[str, Array]:
    """Return every constant that a program may name. Numbers have the type of the weights, which avoids casts."""
    classes = getattr(model, "classes_", np.zeros(1))
    numbers = {
        "zero": 0, "one": 1, "minus_one": -1, "half": 0.5, "minus_half": -0.5, "halves": [[-0.5, 0.5]],
        "lowest": -500, "highest": 500, "even": 1 / len(classes),
    }  # fmt: skip
    whole = {"flat": [-1], "columns": [1], "inlier": 1, "outlier": -1}
    return {
        "classes": _labels(classes)[1],
        **{name: np.asarray(value, coef.dtype) for name, value in numbers.items()},
        **{name: np.asarray(value, np.int64) for name, value in whole.items()},
    }
