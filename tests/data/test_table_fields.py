"""Columns of tables as fields of factorisation machines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import hogwild
from hogwild.cli import main
from hogwild.data import open as open_data
from hogwild.data import pack
from hogwild.data.generate.criteo import Criteo
from hogwild.data.reader import ReadOptions
from hogwild.data.readers.criteo import criteo_encoding
from hogwild.data.tables.table_encoding import from_record
from hogwild.errors import DataError
from hogwild.estimators import HogwildFMClassifier
from hogwild.problems.field_aware_fm import FieldAwareFactorisationMachine


def frame_of(rows: int = 400) -> pd.DataFrame:
    """Rows whose label depends on the pair of a user and a shop alone."""
    random = np.random.default_rng(0)
    user, shop = random.integers(0, 6, rows), random.integers(0, 6, rows)
    likes = random.normal(size=(6, 6)) > 0
    return pd.DataFrame({
        "click": likes[user, shop].astype(int), "user": [f"u{k}" for k in user], "shop": [f"s{k}" for k in shop],
        "price": random.normal(size=rows), "tags": ["a;b" if k % 2 else "b" for k in user],
    })  # fmt: skip


FIELDS = ReadOptions(fields=())


def test_each_column_is_a_field_and_each_pair_has_a_column() -> None:
    frame = pd.DataFrame({"click": [1, 0, 1], "user": ["x", "y", "x"], "shop": ["x", None, "z"]})
    data = open_data(frame, reading=FIELDS)
    assert data.table is not None
    assert data.encoding is not None
    assert_array_equal(data.table.fields, [0, 0, 1, 1])  # user x, user y, shop x, shop z
    assert_array_equal(data.rows.indptr, [0, 2, 3, 5])
    assert_array_equal(data.rows.indices, [0, 2, 1, 0, 3])
    assert data.encoding.fields == (0, 1)
    assert from_record(json.loads(json.dumps(data.encoding.record()))) == data.encoding


def test_columns_that_fit_one_entry_are_one_field() -> None:
    frame = pd.DataFrame({"click": [1, 0], "C1": ["a", "b"], "n": ["c", "d"], "C2": ["a", "b"]})
    data = open_data(frame, reading=ReadOptions(fields=("C*",)))
    assert data.encoding is not None
    assert data.encoding.fields == (0, 1, 0)
    with pytest.raises(DataError, match=r"there is no field column 'D\*'"):
        open_data(frame, reading=ReadOptions(fields=("D*",)))


@pytest.mark.parametrize("form", ["a.csv", "a.jsonl", "a.arrow", "a.parquet"])
def test_files_and_frames_have_the_same_fields(tmp_path: Path, form: str) -> None:
    frame, path = frame_of(), tmp_path / form
    writers = {
        "a.csv": lambda: frame.to_csv(path, index=False), "a.parquet": lambda: frame.to_parquet(path),
        "a.jsonl": lambda: frame.to_json(path, orient="records", lines=True, double_precision=15),
        "a.arrow": lambda: frame.to_feather(path, compression="uncompressed"),
    }  # fmt: skip
    writers[form]()
    reading = ReadOptions(fields=(), label="click")
    expected = open_data(frame, reading=reading)
    found = open_data(path, reading=ReadOptions(fields=(), label="click", encoding=expected.encoding), shuffle=False)
    assert_array_equal(found.table.keys, expected.table.keys)
    assert_array_equal(found.rows.indices, expected.rows.indices)
    assert_array_equal(found.rows.labels, expected.rows.labels)


def test_a_model_of_fields_predicts_the_same_after_saving_and_from_a_frame(tmp_path: Path) -> None:
    frame, path = frame_of(), tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    out = tmp_path / "a.model"
    assert main(["train", str(path), "--problem", "ffm", "--epochs", "30", "--seed", "1", "--out", str(out)]) == 0
    model = hogwild.load(out)
    assert model.kind == "ffm"
    assert model.factors.shape[1] == 4
    scores = model.decide(model.open(path))
    assert_array_equal(model.decide(frame), scores)
    assert np.mean(model.predict(frame) == frame["click"]) > 0.9
    # Values that the training did not have make no feature.
    unknown = frame.assign(user="nobody")
    assert_array_equal(model.decide(unknown), model.decide(frame.assign(user=None)))


def test_fields_of_tables_in_python(tmp_path: Path) -> None:
    frame, path = frame_of(), tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    fitted = HogwildFMClassifier(fields="file", max_iter=30, random_state=0).fit(path, "click")
    assert fitted.score(path) > 0.9
    problem = FieldAwareFactorisationMachine(frame, label="click")
    assert problem.n_fields == 4
    with pytest.raises(DataError, match="can only be read into memory"):
        pack([path], tmp_path / "packed", reading=FIELDS)


def test_a_factorisation_machine_takes_fields_and_a_linear_model_refuses_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    frame_of().to_csv(path, index=False)
    assert main(["train", str(path), "--problem", "fm", "--fields", "each", "--epochs", "2"]) == 0
    assert main(["train", str(path), "--fields", "each"]) == 2
    assert "a.csv is read with fields, which are for --problem ffm, or fm." in capsys.readouterr().err


def test_criteo_has_39_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    Criteo(50, seed=1).write(path)
    data = open_data(path, reading=ReadOptions(format="criteo", fields=()), shuffle=False)
    assert len(set(data.table.fields.tolist())) == 39
    plain = open_data(path, reading=ReadOptions(format="criteo"), shuffle=False)
    hashed = (data.table.keys & np.uint64(2**32 - 1))[data.rows.indices]
    for row in range(50):
        first, stop = data.rows.indptr[row : row + 2]
        begin, end = plain.rows.indptr[row : row + 2]
        assert set(hashed[first:stop].tolist()) == set(plain.rows.indices[begin:end].tolist())
    assert plain.encoding == criteo_encoding(18)
