"""Trained models: what they say of rows, and the files they are kept in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from hogwild import Checkpoints, Constant, Linear, array_file, load, minimise
from hogwild.errors import DataError, ModelError, ParameterError
from hogwild.models.linear import LinearModel


def model(outputs: int = 1, **changed: Any) -> LinearModel:
    rng = np.random.default_rng(3)
    classes = {1: (-1.0, 1.0), 3: (2.0, 5.0, 7.0)}[outputs]
    made = LinearModel(
        rng.standard_normal((4, outputs)).astype(np.float32), rng.standard_normal(outputs).astype(np.float32),
        "logistic", classes, "sigmoid", {"base": 1}, {"rule": "SGD()", "seed": 3},
    )  # fmt: skip
    return replace(made, **changed)


X = np.random.default_rng(5).standard_normal((30, 4)).astype(np.float32)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("rows", [X, X.astype(np.float64), sp.csr_matrix(X), sp.csr_array(X), X.tolist()])
def test_scores_are_weighted_sums(outputs: int, rows: Any) -> None:
    made = model(outputs)
    assert made.decide(rows) == pytest.approx(X @ made.weights + made.intercept, rel=1e-5)


def test_predictions_of_two_classes() -> None:
    scores = model().decide(X)[:, 0]
    assert np.array_equal(model().predict(X), np.where(scores > 0, 1.0, -1.0))
    p = model().probabilities_of(model().decide(X))
    assert p.sum(axis=1) == pytest.approx(np.ones(30))
    assert p[:, 1] == pytest.approx(1 / (1 + np.exp(-scores)))
    assert np.array_equal(np.array([-1.0, 1.0])[p.argmax(axis=1)], model().predict(X))


def test_predictions_of_several_classes() -> None:
    made = model(3)
    scores = made.decide(X)
    assert np.array_equal(made.predict(X), np.array([2.0, 5.0, 7.0])[scores.argmax(axis=1)])
    single = 1 / (1 + np.exp(-scores))
    assert made.probabilities_of(scores) == pytest.approx(single / single.sum(axis=1, keepdims=True))
    soft = model(3, loss="softmax").probabilities_of(scores)
    assert soft == pytest.approx(np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True))


def test_predictions_of_numbers() -> None:
    plain = model(classes=None, loss="squared", link="identity")
    assert np.array_equal(plain.predict(X), plain.decide(X)[:, 0])
    counts = model(classes=None, loss="poisson", link="exp")
    assert np.array_equal(counts.predict(X), np.exp(plain.decide(X)[:, 0]))


@given(st.lists(st.floats(-1e30, 1e30), min_size=3, max_size=30))
def test_probabilities_are_probabilities_however_large_the_scores(numbers: list[float]) -> None:
    one = np.array(numbers)[:, None]
    three = np.array(numbers[: len(numbers) // 3 * 3]).reshape(-1, 3)
    for made, scores in (
        (model(), one), (model(link="huber"), one), (model(3), three), (model(3, link="huber"), three),
        (model(3, loss="softmax"), three),
    ):  # fmt: skip
        p = made.probabilities_of(scores)
        assert ((p >= 0) & (p <= 1)).all()
        assert p.sum(axis=1) == pytest.approx(np.ones(len(p)))


@pytest.mark.parametrize("changed", [{"link": "none", "loss": "hinge"}, {"classes": None, "loss": "squared"}])
def test_losses_without_probabilities(changed: Any) -> None:
    made = model(**changed)
    with pytest.raises(ParameterError, match=f"'{made.loss}' gives no probabilities. Train with 'logistic'"):
        made.probabilities_of(made.decide(X))


def test_more_features_than_the_model_knows() -> None:
    for columns in (3, 5):
        with pytest.raises(DataError, match=f"there are {columns} columns, and 4 are expected"):
            model().decide(np.ones((2, columns)))
    with pytest.raises(DataError):
        model().decide(np.full((2, 4), np.nan))


@pytest.mark.parametrize("base", [0, 1])
def test_files_are_read_as_the_training_file_was(base: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{2 + base}:1 {90 + base}:5\n" for _ in range(2)))  # seen alone, it could be either
    made = model(reading={"base": base})
    expected = made.weights[2, 0] + made.intercept[0]
    assert made.decide(path) == pytest.approx(np.full((2, 1), expected))
    assert made.decide(str(path)) == pytest.approx(np.full((2, 1), expected))


def test_hashed_names_go_to_the_columns_of_training(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("".join(f"{1 if k % 2 else -1} | {'odd' if k % 2 else 'even'}\n" for k in range(40)))
    from hogwild.data import ReadOptions
    from hogwild.data import open as open_data

    for bits in (5, 18):
        data = open_data(tmp_path / "a.vw", reading=ReadOptions(bits=bits))
        run = minimise(Linear(data), strategy="serial", schedule=Constant(0.5), budget=5)
        (tmp_path / "new.vw").write_text("| odd\n| even\n| odd\n")
        assert run.model.predict(tmp_path / "new.vw").tolist() == [1, -1, 1]


# Files


@pytest.mark.parametrize("outputs", [1, 3])
def test_there_and_back(outputs: int, tmp_path: Path) -> None:
    made = model(outputs)
    made.save(tmp_path / "model")
    found = load(tmp_path / "model")
    assert np.array_equal(found.weights, made.weights)
    assert np.array_equal(found.intercept, made.intercept)
    assert (found.loss, found.link, found.classes) == (made.loss, made.link, made.classes)
    assert (found.reading, found.training) == (made.reading, made.training)
    assert np.array_equal(found.decide(X), made.decide(X))


def test_a_model_of_numbers_there_and_back(tmp_path: Path) -> None:
    model(classes=None, link="identity").save(tmp_path / "model")
    assert load(str(tmp_path / "model")).classes is None


def test_every_damage_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "model"
    model().save(path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(ModelError, match="model: "):
            load(path)
        path.write_bytes(whole[:at])
        with pytest.raises(ModelError, match="model: "):
            load(path)


def test_a_checkpoint_is_no_model(tmp_path: Path) -> None:
    y = np.sign(X[:, 0])
    minimise(Linear((X, y)), strategy="serial", schedule=Constant(0.1), budget=1, checkpoint=Checkpoints(tmp_path))
    with pytest.raises(ModelError, match="this is no model but a checkpoint"):
        load(tmp_path / "latest.safetensors")


GOOD: dict[str, Any] = {
    "kind": "linear", "format": 1, "loss": "logistic", "link": "sigmoid", "classes": [-1, 1], "reading": {},
    "training": {},
}  # fmt: skip
W, B = np.zeros((4, 1), np.float32), np.zeros(1, np.float32)


@pytest.mark.parametrize(
    ("changed", "weights", "intercept", "message"),
    [
        ({"kind": "forest"}, W, B, "this is no model but a forest"),
        ({"kind": None}, W, B, "a file of another kind"),
        ({"format": 2}, W, B, "written in format 2; this version reads 1. Upgrade hogwild"),
        ({"classes": [1, 2, 3]}, W, B, "for 3 outputs"),
        ({"classes": "many"}, W, B, "incomplete or inconsistent"),
        ({"classes": 7}, W, B, "incomplete or inconsistent"),
        ({"reading": 3}, W, B, "incomplete or inconsistent"),
        ({"training": None}, W, B, "incomplete or inconsistent"),
        ({}, W[:, 0], B, "incomplete or inconsistent"),
        ({}, W[:0], B, "incomplete or inconsistent"),
        ({}, W.astype(np.float64), B, "incomplete or inconsistent"),
        ({}, W, np.zeros(2, np.float32), "incomplete or inconsistent"),
        ({}, W, np.zeros((1, 1), np.float32), "incomplete or inconsistent"),
        ({}, None, B, "incomplete or inconsistent .*'weights'"),
        ({}, W, None, "incomplete or inconsistent .*'intercept'"),
    ],
)
def test_inconsistent_files(changed: Any, weights: Any, intercept: Any, message: str, tmp_path: Path) -> None:
    parts = {"weights": weights, "intercept": intercept}
    arrays = {name: part for name, part in parts.items() if part is not None}
    array_file.save(tmp_path / "model", arrays, {**GOOD, **changed})
    with pytest.raises(ModelError, match=message):
        load(tmp_path / "model")


@pytest.mark.parametrize("missing", ["loss", "link", "classes", "reading", "training"])
def test_incomplete_files(missing: str, tmp_path: Path) -> None:
    array_file.save(tmp_path / "model", {"weights": W, "intercept": B}, {k: v for k, v in GOOD.items() if k != missing})
    with pytest.raises(ModelError, match=f"incomplete or inconsistent .*'{missing}'"):
        load(tmp_path / "model")
