"""What a user of ``SGDOneClassSVM`` relies on."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDOneClassSVM
from sklearn.pipeline import make_pipeline
from sklearn.svm import OneClassSVM
from sklearn.utils import get_tags

from hogwild import HogwildOneClassSVM

SHORT = {"max_iter": 3, "tol": None, "random_state": 0}
STILL = {"learning_rate": "constant", "eta0": 1e-12, "max_iter": 1, "tol": None}
FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])


@pytest.fixture(scope="module", name="X")
def some_rows():
    rows = np.random.default_rng(0).normal(1.0, 1.0, (60, 4))
    rows.flags.writeable = False  # a fit changes nothing of what it is given
    return rows


REFUSED = {
    "no share": lambda m, X: m.set_params(nu=0).fit(X),
    "more than all": lambda m, X: m.set_params(nu=1.5).fit(X),
    "no number": lambda m, X: m.set_params(nu=None).fit(X),
    "an unknown rate": lambda m, X: m.set_params(learning_rate="fast").fit(X),
    "a rate for other losses": lambda m, X: m.set_params(learning_rate="pa1").fit(X),
    "X is NaN": lambda m, X: m.fit(X * np.nan),
    "X is a vector": lambda m, X: m.fit(X[0]),
    "coefficients of three columns": lambda m, X: m.fit(X, coef_init=np.zeros(3)),
    "three offsets": lambda m, X: m.fit(X, offset_init=np.zeros(3)),
    "an offset of two dimensions": lambda m, X: m.fit(X, offset_init=np.zeros((1, 1))),
    "weights are too few": lambda m, X: m.fit(X, sample_weight=np.ones(7)),
    "weights are zero": lambda m, X: m.fit(X, sample_weight=np.zeros(60)),
    "not fitted": lambda m, X: m.predict(X),
    "not fitted, but scored": lambda m, X: m.score_samples(X),
    "fewer columns than in the fit": lambda m, X: m.fit(X).decision_function(X[:, :2]),
    "fewer columns than in the part before": lambda m, X: m.partial_fit(X).partial_fit(X[:, :2]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_as_theirs_is(case, X):
    said = []
    for kind in (HogwildOneClassSVM, SGDOneClassSVM):
        with pytest.raises((ValueError, TypeError)) as error:
            REFUSED[case](kind(**SHORT), X)
        said.append(str(error.value).replace("Hogwild", "SGD"))
    assert said[0].replace("intercept", "offset") == said[1].replace("intercept", "offset")


def test_first_values_are_finite(X):
    with pytest.raises(ValueError, match="not finite"):
        HogwildOneClassSVM().fit(X, offset_init=np.nan)


def test_warnings(X):
    with pytest.warns(ConvergenceWarning, match="Consider increasing max_iter"):
        HogwildOneClassSVM(max_iter=1).fit(X)
    with pytest.warns(FutureWarning, match="power_t"):
        HogwildOneClassSVM(power_t=-1.0, **SHORT).fit(X)


def test_shapes_attributes_and_tags(X):
    model = HogwildOneClassSVM(**SHORT).fit(X)
    assert (model.coef_.shape, model.offset_.shape, model.predict(X).shape) == ((4,), (1,), (60,))
    public = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert public == {"coef_", "offset_", "n_features_in_", "n_iter_", "n_workers_", "t_"}
    assert get_tags(model).estimator_type == "outlier_detector"


@FORMS
def test_scores_labels_and_the_offset_belong_together(form, X):
    rows = form(X)
    model = HogwildOneClassSVM(**SHORT)
    labels = model.fit_predict(rows)
    scores = model.decision_function(rows)
    assert set(labels) == {-1, 1}
    assert np.array_equal(labels, np.where(scores >= 0, 1, -1))
    np.testing.assert_allclose(model.score_samples(rows) - model.offset_, scores, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.score_samples(rows), X @ model.coef_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_nu_is_the_share_of_outliers(nu):
    rows = np.random.default_rng(0).normal(3.0, 1.0, (500, 3))
    model = HogwildOneClassSVM(nu, learning_rate="constant", eta0=1e-3, max_iter=400, tol=None, random_state=0)
    assert abs((model.fit_predict(rows) == -1).mean() - nu) < 0.03


def test_through_features_of_a_kernel_it_is_the_svm_with_that_kernel():
    rng = np.random.default_rng(42)
    rows, others = (np.vstack([0.3 * rng.normal(size=(n, 2)) + at for at in (2, -2)]) for n in (500, 100))
    ours = make_pipeline(
        Nystroem(gamma=2.0, random_state=42), HogwildOneClassSVM(0.05, max_iter=15, tol=None, random_state=42)
    ).fit(rows)
    theirs = OneClassSVM(gamma=2.0, nu=0.05).fit(rows)
    assert (ours.predict(others) == theirs.predict(others)).mean() > 0.95
    assert np.corrcoef(ours.decision_function(others), theirs.decision_function(others))[0, 1] > 0.9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_are_kept(dtype, X):
    model = HogwildOneClassSVM(**SHORT).fit(X.astype(dtype))
    assert model.coef_.dtype == model.offset_.dtype == dtype


def test_labels_given_are_not_looked_at(X):
    plain, labelled = HogwildOneClassSVM(**SHORT).fit(X), HogwildOneClassSVM(**SHORT).fit(X, "whatever")
    assert np.array_equal(plain.coef_, labelled.coef_)


def test_weights_pull(X):
    weights = np.where(X[:, 0] > 1.5, 10.0, 0.1)
    asked = {"nu": 0.3, "random_state": 0, "max_iter": 100, "tol": None}
    plain = HogwildOneClassSVM(**asked).fit(X)
    weighted = HogwildOneClassSVM(**asked).fit(X, sample_weight=weights)
    assert weighted.coef_[0] / np.linalg.norm(weighted.coef_) > plain.coef_[0] / np.linalg.norm(plain.coef_)


def test_the_same_state_gives_the_same_bits(X):
    first, again, other = (HogwildOneClassSVM(max_iter=1, tol=None, random_state=s).fit(X) for s in (1, 1, 2))
    assert np.array_equal(first.coef_, again.coef_)
    assert not np.array_equal(first.coef_, other.coef_)
    changed = clone(first).set_params(nu=0.1).fit(X)
    assert np.array_equal(changed.coef_, HogwildOneClassSVM(0.1, max_iter=1, tol=None, random_state=1).fit(X).coef_)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(
    "asked",
    [{}, {"average": True}, {"learning_rate": "invscaling"}, {"fit_intercept": False}, {"nu": 0.1, "shuffle": False}],
    ids=str,
)
def test_the_same_state_is_the_same_fit_as_theirs(asked, form, X):
    weights = np.random.default_rng(4).uniform(0.5, 2.0, 60)
    asked = {**SHORT, "random_state": 11, **asked}
    ours, theirs = (kind(**asked).fit(form(X), sample_weight=weights) for kind in (HogwildOneClassSVM, SGDOneClassSVM))
    for _ in range(2):
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-4, atol=1e-5)
        assert (ours.n_iter_, ours.t_) == (theirs.n_iter_, theirs.t_)
        for model in (ours, theirs):  # and goes on in the same way
            model.partial_fit(form(X))


@FORMS
def test_a_partial_fit_writes_to_the_weights_of_the_last_one(form, X):
    for kind in (HogwildOneClassSVM, SGDOneClassSVM):
        model = kind(random_state=0).partial_fit(form(X[:20]))
        weights, before = model.coef_, model.coef_.copy()
        assert model.partial_fit(form(X[20:])).coef_ is weights
        assert not np.array_equal(weights, before)
        model.fit(form(X))
        assert model.coef_ is not weights


def test_weights_that_cannot_be_written_to_are_replaced(X):
    model = HogwildOneClassSVM(random_state=0).partial_fit(X)
    same = HogwildOneClassSVM(random_state=0).partial_fit(X).partial_fit(X)
    model.coef_.flags.writeable = False
    assert np.array_equal(model.partial_fit(X).coef_, same.coef_)
    assert model.coef_.flags.writeable


def test_it_does_not_end_before_it_has_begun(X):
    for nu in (0.5, 0.9):
        model = HogwildOneClassSVM(nu, learning_rate="constant", eta0=1e-3, random_state=0).fit(X)
        assert 20 < model.n_iter_ < 1000


@FORMS
@pytest.mark.parametrize("rate", ["constant", "optimal", "invscaling", "adaptive"])
def test_partial_fits_are_epochs_of_a_fit(rate, form, X):
    rows, asked = form(X), {"nu": 0.05, "learning_rate": rate, "shuffle": False}
    whole = HogwildOneClassSVM(max_iter=2, tol=None, **asked).fit(rows)
    parts = HogwildOneClassSVM(**asked).partial_fit(rows).partial_fit(rows)
    begun = HogwildOneClassSVM(max_iter=1, tol=None, **asked).fit(rows).partial_fit(rows)
    for model in (parts, begun):
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(model.offset_, whole.offset_, rtol=1e-4, atol=1e-6)
        assert model.t_ == whole.t_ == 121


@pytest.mark.parametrize("rate", ["constant", "optimal"])
def test_warm_starts_begin_where_first_values_say(rate, X):
    asked = {"learning_rate": rate, "shuffle": False, "max_iter": 3, "tol": None}
    first = HogwildOneClassSVM(0.5, **asked).fit(X)
    given = HogwildOneClassSVM(0.1, **asked).fit(X, coef_init=first.coef_.copy(), offset_init=first.offset_.copy())
    warm = HogwildOneClassSVM(0.5, warm_start=True, **asked).fit(X).set_params(nu=0.1).fit(X)
    np.testing.assert_allclose(warm.coef_, given.coef_, rtol=1e-5)
    np.testing.assert_allclose(warm.offset_, given.offset_, rtol=1e-5)
    assert warm.t_ == given.t_ == first.t_ == 181


@pytest.mark.parametrize("offset", [2.0, 2, [2.0]])
def test_first_values_are_where_it_begins(offset, X):
    model = HogwildOneClassSVM(**STILL).fit(X, coef_init=[[1, 2, 3, 4]], offset_init=offset)
    np.testing.assert_allclose(model.coef_, [1, 2, 3, 4], rtol=1e-6)
    np.testing.assert_allclose(model.offset_, [2.0], rtol=1e-6)
    np.testing.assert_allclose(HogwildOneClassSVM(**STILL).fit(X).offset_, [0.0], atol=1e-9)


def test_without_an_intercept_the_offset_stays(X):
    assert HogwildOneClassSVM(fit_intercept=False, **SHORT).fit(X).offset_.tolist() == [0.0]


def test_averages_that_never_begin_are_none(X):
    late, plain = HogwildOneClassSVM(average=10**6, **SHORT), HogwildOneClassSVM(**SHORT)
    for _ in range(3):
        late.partial_fit(X)
        plain.partial_fit(X)
    np.testing.assert_allclose(late.coef_, plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(late.offset_, plain.offset_, rtol=1e-6)


@pytest.mark.parametrize("average", [False, True])
def test_a_sparse_model_is_pickled_and_learns_on(average, X):
    model = HogwildOneClassSVM(average=average, **SHORT).fit(X)
    dense, found = pickle.loads(pickle.dumps(model)), model.predict(X)
    sparse = pickle.loads(pickle.dumps(model.sparsify()))
    assert sp.issparse(sparse.coef_)
    assert np.array_equal(sparse.predict(X), found)
    np.testing.assert_allclose(sparse.partial_fit(X).coef_, dense.partial_fit(X).coef_, rtol=1e-5)
    model.set_params(warm_start=True, average=False, **STILL)
    before = model.coef_.toarray().ravel()
    np.testing.assert_allclose(model.fit(X).coef_, before, rtol=1e-5)


def test_one_row_and_one_column(X):
    assert HogwildOneClassSVM(**SHORT).fit(X[:1, :1]).coef_.shape == (1,)
