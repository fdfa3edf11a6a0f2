"""One worker by default: the updates of scikit-learn but for rounding, each fit in one call of compiled code."""

import numpy as np
import pytest
import scipy.sparse as sp
from agreeing import data_named, objective
from sklearn.linear_model import SGDClassifier, SGDOneClassSVM, SGDRegressor

from hogwild import HogwildClassifier, HogwildOneClassSVM, HogwildRegressor
from hogwild.data.csr import CSRRows
from hogwild.errors import DataError
from hogwild.estimators import direct_fit, fit, output_fit
from hogwild.estimators.sklearn_parameters import with_useful_workers

FORMS = {"dense": np.asarray, "sparse": sp.csr_array, "float32": np.float32}


def both(kinds, X, y, **asked):
    asked = {"random_state": 0, "max_iter": 10, "tol": None, "alpha": 1e-3, "eta0": 0.01, **asked}
    return (kind(**asked).fit(X, y) for kind in kinds)


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize(
    "asked",
    [
        {"learning_rate": "constant"},
        {"learning_rate": "invscaling", "penalty": "l1"},
        {"learning_rate": "adaptive", "tol": 1e-3, "max_iter": 200},
        {"learning_rate": "constant", "penalty": "elasticnet", "l1_ratio": 0.4},
        {"learning_rate": "constant", "average": 700},
        {"learning_rate": "constant", "penalty": None, "fit_intercept": False},
        {"learning_rate": "constant", "class_weight": "balanced", "shuffle": False},
        {"learning_rate": "constant", "early_stopping": True, "tol": 1e-3, "max_iter": 100},
    ],
    ids=str,
)
def test_the_updates_are_theirs_but_for_rounding(form, asked):
    X, y = data_named("cancer")
    ours, theirs = both((HogwildClassifier, SGDClassifier), FORMS[form](X), y, loss="log_loss", **asked)
    assert (ours.n_iter_, ours.t_) == (theirs.n_iter_, theirs.t_)
    assert ours.coef_.dtype == theirs.coef_.dtype
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-3 * np.abs(theirs.coef_).max())
    assert objective(ours, X, y) <= 1.001 * objective(theirs, X, y)


@pytest.mark.parametrize("loss", ["squared_error", "huber", "epsilon_insensitive"])
def test_numbers_are_learnt_as_theirs(loss):
    X, y = data_named("diabetes")
    ours, theirs = both((HogwildRegressor, SGDRegressor), X, y, loss=loss)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6)


def test_outliers_are_learnt_as_theirs():
    X = data_named("diabetes")[0] + 1
    asked = {"nu": 0.3, "tol": None, "random_state": 0, "max_iter": 5}
    ours, theirs = (kind(**asked).fit(X) for kind in (HogwildOneClassSVM, SGDOneClassSVM))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-6)


@pytest.fixture(scope="module")
def twelve():
    """Sparse rows of twelve classes: eight fit into one vector, and four into another."""
    rng = np.random.default_rng(0)
    y = rng.integers(12, size=600)
    X = sp.random_array((600, 60), density=0.2, rng=rng, format="csr")
    X.data += 0.5
    return sp.csr_array(X + sp.csr_array(np.eye(12)[y] @ np.eye(12, 60))), y


@pytest.mark.parametrize("asked", [{}, {"learning_rate": "adaptive", "eta0": 0.05}, {"penalty": None}], ids=str)
def test_several_classes_of_sparse_rows_are_learnt_in_one_pass(twelve, asked, monkeypatch):
    monkeypatch.setattr(direct_fit, "train_output", None)  # nothing is trained class by class
    X, y = twelve
    asked = {"loss": "log_loss", "alpha": 1e-3, "random_state": 0, "class_weight": {3: 2.0}, **asked}
    ours = HogwildClassifier(**asked).fit(X, y, sample_weight=np.linspace(0.5, 1.5, len(y)))
    theirs = SGDClassifier(**asked).fit(X, y, sample_weight=np.linspace(0.5, 1.5, len(y)))
    assert ours.score(X, y) > theirs.score(X, y) - 0.01
    assert objective(ours, X, y) == pytest.approx(objective(theirs, X, y), rel=0.02)


def test_in_one_pass_a_class_is_learnt_as_alone(twelve):
    """In stored order all classes see the same rows, so each has the weights that it has by itself."""
    X, y = twelve
    asked = {"loss": "log_loss", "shuffle": False, "max_iter": 20, "tol": 1e-2, "alpha": 1e-3}
    together = HogwildClassifier(**asked).fit(X, y)
    for k in (0, 7, 8, 11):
        alone = HogwildClassifier(**asked).fit(X, y == k)
        np.testing.assert_allclose(together.coef_[k], alone.coef_[0], rtol=1e-8, atol=1e-9)
        assert together.intercept_[k] == pytest.approx(alone.intercept_[0], rel=1e-8)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_array.toarray], ids=["sparse", "dense"])
def test_classes_side_by_side_are_learnt_as_one_after_the_other(twelve, form, monkeypatch):
    monkeypatch.setattr(direct_fit, "WORTH_A_THREAD", 0)
    X, y = form(twelve[0]), twelve[1]
    one, three = (HogwildClassifier("log_loss", n_jobs=jobs, random_state=0).fit(X, y) for jobs in (None, 3))
    np.testing.assert_allclose(three.coef_, one.coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(three.intercept_, one.intercept_, rtol=1e-9)
    assert three.n_iter_ == one.n_iter_


def test_a_class_that_overflows_ends_the_others(twelve, monkeypatch):
    monkeypatch.setattr(direct_fit, "WORTH_A_THREAD", 0)
    with pytest.raises(ValueError, match="overflow occurred at epoch #1"):
        HogwildClassifier("squared_error", learning_rate="constant", eta0=1e200, n_jobs=3).fit(*twelve)


def test_batches_of_several_classes_go_on(twelve):
    X, y = twelve
    asked = {"loss": "log_loss", "shuffle": False, "max_iter": 2, "tol": None}
    whole = HogwildClassifier(**asked).fit(X, y)
    parts = HogwildClassifier(**asked)
    for _ in range(2):
        parts.partial_fit(X, y, classes=np.arange(12))
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9)
    assert parts.t_ == whole.t_


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_small_data_is_left_to_one_worker(n_jobs, monkeypatch):
    monkeypatch.setattr(fit, "minimise", None)  # no run is started
    X, y = data_named("cancer")
    one, several = HogwildClassifier(random_state=0).fit(X, y), HogwildClassifier(random_state=0, n_jobs=n_jobs)
    assert np.array_equal(several.fit(X, y).coef_, one.coef_)


def rows_larger_than_the_cache():
    rng = np.random.default_rng(0)
    X = sp.random_array((9_000, 400), density=0.1, rng=rng, format="csr", dtype=np.float32)
    y = np.where(X @ rng.standard_normal(400) + rng.standard_normal(9_000) > 0, "yes", "no")
    return X, y, rng.integers(0, 4, 9_000) * np.where(y == "yes", 3.0, 1.0)


@pytest.mark.parametrize("classes", [2, 3])
def test_rows_larger_than_the_cache_are_copied(monkeypatch, classes):
    """Labels and weights go with their rows. Where the fit has converged, the order of the rows does not matter."""
    X, y, weights = rows_larger_than_the_cache()
    y = np.where(np.arange(9_000) % classes == 2, "perhaps", y)
    copied, copy = [], direct_fit.InMemoryDataset.laid_out

    def watched(data, *how, **more):
        copied.append(copy(data, *how, **more))
        return copied[-1]

    monkeypatch.setattr(direct_fit.InMemoryDataset, "laid_out", watched)
    asked = {"loss": "log_loss", "alpha": 0.01, "tol": None, "max_iter": 30, "class_weight": "balanced"}
    ours, theirs = (
        kind(random_state=0, **asked).fit(X, y, sample_weight=weights) for kind in (HogwildClassifier, SGDClassifier)
    )
    assert [part is None for part in copied] == [False]
    assert not np.array_equal(copied[0].rows.labels[:100], np.unique(y, return_inverse=True)[1][:100])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.04 * np.abs(theirs.coef_).max())
    again = HogwildClassifier(random_state=0, n_jobs=4, **asked).fit(X, y, sample_weight=weights)
    assert np.array_equal(ours.coef_, again.coef_)


def test_rows_keep_the_order_that_is_asked_for():
    X, y, _ = rows_larger_than_the_cache()
    ours, theirs = both((HogwildClassifier, SGDClassifier), X, y, loss="log_loss", shuffle=False, max_iter=3)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-5)


def test_calls_are_short_enough_for_ctrl_c(monkeypatch):
    """A fit in many calls is the fit in one call."""
    X, y = data_named("cancer")
    whole = HogwildClassifier(random_state=0, max_iter=3, tol=None).fit(X, y)
    monkeypatch.setattr(output_fit, "INTERRUPTIBLE", 10_000)
    kernel, calls = direct_fit.train_output, []
    monkeypatch.setattr(direct_fit, "train_output", lambda *how: lambda *rest: calls.append(1) or kernel(*how)(*rest))
    parts = HogwildClassifier(random_state=0, max_iter=3, tol=None).fit(X, y)
    assert len(calls) > 3
    assert np.array_equal(whole.coef_, parts.coef_)


@pytest.mark.parametrize("asked", [{"rule": "adagrad"}, {"strategy": "serial"}, {"loss": "softmax"}], ids=str)
def test_what_scikit_learn_lacks_cannot_be_identical(asked):
    with pytest.raises(ValueError, match="identical_to_sklearn is for what scikit-learn has"):
        HogwildClassifier(identical_to_sklearn=True, **asked).fit(*data_named("cancer"))


def test_a_file_cannot_be_identical(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n")
    with pytest.raises(ValueError, match="identical_to_sklearn is for arrays"):
        HogwildClassifier(identical_to_sklearn=True).fit(tmp_path / "a.svm")


def test_identical_updates_are_made_by_one_worker():
    params = {**HogwildClassifier(n_jobs=8, identical_to_sklearn=True).get_params()}
    assert with_useful_workers(params, 10**9, features=10, outputs=1, dense=True)["n_jobs"] == 1


def test_a_damaged_matrix_is_refused():
    X, y = sp.csr_matrix(np.eye(6)), np.arange(6) % 2
    X.indices[2] = 9
    with pytest.raises(DataError, match="index 9"):
        HogwildClassifier().fit(X, y)


def test_weights_that_overflow_end_the_fit():
    X, y = data_named("cancer")
    with pytest.raises(ValueError, match=r"^Floating-point under-/overflow occurred at epoch #1\."):
        HogwildRegressor(learning_rate="constant", eta0=1e3, max_iter=5).fit(X * 1e150, y)


def test_the_scale_of_weights_is_folded_before_it_vanishes():
    """With a strong penalty and a large step, the common factor shrinks by far in each update."""
    X, y = data_named("cancer")
    asked = {"alpha": 0.9, "learning_rate": "constant", "eta0": 1.0, "average": True}
    ours, theirs = both((HogwildClassifier, SGDClassifier), X, y, **asked)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)


def test_rows_are_not_copied():
    X, y = data_named("cancer")
    rows: CSRRows = HogwildClassifier()._data(X, y, None, y)[0].rows
    assert np.shares_memory(rows.values, X)
