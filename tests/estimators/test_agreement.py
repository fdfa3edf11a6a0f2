"""One worker and the same settings: where scikit-learn gets to, we get to."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_svmlight_file
from sklearn.linear_model import SGDClassifier, SGDOneClassSVM, SGDRegressor
from sklearn.preprocessing import scale

from hogwild import HogwildClassifier, HogwildOneClassSVM, HogwildRegressor
from hogwild.estimators.translate import loss_of

SHARED = Path(__file__).parents[3] / "shared" / "data"
MARGIN = ("hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron")
RESIDUAL = ("squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive")


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y / 100


def objective(model, X, y):
    """The regularised objective, summed over the classes."""
    asked = model.get_params()
    loss = loss_of(asked)
    coef = np.atleast_2d(model.coef_)
    scores = X @ coef.T + model.intercept_
    if hasattr(model, "classes_"):
        targets = np.where(y[:, None] == model.classes_, 1.0, -1.0)
        targets = targets[:, 1:] if len(model.classes_) == 2 else targets
    else:
        targets = y[:, None]
    losses = np.vectorize(lambda z, t: loss(z, t)[0])(scores, targets)
    ratio = {"l1": 1.0, "l2": 0.0}.get(asked["penalty"], asked["l1_ratio"])
    penalty = ratio * np.abs(coef).sum() + (1 - ratio) / 2 * np.square(coef).sum()
    return losses.mean(axis=0).sum() + (asked["alpha"] * penalty if asked["penalty"] else 0.0)


def both(ours, theirs, X, y, **asked):
    asked = {"max_iter": 200, "tol": None, "random_state": 0, "alpha": 0.01, **asked}
    return objective(ours(**asked).fit(X, y), X, y), objective(theirs(**asked).fit(X, y), X, y)


# With a smooth loss the last iterate has settled to a thousandth; with kinks the mean of the iterates has.
CALM = {"learning_rate": "invscaling", "eta0": 0.02, "power_t": 0.3, "average": 20_000}


@pytest.mark.parametrize("loss", [*MARGIN, *RESIDUAL])
def test_every_loss_of_two_classes(loss, cancer):
    ours, theirs = both(HogwildClassifier, SGDClassifier, *cancer, loss=loss, max_iter=400, **CALM)
    assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
@pytest.mark.parametrize("loss", ["huber", "log_loss"])
def test_every_penalty(loss, penalty, cancer):
    ours, theirs = both(HogwildClassifier, SGDClassifier, *cancer, loss=loss, penalty=penalty)
    assert ours == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "log_loss", "huber"])
def test_several_classes(loss, digits):
    ours, theirs = both(HogwildClassifier, SGDClassifier, *digits, loss=loss, average=20_000, max_iter=100)
    assert ours == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize("loss", RESIDUAL)
def test_every_loss_of_numbers(loss, diabetes):
    ours, theirs = both(HogwildRegressor, SGDRegressor, *diabetes, loss=loss, max_iter=400, **CALM)
    assert ours == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize("loss", ["squared_error", "squared_hinge", "squared_epsilon_insensitive"])
def test_steep_losses_get_further_than_theirs_with_the_optimal_rate(loss, cancer):
    ours, theirs = both(HogwildClassifier, SGDClassifier, *cancer, loss=loss)
    settled, _ = both(HogwildClassifier, SGDClassifier, *cancer, loss=loss, max_iter=400, **CALM)
    assert ours == pytest.approx(settled, rel=5e-3)
    assert ours <= theirs * 1.001


@pytest.mark.parametrize(
    "asked",
    [
        {"learning_rate": "optimal"},
        {"learning_rate": "constant", "eta0": 0.01},
        {"learning_rate": "invscaling", "eta0": 0.1, "power_t": 0.4},
        {"learning_rate": "adaptive", "eta0": 0.1},
        {"learning_rate": "pa1", "eta0": 0.5, "penalty": None},
        {"learning_rate": "pa2", "eta0": 0.5, "penalty": None},
        {"learning_rate": "constant", "eta0": 0.01, "class_weight": {0: 3.0, 1: 0.5}},
        {"learning_rate": "constant", "eta0": 0.01, "fit_intercept": False},
    ],
    ids=lambda asked: "-".join(map(str, asked.values())),
)
@pytest.mark.parametrize("data", ["cancer", "digits"])
def test_in_stored_order_each_step_is_the_same(asked, data, request):
    X, y = request.getfixturevalue(data)
    if data == "digits" and "class_weight" in asked:
        asked = {**asked, "class_weight": "balanced"}
    # Which rounding throws least off course: steps of the optimal rate are so large that a logistic loss saturates.
    loss = "hinge" if asked["learning_rate"] in ("optimal", "pa1", "pa2") else "log_loss"
    asked = {"loss": loss, "shuffle": False, "max_iter": 3, "tol": None, **asked}
    ours, theirs = HogwildClassifier(**asked).fit(X, y), SGDClassifier(**asked).fit(X, y)
    size = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=5e-3 * size)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=5e-3 * size)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.t_ == theirs.t_


@pytest.mark.parametrize("rate", ["constant", "invscaling", "pa1", "pa2"])
def test_regression_in_stored_order(rate, diabetes):
    X, y = diabetes
    asked = {"loss": "epsilon_insensitive", "learning_rate": rate, "shuffle": False, "max_iter": 3, "tol": None}
    asked |= {"penalty": None, "epsilon": 0.0}
    ours, theirs = HogwildRegressor(**asked).fit(X, y), SGDRegressor(**asked).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=5e-3 * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=5e-3)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_class(form, weighted, diabetes):
    X = form(diabetes[0] + 1)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, X.shape[0]) if weighted else np.ones(X.shape[0])
    asked = {"nu": 0.3, "tol": None, "random_state": 0, "learning_rate": "constant", "max_iter": 300, "eta0": 0.001}
    if sp.issparse(X):  # intercepts of sparse data take steps a hundred times smaller
        asked |= {"max_iter": 2_000, "eta0": 0.05, "average": 100_000}

    def objective(model):
        gap = np.maximum(0, model.offset_ - X @ model.coef_)
        return weights @ gap / len(gap) + 0.15 * model.coef_ @ model.coef_ - 0.3 * model.offset_[0]

    ours = objective(HogwildOneClassSVM(**asked).fit(X, sample_weight=weights))
    theirs = objective(SGDOneClassSVM(**asked).fit(X, sample_weight=weights))
    assert ours == pytest.approx(theirs, rel=1e-3)


@pytest.mark.skipif(not (SHARED / "a9a.svm.gz").exists(), reason="the shared data is not there")
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_sparse_data(loss):
    X, y = load_svmlight_file(str(SHARED / "a9a.svm.gz"))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # theirs takes no others
    ours, theirs = both(HogwildClassifier, SGDClassifier, X, y, loss=loss, alpha=1e-3, max_iter=30, average=200_000)
    assert ours == pytest.approx(theirs, rel=1e-3)
