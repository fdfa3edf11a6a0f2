"""What a user of ``SGDClassifier`` relies on: labels, weights, penalties, and calls one after the other."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils.class_weight import compute_class_weight

from hogwild import HogwildClassifier, minimise
from hogwild.estimators import fit

SHORT = {"max_iter": 3, "tol": None, "random_state": 0}
STILL = {"learning_rate": "constant", "eta0": 1e-12, "max_iter": 1, "tol": None}
ABC = ["a", "b", "c"]


@pytest.fixture(scope="module", name="X")
def some_rows():
    rows = np.random.default_rng(0).normal(size=(60, 4))
    rows.flags.writeable = False  # a fit changes nothing of what it is given
    return rows


@pytest.fixture(scope="module")
def y(X):
    return (X @ [1.0, -1.0, 0.5, 0.0] > 0).astype(int)


@pytest.fixture(scope="module")
def three(X):
    return np.array(ABC)[np.digitize(X[:, 0], [-0.5, 0.5])]


# Labels and shapes


@pytest.mark.parametrize(
    "labels",
    [
        np.array([False, True]), np.array(["no", "yes"]), np.array([-1, 1]), np.array([3, 7], np.int8),
        np.array([0.5, 2.5], np.float32).round(), np.array([2**60, 2**60 + 1]), np.array(["x", "y"], object),
    ],
    ids=lambda labels: labels.dtype.name,
)  # fmt: skip
def test_labels_come_back_as_they_went_in(labels, X, y):
    model = HogwildClassifier(**SHORT).fit(X, labels[y])
    found = model.predict(X)
    assert model.classes_.tolist() == labels.tolist()
    assert found.dtype == labels.dtype
    assert np.array_equal(found, labels[HogwildClassifier(**SHORT).fit(X, y).predict(X)])


def test_shapes_of_two_and_of_three_classes(X, y, three):
    two, more = HogwildClassifier(**SHORT).fit(X, y), HogwildClassifier(**SHORT).fit(X, three)
    assert (two.coef_.shape, two.intercept_.shape, two.decision_function(X).shape) == ((1, 4), (1,), (60,))
    assert (more.coef_.shape, more.intercept_.shape, more.decision_function(X).shape) == ((3, 4), (3,), (60, 3))
    assert more.coef_.flags.c_contiguous


def test_very_small_data(X):
    assert HogwildClassifier(**SHORT).fit([[0.0], [1.0]], [0, 1]).coef_.shape == (1, 1)
    assert HogwildClassifier().partial_fit([[1.0]], ["b"], classes=ABC).coef_.shape == (3, 1)
    assert not HogwildClassifier(**SHORT).fit(np.zeros((2, 4)), [0, 1]).coef_.any()


@pytest.mark.parametrize("given", [np.float64, np.float32, np.float16, np.int64, np.uint8, bool])
def test_types_of_values(given, X, y):
    rows = np.abs(2 * X).astype(given)
    model = HogwildClassifier(**SHORT).fit(rows, y)
    assert model.coef_.dtype == model.intercept_.dtype == (np.float32 if given == np.float32 else np.float64)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, list])
def test_without_an_intercept_every_form_of_the_data_is_the_same(form, X, y):
    asked = {**SHORT, "fit_intercept": False}
    given = X.tolist() if form is list else form(X)
    model, dense = HogwildClassifier(**asked).fit(given, y), HogwildClassifier(**asked).fit(X, y)
    np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-4)
    assert np.array_equal(model.predict(given), dense.predict(X))
    assert model.intercept_.tolist() == [0.0]


# What is random and what is not


def test_the_same_state_gives_the_same_bits_and_another_gives_others(X, three):
    first, again, other = (HogwildClassifier(max_iter=1, tol=None, random_state=s).fit(X, three) for s in (1, 1, 2))
    assert np.array_equal(first.coef_, again.coef_)
    assert np.abs(first.coef_ - other.coef_).max() > 0.1
    state = np.random.RandomState(5)
    drawn = [HogwildClassifier(max_iter=1, tol=None, random_state=state).fit(X, three).coef_ for _ in range(2)]
    assert not np.array_equal(*drawn)  # a generator is used up, a number is not


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("labels", ["y", "three"])
@pytest.mark.parametrize(
    "asked",
    [
        {}, {"early_stopping": True, "validation_fraction": 0.3}, {"class_weight": "balanced"},
        {"penalty": "l1", "alpha": 0.01}, {"penalty": None, "learning_rate": "constant"}, {"fit_intercept": False},
        {"average": True, "fit_intercept": False},  # their averages begin again from an old intercept
    ],
    ids=str,
)  # fmt: skip
def test_the_same_state_is_the_same_fit_as_theirs(asked, labels, form, X, request):
    labels, rows = request.getfixturevalue(labels), form(X)
    weights = np.random.default_rng(4).uniform(0.5, 2.0, 60)
    asked = {**SHORT, "learning_rate": "invscaling", "eta0": 0.5, "random_state": 11, **asked}
    one_pass = len(np.unique(labels)) > 2 and form is sp.csr_matrix  # in which all classes share an order of rows
    ours, theirs = HogwildClassifier(**asked, identical_to_sklearn=one_pass), SGDClassifier(**asked)
    for model in (ours, theirs):
        model.fit(rows, labels, sample_weight=weights)
    for _ in range(2):
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4, atol=1e-5)
        assert (ours.n_iter_, ours.t_) == (theirs.n_iter_, theirs.t_)
        for model in (ours, theirs):  # and goes on in the same way
            model.partial_fit(rows, labels)


def test_in_stored_order_the_state_does_not_matter(X, y):
    fits = [HogwildClassifier(shuffle=False, max_iter=2, tol=None, random_state=s).fit(X, y) for s in (1, 2)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


def test_a_clone_is_as_new_and_may_be_changed(X, y):
    model = clone(HogwildClassifier(penalty="l1", alpha=0.01, **SHORT).fit(X, y)).set_params(penalty="l2")
    assert not hasattr(model, "coef_")
    same = HogwildClassifier(penalty="l2", alpha=0.01, **SHORT).fit(X, y)
    assert np.array_equal(model.fit(X, y).coef_, same.coef_)


def test_fits_in_many_threads_do_not_meet(X, three):
    def fit(seed):
        return HogwildClassifier(max_iter=20, tol=1e-3, early_stopping=True, random_state=seed).fit(X, three).coef_

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        alone = [fit(seed) for seed in range(4)]
        together = joblib.Parallel(n_jobs=4, backend="threading")(joblib.delayed(fit)(seed) for seed in range(4))
    assert all(np.array_equal(*pair) for pair in zip(alone, together, strict=True))


def test_talking_changes_nothing(X, y, capsys):
    model = HogwildClassifier(verbose=1, **SHORT).fit(X, y)
    assert capsys.readouterr().out.count("Epoch") == 3
    assert np.array_equal(model.coef_, HogwildClassifier(**SHORT).fit(X, y).coef_)


# Penalties


def test_the_ends_of_the_elastic_net_are_l1_and_l2(X, y):
    for ratio, penalty in ((1, "l1"), (0, "l2")):
        net = HogwildClassifier(penalty="elasticnet", l1_ratio=ratio, alpha=0.01, **SHORT).fit(X, y)
        end = HogwildClassifier(penalty=penalty, l1_ratio=None, alpha=0.01, **SHORT).fit(X, y)
        np.testing.assert_allclose(net.coef_, end.coef_, rtol=1e-5, atol=1e-6)


def test_l1_leaves_one_of_two_alike():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 10)
    strong, weak = np.where(y, 1.0, -1.0), np.where(y, 0.8, -0.8) + 0.05 * rng.normal(size=20)
    model = HogwildClassifier(
        penalty="l1", alpha=0.2, fit_intercept=False, max_iter=500, tol=None, random_state=0
    ).fit(np.c_[strong, weak], y)  # fmt: skip
    assert model.coef_[0, 1] == 0 < model.coef_[0, 0]


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
def test_a_huge_penalty_leaves_no_more_than_the_last_step(penalty, X, y):
    asked = {"penalty": penalty, "alpha": 1e5, "learning_rate": "constant", "eta0": 0.01, "max_iter": 6, "tol": None}
    with np.errstate(all="raise"):
        model = HogwildClassifier(random_state=0, **asked).fit(X, y)
    assert np.abs(model.coef_).max() <= 0.01 * np.abs(X).max()
    np.testing.assert_allclose(model.coef_, SGDClassifier(random_state=0, **asked).fit(X, y).coef_, atol=1e-5)


# Weights


def test_weights_of_rows_and_of_classes_multiply(X, y):
    each = np.random.default_rng(2).uniform(0.1, 1.0, 60)
    both = HogwildClassifier(class_weight={0: 0.6, 1: 0.3}, **SHORT).fit(X, y, sample_weight=each)
    one = HogwildClassifier(**SHORT).fit(X, y, sample_weight=each * np.where(y, 0.3, 0.6))
    np.testing.assert_allclose(both.coef_, one.coef_, rtol=1e-4)


@pytest.mark.parametrize("labels", ["y", "three"])
def test_balanced_is_what_can_be_computed(labels, X, request):
    labels = request.getfixturevalue(labels)
    classes = np.unique(labels)
    weights = compute_class_weight("balanced", classes=classes, y=labels)
    balanced = HogwildClassifier(class_weight="balanced", **SHORT).fit(X, labels)
    named = HogwildClassifier(class_weight=dict(zip(classes, weights, strict=True)), **SHORT).fit(X, labels)
    assert np.array_equal(balanced.coef_, named.coef_)


def test_a_class_without_a_weight_weighs_one(X, y):
    some, all_ = ({1: 2.0}, {0: 1.0, 1: 2.0})
    fits = [HogwildClassifier(class_weight=given, **SHORT).fit(X, y) for given in (some, all_)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    by_parts = HogwildClassifier(class_weight=some, random_state=0).partial_fit(X, y, classes=[0, 1])
    once = HogwildClassifier(class_weight=some, max_iter=1, tol=None, random_state=0).fit(X, y)
    np.testing.assert_allclose(by_parts.coef_, once.coef_, rtol=1e-5)


def test_labels_of_rows_without_weight_do_not_matter(X, y):
    weights = np.where(np.arange(60) < 20, 0.0, 1.0)
    other = np.where(np.arange(60) < 20, 1 - y, y)
    fits = [HogwildClassifier(**SHORT).fit(X, labels, sample_weight=weights) for labels in (y, other)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    flat = HogwildClassifier(**SHORT).fit(X, y, sample_weight=2.0)  # one number for all
    same = HogwildClassifier(**SHORT).fit(X, y, sample_weight=[2] * 60)
    assert np.array_equal(flat.coef_, same.coef_)


# Early stopping


def test_rows_set_aside_are_not_learnt_from(X, three):
    asked = {**SHORT, "shuffle": False, "learning_rate": "constant"}
    stopped = HogwildClassifier(early_stopping=True, validation_fraction=0.4, **asked).fit(X, three)
    rest, _ = next(StratifiedShuffleSplit(test_size=0.4, random_state=0).split(X, three))
    rest.sort()
    np.testing.assert_allclose(stopped.coef_, HogwildClassifier(**asked).fit(X[rest], three[rest]).coef_, rtol=1e-5)
    assert stopped.t_ == 1 + 3 * 60  # counts all rows, as theirs


@pytest.mark.parametrize("early_stopping", [False, True])
def test_more_patience_is_not_less_epochs(early_stopping, X, y):
    asked = {"random_state": 0, "early_stopping": early_stopping, "loss": "log_loss", "alpha": 0.01}
    epochs = [HogwildClassifier(n_iter_no_change=n, **asked).fit(X, y).n_iter_ for n in (2, 3, 10)]
    assert epochs == sorted(epochs)
    assert epochs[0] < epochs[-1] < 1000


@pytest.mark.parametrize("asked", [{"n_jobs": 2, "strategy": "hogwild"}, {"strategy": "serial"}], ids=str)
def test_each_class_stops_by_its_own_score_with_any_number_of_workers(asked, X, three, monkeypatch):
    runs = []
    monkeypatch.setattr(fit, "minimise", lambda *args, **options: runs.append(minimise(*args, **options)) or runs[-1])
    model = HogwildClassifier(early_stopping=True, n_iter_no_change=20, random_state=0, **asked).fit(X, three)
    assert [run.model.weights.shape for run in runs] == [(4, 1)] * 3
    assert {run.stop_reason for run in runs} == {"tolerance"}
    assert model.n_iter_ == max(run.history[-1]["epoch"] for run in runs)
    assert model.score(X, three) > 0.6
    runs.clear()
    HogwildClassifier("softmax", early_stopping=True, random_state=0, **asked).fit(X, three)
    HogwildClassifier(random_state=0, max_iter=5, tol=None, **asked).fit(X, three)
    assert [run.model.weights.shape for run in runs] == [(4, 3)] * 2  # all classes in one pass


def test_an_adaptive_step_goes_on_for_longer(X, y):
    asked = {"loss": "log_loss", "eta0": 0.1, "random_state": 0}
    constant, adaptive = (
        HogwildClassifier(learning_rate=rate, **asked).fit(X, y).n_iter_ for rate in ("constant", "adaptive")
    )
    assert constant < adaptive < 1000


# One call after another


@pytest.mark.parametrize("rate", ["constant", "optimal", "invscaling", "adaptive"])
def test_warm_starts_begin_where_first_values_say(rate, X, three):
    asked = {"learning_rate": rate, "shuffle": False, "max_iter": 3, "tol": None}
    first = HogwildClassifier(alpha=0.01, **asked).fit(X, three)
    begun, ended = first.coef_.copy(), first.intercept_.copy()
    given = HogwildClassifier(alpha=0.001, **asked).fit(X, three, coef_init=begun, intercept_init=ended)
    assert np.array_equal(begun, first.coef_)  # they are not written to
    warm = HogwildClassifier(alpha=0.01, warm_start=True, **asked).fit(X, three).set_params(alpha=0.001)
    warm.fit(X, three)
    np.testing.assert_allclose(warm.coef_, given.coef_, rtol=1e-5)
    assert warm.t_ == given.t_ == first.t_ == 181


def test_warm_starts_and_other_classes(X, y, three):
    model = HogwildClassifier(warm_start=True, **SHORT).fit(X, y)
    before = model.coef_.copy()
    model.set_params(**STILL).fit(X, np.array(["no", "yes"])[y])
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(model.coef_, before, rtol=1e-5)
    with pytest.raises(ValueError, match="does not match dataset"):
        model.fit(X, three)
    with pytest.raises(ValueError, match="does not match dataset"):
        HogwildClassifier(warm_start=True, **SHORT).fit(X, three).fit(X, y)


@pytest.mark.parametrize("shape", [(4,), (1, 4), (4, 1)])
def test_first_values_of_two_classes_have_any_shape(shape, X, y):
    given = np.arange(1.0, 5.0).reshape(shape)
    model = HogwildClassifier(**STILL).fit(X, y, coef_init=given, intercept_init=2)
    np.testing.assert_allclose(model.coef_, [[1.0, 2.0, 3.0, 4.0]], rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, [2.0], rtol=1e-6)


def test_another_fit_forgets_the_one_before(X, y, three):
    model = HogwildClassifier(**SHORT).fit(X, three).fit(X[:, :2], y)
    fresh = HogwildClassifier(**SHORT).fit(X[:, :2], y)
    assert np.array_equal(model.coef_, fresh.coef_)
    assert (model.classes_.tolist(), model.n_features_in_, model.t_) == ([0, 1], 2, 181)


@pytest.mark.parametrize("rate", ["constant", "optimal", "invscaling"])
@pytest.mark.parametrize("labels", ["y", "three"])
def test_partial_fits_are_epochs_of_a_fit(rate, labels, X, request):
    labels = request.getfixturevalue(labels)
    asked = {"learning_rate": rate, "shuffle": False, "alpha": 0.01}
    whole = HogwildClassifier(max_iter=3, tol=None, **asked).fit(X, labels)
    begun = HogwildClassifier(max_iter=1, tol=None, **asked).fit(X, labels)
    parts = HogwildClassifier(**asked)
    for _ in range(3):
        parts.partial_fit(X, labels, classes=np.unique(labels)[::-1])
    for model in (parts, begun.partial_fit(X, labels).partial_fit(X, labels)):
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-4, atol=1e-5)
        assert (model.t_, model.n_iter_) == (181, 1)


def test_a_partial_fit_writes_to_the_weights_of_the_last_one(X, y, three):
    for labels in (y, three):
        model = HogwildClassifier(random_state=0).partial_fit(X[:20], labels[:20], classes=np.unique(labels))
        weights, before = model.coef_, model.coef_.copy()
        model.partial_fit(X[20:], labels[20:])
        assert np.shares_memory(model.coef_, weights)
        assert not np.array_equal(weights, before)


def test_partial_fits_may_see_few_of_the_classes(X, three):
    model = HogwildClassifier(random_state=0).partial_fit(X[:2], ["b", "b"], classes=["c", "a", "b", "a"])
    assert model.classes_.tolist() == ABC
    assert model.predict(X[:2]).tolist() == ["b", "b"]
    for _ in range(30):
        model.partial_fit(X, three)
    assert model.score(X, three) > 0.7
    assert model.t_ == 1 + 2 + 30 * 60


def test_after_a_fit_a_partial_fit_asks_for_less(X, y):
    for asked in ({"early_stopping": True}, {"class_weight": "balanced"}):  # refused in a first partial fit
        model = HogwildClassifier(**asked, **SHORT).fit(X, y)
        assert model.partial_fit(X, y, classes=[0, 1]).t_ == 241


# Averages


def test_averages_that_never_begin_are_none(X, y):
    late, plain = HogwildClassifier(average=10**6, **SHORT), HogwildClassifier(**SHORT)
    assert np.array_equal(late.fit(X, y).coef_, plain.fit(X, y).coef_)
    for _ in range(3):
        late.partial_fit(X, y)
        plain.partial_fit(X, y)
    np.testing.assert_allclose(late.coef_, plain.coef_, rtol=1e-6)


def test_averages_are_calmer_than_what_is_averaged(X, three):
    asked = {"learning_rate": "constant", "eta0": 1.0, "max_iter": 50, "tol": None}

    def spread(average):
        fits = [HogwildClassifier(average=average, random_state=s, **asked).fit(X, three).coef_ for s in range(5)]
        return np.std(fits, axis=0).mean()

    assert spread(True) < spread(False) / 2


# Probabilities


def test_only_some_losses_have_probabilities():
    for name in ("predict_proba", "predict_log_proba"):
        for loss in ("log_loss", "modified_huber"):
            assert hasattr(HogwildClassifier(loss), name)
        with pytest.raises(AttributeError, match=f"has no attribute {name!r}") as error:
            getattr(HogwildClassifier("squared_hinge"), name)
        assert "not available for loss='squared_hinge'" in str(error.value.__cause__)


@pytest.mark.parametrize("loss", ["log_loss", "modified_huber"])
@pytest.mark.parametrize("labels", ["y", "three"])
def test_probabilities_are_theirs_for_the_same_scores(loss, labels, X, request):
    labels = request.getfixturevalue(labels)
    theirs = SGDClassifier(loss, alpha=0.01, **SHORT).fit(X, labels)
    ours = HogwildClassifier(loss, alpha=0.01, **SHORT).fit(X, labels)
    ours.coef_, ours.intercept_ = theirs.coef_, theirs.intercept_
    far = np.vstack([X, 100 * X])  # where scores of modified Huber are beyond -1 and 1
    found = ours.predict_proba(far)
    np.testing.assert_allclose(found, theirs.predict_proba(far), rtol=1e-4, atol=1e-6)
    with np.errstate(divide="ignore"):
        assert np.array_equal(ours.predict_log_proba(far), np.log(found))


def test_where_no_class_is_likely_all_are_alike(X, three):
    model = HogwildClassifier("modified_huber", alpha=0.01, **SHORT).fit(X, three)
    model.coef_, model.intercept_ = np.zeros((3, 4)), np.full(3, -2.0)
    np.testing.assert_allclose(model.predict_proba(X[:1]), 1 / 3)


# Afterwards


@pytest.mark.parametrize("average", [False, True])
def test_a_sparse_model_is_pickled_and_learns_on(average, X, three):
    model = HogwildClassifier(penalty="l1", alpha=0.01, average=average, **SHORT).fit(X, three)
    dense, found = pickle.loads(pickle.dumps(model)), model.predict(X)
    sparse = pickle.loads(pickle.dumps(model.sparsify()))
    assert sp.issparse(sparse.coef_)
    assert np.array_equal(sparse.predict(X), found)
    np.testing.assert_allclose(sparse.partial_fit(X, three).coef_, dense.partial_fit(X, three).coef_, rtol=1e-5)
    model.set_params(warm_start=True, average=False, **STILL)
    before = model.coef_.toarray()
    np.testing.assert_allclose(model.fit(X, three).coef_, before, rtol=1e-4, atol=1e-7)


def test_attributes_after_a_fit(X, y):
    model = HogwildClassifier(**SHORT).fit(X, y)
    public = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert public == {"classes_", "coef_", "intercept_", "n_features_in_", "n_iter_", "n_workers_", "t_"}
    assert (type(model.n_iter_), type(model.t_)) == (int, float)
