"""Factorisation machines with scikit-learn's face, and the files they leave behind."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import hogwild
from hogwild import FieldAwareFactorisationMachine, HogwildFMClassifier, HogwildFMRegressor, minimise
from hogwild.data.generate import interactions
from hogwild.data.generate import write as write_generated
from hogwild.errors import ModelError

WEIGHTS = "a weight scales the step of one visit, a repeated row is visited twice, as in scikit-learn's SGD classes"
SAME = {f"check_sample_weight_equivalence_on_{kind}_data": WEIGHTS for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [HogwildFMClassifier(4, random_state=0), HogwildFMRegressor(4, random_state=0)],
    expected_failed_checks=lambda estimator: SAME,
)
def test_the_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def made():
    return interactions(6_000, 60, fields=5, rank=2, seed=2)


@pytest.fixture(scope="module")
def arrays(made):
    rows = made.rows
    X = scipy.sparse.csr_array((np.ones(rows.nonzeros), rows.indices.astype(np.int32), rows.indptr), (6_000, 60))
    return X[:5_000], rows.labels[:5_000], X[5_000:], rows.labels[5_000:]


def test_it_learns_what_features_do_together(arrays, made):
    from sklearn.linear_model import LogisticRegression

    X, y, X_test, y_test = arrays
    model = HogwildFMClassifier(4, random_state=0).fit(X, y)
    aware = HogwildFMClassifier(4, fields=made.fields, normalise=False, random_state=0).fit(X, y)
    linear = LogisticRegression().fit(X, y).score(X_test, y_test)
    assert model.score(X_test, y_test) > linear + 0.1
    assert aware.score(X_test, y_test) > linear + 0.05
    assert model.factors_.shape == (60, 4)
    assert aware.factors_.shape == (60, 5, 4)
    proba = model.predict_proba(X_test)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(proba[:, 1] > 0.5, model.decision_function(X_test) > 0)


def test_scores_are_those_of_coefficients_and_factors(arrays):
    X, y, X_test, _ = arrays
    model = HogwildFMClassifier(3, max_iter=2, random_state=0).fit(X, y)
    rows = X_test.toarray()
    pairs = np.square(rows @ model.factors_).sum(axis=1) - (np.square(rows) @ np.square(model.factors_)).sum(axis=1)
    expected = rows @ model.coef_ + model.intercept_ + pairs / 2
    np.testing.assert_allclose(model.decision_function(X_test), expected, rtol=1e-4, atol=1e-5)


def test_early_stopping_ends_before_the_last_epoch(arrays):
    X, y, _, _ = arrays
    stopped = HogwildFMClassifier(
        8, l2_factors=0.0, step=0.5, max_iter=100, early_stopping=True, n_iter_no_change=2, random_state=0
    ).fit(X, y)
    assert stopped.n_iter_ < 100


def test_parameters_are_refused_in_the_words_of_scikit_learn(arrays):
    X, y, _, _ = arrays
    with pytest.raises(ValueError, match="The 'rank' parameter of HogwildFMClassifier must be an int"):
        HogwildFMClassifier(0).fit(X, y)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        HogwildFMClassifier().fit(X, np.arange(len(y)) % 3)
    assert clone(HogwildFMClassifier(3, l2=0.1)).get_params()["l2"] == 0.1


def test_a_file_is_fitted_and_scored(tmp_path, made):
    path = tmp_path / "a.ffm"
    write_generated("interactions", path, rows=3_000, features=60, fields=5, rank=2, seed=2)
    model = HogwildFMClassifier(2, fields="file", max_iter=3, random_state=0).fit(path)
    assert model.classes_.tolist() == [-1, 1]
    assert model.score(path) == np.mean(model.predict(path) == hogwild.data.open(path, shuffle=False).labels())


# Model files


@pytest.mark.parametrize("fields", [False, True])
def test_a_model_is_saved_and_loaded(tmp_path, fields):
    write_generated("interactions", tmp_path / "a.ffm", rows=2_000, features=50, fields=5, seed=2)
    data = hogwild.data.open(tmp_path / "a.ffm")
    kind = FieldAwareFactorisationMachine if fields else hogwild.FactorisationMachine
    model = minimise(kind(data, rank=3), strategy="serial", budget=2).model
    model.save(tmp_path / "m")
    loaded = hogwild.load(tmp_path / "m")
    assert (loaded.kind, loaded.rank, loaded.classes) == ("ffm" if fields else "fm", 3, (-1.0, 1.0))
    # Read in its own order, and with the columns that features had in training.
    text = (tmp_path / "a.ffm").read_text().splitlines()
    (tmp_path / "b.ffm").write_text("\n".join(reversed(text)) + " 77:77:1\n")
    np.testing.assert_array_equal(loaded.decide(tmp_path / "b.ffm"), model.decide(tmp_path / "a.ffm")[::-1])
    answers = loaded.answer(tmp_path / "b.ffm", proba=True)
    assert answers.values.shape == (2_000, 2)
    assert answers.scores["accuracy"] > 0.5


def test_a_model_that_does_not_fit_together_is_refused(tmp_path):
    from hogwild import array_file

    write_generated("interactions", tmp_path / "a.ffm", rows=200, features=50, fields=5)
    problem = FieldAwareFactorisationMachine(tmp_path / "a.ffm", rank=2)
    minimise(problem, strategy="serial", budget=1).model.save(tmp_path / "m")
    arrays, record = array_file.load(tmp_path / "m", ModelError)
    for name, wrong in (
        ("factors", arrays["factors"][:-1]),
        ("factors", arrays["factors"][:, :2]),
        ("fields", arrays["fields"][:-1]),
        ("keys", arrays["keys"][:-1]),
        ("weights", arrays["weights"].astype(np.float64)),
    ):
        array_file.save(tmp_path / "w", {**arrays, name: wrong}, record)
        with pytest.raises(ModelError, match="incomplete or inconsistent"):
            hogwild.load(tmp_path / "w")
