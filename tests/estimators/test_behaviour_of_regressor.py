"""What a user of ``SGDRegressor`` relies on: targets, losses, calls one after the other, and refusals."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.linear_model import ElasticNet, SGDRegressor
from sklearn.model_selection import ShuffleSplit

from hogwild import HogwildRegressor

SHORT = {"max_iter": 3, "tol": None, "random_state": 0}
STILL = {"learning_rate": "constant", "eta0": 1e-12, "max_iter": 1, "tol": None}
FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])


@pytest.fixture(scope="module", name="X")
def some_rows():
    rows = np.random.default_rng(0).normal(size=(60, 4))
    rows.flags.writeable = False  # a fit changes nothing of what it is given
    return rows


@pytest.fixture(scope="module")
def y(X):
    return X @ [1.0, 2.0, 0.0, -1.0] + 0.5


# Refusals and warnings

REFUSED = {
    "y is missing": lambda m, X, y: m.fit(X, None),
    "y has two columns": lambda m, X, y: m.fit(X, np.c_[y, y]),
    "y is short": lambda m, X, y: m.fit(X, y[:-1]),
    "y is NaN": lambda m, X, y: m.fit(X, y * np.nan),
    "y is infinite": lambda m, X, y: m.fit(X, np.where(y > 0, np.inf, y)),
    "y is complex": lambda m, X, y: m.fit(X, y + 1j),
    "y is sparse": lambda m, X, y: m.fit(X, sp.csr_array(y.reshape(-1, 1))),
    "X is NaN": lambda m, X, y: m.fit(X * np.nan, y),
    "X is complex": lambda m, X, y: m.fit(X + 1j, y),
    "X has no rows": lambda m, X, y: m.fit(X[:0], y[:0]),
    "weights are too few": lambda m, X, y: m.fit(X, y, sample_weight=np.ones(7)),
    "weights are zero": lambda m, X, y: m.fit(X, y, sample_weight=np.zeros(60)),
    "one row to split": lambda m, X, y: m.set_params(early_stopping=True).fit(X[:1], y[:1]),
    "all is validated": lambda m, X, y: m.set_params(early_stopping=True, validation_fraction=0.999).fit(X[:5], y[:5]),
    "early stopping of a part": lambda m, X, y: m.set_params(early_stopping=True).partial_fit(X, y),
    "coefficients of three columns": lambda m, X, y: m.fit(X, y, coef_init=np.zeros(3)),
    "two intercepts": lambda m, X, y: m.fit(X, y, intercept_init=np.zeros(2)),
    "not fitted": lambda m, X, y: m.predict(X),
    "fewer columns than in the fit": lambda m, X, y: m.fit(X, y).predict(X[:, :2]),
    "fewer columns than in the part before": lambda m, X, y: m.partial_fit(X, y).partial_fit(X[:, :2], y),
    "no number": lambda m, X, y: m.set_params(alpha="0.1").fit(X, y),
    "not even a number": lambda m, X, y: m.set_params(tol=np.nan).partial_fit(X, y),
    "a fraction of an epoch": lambda m, X, y: m.set_params(max_iter=2.5).partial_fit(X, y),
    "a fraction of an average": lambda m, X, y: m.set_params(average=2.5).fit(X, y),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_as_theirs_is(case, X, y):
    said = []
    for kind in (HogwildRegressor, SGDRegressor):
        with pytest.raises((ValueError, TypeError)) as error:
            REFUSED[case](kind(**SHORT), X, y)
        said.append(str(error.value).replace("Hogwild", "SGD"))
    assert said[0] == said[1]


@pytest.mark.parametrize("first", [{"coef_init": [np.nan] * 4}, {"intercept_init": np.inf}])
def test_first_values_are_finite(first, X, y):
    with pytest.raises(ValueError, match="not finite"):
        HogwildRegressor().fit(X, y, **first)


def test_counts_are_not_negative(X, y):
    with pytest.raises(ValueError, match=r"negative.*counts"):
        HogwildRegressor("poisson").fit(X, y)


def test_a_column_of_targets_is_flattened_with_a_warning(X, y):
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model = HogwildRegressor(**SHORT).fit(X, y.reshape(-1, 1))
    assert model.coef_.shape == (4,)


def test_one_epoch_warns_and_a_part_does_not(X, y):
    with pytest.warns(ConvergenceWarning, match="Consider increasing max_iter"):
        assert HogwildRegressor(max_iter=1).fit(X, y).n_iter_ == 1
    assert HogwildRegressor(max_iter=1, tol=None).fit(X, y).n_iter_ == 1
    assert HogwildRegressor(max_iter=1).partial_fit(X, y).n_iter_ == 1


# Divergence


def test_a_step_that_cannot_be_saved_is_an_error(X, y):
    said = []
    for kind in (HogwildRegressor, SGDRegressor):
        with pytest.raises(ValueError, match=r"under-/overflow occurred at epoch #1\..*StandardScaler or") as error:
            kind(learning_rate="constant", eta0=1e300, **SHORT).fit(1e30 * X, y)
        said.append(str(error.value))
    assert said[0].startswith(f"{said[1]} A smaller eta0")


def test_a_step_that_can_be_saved_is_a_warning(X, y):
    counts = np.random.default_rng(3).poisson(np.exp(X[:, 0] / 2))
    model = HogwildRegressor("poisson", learning_rate="constant", eta0=0.2, max_iter=20, tol=None, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"diverged \d times and went on with .* of the step.*smaller eta0"):
        model.fit(X, counts)
    assert np.abs(model.coef_ - [0.5, 0, 0, 0]).max() < 0.5


def test_large_slopes_are_cut_off_and_that_is_said(X, y):
    asked = {"learning_rate": "constant", "eta0": 1.0, "shuffle": False, **SHORT}
    with pytest.warns(ConvergenceWarning, match="diverged"):
        ours = HogwildRegressor(**asked).fit(10 * X, y)
    theirs = SGDRegressor(**asked).fit(10 * X, y)
    assert np.abs(ours.coef_).max() > 1e9
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0.01)


# Fits


def test_shapes_and_attributes(X, y):
    model = HogwildRegressor(**SHORT).fit(X, y)
    assert (model.coef_.shape, model.intercept_.shape, model.predict(X).shape) == ((4,), (1,), (60,))
    public = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert public == {"coef_", "intercept_", "n_features_in_", "n_iter_", "n_workers_", "t_"}
    assert not hasattr(model, "decision_function")
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("rows", [1, 2])
def test_very_small_data(rows, X, y):
    model = HogwildRegressor(**SHORT).fit(X[:rows, :1], y[:rows])
    theirs = SGDRegressor(**SHORT).fit(X[:rows, :1], y[:rows])
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_types_are_kept(form, dtype, X, y):
    model = HogwildRegressor(**SHORT).fit(form(X.astype(dtype)), y)
    assert model.coef_.dtype == model.intercept_.dtype == model.predict(X.astype(dtype)).dtype == dtype


def test_both_precisions_agree(X, y):
    double, single = (HogwildRegressor(**SHORT).fit(X.astype(kind), y).coef_ for kind in (np.float64, np.float32))
    np.testing.assert_allclose(double, single, rtol=1e-4)


@pytest.mark.parametrize(
    "targets", [[0, 1, 2], np.array([0, 1, 2], np.uint8), np.array([False, True, True]), (0.0, 1, 2)]
)
def test_targets_of_any_kind(targets):
    X = [[0, 0], [1, 1], [2, 2]]
    model = HogwildRegressor(alpha=0.1, fit_intercept=False, **SHORT).fit(X, targets)
    assert model.coef_[0] == model.coef_[1] > 0
    assert model.intercept_.tolist() == [0.0]


@pytest.mark.parametrize("loss", ["squared_error", "huber", "epsilon_insensitive"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_line_is_found_through_noise(loss, form):
    rng = np.random.default_rng(0)
    x = np.linspace(-5, 5, 100).reshape(-1, 1)
    asked = {"alpha": 0.1, "epsilon": 0.1, "max_iter": 20, "tol": None, "fit_intercept": False, "random_state": 0}
    exact, noisy = x.ravel() / 2, x.ravel() / 2 + rng.normal(size=100)
    assert HogwildRegressor(loss, **asked).fit(form(x), exact).score(form(x), exact) > 0.99
    assert HogwildRegressor(loss, **asked).fit(form(x), noisy).score(form(x), noisy) > 0.5


@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_the_elastic_net_is_that_of_coordinate_descent(ratio):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    y = X @ rng.normal(size=5)
    asked = {"alpha": 0.01, "l1_ratio": ratio, "fit_intercept": False}
    ours = HogwildRegressor(penalty="elasticnet", max_iter=50, tol=None, random_state=0, **asked).fit(X, y)
    np.testing.assert_allclose(ours.coef_, ElasticNet(**asked).fit(X, y).coef_, atol=0.01)


def test_the_width_of_a_loss_may_be_changed_later(X, y):
    wide = HogwildRegressor("huber", epsilon=5.0, **SHORT)
    narrow = HogwildRegressor("huber", epsilon=0.01, **SHORT).fit(X, y).coef_
    assert not np.allclose(wide.fit(X, y).coef_, narrow)
    assert np.array_equal(clone(wide).set_params(epsilon=0.01).fit(X, y).coef_, narrow)


def test_the_same_state_gives_the_same_bits_and_another_gives_others(X, y):
    first, again, other = (HogwildRegressor(max_iter=1, tol=None, random_state=s).fit(X, y) for s in (1, 1, 2))
    assert np.array_equal(first.coef_, again.coef_)
    assert not np.array_equal(first.coef_, other.coef_)


@FORMS
@pytest.mark.parametrize(
    "asked",
    [
        {}, {"average": True}, {"early_stopping": True, "validation_fraction": 0.3}, {"penalty": "l1", "alpha": 0.01},
        {"learning_rate": "adaptive"}, {"loss": "epsilon_insensitive"}, {"fit_intercept": False},
    ],
    ids=str,
)  # fmt: skip
def test_the_same_state_is_the_same_fit_as_theirs(asked, form, X, y):
    weights = np.random.default_rng(4).uniform(0.5, 2.0, 60)
    asked = {**SHORT, "random_state": 11, **asked}
    ours, theirs = (kind(**asked).fit(form(X), y, sample_weight=weights) for kind in (HogwildRegressor, SGDRegressor))
    for _ in range(2):
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4, atol=1e-5)
        assert (ours.n_iter_, ours.t_) == (theirs.n_iter_, theirs.t_)
        for model in (ours, theirs):  # and goes on in the same way
            model.partial_fit(form(X), y)


def test_targets_of_rows_without_weight_do_not_matter(X, y):
    weights, other = np.where(np.arange(60) < 20, 0.0, 1.0), np.where(np.arange(60) < 20, 1e3, y)
    fits = [HogwildRegressor(**SHORT).fit(X, targets, sample_weight=weights) for targets in (y, other)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


def test_no_rate_is_spoilt_by_a_power_of_nothing(X, y):
    flat = HogwildRegressor(power_t=0.0, **SHORT).fit(X, y)
    constant = HogwildRegressor(learning_rate="constant", **SHORT).fit(X, y)
    np.testing.assert_allclose(flat.coef_, constant.coef_, rtol=1e-6)


def test_a_negative_power_is_deprecated_and_fitted_as_theirs(X, y):
    asked = {"power_t": -0.5, "eta0": 1e-3, **SHORT}
    fits = []
    for kind in (HogwildRegressor, SGDRegressor):
        with pytest.warns(FutureWarning, match="Negative values for `power_t` are deprecated"):
            fits.append(kind(**asked).fit(X, y))
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-6)


# When it stops


def test_the_tolerance_decides_how_long(X, y):
    noisy = y + np.random.default_rng(1).normal(size=60)
    strict, loose = (HogwildRegressor(tol=tol, random_state=0).fit(X, noisy).n_iter_ for tol in (1e-6, 0.1))
    assert 5 < loose < strict < 1000


@pytest.mark.parametrize("early_stopping", [False, True])
def test_more_patience_is_not_less_epochs(early_stopping, X, y):
    noisy = y + np.random.default_rng(1).normal(size=60)
    asked = {"random_state": 0, "early_stopping": early_stopping}
    epochs = [HogwildRegressor(n_iter_no_change=n, **asked).fit(X, noisy).n_iter_ for n in (2, 3, 10)]
    assert epochs == sorted(epochs)
    assert epochs[0] < epochs[-1] < 1000


def test_rows_set_aside_are_not_learnt_from(X, y):
    asked = {**SHORT, "shuffle": False, "learning_rate": "constant"}
    stopped = HogwildRegressor(early_stopping=True, validation_fraction=0.4, **asked).fit(X, y)
    rest, _ = next(ShuffleSplit(test_size=0.4, random_state=0).split(X))
    rest.sort()
    np.testing.assert_allclose(stopped.coef_, HogwildRegressor(**asked).fit(X[rest], y[rest]).coef_, rtol=1e-5)


# One call after another


@pytest.mark.parametrize("rate", ["constant", "optimal", "invscaling", "adaptive"])
def test_warm_starts_begin_where_first_values_say(rate, X, y):
    asked = {"loss": "huber", "learning_rate": rate, "shuffle": False, "max_iter": 3, "tol": None}
    first = HogwildRegressor(alpha=0.01, **asked).fit(X, y)
    given = HogwildRegressor(alpha=0.001, **asked).fit(
        X, y, coef_init=first.coef_.copy(), intercept_init=first.intercept_.copy()
    )
    warm = HogwildRegressor(alpha=0.01, warm_start=True, **asked).fit(X, y).set_params(alpha=0.001).fit(X, y)
    np.testing.assert_allclose(warm.coef_, given.coef_, rtol=1e-5)
    assert warm.t_ == given.t_ == first.t_ == 181


@pytest.mark.parametrize("rate", ["constant", "optimal", "invscaling", "adaptive"])
def test_partial_fits_are_epochs_of_a_fit(rate, X, y):
    asked = {"loss": "huber", "learning_rate": rate, "shuffle": False, "alpha": 0.01}
    whole = HogwildRegressor(max_iter=3, tol=None, **asked).fit(X, y)
    begun, parts = HogwildRegressor(max_iter=1, tol=None, **asked).fit(X, y), HogwildRegressor(**asked)
    for _ in range(3):
        parts.partial_fit(X, y)
    for model in (parts, begun.partial_fit(X, y).partial_fit(X, y)):
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-4, atol=1e-5)
        assert (model.t_, model.n_iter_) == (181, 1)


def test_parts_in_pieces_are_the_whole(X, y):
    asked = {"shuffle": False}
    pieces, whole = HogwildRegressor(**asked), HogwildRegressor(**asked).partial_fit(X, y)
    for at in range(0, 60, 7):
        pieces.partial_fit(X[at : at + 7], y[at : at + 7])
    np.testing.assert_allclose(pieces.coef_, whole.coef_, rtol=1e-4)
    assert pieces.t_ == whole.t_ == 61


def test_another_fit_forgets_the_one_before(X, y):
    model = HogwildRegressor(**SHORT).fit(X, y).partial_fit(X, y).fit(X[:, :2], y)
    assert np.array_equal(model.coef_, HogwildRegressor(**SHORT).fit(X[:, :2], y).coef_)
    assert (model.n_features_in_, model.t_) == (2, 181)


def test_a_warm_start_with_other_columns_is_refused(X, y):
    with pytest.raises(ValueError, match=r"coef_init does not match|expecting 4 features"):
        HogwildRegressor(warm_start=True, **SHORT).fit(X, y).fit(X[:, :2], y)


@pytest.mark.parametrize("average", [False, True])
def test_a_sparse_model_is_pickled_and_learns_on(average, X, y):
    model = HogwildRegressor(average=average, **SHORT).fit(X, y)
    dense, found = pickle.loads(pickle.dumps(model)), model.predict(X)
    sparse = pickle.loads(pickle.dumps(model.sparsify()))
    assert sp.issparse(sparse.coef_)
    np.testing.assert_allclose(sparse.predict(X), found)
    np.testing.assert_allclose(sparse.partial_fit(X, y).coef_, dense.partial_fit(X, y).coef_, rtol=1e-5)
    before = model.coef_.toarray().ravel()
    model.set_params(warm_start=True, average=False, **STILL)
    np.testing.assert_allclose(model.fit(X, y).coef_, before, rtol=1e-5)


# Averages


def test_averages_begin_when_asked(X, y):
    asked = {"learning_rate": "constant", "eta0": 0.1, "max_iter": 40, "tol": None, "random_state": 1}
    noisy = y + np.random.default_rng(1).normal(size=60)
    best = np.linalg.lstsq(np.c_[X, np.ones(60)], noisy, rcond=None)[0][:4]
    last, early, late = (
        np.abs(HogwildRegressor(average=average, **asked).fit(X, noisy).coef_ - best).max()
        for average in (False, True, 1201)
    )
    assert early < last / 2
    assert late < last / 2
    assert early != late


def test_averages_that_never_begin_are_none(X, y):
    late, plain = HogwildRegressor(average=10**6, **SHORT), HogwildRegressor(**SHORT)
    assert np.array_equal(late.fit(X, y).coef_, plain.fit(X, y).coef_)


@pytest.mark.parametrize("average", [1, 100])
def test_averages_may_be_numbers(average, X, y):
    number, flag = (HogwildRegressor(average=given, **SHORT).fit(X, y).coef_ for given in (average, bool(average)))
    assert np.array_equal(number, flag) == (average < 2)
