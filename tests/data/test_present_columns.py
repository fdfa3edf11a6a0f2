"""Rows and models with few of very many columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hogwild import Hogwild, HogwildClassifier, Linear, Local, ParameterServer, Serial, load, minimise
from hogwild.data import open as open_data
from hogwild.data import present_columns
from hogwild.data.present_columns import PresentColumns
from hogwild.data.reader import ReadOptions
from hogwild.errors import HogwildError, ParameterError

WIDE = 50_000


def rows_of(rows: int, seed: int, features: int = WIDE) -> tuple[Any, Any]:
    """Rows of some hundred columns, which lie far apart, and labels that depend on them."""
    random = np.random.default_rng(seed)
    columns = np.sort(random.integers(0, 300, (rows, 8)) ** 2 % features, axis=1)
    X = sp.csr_matrix((np.ones(columns.size, np.float32), columns.ravel(), np.arange(0, columns.size + 1, 8)))
    X.resize((rows, features))
    X.sum_duplicates()
    return X, np.sign(X @ np.sin(np.arange(features)) + 0.05)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(present_columns, "MANY", 1_000)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("features", [63, 64, 65, 4_097])
def test_columns_are_numbered_in_their_order(dtype: Any, features: int) -> None:
    random = np.random.default_rng(features)
    present = np.flatnonzero(random.random(features) < 0.3).astype(dtype)
    known = PresentColumns(present, features)
    lengths = random.integers(0, 9, 50)
    indices = random.integers(0, 2 * features, lengths.sum()).astype(dtype)
    from hogwild.data.csr import NO_WEIGHTS, CSRRows

    indptr = np.concatenate([[0], np.cumsum(lengths)])
    rows = CSRRows(indptr, indices, random.random(len(indices)), np.zeros(50), NO_WEIGHTS, 2 * features, "sparse")[3:41]
    found = known.renumber(rows)
    for row in range(len(rows)):
        old = slice(rows.indptr[row], rows.indptr[row + 1])
        keep = np.isin(rows.indices[old], present)
        new = slice(found.indptr[row], found.indptr[row + 1])
        np.testing.assert_array_equal(present[found.indices[new]], rows.indices[old][keep])
        np.testing.assert_array_equal(found.values[new], rows.values[old][keep])


@pytest.mark.parametrize(
    "options",
    [{"strategy": Serial()}, {"strategy": Hogwild(2)}, {"strategy": ParameterServer(2), "runtime": Local()}],
    ids=["serial", "hogwild", "parameter server"],
)
def test_a_model_of_present_columns_predicts_as_one_of_all(few: None, tmp_path: Any, options: Any) -> None:
    data, other = rows_of(2_000, seed=0), rows_of(500, seed=1)
    runs = [
        minimise(Linear(data, l2=1e-3, compact=compact), budget=10, test=open_data(*other), **options)
        for compact in (True, False)
    ]
    sparse, whole = (run.model for run in runs)
    assert sparse.columns is not None
    assert len(sparse.weights) <= 300 < len(whole.weights) == WIDE == sparse.n_features
    expanded = sparse.columns.expand(sparse.weights)
    if options["strategy"] == Serial():
        np.testing.assert_allclose(expanded, whole.weights, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sparse.decide(other[0]), other[0] @ expanded + sparse.intercept, rtol=1e-4, atol=1e-4)
    assert runs[0].objective == pytest.approx(runs[1].objective, rel=0.05)
    assert runs[0].result["test_loss"] == pytest.approx(runs[1].result["test_loss"], rel=0.05)
    sparse.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.decide(other[0]), sparse.decide(other[0]))
    assert (tmp_path / "m").stat().st_size < 20_000


def test_held_out_rows_of_the_same_data_are_not_numbered_twice(few: None) -> None:
    run = minimise(Linear(rows_of(2_000, seed=0), l2="auto"), budget=3)
    assert run.model.columns is not None
    assert run.result["accuracy"] > 0.9


def test_held_out_files_have_the_columns_of_the_training_data(few: None, tmp_path: Any) -> None:
    from sklearn.datasets import dump_svmlight_file

    dump_svmlight_file(*rows_of(500, seed=1), str(tmp_path / "t.svm"), zero_based=True)
    dump_svmlight_file(*rows_of(2_000, seed=0), str(tmp_path / "a.svm"), zero_based=True)
    data = open_data(tmp_path / "a.svm", reading=ReadOptions(base=0, features=WIDE))
    run = minimise(Linear(data, l2=1e-3), strategy=Serial(), budget=10, test=str(tmp_path / "t.svm"))
    assert run.model.columns is not None
    X, y = rows_of(500, seed=1)
    assert run.result["test_accuracy"] == np.mean(run.model.predict(X) == y)


def test_rows_that_are_numbered_already_are_not_numbered_again(few: None) -> None:
    X, y = rows_of(2_000, seed=0)
    problem = Linear((X, y), l2=1e-3)
    model = minimise(problem, strategy=Serial(), budget=10).model
    np.testing.assert_allclose(model.decide(problem.source), model.decide(X), atol=1e-5)
    other = Linear(rows_of(100, seed=7), l2=1e-3)
    with pytest.raises(ParameterError, match="another problem"):
        model.decide(other.source)
    with pytest.raises(ParameterError, match="or other ones"):
        problem.encoded(other.source)
    with pytest.raises(ParameterError, match="or other ones"):
        problem.encoded(open_data(*rows_of(100, seed=7, features=2 * WIDE)))


def test_there_is_no_landscape_of_so_many_features(few: None) -> None:
    from hogwild import landscape

    with pytest.raises(ParameterError, match="compact=False"):
        landscape.surface(Linear(rows_of(100, seed=0), l2=1e-3))


def test_rows_without_entries_keep_their_features(few: None) -> None:
    problem = Linear((sp.csr_matrix((4, WIDE), dtype=np.float32), [1, -1, 1, -1]), l2=1e-3)
    assert problem.source.n_features == WIDE


def test_estimators_have_all_weights(few: None) -> None:
    X, y = rows_of(1_000, seed=0)
    found = HogwildClassifier(random_state=0).fit(X, y)
    assert found.coef_.shape == (1, WIDE)
    found.partial_fit(*rows_of(1_000, seed=3))


def test_columns_of_a_file_that_do_not_fit_are_refused(few: None, tmp_path: Any) -> None:
    from hogwild import array_file

    model = minimise(Linear(rows_of(500, seed=0), l2=1e-3), budget=2).model
    model.save(tmp_path / "m")
    arrays, record = array_file.load(tmp_path / "m", HogwildError)
    for change in ({"columns": arrays["columns"][::-1]}, {"columns": arrays["columns"][1:]}):
        array_file.save(tmp_path / "bad", arrays | change, record)
        with pytest.raises(HogwildError, match="bad"):
            load(tmp_path / "bad")
