"""Data frames and data sets of other libraries: the same rows as arrays, and no copy where none is needed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hogwild
from hogwild.data.frames import matrix_of
from hogwild.errors import DataError
from hogwild.models.linear import LinearModel

X = np.random.default_rng(2).normal(size=(300, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(float)
NAMES = ["a", "b", "c", "d"]
TABLE = pa.table({name: X[:, k].copy() for k, name in enumerate(NAMES)})


@dataclass
class HuggingFace:
    """The part of ``datasets.Dataset`` that is used."""

    table: pa.Table
    format: str = "python"

    @property
    def features(self) -> list[str]:
        return self.table.column_names

    def with_format(self, name: str) -> HuggingFace:
        return HuggingFace(self.table, name)

    def __getitem__(self, which: slice) -> pa.Table:
        assert self.format == "arrow"
        return self.table[which]


@dataclass
class Ray:
    """The part of ``ray.data.Dataset`` that is used."""

    table: pa.Table

    def schema(self) -> pa.Schema:
        return self.table.schema

    def iter_batches(self, *, batch_format: str, batch_size: int | None) -> Iterator[pa.Table]:
        assert (batch_format, batch_size) == ("pyarrow", None)
        yield self.table[:100]
        yield self.table[100:]


@dataclass
class Capsule:
    """A frame of a library that is not known: it has the Arrow interface and nothing else."""

    table: pa.Table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


FRAMES: dict[str, Any] = {
    "pandas": lambda: pd.DataFrame(X, columns=NAMES),
    "pandas of columns": lambda: pd.DataFrame({name: X[:, k] for k, name in enumerate(NAMES)}),
    "polars": lambda: pl.DataFrame(X, schema=NAMES),
    "arrow": lambda: TABLE,
    "arrow in chunks": lambda: pa.concat_tables([TABLE[:7], TABLE[7:7], TABLE[7:]]),
    "batch": lambda: TABLE.to_batches()[0],
    "stream of batches": lambda: TABLE.to_reader(50),
    "vectors": lambda: pa.table({"v": pa.FixedSizeListArray.from_arrays(X.reshape(-1), 4)}),
    "vectors in chunks": lambda: pa.concat_tables(
        [pa.table({"v": pa.FixedSizeListArray.from_arrays(part.reshape(-1), 4)}) for part in (X[:9], X[9:])]
    ),
    "vectors of polars": lambda: pl.DataFrame({"v": pl.Series(X, dtype=pl.Array(pl.Float32, 4))}),
    "Hugging Face": lambda: HuggingFace(TABLE),
    "Ray": lambda: Ray(TABLE),
    "other library": lambda: Capsule(TABLE),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_has_the_rows_of_its_array(name: str) -> None:
    found, plain = hogwild.data.open(FRAMES[name](), Y), hogwild.data.open(X, Y)
    assert found.fingerprint == plain.fingerprint
    assert found.rows.values.dtype == np.float32
    np.testing.assert_array_equal(found.rows.values, X.reshape(-1))


def shared(frame: object, memory: np.ndarray) -> bool:
    return bool(np.shares_memory(hogwild.data.open(frame, np.zeros(len(memory))).rows.values, memory))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_one_piece_of_memory_is_not_copied(kind: type) -> None:
    column, matrix = np.arange(50, dtype=kind), np.arange(60, dtype=kind).reshape(20, 3)
    assert shared(matrix, matrix)
    assert shared(pd.DataFrame(matrix, copy=False), matrix)
    assert shared(pa.table({"a": column}), column)
    assert shared(pa.table({"a": column})[10:40], column[10:40])
    assert shared(pa.RecordBatch.from_arrays([pa.array(column)], ["a"]), column)
    assert shared(pl.from_arrow(pa.table({"a": column}), rechunk=False), column)
    assert shared(HuggingFace(pa.table({"a": column})), column)
    vectors = pa.FixedSizeListArray.from_arrays(matrix.reshape(-1), 3)
    assert shared(pa.table({"v": vectors}), matrix)
    assert shared(pa.table({"v": vectors})[5:15], matrix[5:15])
    assert shared(pl.from_arrow(pa.table({"v": vectors}), rechunk=False), matrix)


@pytest.mark.parametrize("library", ["arrow", "polars"])
def test_columns_are_copied_once(library: str) -> None:
    """A frame of several columns takes the memory of one matrix besides its own, and no more on the way."""
    wide = np.random.default_rng(3).normal(size=(20_000, 50)).astype(np.float32)
    frame: Any = pa.table({str(k): wide[:, k].copy() for k in range(50)})
    frame = pl.DataFrame(frame) if library == "polars" else frame
    matrix_of(frame)
    tracemalloc.start()
    found = matrix_of(frame)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found is not None
    np.testing.assert_array_equal(found, wide)
    assert peak < 1.2 * wide.nbytes


@pytest.mark.parametrize(
    "kinds",
    [
        [np.float32, np.float64],
        [np.int64, np.float32],
        [np.int16, np.uint8],
        [np.bool_, np.int32],
        [np.bool_, np.bool_],
        [np.float16, np.int8],
    ],
    ids=str,
)
def test_types_are_those_of_an_array(kinds: list[Any]) -> None:
    columns = {str(k): np.array([1, 0, 1]).astype(kind) for k, kind in enumerate(kinds)}
    plain = hogwild.data.open(np.column_stack(list(columns.values())), [0, 1, 0])
    for frame in (pa.table(columns), pd.DataFrame(columns)):
        found = hogwild.data.open(frame, [0, 1, 0])
        assert found.rows.values.dtype == plain.rows.values.dtype
        np.testing.assert_array_equal(found.rows.values, plain.rows.values)


def test_missing_and_infinite_values_are_refused() -> None:
    for frame in (
        pa.table({"a": [1.0, None], "b": [1.0, 2.0]}),
        pa.table({"a": [1, None], "b": [1, 2]}),
        pl.DataFrame({"a": [1, None]}),
        pa.table({"a": [1.0, np.inf]}),
    ):
        with pytest.raises(DataError, match=r"row 1, column 0: the value (nan|inf) is not finite"):
            hogwild.data.open(frame, [0, 1])
    vectors = pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2))
    with pytest.raises(DataError, match="row 1: a list is missing"):
        hogwild.data.open(pa.table({"v": vectors}), [0, 1])


@pytest.mark.parametrize("name", ["pandas", "polars", "arrow", "Hugging Face", "Ray"])
def test_text_columns_and_labels_by_name(name: str) -> None:
    """Frames with other columns go through the encoding of tables, whatever library they come from."""
    mixed = pa.table({"age": [30.0, 40.0, 50.0], "city": ["Ulm", "Bonn", "Ulm"], "y": [0, 1, 0]})
    frame = {
        "pandas": mixed.to_pandas, "polars": lambda: pl.DataFrame(mixed), "arrow": lambda: mixed,
        "Hugging Face": lambda: HuggingFace(mixed), "Ray": lambda: Ray(pa.concat_tables([mixed] * 40)),
    }[name]()  # fmt: skip
    found, plain = hogwild.data.open(frame, label="y"), hogwild.data.open(mixed, label="y")
    assert found.n_features == plain.n_features
    assert found.n_rows == (120 if name == "Ray" else 3)


@pytest.mark.parametrize("name", ["pandas", "polars", "arrow", "Hugging Face"])
def test_a_model_predicts_from_frames_what_it_predicts_from_arrays(name: str) -> None:
    model = LinearModel(X[:4, :1], np.zeros(1, np.float32), "logistic", (0.0, 1.0), "sigmoid")
    np.testing.assert_array_equal(model.predict_proba(FRAMES[name]()), model.predict_proba(X))
