"""One worker and the same settings: the path that scikit-learn takes, to the last bit."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from agreeing import agree, agree_on, cases, data_named, objective
from sklearn.linear_model import SGDClassifier, SGDOneClassSVM

from hogwild import HogwildClassifier, HogwildOneClassSVM

DENSE = ("cancer", "raw cancer", "digits", "diabetes", "raw diabetes")


@pytest.mark.parametrize(("name", "settings", "loss", "penalty", "rate"), list(cases(*DENSE)))
def test_every_loss_penalty_and_rate(name, settings, loss, penalty, rate):
    agree_on(name, settings, loss=loss, penalty=penalty, learning_rate=rate)


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
    ours, theirs = HogwildClassifier(**asked, identical_to_sklearn=True), SGDClassifier(**asked)
    for part in np.array_split(np.arange(len(y)), 5):
        for model in (ours, theirs):
            model.partial_fit(X[part], y[part], classes=[0, 1])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6)


@pytest.mark.parametrize("strategy", [None, "serial"], ids=["as theirs", "serial"])
def test_squares_with_the_optimal_rate(strategy):
    """Its first steps are too large for them: our own path begins with smaller ones, scikit-learn's path says so."""
    X, y = data_named("cancer")
    asked = {"max_iter": 20, "tol": None, "random_state": 0, "identical_to_sklearn": strategy is None}
    model = HogwildClassifier("squared_error", strategy=strategy, **asked)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = objective(model.fit(X, y), X, y)
    calm = HogwildClassifier("squared_error", learning_rate="invscaling", tol=None, max_iter=50, random_state=0)
    exploded = ["The fit diverged" in str(warning.message) for warning in caught]
    assert (exploded, found > 1e6) == (([], False) if strategy else ([True], True))
    assert strategy is None or found < 3 * objective(calm.fit(X, y), X, y)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rate", ["optimal", "constant", "invscaling", "adaptive"])
def test_one_class(rate, form, weighted):
    X = form(data_named("diabetes")[0] + 1)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, X.shape[0]) if weighted else None
    asked = {"nu": 0.3, "tol": None, "random_state": 0, "learning_rate": rate, "max_iter": 5}
    ours = HogwildOneClassSVM(**asked, identical_to_sklearn=True).fit(X, sample_weight=weights)
    theirs = SGDOneClassSVM(**asked).fit(X, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-5)
