"""One worker and the same settings: the path that scikit-learn takes, to the last bit.

Whole data sets, every loss, penalty and learning rate, after a few epochs (long before convergence: so every step was
the same) or with scikit-learn's own defaults. ``make agreement`` tries every one of SETTINGS with every data set.
"""

import itertools
import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_svmlight_file
from sklearn.linear_model import SGDClassifier, SGDOneClassSVM, SGDRegressor
from sklearn.preprocessing import scale

import references
from hogwild import HogwildClassifier, HogwildOneClassSVM, HogwildRegressor
from hogwild.estimators.translate import loss_of

SHARED = Path(__file__).parents[3] / "shared" / "data"
MARGIN = ("hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron")
RESIDUAL = ("squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive")
RATES = ("optimal", "constant", "invscaling", "adaptive", "pa1", "pa2")
PENALTIES = ("l2", "l1", "elasticnet", None)
SETTINGS = {
    "short": {"max_iter": 3, "tol": None, "alpha": 1e-3},
    "weak": {"max_iter": 5, "tol": None},
    "defaults": {},
    "strong": {"alpha": 1e-3},
    "other order": {"max_iter": 5, "tol": None, "random_state": 7, "eta0": 0.1, "l1_ratio": 0.4},
}
EVERYTHING = "HOGWILD_AGREEMENT" in os.environ


def cancer():
    return scale(load_breast_cancer().data), load_breast_cancer().target


def diabetes():
    return scale(load_diabetes().data), load_diabetes().target


def shared(name):
    if not (SHARED / name).exists():
        pytest.skip("the shared data is not there")
    X, y = load_svmlight_file(str(SHARED / name))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # theirs takes no others
    return X, y


DATA = {
    "cancer": cancer,
    "raw cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "reuters": lambda: shared("reuters.trn.svm.gz"),
    "a9a": lambda: shared("a9a.svm.gz"),
    "diabetes": diabetes,
    "raw diabetes": lambda: load_diabetes(return_X_y=True),
}
NUMBERS = ("diabetes", "raw diabetes")
data_named = cache(lambda name: DATA[name]())


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
    losses = references.LOSSES[loss.name](scores, targets, loss.parameter)[0]
    ratio = {"l1": 1.0, "l2": 0.0}.get(asked["penalty"], asked["l1_ratio"])
    penalty = ratio * np.abs(coef).sum() + (1 - ratio) / 2 * np.square(coef).sum()
    return losses.mean(axis=0).sum() + (asked["alpha"] * penalty if asked["penalty"] else 0.0)


def cases():
    """Every loss with every penalty and learning rate there is for it, with data and settings."""
    for name, settings in itertools.product(DATA, SETTINGS):
        quick = settings == "short" or (settings == "defaults" and name in ("cancer", "raw diabetes"))
        if not (quick or EVERYTHING):
            continue
        losses, passive = (RESIDUAL, "epsilon_insensitive") if name in NUMBERS else ((*MARGIN, *RESIDUAL), "hinge")
        for loss, penalty, rate in itertools.product(losses, PENALTIES, RATES):
            if rate not in ("pa1", "pa2") or loss == passive:
                yield pytest.param(name, settings, loss, penalty, rate, id=f"{name}-{settings}-{loss}-{penalty}-{rate}")


def agree(ours, theirs, X, y, **asked):
    """The same weights, and so the same objective, after as many epochs."""
    ours, theirs = (model(**{"random_state": 0, **asked}).fit(X, y) for model in (ours, theirs))
    assert (ours.n_iter_, ours.t_) == (theirs.n_iter_, theirs.t_)
    size = max(1.0, np.abs(theirs.coef_).max())
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-6 * size)
    assert objective(ours, X, y) == pytest.approx(objective(theirs, X, y), rel=1e-3, abs=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # they diverge and stall alike
@pytest.mark.parametrize(("name", "settings", "loss", "penalty", "rate"), list(cases()))
def test_every_loss_penalty_and_rate(name, settings, loss, penalty, rate):
    ours, theirs = (HogwildRegressor, SGDRegressor) if name in NUMBERS else (HogwildClassifier, SGDClassifier)
    asked = {"loss": loss, "penalty": penalty, "learning_rate": rate, **SETTINGS[settings]}
    agree(ours, theirs, *data_named(name), **asked)


@pytest.mark.parametrize(
    "asked",
    [
        {"average": True},
        {"average": 700},
        {"class_weight": {0: 3.0, 1: 0.5}},
        {"class_weight": "balanced"},
        {"fit_intercept": False},
        {"shuffle": False},
        {"max_iter": 100, "tol": 1e-3},
        {"max_iter": 100, "early_stopping": True, "tol": 1e-3},
        {"max_iter": 100, "early_stopping": True, "tol": 1e-3, "learning_rate": "adaptive"},
    ],
    ids=str,
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32], ids=["dense", "sparse", "float32"])
def test_what_else_can_be_asked_for(asked, form):
    X, y = data_named("cancer")
    asked = {"loss": "log_loss", "learning_rate": "constant", "max_iter": 5, "tol": None, "alpha": 1e-3, **asked}
    agree(HogwildClassifier, SGDClassifier, form(X), y, **asked)


# With averages and an intercept theirs forgets where the intercept was when the batch before ended.
@pytest.mark.parametrize("asked", [{"average": False}, {"average": True, "fit_intercept": False}], ids=str)
def test_batch_after_batch(asked):
    X, y = data_named("cancer")
    asked = {"loss": "log_loss", "random_state": 3, **asked}
    ours, theirs = HogwildClassifier(**asked), SGDClassifier(**asked)
    for part in np.array_split(np.arange(len(y)), 5):
        for model in (ours, theirs):
            model.partial_fit(X[part], y[part], classes=[0, 1])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6)


@pytest.mark.parametrize("strategy", [None, "serial"], ids=["as theirs", "serial"])
@pytest.mark.parametrize("loss", ["squared_error", "squared_hinge", "squared_epsilon_insensitive"])
def test_steep_losses_with_the_optimal_rate(loss, strategy):
    """Its first steps are too large for them: our own path begins with smaller ones, scikit-learn's path says so."""
    X, y = data_named("cancer")
    model = HogwildClassifier(loss, max_iter=20, tol=None, random_state=0, strategy=strategy)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = objective(model.fit(X, y), X, y)
    settled = objective(HogwildClassifier(loss, learning_rate="invscaling", tol=None, max_iter=50).fit(X, y), X, y)
    exploded = ["The fit diverged" in str(warning.message) for warning in caught]
    assert (exploded, found > 1e6) == (([], False) if strategy else ([True], True))
    assert strategy is None or found < 3 * settled


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rate", ["optimal", "constant", "invscaling", "adaptive"])
def test_one_class(rate, form, weighted):
    X = form(data_named("diabetes")[0] + 1)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, X.shape[0]) if weighted else None
    asked = {"nu": 0.3, "tol": None, "random_state": 0, "learning_rate": rate, "max_iter": 5}
    ours, theirs = (model(**asked).fit(X, sample_weight=weights) for model in (HogwildOneClassSVM, SGDOneClassSVM))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-5)
