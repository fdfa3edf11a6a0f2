"""Statistics of tables: they are of rows from all parts of the data, and the same columns are taken in every format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pytest

from hogwild.data import ColumnRoles
from hogwild.data import open as open_data
from hogwild.data.reader import ReadOptions
from hogwild.data.tables.guess import describe
from hogwild.estimators import HogwildClassifier, HogwildFMClassifier

ROWS = 200_000


@pytest.fixture(scope="module")
def sorted_table() -> pd.DataFrame:
    """A column that rises from 0 to 100 over the rows, and a label that depends on another one."""
    random = np.random.default_rng(0)
    other = random.normal(5, 1000, ROWS).round(3)
    return pd.DataFrame({"label": (other > 5).astype(int), "time": np.linspace(0, 100, ROWS).round(3), "other": other})


@pytest.mark.parametrize("form", ["csv", "json", "arrow", "arrow in one batch", "parquet", "frame", "several files"])
def test_statistics_are_of_all_parts_of_a_sorted_file(sorted_table: pd.DataFrame, form: str, tmp_path: Path) -> None:
    path, table = tmp_path / "a", sorted_table
    source: object = path
    if form == "csv":
        table.to_csv(source := path.with_suffix(".csv"), index=False)
    elif form == "json":
        table.to_json(source := path.with_suffix(".jsonl"), orient="records", lines=True)
    elif form.startswith("arrow"):
        rows = ROWS if form == "arrow in one batch" else None
        table.to_feather(source := path.with_suffix(".arrow"), compression="uncompressed", chunksize=rows)
    elif form == "parquet":
        table.to_parquet(source := path.with_suffix(".parquet"), row_group_size=100_000)
    elif form == "several files":
        source = [tmp_path / f"{number}.csv" for number in range(3)]
        for number, name in enumerate(source):
            table[number * ROWS // 3 : (number + 1) * ROWS // 3].to_csv(name, index=False)
    else:
        source = table
    encoding = open_data(source, label="label").encoding
    assert encoding is not None
    (mean, deviation), (_, spread) = (column.statistics for column in encoding.columns)
    assert mean == pytest.approx(50, rel=0.02)
    assert deviation == pytest.approx(100 / 12**0.5, rel=0.02)
    assert spread == pytest.approx(1000, rel=0.03)


def test_large_frames_of_polars_are_taken() -> None:
    """Their texts are of a type for which Arrow lacks functions."""
    rows = 140_000
    texts = [f"v{k % 7}" for k in range(rows)]
    frame = polars.DataFrame({"label": np.arange(rows) % 2, "text": texts, "x": np.linspace(0, 1, rows),
                              "pair": [[1.0, 2.0]] * rows})  # fmt: skip
    encoding = open_data(frame, label="label").encoding
    assert encoding is not None
    assert encoding.columns[1].statistics == pytest.approx((0.5, 12**-0.5), rel=1e-3)


def test_numbers_are_scaled_in_every_format(sorted_table: pd.DataFrame, tmp_path: Path) -> None:
    few = sorted_table[::100]
    few.to_csv(tmp_path / "a.csv", index=False)
    few.to_parquet(tmp_path / "a.parquet")
    scores = [
        HogwildClassifier("log_loss", random_state=0).fit(tmp_path / name, "label").score(tmp_path / name)
        for name in ("a.csv", "a.parquet")
    ]
    assert scores[0] == scores[1]
    assert scores[0] > 0.95


def test_a_column_whose_values_all_differ_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    table = pd.DataFrame({
        "label": [k % 2 for k in range(300)], "row_id": range(300), "hash": [f"{k * 7919:08x}" for k in range(300)],
        "user_id": [k % 50 for k in range(300)], "size": [k / 7 for k in range(300)],
    })  # fmt: skip
    table.to_csv(path, index=False)
    encoding = open_data(path).encoding
    assert encoding is not None
    assert [column.name for column in encoding.columns] == ["user_id", "size"]
    assert "left out, because every value differs: row_id, hash" in describe(encoding)
    given = open_data(path, reading=ReadOptions(roles=ColumnRoles(categorical=("hash",)))).encoding
    assert given is not None
    assert [column.name for column in given.columns] == ["hash", "user_id", "size"]
    table[["label", "hash"]].to_csv(path, index=False)  # Nothing else is there to learn from.
    alone = open_data(path).encoding
    assert alone is not None
    assert [column.name for column in alone.columns] == ["hash"]


@pytest.mark.parametrize("estimator", [HogwildClassifier("log_loss", random_state=0), HogwildFMClassifier()])
def test_classes_of_a_file_are_its_texts(estimator: HogwildClassifier | HogwildFMClassifier, tmp_path: Path) -> None:
    path, numbered = tmp_path / "a.csv", tmp_path / "b.csv"
    values = np.random.default_rng(0).normal(size=500).round(4)
    table = pd.DataFrame({"answer": np.where(values > 0, "yes", "no"), "x": values})
    table.to_csv(path, index=False)
    estimator.fit(path, "answer")
    assert estimator.classes_.tolist() == ["no", "yes"]
    predicted = estimator.predict(path)
    assert set(predicted.tolist()) == {"no", "yes"}
    assert estimator.score(path) == np.mean(predicted == table["answer"].to_numpy()) > 0.9
    table.assign(answer=(values > 0).astype(int)).to_csv(numbered, index=False)
    with pytest.raises(Exception, match="is none of 'no', 'yes'"):
        estimator.score(numbered)


def test_weights_of_classes_are_given_by_their_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    random = np.random.default_rng(0)
    answers, values = random.choice(["no", "yes"], 500), random.normal(size=500).round(4)
    pd.DataFrame({"answer": answers, "x": values}).to_csv(path, index=False)
    only_yes = HogwildClassifier("log_loss", class_weight={"yes": 1.0, "no": 0.0}, random_state=0).fit(path, "answer")
    assert set(only_yes.predict(path).tolist()) == {"yes"}
    with pytest.raises(Exception, match="names the label 'maybe', which is not in the data"):
        HogwildClassifier("log_loss", class_weight={"maybe": 2.0}).fit(path, "answer")
