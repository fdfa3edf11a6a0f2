"""What a user of scikit-learn's classes relies on, in our own words."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import dump_svmlight_file, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import SGDClassifier, SGDOneClassSVM, SGDRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hogwild
from hogwild import Hogwild, HogwildClassifier, HogwildOneClassSVM, HogwildRegressor
from hogwild.errors import ParameterError
from hogwild.estimators.sklearn_parameters import processors_left

PAIRS = [(HogwildClassifier, SGDClassifier), (HogwildRegressor, SGDRegressor), (HogwildOneClassSVM, SGDOneClassSVM)]


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(300, 8, n_informative=6, class_sep=2.0, random_state=0)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def three():
    X, y = make_classification(300, 8, n_informative=6, n_classes=3, class_sep=2.0, random_state=0)
    return StandardScaler().fit_transform(X), np.array(["a", "b", "c"])[y]


# Parameters


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_parameters_and_defaults_are_theirs_and_ours_come_after(ours, theirs):
    mine, model = ours().get_params(), theirs().get_params()
    assert {name: mine[name] for name in model} == model
    own = {"n_jobs", "strategy", "rule", "buffer", "memory", "identical_to_sklearn", "device"}
    assert set(mine) - set(model) <= own
    assert type(ours(*([0.2] if theirs is SGDOneClassSVM else ["huber"]))) is ours  # the first one by position


WRONG = [
    {"alpha": -1}, {"l1_ratio": 2}, {"penalty": "l3"}, {"max_iter": 0}, {"tol": -1.0}, {"learning_rate": "fast"},
    {"eta0": 0}, {"loss": "foobar"}, {"n_iter_no_change": 0}, {"validation_fraction": 1.0}, {"shuffle": "no"},
    {"average": -1}, {"learning_rate": "optimal", "alpha": 0}, {"penalty": "elasticnet", "l1_ratio": None},
    {"learning_rate": "pa1", "loss": "squared_error"}, {"epsilon": -0.1}, {"early_stopping": 2},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=str)
@pytest.mark.parametrize(("ours", "theirs"), PAIRS[:2])
def test_wrong_parameters_are_refused_in_the_same_words(wrong, ours, theirs, data):
    with pytest.raises(ValueError, match=r".") as theirs_says:
        theirs(**wrong).fit(*data)
    with pytest.raises(ValueError, match=r".") as we_say:
        ours(**wrong).fit(*data)
    if "loss" not in wrong or "pa1" in wrong.values():  # we know more losses
        assert str(we_say.value).replace("Hogwild", "SGD") == str(theirs_says.value)


def test_unknown_parts_are_refused(data):
    with pytest.raises(ValueError, match="strategy"):
        HogwildClassifier(strategy="nonsense").fit(*data)
    with pytest.raises(ValueError, match="rule"):
        HogwildClassifier(rule="nonsense").fit(*data)


def test_negative_powers_are_deprecated_as_theirs(data):
    with pytest.warns(FutureWarning, match="power_t"):
        HogwildClassifier(power_t=-0.5).fit(*data)


def test_one_class_only_is_refused(data):
    with pytest.raises(ValueError, match="number of classes has to be greater than one; got 1 class"):
        HogwildClassifier().fit(data[0], np.ones(300))


# Fits


def test_one_worker_gives_the_same_bits_and_says_so(data):
    fits = [HogwildClassifier(random_state=3).fit(*data) for _ in range(2)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert not fits[0].__sklearn_tags__().non_deterministic
    assert HogwildClassifier(n_jobs=2).__sklearn_tags__().non_deterministic


@pytest.mark.parametrize(
    "asked", [{"n_jobs": 2, "buffer": 16}, {"strategy": "locked", "n_jobs": 2}, {"strategy": Hogwild(2)}]
)
def test_several_workers_learn_as_well(asked, data):
    assert HogwildClassifier(random_state=0, **asked).fit(*data).score(*data) > 0.85


def test_another_rule_chooses_its_step(data):
    model = HogwildClassifier(loss="log_loss", rule="adagrad", max_iter=30, tol=None).fit(*data)
    assert model.score(*data) > 0.85
    before = model.coef_.copy()
    model.partial_fit(*data)  # goes on with the rule's memory: no jump
    assert np.abs(model.coef_ - before).max() < 0.5 * np.abs(before).max()


def test_too_few_epochs_warn_as_theirs(data):
    with pytest.warns(ConvergenceWarning, match="Maximum number of iteration reached"):
        HogwildClassifier(max_iter=2).fit(*data)


def test_a_hopeless_step_says_what_to_change():
    X = np.random.default_rng(0).normal(size=(50, 3)) * 1e18
    model = HogwildRegressor(learning_rate="constant", eta0=1e10, max_iter=50, tol=None)
    with pytest.raises(ValueError, match="StandardScaler"):
        model.fit(X.astype(np.float32), X[:, 0])
    with pytest.warns(ConvergenceWarning, match=r"diverged: the loss went from .* StandardScaler .* smaller eta0"):
        model.fit(X / 1e18, X[:, 0] / 1e18)  # theirs says nothing


def test_early_stopping_stops_and_needs_enough_rows(data):
    model = HogwildClassifier(early_stopping=True, random_state=0, learning_rate="constant").fit(*data)
    assert model.n_iter_ < 1000
    with pytest.raises(ValueError, match=r"test_size|validation"):
        HogwildClassifier(early_stopping=True, validation_fraction=0.001).fit(*data)
    with pytest.raises(ValueError, match="validation set are all zero"):
        HogwildRegressor(early_stopping=True, random_state=0).fit(*data, sample_weight=np.eye(300)[0])


def test_class_weights_and_sample_weights_pull_alike(data):
    X, y = data
    asked = {"random_state": 0, "loss": "log_loss", "max_iter": 20, "tol": None}
    by_class = HogwildClassifier(class_weight={0: 1.0, 1: 5.0}, **asked).fit(X, y)
    by_row = HogwildClassifier(**asked).fit(X, y, sample_weight=np.where(y == 1, 5.0, 1.0))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-4)
    assert by_class.predict(X).mean() > HogwildClassifier(**asked).fit(X, y).predict(X).mean()


def test_warm_starts_and_first_values(data):
    X, y = data
    settled = HogwildClassifier(random_state=0).fit(X, y)
    small = {"learning_rate": "constant", "eta0": 1e-9, "max_iter": 1, "tol": None}
    warm = clone(settled).set_params(warm_start=True).fit(X, y).set_params(**small)
    before = warm.coef_.copy()
    np.testing.assert_allclose(warm.fit(X, y).coef_, before, rtol=1e-5)
    given = HogwildClassifier(**small).fit(X, y, coef_init=before, intercept_init=[2.0])
    np.testing.assert_allclose(given.coef_, before, rtol=1e-5)
    np.testing.assert_allclose(given.intercept_, [2.0], rtol=1e-5)
    for wrong in ({"coef_init": np.zeros((3, 8))}, {"intercept_init": np.zeros(3)}):
        with pytest.raises(ValueError, match="does not match dataset"):
            HogwildClassifier().fit(X, y, **wrong)


@pytest.mark.parametrize("average", [False, True, 150])
def test_partial_fits_in_order_are_epochs_in_order(average, data):
    X, y = data
    asked = {"shuffle": False, "learning_rate": "invscaling", "eta0": 0.1, "average": average}
    whole = HogwildRegressor(max_iter=3, tol=None, **asked).fit(X, y)
    parts = HogwildRegressor(**asked)
    for _ in range(3):
        parts.partial_fit(X, y)
    assert parts.t_ == whole.t_ == 901
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-4, atol=0.005 if average == 150 else 1e-6)


def test_partial_fit_needs_all_classes_at_first(three):
    X, y = three
    model = HogwildClassifier(random_state=0)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, y)
    model.partial_fit(X[:10], y[:10], classes=["a", "b", "c"])
    for _ in range(20):
        model.partial_fit(X, y)
    assert model.coef_.shape == (3, 8)
    assert model.score(X, y) > 0.7
    with pytest.raises(ValueError, match="is not the same as on last call"):
        model.partial_fit(X, y, classes=["a", "b"])
    with pytest.raises(ValueError, match="not one of classes"):
        model.partial_fit(X[:1], ["d"])
    with pytest.raises(ValueError, match="balanced"):
        HogwildClassifier(class_weight="balanced").partial_fit(X, y, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="early_stopping should be False"):
        HogwildClassifier(early_stopping=True).partial_fit(X, y, classes=["a", "b", "c"])


def test_passive_aggressive_steps_with_several_classes(three):
    X, y = three
    model = HogwildClassifier(learning_rate="pa1", penalty=None, eta0=0.1, random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 8)
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("loss", ["log_loss", "modified_huber", "softmax"])
def test_probabilities(loss, three):
    X, y = three
    model = HogwildClassifier(loss=loss, random_state=0).fit(X, y)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    assert (model.classes_[found.argmax(axis=1)] == y).mean() > 0.7
    assert not hasattr(HogwildClassifier(loss="hinge"), "predict_proba")


def test_losses_that_only_we_have(data):
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.exp(data[0][:, 0] / 2))
    model = HogwildRegressor("poisson", random_state=0).fit(data[0], counts)
    assert model.predict(data[0]).min() > 0
    assert abs(model.coef_[0] - 0.5) < 0.2
    y = data[0][:, 0] + rng.normal(size=300)
    high = HogwildRegressor(hogwild.losses.named("quantile:0.9"), random_state=0, eta0=0.1).fit(data[0], y)
    assert 0.8 < (y < high.predict(data[0])).mean() < 0.97
    own = HogwildRegressor(lambda z, y: ((z - y) ** 2 / 2, z - y), random_state=0).fit(data[0], y)
    same = HogwildRegressor(random_state=0).fit(data[0], y)
    np.testing.assert_allclose(own.coef_, same.coef_, rtol=1e-5)


# Inputs


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_input_of_any_width(dtype, index, data):
    X = sp.csr_array(np.where(np.abs(data[0]) > 0.5, data[0], 0).astype(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    model = HogwildClassifier(random_state=0).fit(X, data[1])
    assert model.coef_.dtype == model.intercept_.dtype == dtype
    assert model.score(X, data[1]) > 0.8
    again = HogwildClassifier(random_state=0).fit(X.tocsc(), data[1])
    np.testing.assert_allclose(again.coef_, model.coef_)


def test_sparse_float32_is_not_copied(data):
    X = sp.csr_array(data[0].astype(np.float32))
    model = HogwildClassifier()
    model.classes_ = np.array([0, 1])
    checked, y, _ = model._checked(X, data[1], None, reset=True)
    rows = model._data(checked, y, None, y)[0].rows
    assert np.shares_memory(rows.values, X.data)
    assert np.shares_memory(rows.indices, X.indices)


def test_frames_keep_their_names(data):
    frame = pd.DataFrame(data[0], columns=list("abcdefgh"))
    model = HogwildRegressor(random_state=0).fit(frame, data[1])
    assert list(model.feature_names_in_) == list("abcdefgh")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("hgfedcba")])


def test_a_file_is_an_x(data, tmp_path):
    path = tmp_path / "rows.svm"
    dump_svmlight_file(*data, str(path), zero_based=False)
    asked = {"loss": "log_loss", "max_iter": 50, "tol": None, "average": True}
    model = HogwildClassifier(**asked).fit(path)
    assert model.n_features_in_ == 8
    assert list(model.classes_) == [0.0, 1.0]
    for X in (path, str(path), [path], data[0]):
        assert (model.predict(X) == data[1]).mean() > 0.85
    np.testing.assert_allclose(model.decision_function(path), model.decision_function(data[0]), rtol=1e-3, atol=1e-3)
    assert HogwildRegressor().fit(path).predict(path).shape == (300,)
    assert HogwildClassifier(early_stopping=True).fit(hogwild.data.open(path)).score(*data) > 0.85
    assert HogwildOneClassSVM().fit(path).predict(path).shape == (300,)
    with pytest.raises(ParameterError, match="labels and weights of its own"):
        model.fit(path, data[1])


def test_sparsified_models_predict_the_same(data):
    for kind in (HogwildClassifier, HogwildRegressor, HogwildOneClassSVM):
        model = kind(random_state=0).fit(*data)
        before = model.predict(data[0])
        model.sparsify()
        np.testing.assert_allclose(model.predict(data[0]), before)
        model.densify()
        assert isinstance(model.coef_, np.ndarray)


# In company


def test_in_a_pipeline_a_search_and_a_calibration(data):
    X, y = data
    pipe = make_pipeline(StandardScaler(), HogwildClassifier(random_state=0))
    search = GridSearchCV(pipe, {"hogwildclassifier__alpha": [1e-4, 1e-2]}, cv=3, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.8
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.8
    calibrated = CalibratedClassifierCV(HogwildClassifier(random_state=0), cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (300, 2)


def test_one_vs_rest_copies_and_pickles(three):
    X, y = three
    model = OneVsRestClassifier(HogwildClassifier(random_state=0)).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(model.predict(X), again.predict(X))
    with pytest.raises(NotFittedError):
        clone(model.estimators_[0]).predict(X)


def test_a_parallel_search_leaves_each_fit_its_share():
    import joblib

    alone = joblib.Parallel(n_jobs=2)(joblib.delayed(processors_left)(-1) for _ in range(2))
    cores = joblib.cpu_count()
    assert all(1 <= workers <= max(1, cores // 2) for workers in alone)
    assert processors_left(-1) == cores


def test_one_warning_for_all_classes_points_to_the_call(data):
    X, _ = data
    with pytest.warns(ConvergenceWarning) as told:
        HogwildClassifier(max_iter=2, tol=1e-9).fit(X, np.arange(len(X)) % 4)
    assert [warning.filename for warning in told] == [__file__]
