"""Steps whose length each row chooses: PA-I and PA-II (Crammer et al. 2006), and the perceptron before them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import mean_squared_error

from hogwild import HogwildClassifier, HogwildRegressor

FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
RATES = pytest.mark.parametrize("rate", ["pa1", "pa2"])
FORGETFUL = {"penalty": None, "shuffle": False, "tol": None}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(12).permutation(len(y))
    return X[order], y[order]


def reference(X, targets, epochs, step, loss, intercept_share=1.0):
    """Rows in their order; each moves the plane along itself by ``step(loss, its squared length)``."""
    w, b = np.zeros(X.shape[1]), 0.0
    for x, y in [row for _ in range(epochs) for row in zip(X, targets, strict=True)]:
        cost, direction = loss(x @ w + b, y)
        move = step(cost, x @ x) * direction
        w, b = w + move * x, b + intercept_share * move
    return w, b


def hinge(score, y):
    return max(0.0, 1 - y * score), y


def tube(width):
    return lambda score, y: (max(0.0, abs(y - score) - width), np.sign(y - score))


def cautious(C):
    return {"pa1": lambda cost, length: min(C, cost / length), "pa2": lambda cost, length: cost / (length + 0.5 / C)}


@RATES
@FORMS
def test_each_step_of_a_classifier(rate, form, iris):
    X, y = iris[0], iris[1] == 1
    w, b = reference(X, np.where(y, 1, -1), 4, cautious(0.5)[rate], hinge, 1.0 if form is np.asarray else 0.01)
    model = HogwildClassifier(learning_rate=rate, eta0=0.5, max_iter=4, **FORGETFUL).fit(form(X), y)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-3)
    np.testing.assert_allclose(model.intercept_, [b], rtol=1e-3)


@RATES
@FORMS
def test_each_step_of_a_regressor(rate, form, iris):
    X, y = iris[0], np.where(iris[1] == 1, 1.0, -1.0)
    w, b = reference(X, y, 4, cautious(0.5)[rate], tube(0.1), 1.0 if form is np.asarray else 0.01)
    asked = {"loss": "epsilon_insensitive", "epsilon": 0.1, "learning_rate": rate, "eta0": 0.5, "max_iter": 4}
    model = HogwildRegressor(**asked, **FORGETFUL).fit(form(X), y)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-3)
    np.testing.assert_allclose(model.intercept_, [b], rtol=1e-3)


def test_each_step_of_a_perceptron(iris):
    X, y = iris[0], iris[1] == 1
    w, b = reference(
        X, np.where(y, 1, -1), 2, lambda cost, length: float(cost > 0), lambda z, y: (max(0.0, -y * z) + (z == 0), y)
    )
    model = HogwildClassifier("perceptron", learning_rate="constant", eta0=1.0, max_iter=2, **FORGETFUL).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-4)
    np.testing.assert_allclose(model.intercept_, [b], rtol=1e-4)
    assert not hasattr(model, "predict_proba")


@RATES
@pytest.mark.parametrize(
    ("kind", "theirs", "loss"),
    [
        (HogwildClassifier, SGDClassifier, "squared_hinge"),
        (HogwildClassifier, SGDClassifier, "log_loss"),
        (HogwildRegressor, SGDRegressor, "squared_error"),
        (HogwildRegressor, SGDRegressor, "huber"),
    ],
)
def test_other_losses_are_refused(rate, kind, theirs, loss, iris):
    X, y = iris[0], iris[1] == 1
    said = []
    for one in (kind, theirs):
        with pytest.raises(ValueError, match=f"Learning rate '{rate}' only works with loss") as error:
            one(loss=loss, learning_rate=rate).fit(X, y)
        with pytest.raises(ValueError, match="only works with loss"):
            one(loss=loss, learning_rate=rate).partial_fit(X, y)
        said.append(str(error.value))
    assert said[0] == said[1]


@FORMS
@pytest.mark.parametrize("average", [False, True])
def test_three_classes_at_once_and_by_parts(average, form, iris):
    X, y = form(iris[0]), iris[1]
    asked = {"learning_rate": "pa1", "eta0": 1.0, "penalty": None, "random_state": 1, "average": average}
    assert HogwildClassifier(max_iter=30, tol=None, **asked).fit(X, y).score(X, y) > 0.79
    parts = HogwildClassifier(**asked)
    for _ in range(30):
        parts.partial_fit(X, y, classes=[0, 1, 2])
    assert parts.score(X, y) > 0.79


@FORMS
@pytest.mark.parametrize("average", [False, True])
def test_numbers_at_once_and_by_parts(average, form, iris):
    X, y = form(iris[0]), np.where(iris[1] == 1, 1.0, -1.0)
    asked = {"loss": "epsilon_insensitive", "learning_rate": "pa2", "eta0": 0.01, "penalty": None, "average": average}
    whole = HogwildRegressor(max_iter=5, tol=None, shuffle=False, **asked).fit(X, y)
    theirs = SGDRegressor(max_iter=5, tol=None, shuffle=False, **asked).fit(X, y)
    parts = HogwildRegressor(shuffle=False, **asked)
    for _ in range(5):
        parts.partial_fit(X, y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-3, atol=1e-4)
    best = mean_squared_error(y, theirs.predict(X))
    assert mean_squared_error(y, whole.predict(X)) == pytest.approx(best, rel=0.05 if average else 1e-3)


def test_class_weights_turn_the_plane():
    X = np.array([[-1.0, -1.0], [-1.0, 0], [-0.8, -1.0], [1.0, 1.0], [1.0, 0.0]])
    y = [1, 1, 1, -1, -1]
    asked = {"learning_rate": "pa1", "eta0": 0.1, "penalty": None, "max_iter": 100, "tol": None, "random_state": 100}
    assert HogwildClassifier(**asked).fit(X, y).predict([[0.2, -1.0]]) == [1]
    assert HogwildClassifier(class_weight={1: 0.001}, **asked).fit(X, y).predict([[0.2, -1.0]]) == [-1]


def test_balanced_weights_of_balanced_data_change_nothing():
    X, y = [[1, 0], [1, 0], [0, 1], [0, 1]], [0, 0, 1, 1]
    asked = {"learning_rate": "pa1", "eta0": 0.1, "penalty": None, "max_iter": 100, "tol": None, "random_state": 0}
    plain, balanced = (HogwildClassifier(class_weight=given, **asked).fit(X, y) for given in (None, "balanced"))
    assert np.array_equal(plain.coef_, balanced.coef_)


def test_it_can_be_fitted_to_something_else(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])
    model = HogwildClassifier(learning_rate="pa1", eta0=1.0, penalty=None, max_iter=5, tol=None).fit(X, y)
    assert model.fit(X[:, :-1], names[y]).classes_.tolist() == names.tolist()
    assert model.coef_.shape == (3, 3)
