"""Graphs of ONNX's standard operators, for runtimes without Python and ``hogwild``: notation, outputs and files.

A graph is a program in ONNX's text notation. Rows enter in one of three forms (``inputs``):

- ``"dense"``: a matrix ``X`` of shape [N, features].
- ``"table"``: one input of shape [N, 1] for each column of the table that a model was trained on, with its name:
  numbers (double, NaN for a missing one) or categories (string). The graph has the encoding
  (:mod:`hogwild.models.table_onnx`).
- ``"sparse"``: ``columns`` (int64) and ``values``, both of shape [N, M]: the columns of each row, each once, and their
  values. Shorter rows are filled up with any column and the value 0.

Every program of a body leaves the scores in ``raw``, of shape [N, outputs], from which :func:`outputs_of` goes on.
ONNX has no operator that hashes features: rows with hashed names are hashed before they enter a graph.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hogwild.errors import MissingExtraError, ParameterError
from hogwild.files import format_size, replacing

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

Array = NDArray[Any]
Inputs = Literal["dense", "sparse", "table"]

# Opset 17 and IR version 8, of 2022: they have all operators used here, and older runtimes read them.
OPERATORS, FORMAT = 17, 8
# Opset of the operators for classical models, which have the look-up of names.
MODEL_OPERATORS = 2
# Maximum size of the weights in bytes: a protocol-buffer file cannot exceed 2 GiB, and the graph gets 1 MiB of that.
LARGEST = 2**31 - 2**20

# Programs from the raw scores to the outputs.
NUMBERS = {"none": "variable = Identity(raw)", "exp": "variable = Exp(raw)"}
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
        "cut = Clip(raw, minus_one, one) shares = Add(cut, one) total = ReduceSum<keepdims = 1>(shares, axis_1) "
        "any = Greater(total, zero) parts = Div(shares, total) "
        "probabilities = Where(any, parts, even)"
    ),
}
# Scores that are linear in the values, with one line of ``table`` per feature: the sum of the lines of a row.
SUM_OF_LINES = {
    "dense": "{sum} = MatMul(X, {table})",
    "sparse": (
        "{sum}_lines = Gather({table}, columns) {sum}_values = Unsqueeze(values, axis_2) "
        "{sum}_parts = Mul({sum}_lines, {sum}_values) {sum} = ReduceSum<keepdims = 0>({sum}_parts, axis_1)"
    ),
}


def check_size(size: int) -> None:
    """Raise ``ParameterError`` if so large arrays do not go into a file; ``size`` is in bytes."""
    if size > LARGEST:
        raise ParameterError(
            f"An ONNX file cannot hold these weights: they take {format_size(size)}, of 2 GiB at most. "
            "Hash the features into fewer columns, use fewer factors, or fit to float32."
        )


def outputs_of(classes: Array | None, link: str, loss: str) -> tuple[str, str]:
    """Return the program that follows the raw scores, and the declaration of its outputs, named as in skl2onnx.

    >>> outputs_of(None, "exp", "poisson")
    ('variable = Exp(raw)', 'real[N, 1] variable')
    """
    if classes is None:
        return NUMBERS["exp" if link == "exp" else "none"], "real[N, 1] variable"
    count, label = len(classes), f"{labels_of(classes)[0]}[N] label"
    link = link if link in ("sigmoid", "huber") else "none"
    if count == 2:
        program, shape = f"{TWO_CLASSES} {OF_TWO[link]}", "N"
    else:
        program, shape = f"{CLASSES} {OF_MANY['softmax' if loss == 'softmax' else link]}", f"N, {count}"
    return program, f"{label}, " + (f"real[{shape}] scores" if link == "none" else f"real[N, {count}] probabilities")


def labels_of(classes: Array) -> tuple[str, Array]:
    """Return the classes as ONNX stores them: the name of their type, and an array."""
    if classes.dtype.kind in "iu":
        return "int64", classes.astype(np.int64)
    if classes.dtype.kind == "b":
        return "bool", classes
    if classes.dtype.kind == "f":
        return "double", classes.astype(np.float64)
    return "string", classes.astype(str).astype(object)


def rows_of(inputs: Inputs, features: int) -> str:
    """Return the declaration of the rows that enter a graph.

    Raises
    ------
    ParameterError
        If there is no such form.
    """
    if inputs not in get_args(Inputs):
        raise ParameterError(f"The 'inputs' parameter must be 'dense', 'sparse' or 'table'. Got {inputs!r} instead.")
    if inputs == "table":
        raise ParameterError("inputs='table' is for models that were trained on a table: this one has no columns.")
    return f"real[N, {features}] X" if inputs == "dense" else "int64[N, M] columns, real[N, M] values"


def build(
    inputs: str, program: str, outputs: str, arrays: Mapping[str, Array], *, dtype: Any = np.float32,
    classes: Array | None = None, look_ups: Sequence[NodeProto] = (), names: Mapping[str, str] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> ModelProto:  # fmt: skip
    """Return a graph, and write it to ``path`` if a path is given.

    ``inputs`` and ``outputs`` are declarations in which ``real`` stands for ``dtype``. The program may name the arrays
    and the numbers of :func:`_constants`. Nodes of ``look_ups`` come before the program. ``names`` are the final names
    of inputs, which the notation may not allow.

    Raises
    ------
    MissingExtraError
        If the package onnx is not installed.
    ParameterError
        If the arrays are too large for a file.
    """
    onnx = package()
    check_size(sum(array.nbytes for array in arrays.values()))
    real = "double" if dtype == np.float64 else "float"
    declared = f"hogwild ({_with(real, inputs)}) => ({_with(real, outputs)}) {{ {program} }}"
    graph = onnx.parser.parse_graph(declared)
    for node in reversed(look_ups):
        graph.node.insert(0, node)
    named = {**_constants(classes, dtype), **arrays}
    used = set(re.findall(r"\w+", program))
    for name in sorted(used & set(named)):
        graph.initializer.append(onnx.numpy_helper.from_array(named[name], name))
    if names:
        _rename(graph, names)
    opsets = [onnx.helper.make_opsetid("", OPERATORS)]
    if look_ups:
        opsets.append(onnx.helper.make_opsetid("ai.onnx.ml", MODEL_OPERATORS))
    found: ModelProto = onnx.helper.make_model(graph, producer_name="hogwild", opset_imports=opsets, ir_version=FORMAT)
    if path is not None:
        with replacing(os.fspath(path)) as file:
            file.write(found.SerializeToString())
    return found


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Give inputs other names. One that is the name of an output gets ``_column`` behind it."""
    outputs = {value.name for value in graph.output}
    new = {old: f"{name}_column" if name in outputs else name for old, name in names.items()}
    # Names within the graph have a slash, and a column may be called the same as one of them without it.
    taken = outputs | set(new)

    def renamed(name: str) -> str:
        return new.get(name, name if name in taken or not name else f"hogwild/{name}")

    for node in graph.node:
        node.input[:] = [renamed(name) for name in node.input]
        node.output[:] = [renamed(name) for name in node.output]
    for value in graph.initializer:
        value.name = renamed(value.name)
    for entry in graph.input:
        entry.name = renamed(entry.name)


def package() -> Any:
    """Return the package onnx with the modules that graphs need; raise ``MissingExtraError`` without it."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
        import onnx.parser
    except ImportError:
        raise MissingExtraError("Exporting to ONNX", "onnx", "onnx") from None
    return onnx


def _with(real: str, declaration: str) -> str:
    return re.sub(r"\breal\b", real, declaration)


def _constants(classes: Array | None, dtype: Any) -> dict[str, Array]:
    """Return every constant that a program may name. Numbers have the type of the weights, which avoids casts."""
    kinds = np.zeros(1) if classes is None else classes
    numbers = {
        "zero": 0, "one": 1, "minus_one": -1, "half": 0.5, "minus_half": -0.5, "halves": [[-0.5, 0.5]],
        "lowest": -500, "highest": 500, "even": 1 / len(kinds),
    }  # fmt: skip
    whole = {
        "flat": [-1], "axis_1": [1], "axis_2": [2], "axis_3": [3], "axes_12": [1, 2], "axes_123": [1, 2, 3],
        "inlier": 1, "outlier": -1, "none": 0,
    }  # fmt: skip
    return {
        "classes": labels_of(kinds)[1],
        **{name: np.asarray(value, dtype) for name, value in numbers.items()},
        **{name: np.asarray(value, np.int64) for name, value in whole.items()},
    }
