"""What ``SGDClassifier`` refuses and warns of, ours does in the same words."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.linear_model import SGDClassifier

from hogwild import HogwildClassifier

SHORT = {"max_iter": 3, "tol": None, "random_state": 0}


@pytest.fixture(scope="module", name="X")
def some_rows():
    return np.random.default_rng(0).normal(size=(60, 4))


@pytest.fixture(scope="module")
def y(X):
    return (X @ [1.0, -1.0, 0.5, 0.0] > 0).astype(int)


@pytest.fixture(scope="module")
def three(X):
    return np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]


def said(call, kind, *arguments):
    with pytest.raises((ValueError, TypeError)) as error:
        call(kind(**SHORT), *arguments)
    return type(error.value).__mro__[-4:], str(error.value).replace("Hogwild", "SGD")


# Refusals


REFUSED = {
    "y is missing": lambda m, X, y: m.fit(X, None),
    "y has two columns": lambda m, X, y: m.fit(X, np.c_[y, y]),
    "y is short": lambda m, X, y: m.fit(X, y[:-1]),
    "y is NaN": lambda m, X, y: m.fit(X, np.where(y, np.nan, 0.0)),
    "y is infinite": lambda m, X, y: m.fit(X, np.where(y, np.inf, 0.0)),
    "y is complex": lambda m, X, y: m.fit(X, y + 1j),
    "y is sparse": lambda m, X, y: m.fit(X, sp.csr_array(y.reshape(-1, 1))),
    "y has one class": lambda m, X, y: m.fit(X, 0 * y),
    "X is NaN": lambda m, X, y: m.fit(X * np.nan, y),
    "X is infinite": lambda m, X, y: m.fit(np.where(X > 1, np.inf, X), y),
    "X is complex": lambda m, X, y: m.fit(X + 1j, y),
    "sparse X is NaN": lambda m, X, y: m.fit(sp.csr_array(X * np.nan), y),
    "X is a vector": lambda m, X, y: m.fit(X[:, 0], y),
    "X has three dimensions": lambda m, X, y: m.fit(X[None], y),
    "X has no rows": lambda m, X, y: m.fit(X[:0], y[:0]),
    "X has no columns": lambda m, X, y: m.fit(X[:, :0], y),
    "X is text": lambda m, X, y: m.fit(X.astype(str).astype(object) + "x", y),
    "weights are too few": lambda m, X, y: m.fit(X, y, sample_weight=np.ones(7)),
    "weights have two columns": lambda m, X, y: m.fit(X, y, sample_weight=np.ones((60, 2))),
    "weights are NaN": lambda m, X, y: m.fit(X, y, sample_weight=np.full(60, np.nan)),
    "weights are zero": lambda m, X, y: m.fit(X, y, sample_weight=np.zeros(60)),
    "validated weights are zero": lambda m, X, y: m.set_params(early_stopping=True).fit(
        X, y, sample_weight=np.zeros(60)
    ),
    "nothing is validated": lambda m, X, y: m.set_params(early_stopping=True, validation_fraction=0.001).fit(X, y),
    "all is validated": lambda m, X, y: m.set_params(early_stopping=True, validation_fraction=0.999).fit(X, y),
    "class weights are no weights": lambda m, X, y: m.set_params(class_weight="even").fit(X, y),
    "class weights of no class": lambda m, X, y: m.set_params(class_weight={0: 1.0, 9: 1.0}).fit(X, y),
    "coefficients of three columns": lambda m, X, y: m.fit(X, y, coef_init=np.zeros(3)),
    "coefficients of two classes": lambda m, X, y: m.fit(X, y, coef_init=np.zeros((2, 4))),
    "text for coefficients": lambda m, X, y: m.fit(X, y, coef_init="abcd"),
    "two intercepts": lambda m, X, y: m.fit(X, y, intercept_init=np.zeros(2)),
    "an intercept of two dimensions": lambda m, X, y: m.fit(X, y, intercept_init=np.zeros((1, 1))),
    "not fitted": lambda m, X, y: m.predict(X),
    "not fitted, but sparsified": lambda m, X, y: m.sparsify(),
    "fewer columns than in the fit": lambda m, X, y: m.fit(X, y).predict(X[:, :2]),
    "fewer columns than in the call before": lambda m, X, y: m.fit(X, y).partial_fit(X[:, :2], y),
    "NaN to predict": lambda m, X, y: m.fit(X, y).predict(X * np.nan),
    "a vector to predict": lambda m, X, y: m.fit(X, y).predict(X[0]),
    "nothing to predict": lambda m, X, y: m.fit(X, y).predict(X[:0]),
    "other kinds of labels to score": lambda m, X, y: m.fit(X, y).score(X, y.astype(str)),
    "no classes in the first partial fit": lambda m, X, y: m.partial_fit(X, y),
    "one class in the first partial fit": lambda m, X, y: m.partial_fit(X, 0 * y, classes=[0]),
    "other classes after a fit": lambda m, X, y: m.fit(X, y).partial_fit(X, y, classes=[0, 1, 2]),
    "warm start with fewer columns": lambda m, X, y: m.set_params(warm_start=True).fit(X, y).fit(X[:, :2], y),
    "a parameter of another name": lambda m, X, y: m.set_params(n_iter=3) and None,
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_as_theirs_is(case, X, y):
    ours, theirs = (said(REFUSED[case], kind, X, y) for kind in (HogwildClassifier, SGDClassifier))
    assert ours[0] == theirs[0]
    assert ours[1].split("Valid parameters")[0] == theirs[1].split("Valid parameters")[0]


@pytest.mark.parametrize(
    ("wrong", "because"),
    [
        ({"coef_init": np.zeros((2, 4))}, "coef_init does not match"),
        ({"coef_init": np.zeros(12)}, "coef_init does not match"),
        ({"intercept_init": 0.0}, "intercept_init does not match"),
        ({"intercept_init": np.zeros(1)}, "intercept_init does not match"),
        ({"coef_init": np.full((3, 4), np.nan)}, "not finite"),
        ({"intercept_init": np.full(3, np.inf)}, "not finite"),
    ],
)
def test_first_values_of_three_classes_are_checked(wrong, because, X, three):
    with pytest.raises(ValueError, match=because):
        HogwildClassifier(**SHORT).fit(X, three, **wrong)


def test_numbers_are_no_classes(X):
    with pytest.raises(ValueError, match="Unknown label type"):
        HogwildClassifier().fit(X, X[:, 0])


def test_labels_must_be_among_the_classes_named(X, y):
    for classes in ([0, 2], ["0", "1"]):
        with pytest.raises(ValueError, match="not one of classes"):
            HogwildClassifier().partial_fit(X, y, classes=classes)


@pytest.mark.parametrize("asked", [{"class_weight": {0: -1.0}}, {"class_weight": {0: np.nan}}])
def test_class_weights_are_finite_and_not_negative(asked, X, y):
    with pytest.raises(ValueError, match="class_weight"):
        HogwildClassifier(**asked).fit(X, y)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_values_that_overflow_are_said_to_in_their_words(form, X, y):
    wide = form(np.where(np.arange(4) < 2, 1e300, 1.0) * X)
    words = r"^Floating-point under-/overflow occurred at epoch #.*\. Scaling input data with StandardScaler or "
    for kind in (HogwildClassifier, SGDClassifier):
        with pytest.raises(ValueError, match=words + r"MinMaxScaler might help\."):
            kind(alpha=0.1, loss="squared_hinge", **SHORT).fit(wide, y)


def test_a_value_that_overflows_is_named(X, y):
    with pytest.raises(ValueError, match=r"before the first update.*row 0, column 1: the value .*single precision"):
        HogwildClassifier(strategy="serial").fit(X * [1.0, 1e300, 1.0, 1.0], y)
    with pytest.raises(ValueError, match=r"^row 3: the weight -1\.0 is negative"):
        HogwildClassifier().fit(X, y, sample_weight=np.where(np.arange(60) == 3, -1.0, 1.0))


def test_documents_are_not_taken_for_files_in_silence(y):
    with pytest.raises(ValueError, match="vectorised"):
        HogwildClassifier().fit(["some words"] * 60, y)


# Warnings


def test_one_epoch_warns_and_without_a_tolerance_none_does(X, y):
    with pytest.warns(ConvergenceWarning, match="Consider increasing max_iter"):
        assert HogwildClassifier(max_iter=1).fit(X, y).n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match="Consider increasing max_iter"):
        HogwildClassifier(max_iter=1, early_stopping=True).fit(X, y)
    assert HogwildClassifier(max_iter=1, tol=None).fit(X, y).n_iter_ == 1
    assert HogwildClassifier(max_iter=7, tol=None, early_stopping=True).fit(X, y).n_iter_ == 7


def test_a_column_of_labels_is_flattened_with_a_warning(X, y):
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model = HogwildClassifier(**SHORT).fit(X, y.reshape(-1, 1))
    assert np.array_equal(model.coef_, HogwildClassifier(**SHORT).fit(X, y).coef_)
