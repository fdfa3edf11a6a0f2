from __future__ import annotations

import sys
from datetime import datetime
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hogwild.data.csr import CSRRows, concatenate
from hogwild.data.hashing import column_of
from hogwild.data.reader import ReadOptions
from hogwild.data.readers.parquet import read
from hogwild.data.tables.table_encoding import ColumnEncoding, TableEncoding
from hogwild.errors import DataError, MissingExtraError


def by_type(path: Path, *, bits: int = 18, label: str = "label", weight: str | None = None) -> TableEncoding:
    """Encoding in which numbers are left as they are, and other columns are what their types say."""
    names = [name for name in pq.read_schema(path).names if name not in (label, weight)]
    return TableEncoding(tuple(ColumnEncoding(name, "typed", "none") for name in names), label, weight, bits=bits)


def read_table(folder: Path, table: pa.Table, *, piece_bytes: int = 1 << 20, **choices: Any) -> CSRRows:
    path = folder / "a.parquet"
    pq.write_table(table, path)
    known = {name: choices[name] for name in ("bits", "label", "weight") if name in choices}
    encoding = by_type(path, **known)
    return concatenate(list(read(path, ReadOptions(**choices, encoding=encoding), piece_bytes)))


def entries(rows: CSRRows) -> list[dict[int, float]]:
    bounds = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [
        dict(zip(rows.indices[start:stop].tolist(), rows.values[start:stop].tolist(), strict=True))
        for start, stop in bounds
    ]


def named(*features: dict[str, float], bits: int = 18) -> list[dict[int, float]]:
    """What a plain loop makes of named features."""
    out = []
    for row in features:
        found: dict[int, float] = {}
        for name, value in row.items():
            found[column_of(name, bits)] = found.get(column_of(name, bits), 0.0) + value
        out.append(dict(sorted(found.items())))
    return out


NUMERIC = [
    pa.int8(),
    pa.uint16(),
    pa.int64(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(25, 2),
]


@pytest.mark.parametrize("type_", NUMERIC, ids=str)
def test_a_number_is_a_feature_and_zero_or_null_is_none(tmp_path: Path, type_: pa.DataType) -> None:
    table = pa.table({"label": [1, 0, 1], "x": pa.array([3, None, 0], pa.int64()).cast(type_)})
    assert entries(read_table(tmp_path, table)) == named({"x": 3.0}, {}, {})


def test_a_boolean_is_a_number(tmp_path: Path) -> None:
    table = pa.table({"label": [True, False, True], "x": [True, False, None]})
    rows = read_table(tmp_path, table)
    assert rows.labels.tolist() == [1.0, 0.0, 1.0]
    assert entries(rows) == named({"x": 1.0}, {}, {})


def test_columns_named_by_digits_keep_their_numbers(tmp_path: Path) -> None:
    rows = read_table(tmp_path, pa.table({"label": [1], "7": [2.0], "12": [3.0]}))
    assert entries(rows) == [{7: 2.0, 12: 3.0}]


TEXT = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("type_", TEXT, ids=str)
def test_text_is_a_category(tmp_path: Path, type_: pa.DataType) -> None:
    values = pa.array(["Ulm", None, "", "Z\u00fcrich", "Ulm"])
    table = pa.table({"label": range(5), "city": values.cast(type_)})
    ulm = {"city=Ulm": 1.0}
    assert entries(read_table(tmp_path, table)) == named(ulm, {}, {"city=": 1.0}, {"city=Z\u00fcrich": 1.0}, ulm)


@pytest.mark.parametrize("make", [pa.list_, pa.large_list])
def test_elements_of_a_list_are_categories_and_repeated_ones_add_up(tmp_path: Path, make: Any) -> None:
    whole = pa.array([[1, 2, 2], None, [], [None, 3]], make(pa.int64()))
    texts = pa.array([["a"], ["b", "a"], None, ["b", "b"]], make(pa.string()))
    table = pa.table({"label": range(4), "n": whole, "t": texts})
    assert entries(read_table(tmp_path, table)) == named(
        {"n=1": 1.0, "n=2": 2.0, "t=a": 1.0}, {"t=a": 1.0, "t=b": 1.0}, {}, {"n=3": 1.0, "t=b": 2.0}
    )


VECTORS = [pa.list_(pa.float32(), 2), pa.list_(pa.float64()), pa.large_list(pa.float32())]


@pytest.mark.parametrize("type_", VECTORS, ids=str)
def test_floats_in_lists_of_one_length_are_numbered(tmp_path: Path, type_: pa.DataType) -> None:
    table = pa.table({"label": range(3), "v": pa.array([[1.5, 0.0], None, [None, 4.0]], type_)})
    assert entries(read_table(tmp_path, table)) == named({"v[0]": 1.5}, {}, {"v[1]": 4.0})


def test_floats_in_lists_of_several_lengths_are_refused(tmp_path: Path) -> None:
    table = pa.table({"label": range(4), "v": [[1.0], None, [2.0], [1.0, 2.0]]})
    for piece_bytes in (1, 1 << 20):
        with pytest.raises(DataError, match="list of 2 floats where others have 1") as caught:
            read_table(tmp_path, table, piece_bytes=piece_bytes)
        assert (caught.value.row, caught.value.column) == (3, "v")


@pytest.mark.parametrize("key", [pa.string(), pa.int32()], ids=str)
@pytest.mark.parametrize("piece_bytes", [1, 1 << 20])
def test_a_map_names_its_features(tmp_path: Path, key: pa.DataType, piece_bytes: int) -> None:
    items = [[("7", 0.5), ("8", 2)], None, [], [("7", None), ("9", 0), ("8", 3)]]
    typed = [None if row is None else [(k if key == pa.string() else int(k), v) for k, v in row] for row in items]
    table = pa.table({"label": range(4), "m": pa.array(typed, pa.map_(key, pa.float64()))})
    rows = read_table(tmp_path, table, piece_bytes=piece_bytes)
    assert entries(rows) == named({"m=7": 0.5, "m=8": 2.0}, {}, {}, {"m=8": 3.0})


def test_views_of_text_within_lists_and_maps(tmp_path: Path) -> None:
    view = pa.string_view()
    lists, maps = pa.array([["a"], None, ["b"]], pa.list_(view)), pa.array([[("k", 2)]] * 3, pa.map_(view, pa.int8()))
    rows = read_table(tmp_path, pa.table({"label": X, "l": lists, "m": maps}), piece_bytes=1)
    assert entries(rows) == named({"l=a": 1.0, "m=k": 2.0}, {"m=k": 2.0}, {"l=b": 1.0, "m=k": 2.0})


def test_features_of_one_hash_are_added(tmp_path: Path) -> None:
    table = pa.table({"label": [1], "a": [1.0], "b": [2.0], "c": ["x"], "d": [4]})
    rows = read_table(tmp_path, table, bits=1)
    assert rows.features == 2
    assert entries(rows) == named({"a": 1.0, "b": 2.0, "c=x": 1.0, "d": 4.0}, bits=1)


def test_weights(tmp_path: Path) -> None:
    table = pa.table({"y": [1, 2], "w": [0.5, 0.0], "x": [1, 1]})
    rows = read_table(tmp_path, table, label="y", weight="w")
    assert rows.labels.tolist() == [1.0, 2.0]
    assert rows.weights.tolist() == [0.5, 0.0]
    assert entries(rows) == named({"x": 1.0}, {"x": 1.0})


def test_unlabelled(tmp_path: Path) -> None:
    assert read_table(tmp_path, pa.table({"x": [1, 1]}), unlabelled=True).labels.tolist() == pytest.approx(
        [nan, nan], nan_ok=True
    )
    labels = read_table(tmp_path, pa.table({"x": [1, 1], "label": [None, 3]}), unlabelled=True).labels
    assert labels.tolist() == pytest.approx([nan, 3.0], nan_ok=True)


X = [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("columns", "choices", "row", "column", "what"),
    [
        ({"x": X}, {}, None, None, "no label column 'label'"),
        ({"label": [1, None, 2], "x": X}, {}, 1, "label", "label is missing"),
        ({"label": [datetime(2020, 1, 1)] * 3, "x": X}, {}, None, "label", "not a number"),
        ({"label": ["a", "a", "a"], "x": X}, {}, None, "label", "text with 1 different values"),
        ({"label": [1.0, float("nan"), 2.0], "x": X}, {}, 1, "label", "not finite"),
        ({"label": [1.0, 1e39, 2.0], "x": X}, {}, 1, "label", "too large"),
        ({"label": X, "x": [1.0, 2.0, float("inf")]}, {}, 2, "x", "not finite"),
        ({"label": X, "x": [float("nan"), None, 1.0]}, {}, 0, "x", "not finite"),
        ({"label": X, "x": [1.0, -1e39, 1.0]}, {}, 1, "x", "too large"),
        ({"label": X, "x": [[1.0], [2.0], [float("nan")]]}, {}, 2, "x", "not finite"),
        ({"label": X, "x": X}, {"weight": "w"}, None, None, "no weight column 'w'"),
        ({"label": X, "x": X, "w": [1, None, 1]}, {"weight": "w"}, 1, "w", "weight is missing"),
        ({"label": X, "x": X, "w": [1, 1, -1]}, {"weight": "w"}, 2, "w", "weight is negative"),
        ({"label": X}, {}, None, None, "no columns besides"),
        ({"label": X, "t": [datetime(2020, 1, 1)] * 3}, {}, None, "t", "timestamp"),
        ({"label": X, "s": [{"a": 1}] * 3}, {}, None, "s", "struct"),
        ({"label": X, "s": [[[1]]] * 3}, {}, None, "s", "list"),
        ({"label": X, "s": [[True]] * 3}, {}, None, "s", "list<"),
    ],
)
def test_what_is_wrong_is_said_with_row_and_column(
    tmp_path: Path, columns: dict[str, Any], choices: dict[str, Any], row: int | None, column: str | None, what: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(DataError) as caught:
        list(read(tmp_path / "a.parquet", ReadOptions(**choices), 1 << 20))
    error = caught.value
    assert what in error.what
    assert (error.row, error.column) == (row, column)
    assert error.path == tmp_path / "a.parquet"
    assert error.remedy


def test_sums_that_overflow_are_refused(tmp_path: Path) -> None:
    table = pa.table({"label": [1, 1], "a": [1.0, 3e38], "b": [1.0, 3e38], "c": [1.0, 3e38]})
    with pytest.raises(DataError, match="add up") as caught:
        read_table(tmp_path, table, bits=1)
    assert caught.value.row == 1


def test_a_missing_label_column_is_answered_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There are: 'clicked', 'x'"):
        read_table(tmp_path, pa.table({"clicked": X, "x": X}))


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(X)] * 3, names=["label", "x", "x"])
    with pytest.raises(DataError, match="several columns"):
        read_table(tmp_path, table)


@pytest.mark.parametrize("content", [b"", b"1 2:3\n", b"PAR1", b"PAR1" + bytes(90) + b"PAR1"])
def test_what_is_not_parquet_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.parquet"):
        list(read(path, ReadOptions(), 1 << 20))


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        list(read(tmp_path / "none.parquet", ReadOptions(), 1 << 20))
    with pytest.raises(DataError, match="folder"):
        list(read(tmp_path, ReadOptions(), 1 << 20))


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no rows"):
        read_table(tmp_path, pa.table({"label": pa.array([], pa.int64()), "x": pa.array([], pa.int64())}))


def test_a_damaged_page_is_noticed_by_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"label": np.arange(1000.0), "x": np.arange(1000.0)})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    data[2000] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match="damaged"):
        list(read(path, ReadOptions(), 1 << 20))


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"hogwild\[parquet\]"):
        list(read(tmp_path / "a.parquet", ReadOptions(), 1 << 20))


def test_pieces_are_small_and_do_not_change_the_rows(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    lists = [chance.integers(0, 50, chance.integers(0, 200)).tolist() for _ in range(2_000)]
    table = pa.table({"label": np.arange(2_000), "x": chance.random(2_000), "l": lists})
    whole = read_table(tmp_path, table, piece_bytes=1 << 28)
    reading = ReadOptions(encoding=by_type(tmp_path / "a.parquet"))
    pieces = list(read(tmp_path / "a.parquet", reading, 100_000))
    assert len(pieces) > 5
    assert max(piece.nonzeros for piece in pieces) * 8 <= 100_000
    parts = concatenate(pieces)
    for name in ("indptr", "indices", "values", "labels"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


NUMBERS = st.one_of(st.none(), st.floats(-100, 100, width=32), st.just(0.0))
TEXTS = st.one_of(st.none(), st.text(max_size=4))
RECORDS = st.fixed_dictionaries(
    {
        "n": NUMBERS,
        "t": TEXTS,
        "l": st.one_of(st.none(), st.lists(TEXTS, max_size=4)),
        "m": st.one_of(st.none(), st.dictionaries(st.text(max_size=2), NUMBERS, max_size=3)),
    }
)


def plain(record: dict[str, Any]) -> dict[str, float]:
    features = [("n", record["n"])]
    features += [(f"t={record['t']}", 1.0)] if record["t"] is not None else []
    features += [(f"l={element}", 1.0) for element in record["l"] or [] if element is not None]
    features += [(f"m={key}", value) for key, value in (record["m"] or {}).items()]
    out: dict[str, float] = {}
    for name, value in features:
        if value:
            out[name] = out.get(name, 0.0) + value
    return out


@given(st.lists(RECORDS, min_size=1, max_size=12), st.integers(1, 12), st.sampled_from([1, 1 << 20]))
@settings(max_examples=40, deadline=None)
def test_agrees_with_a_plain_loop(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]], group: int, piece_bytes: int
) -> None:
    types = {"n": pa.float64(), "t": pa.string(), "l": pa.list_(pa.string()), "m": pa.map_(pa.string(), pa.float64())}
    made = {
        name: pa.array([list(r[name].items()) if isinstance(r[name], dict) else r[name] for r in records], type_)
        for name, type_ in types.items()
    }
    path = tmp_path_factory.mktemp("plain") / "a.parquet"
    pq.write_table(pa.table({"label": range(len(records)), **made}), path, row_group_size=group)
    rows = concatenate(list(read(path, ReadOptions(encoding=by_type(path, bits=30)), piece_bytes)))
    assert rows.labels.tolist() == list(range(len(records)))
    for found, expected in zip(entries(rows), named(*map(plain, records), bits=30), strict=True):
        assert found == pytest.approx(expected, rel=1e-6)
