from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hogwild
from hogwild import Budget, Linear, Run, load, minimise
from hogwild.files import to_jsonable
from hogwild.stopping import budget_of


def test_a_budget_is_a_number_of_epochs_or_itself() -> None:
    budget = Budget(seconds=3)
    assert budget_of(budget) is budget
    assert budget_of(7) == Budget(epochs=7)
    assert budget_of(None) == Budget()


numbers = st.integers() | st.floats(allow_nan=False) | st.booleans() | st.text() | st.none()
wrapped = numbers | st.integers(-9, 9).map(np.int64) | st.floats(0, 1, width=32).map(np.float32)


@given(st.recursive(wrapped, lambda some: st.lists(some) | st.dictionaries(st.text() | st.integers(), some)))
@settings(max_examples=30)
def test_plain_values_survive_json(value: Any) -> None:
    made = to_jsonable(value)
    assert json.loads(json.dumps(made)) == made
    assert to_jsonable(made) == made


@pytest.fixture(scope="module")
def run() -> Run:
    X = np.random.default_rng(0).standard_normal((300, 4))
    return minimise(Linear((X, X @ [1.0, 2.0, 3.0, 4.0]), "squared"), strategy="serial", budget=3)


def test_everything_a_run_says_is_plain(run: Run) -> None:
    for record in (*run.events, *run.history, dict(run.config)):
        assert json.loads(json.dumps(record)) == to_jsonable(record)


def test_a_run_says_what_was_asked(run: Run) -> None:
    asked = run.config
    assert (asked["loss"], asked["seed"], asked["workers"], asked["strategy"]) == ("squared", 0, 1, "Serial()")
    assert "epochs=3" in asked["budget"]
    assert run.compile_seconds >= 0


def test_a_run_saves_its_model(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path / "model")
    model = load(tmp_path / "model")
    assert np.array_equal(model.weights, run.model.weights)
    assert model.training["rows"] == 300


def test_public_names_are_there() -> None:
    for name in hogwild.__all__:
        assert getattr(hogwild, name) is not None
    assert set(hogwild.__all__) <= set(dir(hogwild))
    with pytest.raises(AttributeError, match="no attribute 'Hogwlid'"):
        hogwild.Hogwlid  # noqa: B018


def test_histograms_have_numbers_for_keys_also_when_read_again(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((60, 4))
    run = minimise(
        Linear((X, X @ [1.0, 2.0, 3.0, 4.0]), "squared"), "sgd", hogwild.Constant(0.01), hogwild.ParameterServer(12),
        hogwild.Simulator(delay={3: 0.02}), budget=3, folder=tmp_path,
    )  # fmt: skip
    assert run.staleness is not None
    histogram = run.staleness["histogram"]
    assert list(histogram) == sorted(histogram)
    assert max(histogram) == run.staleness["most"] > 9  # as text, "10" would come before "9"
    again = Run.load(tmp_path).staleness
    assert again is not None
    assert list(again["histogram"].items()) == list(histogram.items())
