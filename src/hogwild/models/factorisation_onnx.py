"""Factorisation machines as ONNX graphs; see :mod:`hogwild.onnx_graph`.

The sum of the products of all pairs is half of the difference between the sum of all products and those of a feature
with itself, as in :mod:`hogwild.kernels.fm_interactions`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hogwild import onnx_graph
from hogwild.data.field_vocabulary import FieldVocabulary
from hogwild.models.read_options import encoding_of
from hogwild.models.table_onnx import labels_of_table, table_graph
from hogwild.onnx_graph import Inputs

if TYPE_CHECKING:
    from onnx import ModelProto

    from hogwild.models.factorisation_machine import FactorisationModel

Arrays = dict[str, NDArray[Any]]

# Rows of length one: x is the input, scaled.
SCALED = (
    "input_squares = Mul({x}, {x}) square_sum = ReduceSum<keepdims = 1>(input_squares, axis_1) "
    "some = Greater(square_sum, zero) not_none = Where(some, square_sum, one) length = Sqrt(not_none) "
    "x = Div({x}, length)"
)
LINEAR = {
    "dense": "linear = Gemm(x, weights, intercept)",
    "sparse": (
        "lines = Gather(weights, columns) flat_lines = Squeeze(lines, axis_2) line = Mul(flat_lines, x) "
        "line_sum = ReduceSum<keepdims = 1>(line, axis_1) linear = Add(line_sum, intercept)"
    ),
}
FM = {
    "dense": (
        "sums = MatMul(x, factors) every = Mul(sums, sums) squares = Mul(x, x) factor_squares = Mul(factors, factors) "
        "own = MatMul(squares, factor_squares)"
    ),
    "sparse": (
        "found = Gather(factors, columns) x_3 = Unsqueeze(x, axis_2) parts = Mul(found, x_3) "
        "sums = ReduceSum<keepdims = 0>(parts, axis_1) every = Mul(sums, sums) part_squares = Mul(parts, parts) "
        "own = ReduceSum<keepdims = 0>(part_squares, axis_1)"
    ),
}
FM_END = (
    " difference = Sub(every, own) both = ReduceSum<keepdims = 1>(difference, axis_1) "
    "pairs = Mul(both, half) raw = Add(linear, pairs)"
)
# Lines of factors by feature and field of the other feature, one below the other.
FFM_SPARSE = (
    "field = Gather(fields, columns) first = Mul(columns, n_fields) first_3 = Unsqueeze(first, axis_2) "
    "field_3 = Unsqueeze(field, axis_1) at = Add(first_3, field_3) table = Gather(factors, at) "
    "turned = Transpose<perm = [0, 2, 1, 3]>(table) products = Mul(table, turned) "
    "dots = ReduceSum<keepdims = 0>(products, axis_3) x_first = Unsqueeze(x, axis_2) x_second = Unsqueeze(x, axis_1) "
    "x_both = Mul(x_first, x_second) weighted = Mul(dots, x_both) every_1 = ReduceSum<keepdims = 0>(weighted, axes_12) "
    "own_at = Add(first, field) own_factors = Gather(factors, own_at) own_squares = Mul(own_factors, own_factors) "
    "own_sums = ReduceSum<keepdims = 0>(own_squares, axis_2) squares = Mul(x, x) own_parts = Mul(own_sums, squares) "
    "own = ReduceSum<keepdims = 1>(own_parts, axis_1) every = Unsqueeze(every_1, axis_1)"
)
# ``table`` has, for each row, one line per field, and one column per field of the other feature.
FFM_DENSE_END = (
    "table = Reshape(joined, table_shape) turned = Transpose<perm = [0, 2, 1, 3]>(table) products = Mul(table, turned) "
    "every_1 = ReduceSum<keepdims = 0>(products, axes_123) every = Unsqueeze(every_1, axis_1) "
    "squares = Mul(x, x) own = MatMul(squares, own_squares)"
)
FFM_END = " both = Sub(every, own) pairs = Mul(both, half) raw = Add(linear, pairs)"


def to_onnx(
    model: FactorisationModel, path: str | os.PathLike[str] | None, inputs: Inputs, classes: NDArray[Any] | None
) -> ModelProto:
    """Return the graph of a factorisation machine whose labels are ``classes``, None for numbers."""
    table = None
    if inputs == "table":
        encoding = encoding_of(model.reading)
        table = table_graph(encoding, None if model.keys is None else FieldVocabulary(model.keys))
        assert encoding is not None
        classes, inputs = labels_of_table(encoding, classes), "sparse"
    rows = onnx_graph.rows_of(inputs, model.n_features) if table is None else table.declared
    x = "X" if inputs == "dense" else "values"
    scale = SCALED.format(x=x) if model.normalise else f"x = Identity({x})"
    arrays: Arrays = {"weights": model.weights.reshape(-1, 1), "intercept": model.intercept}
    if model.fields is None:
        pairs = FM[inputs] + FM_END
        arrays["factors"] = np.ascontiguousarray(model.factors[:, 0])
    elif inputs == "sparse":
        pairs = FFM_SPARSE + FFM_END
        arrays["factors"] = model.factors.reshape(-1, model.rank)
        arrays |= {"fields": model.fields.astype(np.int64), "n_fields": np.array(model.factors.shape[1], np.int64)}
    else:
        program, more = _by_fields(model, model.fields)
        pairs = program + FFM_END
        arrays |= more
    end, outputs = onnx_graph.outputs_of(classes, model.link, model.loss)
    program = f"{scale} {LINEAR[inputs]} {pairs} {end}"
    if table is None:
        return onnx_graph.build(rows, program, outputs, arrays, classes=classes, path=path)
    return onnx_graph.build(
        rows, f"{table.program} {program}", outputs, {**arrays, **table.arrays}, classes=classes,
        look_ups=table.look_ups, names=table.names, path=path,
    )  # fmt: skip


def _by_fields(model: FactorisationModel, fields: NDArray[Any]) -> tuple[str, Arrays]:
    """Return the program, and its arrays, that sums the features of each field first: no table of all pairs is made."""
    present, steps, arrays = np.unique(fields), [], Arrays()
    count = len(present)  # Products with a field that no feature has are zero.
    for number, field in enumerate(present.tolist()):
        of_field = np.flatnonzero(fields == field)
        arrays[f"of_{number}"] = of_field.astype(np.int64)
        arrays[f"factors_{number}"] = model.factors[np.ix_(of_field, present)].reshape(len(of_field), -1)
        steps.append(f"x_{number} = Gather<axis = 1>(x, of_{number}) s_{number} = MatMul(x_{number}, factors_{number})")
    joined = f"joined = Concat<axis = 1>({', '.join(f's_{number}' for number in range(count))})"
    own = model.factors[np.arange(model.n_features), fields]
    arrays["own_squares"] = np.einsum("nk,nk->n", own, own).reshape(-1, 1)
    arrays["table_shape"] = np.array([-1, count, count, model.rank], np.int64)
    return f"{' '.join(steps)} {joined} {FFM_DENSE_END}", arrays
