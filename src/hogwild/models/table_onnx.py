"""The encoding of a table as a part of an ONNX graph, which has one input for each column of the table.

The part makes the rows of the form ``"sparse"`` (:mod:`hogwild.onnx_graph`): one entry for each column of the table, of
which a missing cell has the value 0. What it needs of :mod:`hogwild.data.tables.encode`, such as the features of bins
and of values of a dictionary, is computed when the graph is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hogwild import onnx_graph
from hogwild.errors import ParameterError

if TYPE_CHECKING:
    from onnx import NodeProto

    from hogwild.data.field_vocabulary import FieldVocabulary
    from hogwild.data.tables.table_encoding import ColumnEncoding, TableEncoding

LARGEST_LOG_BIN = 512  # 4 times the logarithm to base 2 of the largest number of 32 bits

# Numbers are of double precision until they are features, as they are when a table is read. NaN is a missing cell.
NUMBER = "missing_{k} = IsNaN({x}) number_{k} = Where(missing_{k}, zero_double, {x}) "
LOG = (
    "size_{k} = Abs(number_{k}) more_{k} = Add(size_{k}, one_double) log_{k} = Log(more_{k}) "
    "sign_{k} = Sign(number_{k}) "
)
TRANSFORMED = {
    "none": "made_{k} = Identity(number_{k}) ",
    "log": LOG + "made_{k} = Mul(log_{k}, sign_{k}) ",
    "standard": (
        "moved_{k} = Sub(number_{k}, mean_{k}) scaled_{k} = Div(moved_{k}, deviation_{k}) "
        "made_{k} = Where(missing_{k}, zero_double, scaled_{k}) "
    ),
}
ONE_FEATURE = (
    "value_{k} = Cast<to = 1>(made_{k}) nowhere_{k} = Cast<to = 7>(missing_{k}) at_{k} = Mul(nowhere_{k}, zero_whole) "
    "column_{k} = Add(at_{k}, feature_{k}) "
)
BINS = {
    "quantile": (
        "reached_{k} = GreaterOrEqual(number_{k}, edges_{k}) counted_{k} = Cast<to = 7>(reached_{k}) "
        "bin_{k} = ReduceSum<keepdims = 1>(counted_{k}, axis_1) "
    ),
    "log-bins": LOG + (
        "steps_{k} = Div(log_{k}, quarter_of_log_2) near_{k} = Add(steps_{k}, half_double) whole_{k} = Floor(near_{k}) "
        "signed_{k} = Mul(whole_{k}, sign_{k}) number_of_bin_{k} = Cast<to = 7>(signed_{k}) "
        "bin_{k} = Add(number_of_bin_{k}, first_bin) "
    ),
}  # fmt: skip
FOUND = "found_{k} = Gather(features_{k}, bin_{k}) there_{k} = Not(missing_{k}) "
LOOKED_UP = "there_{k} = GreaterOrEqual(found_{k}, zero_whole) "
KNOWN = (
    "known_{k} = GreaterOrEqual(found_{k}, zero_whole) entry_{k} = And(there_{k}, known_{k}) "
    "value_{k} = Cast<to = 1>(entry_{k}) column_{k} = Where(entry_{k}, found_{k}, zero_whole) "
)


@dataclass(slots=True)
class TableGraph:
    """Part of a graph that makes rows of a table, and the names of its inputs, which are those of the columns."""

    inputs: list[str] = field(default_factory=list)  # Declarations of the inputs.
    names: dict[str, str] = field(default_factory=dict)  # Name of the column of each input.
    program: str = ""
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    look_ups: list[NodeProto] = field(default_factory=list)

    @property
    def declared(self) -> str:
        """The declaration of all inputs."""
        return ", ".join(self.inputs)


def table_graph(encoding: TableEncoding | None, vocabulary: FieldVocabulary | None = None) -> TableGraph:
    """Return the part of a graph that encodes a table.

    Raises
    ------
    ParameterError
        For a model that was not trained on a table, and for columns that ONNX cannot encode: it has no operator that
        hashes, splits texts or lists.
    """
    if encoding is None:
        raise ParameterError("inputs='table' is for models of tables with columns. Use inputs='sparse' or 'dense'.")
    for column in encoding.columns:
        _check_column(column)
    graph = TableGraph(arrays=_constants())
    owners: dict[int, str] = {}
    for k, (column, first) in enumerate(zip(encoding.columns, encoding.first_columns(), strict=True)):
        features = _in_vocabulary(_features(column, first, encoding), k, encoding, vocabulary)
        for feature in features[features >= 0].tolist():
            if owners.setdefault(feature, column.name) != column.name:
                raise ParameterError(
                    f"Columns {owners[feature]!r} and {column.name!r} have a feature in common, which a graph would "
                    "count twice. Train with more --bits."
                )
        _add(graph, k, column, features)
    count = len(encoding.columns)
    columns, values = (", ".join(f"{name}_{k}" for k in range(count)) for name in ("column", "value"))
    graph.program += f"columns = Concat<axis = 1>({columns}) values = Concat<axis = 1>({values})"
    return graph


def labels_of_table(encoding: TableEncoding, classes: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return the texts of classes where the labels of the table are texts, which a model numbers."""
    if classes is None or encoding.classes is None or classes.dtype.kind == "U":
        return classes
    return np.asarray(encoding.classes)[classes.astype(np.int64)]


def _check_column(column: ColumnEncoding) -> None:
    how = column.transformation
    if column.role == "numeric":
        return
    if column.role == "categorical" and how == "dictionary":
        return
    what, remedy = f"column {column.name!r} ", ""
    if column.role == "text":
        what += "is text, whose words are hashed"
        remedy = "Leave it out in training (--drop), or make numbers of it before."
    elif column.role == "typed":
        what += "is encoded by its type, which the model does not keep"
        remedy = f"Train with --numeric {column.name} or --categorical {column.name}:dictionary."
    elif how.startswith("list:"):
        what += "has lists, whose parts are hashed"
        remedy = "Leave it out in training (--drop), or make columns of its parts before."
    else:
        what += "has hashed categories"
        remedy = f"Train with --categorical {column.name}:dictionary."
    raise ParameterError(
        f"ONNX has no operator for this model: {what}. {remedy} Or encode rows with hogwild, and export with "
        "inputs='sparse'."
    )


def _features(column: ColumnEncoding, first: int, encoding: TableEncoding) -> NDArray[np.int64]:
    """Return the features of a column: one, one for each bin, or one for each value of a dictionary."""
    from hogwild.data.tables.column_entries import Column

    if column.values is not None:
        return np.arange(first, first + len(column.values))
    source = Column(None, column.name, 2**encoding.bits - 1)
    if column.transformation.startswith("quantile:"):
        names = [f"#{number}" for number in range(len(column.statistics or ()) + 1)]
    elif column.transformation == "log-bins":
        names = [f"={number}" for number in range(-LARGEST_LOG_BIN, LARGEST_LOG_BIN + 1)]
    else:
        names = [""]
    return source.hashed(*names).astype(np.int64)


def _in_vocabulary(
    features: NDArray[np.int64], column: int, encoding: TableEncoding, vocabulary: FieldVocabulary | None
) -> NDArray[np.int64]:
    """Return the columns that a model with fields has for features of a column of the table; -1 for none."""
    if encoding.fields is None or vocabulary is None:
        return features
    from hogwild.data.field_vocabulary import MISSING

    fields = np.full(len(features), encoding.fields[column], np.uint64)
    found = vocabulary.look_up(fields, features.astype(np.uint64))
    return np.where(found == MISSING, -1, found.astype(np.int64))


def _add(graph: TableGraph, k: int, column: ColumnEncoding, features: NDArray[np.int64]) -> None:
    """Add the input of a column, and what makes an entry of it."""
    name = f"input_{k}"
    graph.names[name] = column.name
    if column.values is not None:
        graph.inputs.append(f"string[N, 1] {name}")
        graph.look_ups.append(_look_up(name, f"found_{k}", column.values, features))
        graph.program += (LOOKED_UP + KNOWN).format(k=k)
        return
    graph.inputs.append(f"double[N, 1] {name}")
    graph.program += NUMBER.format(k=k, x=name)
    how = column.transformation
    if how in TRANSFORMED or not how:
        graph.arrays[f"feature_{k}"] = features
        if how == "standard":
            mean, deviation = column.statistics or (0.0, 1.0)
            graph.arrays |= {f"mean_{k}": np.array(mean), f"deviation_{k}": np.array(deviation)}
        one = TRANSFORMED[how or "none"] + ONE_FEATURE
        if features[0] < 0:  # A model with fields that has no such feature.
            graph.arrays[f"feature_{k}"] = np.zeros(1, np.int64)
            one = one.replace("value_{k} = Cast<to = 1>(made_{k})", "gone_{k} = Mul(made_{k}, zero_double) "
                              "value_{k} = Cast<to = 1>(gone_{k})")  # fmt: skip
        graph.program += one.format(k=k)
        return
    graph.arrays[f"features_{k}"] = features
    if how.startswith("quantile:"):
        graph.arrays[f"edges_{k}"] = np.array([column.statistics or ()], np.float64).reshape(1, -1)
    graph.program += (BINS[how.partition(":")[0]] + FOUND + KNOWN).format(k=k)


def _look_up(given: str, found: str, values: tuple[str, ...], features: NDArray[np.int64]) -> NodeProto:
    """Return the node that turns the values of a dictionary into features, and other values into -1."""
    node: NodeProto = onnx_graph.package().helper.make_node(
        "LabelEncoder", [given], [found], domain="ai.onnx.ml", keys_strings=list(values),
        values_int64s=features.tolist(), default_int64=-1,
    )  # fmt: skip
    return node


def _constants() -> dict[str, NDArray[Any]]:
    numbers = {"zero_double": 0.0, "one_double": 1.0, "half_double": 0.5, "quarter_of_log_2": np.log(2) / 4}
    whole = {"zero_whole": 0, "first_bin": LARGEST_LOG_BIN}
    return {
        **{name: np.array(value, np.float64) for name, value in numbers.items()},
        **{name: np.array(value, np.int64) for name, value in whole.items()},
    }
