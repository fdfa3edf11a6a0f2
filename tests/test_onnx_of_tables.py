"""Models of tables as ONNX graphs that take the columns of the table: the same scores, or a line that says why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import hogwild
from hogwild.data import ColumnRoles, ReadOptions
from hogwild.data import open as open_data
from hogwild.errors import ParameterError

onnxruntime = pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(3)
ROWS = 400
NUMBERS = ["plain", "a log", "standard", "bins", "log bins"]
ROLES = ColumnRoles(
    numeric=("plain:none", "a log:log", "standard:standard", "bins:quantile:7", "log bins:log-bins"),
    categorical=("city:dictionary", "label:dictionary"),
)


def table() -> pandas.DataFrame:
    frame = pandas.DataFrame({name: (RNG.normal(size=ROWS) * 10).round(2) for name in NUMBERS})
    frame["a log"] *= 1000
    frame["log bins"] = RNG.integers(-3, 10**6, ROWS).astype(float)
    frame["city"] = RNG.choice(["Ulm", "Bonn", "a city, with words"], ROWS)
    frame["label"] = RNG.choice(["x", "y"], ROWS)  # the name of an output of the graph
    frame["target"] = np.where(frame["plain"] + 5 * (frame["city"] == "Ulm") > 0, "yes", "no")
    for name in (*NUMBERS, "city"):
        frame.loc[RNG.choice(ROWS, 20, replace=False), name] = None
    return frame


def strange(frame: pandas.DataFrame, large: float) -> pandas.DataFrame:
    """Return rows that the training data did not have: large, small and missing numbers, other categories."""
    new = frame.head(60).copy()
    for name in NUMBERS:
        new.loc[:5, name] = [0.0, -0.0, large, -large, 1e-20, np.nan]
    new.loc[10:15, "city"] = "Paris"
    return new


def fed(session: Any, frame: pandas.DataFrame) -> dict[str, Any]:
    inputs = {}
    for each in session.get_inputs():
        column = frame[each.name.removesuffix("_column")]
        if each.type == "tensor(string)":
            inputs[each.name] = column.fillna("").to_numpy(dtype=object).reshape(-1, 1)
        else:
            inputs[each.name] = column.to_numpy(np.float64).reshape(-1, 1)
    return inputs


def problem(kind: str, frame: pandas.DataFrame) -> Any:
    reading = ReadOptions(label="target", roles=ROLES, fields=() if kind == "ffm" else None)
    data = open_data(frame, reading=reading)
    if kind == "linear":
        return hogwild.Linear(data, "logistic")
    return {"fm": hogwild.FactorisationMachine, "ffm": hogwild.FieldAwareFactorisationMachine}[kind](
        data, "logistic", rank=3
    )


@pytest.mark.parametrize("kind", ["linear", "fm", "ffm"])
def test_scores_are_ours(kind: str, tmp_path: Path) -> None:
    frame = table()
    model = hogwild.minimise(problem(kind, frame), budget=3, seed=0).model
    model.to_onnx(tmp_path / "a.onnx", inputs="table")
    session = onnxruntime.InferenceSession(str(tmp_path / "a.onnx"))
    assert {each.name for each in session.get_inputs()} == {*NUMBERS, "city", "label_column"}
    # Products of factors are sums of squares in the graph, of single precision.
    for rows in (frame, strange(frame, 1e30 if kind == "linear" else 1e3)):
        label, chances = session.run(["label", "probabilities"], fed(session, rows))
        ours = model.predict_proba(rows)
        assert chances == pytest.approx(ours, rel=2e-5, abs=1e-6)
        clear = np.abs(ours[:, 1] - 0.5) > 1e-4
        assert (label[clear] == np.where(ours[clear, 1] > 0.5, "yes", "no")).all()


def test_an_estimator_of_a_file(tmp_path: Path) -> None:
    frame = table().drop(columns="label")
    frame["target"] = np.where(frame["target"] == "yes", 7, 3)
    frame.to_csv(tmp_path / "a.csv", index=False)
    roles = ColumnRoles(categorical=("city:dictionary",))
    data = open_data(tmp_path / "a.csv", reading=ReadOptions(label="target", roles=roles))
    model = hogwild.HogwildClassifier("log_loss", random_state=0).fit(data)
    session = onnxruntime.InferenceSession(model.to_onnx(inputs="table").SerializeToString())
    label, chances = session.run(["label", "probabilities"], fed(session, frame))
    assert chances == pytest.approx(model.predict_proba(str(tmp_path / "a.csv")), rel=2e-5, abs=1e-6)
    assert set(label) == {3, 7}


@pytest.mark.parametrize(("role", "words"), [
    ({"categorical": ("city",)}, "column 'city' has hashed categories. Train with --categorical city:dictionary."),
    ({"categorical": ("city:list:,",)}, "column 'city' has lists, whose parts are hashed."),
    ({"text": ("city",)}, "column 'city' is text, whose words are hashed."),
])  # fmt: skip
def test_what_onnx_cannot_encode_is_told_by_column(role: dict[str, Any], words: str) -> None:
    frame = table()[["plain", "city", "target"]]
    data = open_data(frame, reading=ReadOptions(label="target", roles=ColumnRoles(**role)))
    model = hogwild.minimise(hogwild.Linear(data, "logistic"), budget=1).model
    with pytest.raises(ParameterError) as told:
        model.to_onnx(inputs="table")
    assert words in str(told.value)
    assert "\n" not in str(told.value)


def test_a_model_without_columns_has_no_table() -> None:
    model = hogwild.minimise(hogwild.Linear((np.eye(4), [0, 1, 0, 1]), "logistic"), budget=1).model
    with pytest.raises(ParameterError, match="inputs='table' is for models of tables with columns"):
        model.to_onnx(inputs="table")
