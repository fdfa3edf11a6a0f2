"""Fits of two classes by several workers: the result of a single worker, in less time, and no wait without an end."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from hogwild import HogwildClassifier, HogwildOneClassSVM, HogwildRegressor
from hogwild.data.csr import NO_WEIGHTS, CSRRows
from hogwild.estimators import linear_base, parallel_fit
from hogwild.estimators.parallel_fit import ParallelFit
from hogwild.kernels import linear_epochs as loop
from hogwild.kernels import linear_parallel
from hogwild.problems import feature_tiers
from hogwild.problems.feature_tiers import largest_eigenvalues

ROWS, FEATURES = 12_000, 900


@pytest.fixture(scope="module")
def text():
    """Rows like documents: a few words in most of them, most words in a few."""
    rng = np.random.default_rng(0)
    ranks = np.exp(rng.random(ROWS * 40) * np.log(FEATURES)).astype(np.int64) - 1
    columns = rng.permutation(FEATURES)[ranks]
    X = sp.csr_matrix((np.ones(len(ranks), np.float32), columns, np.arange(ROWS + 1) * 40), (ROWS, FEATURES))
    X.sum_duplicates()
    X = X.multiply(np.log(ROWS / (1 + np.bincount(X.indices, minlength=FEATURES)))).tocsr().astype(np.float32)
    X.data /= np.repeat(np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])), np.diff(X.indptr))
    score = X @ rng.standard_normal(FEATURES) + 0.1 * rng.standard_normal(ROWS)
    return X, score


@pytest.fixture(autouse=True)
def cores(monkeypatch):
    """Four workers on any machine, for few rows."""
    monkeypatch.setattr(linear_base, "usable_cores", lambda: 4)
    monkeypatch.setattr(linear_base, "WORTH_A_THREAD", 2**18)
    monkeypatch.setattr(parallel_fit, "WORTH_THREADS", 2**18)
    monkeypatch.setattr(parallel_fit, "is_cached", lambda kernel: True)  # compiled before the fit goes on


@pytest.fixture
def calls(monkeypatch):
    """The numbers of workers of calls."""
    found, train = [], ParallelFit._train_epochs

    def spy(self, shared, *rest):
        found.append(len(shared.first_blocks))
        return train(self, shared, *rest)

    monkeypatch.setattr(ParallelFit, "_train_epochs", spy)
    return found


def objective(model, X, y, alpha, weights=None):
    z = (X @ model.coef_.ravel().astype(float) + model.intercept_) * np.where(y, 1, -1)
    losses = {"hinge": np.maximum(0, 1 - z), "log_loss": np.logaddexp(0, -z)}[model.loss]
    return np.average(losses, weights=weights) + alpha / 2 * np.square(model.coef_).sum()


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize("many", [False, True], ids=["all replicated", "rare features in place"])
def test_several_workers_come_to_the_objective_of_one(text, calls, monkeypatch, loss, many):
    if many:
        monkeypatch.setattr(parallel_fit, "EVERYTHING", 300)
        monkeypatch.setattr(parallel_fit, "REPLICATED", 256)
    X, score = text
    asked = {"loss": loss, "max_iter": 15, "tol": None, "alpha": 1e-3, "random_state": 0}
    one, four = (HogwildClassifier(n_jobs=count, **asked).fit(X, score > 0) for count in (1, 4))
    assert max(calls) == 4
    assert objective(four, X, score > 0, 1e-3) <= 1.01 * objective(one, X, score > 0, 1e-3)
    assert abs(four.score(X, score > 0) - one.score(X, score > 0)) < 0.02
    assert four.coef_.dtype == np.float32
    assert four.t_ == one.t_


def test_a_fit_stops_when_it_has_converged(text, calls):
    X, score = text
    one, four = (
        HogwildClassifier(loss="log_loss", alpha=1e-3, n_jobs=count, random_state=0).fit(X, score > 0)
        for count in (1, 4)
    )
    assert calls
    assert four.n_iter_ <= 10 * one.n_iter_  # On a busy machine, a suspended worker disturbs the objective of an epoch.
    assert objective(four, X, score > 0, 1e-3) <= 1.01 * objective(one, X, score > 0, 1e-3)


def test_weights_of_rows_and_classes_count(text, calls):
    X, score = text
    weights = np.where(np.arange(ROWS) % 3, 0.2, 3.0)
    asked = {"loss": "log_loss", "max_iter": 10, "tol": None, "alpha": 1e-3, "class_weight": {False: 0.5, True: 2.0}}
    one, four = (
        HogwildClassifier(n_jobs=count, random_state=0, **asked).fit(X, score > 0, sample_weight=weights)
        for count in (1, 4)
    )
    assert calls
    assert np.corrcoef(one.coef_, four.coef_)[0, 1] > 0.99
    assert np.linalg.norm(four.coef_) == pytest.approx(np.linalg.norm(one.coef_), rel=0.05)


@pytest.mark.parametrize(
    "asked",
    [{}, {"learning_rate": "constant", "eta0": 0.02}, {"power_t": 0.5, "eta0": 0.2}, {"penalty": None}],
    ids=str,
)
def test_numbers_with_every_schedule(text, calls, asked):
    X, score = text
    asked = {"max_iter": 10, "tol": None, "random_state": 0, **asked}
    one, four = (HogwildRegressor(n_jobs=count, **asked).fit(X.astype(np.float64), score) for count in (1, 4))
    assert calls
    assert four.coef_.dtype == np.float64
    assert four.score(X, score) == pytest.approx(one.score(X, score), abs=0.02)
    assert np.corrcoef(one.coef_, four.coef_)[0, 1] > 0.98


def test_a_penalty_that_leaves_nothing_in_an_epoch_is_trained_by_one(text, calls):
    X, score = text
    asked = {"alpha": 0.5, "learning_rate": "constant", "eta0": 0.1, "max_iter": 5, "tol": None, "random_state": 0}
    model = HogwildClassifier(n_jobs=4, **asked).fit(X, score > 0)
    assert not calls
    assert 0 < np.linalg.norm(model.coef_) < 1


def test_calls_end_for_ctrl_c_and_go_on(text, calls, monkeypatch):
    X, score = text
    asked = {"loss": "log_loss", "max_iter": 6, "tol": None, "alpha": 1e-3, "random_state": 0, "n_jobs": 4}
    monkeypatch.setattr(parallel_fit, "INTERRUPTIBLE", 1)
    model = HogwildClassifier(**asked).fit(X, score > 0)
    assert len(calls) >= 5
    assert model.n_iter_ == 6
    one = HogwildClassifier(**{**asked, "n_jobs": 1}).fit(X, score > 0)
    assert objective(model, X, score > 0, 1e-3) <= 1.01 * objective(one, X, score > 0, 1e-3)


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_worker_that_fails_ends_the_fit(text, monkeypatch, error):
    X, score = text
    build = parallel_fit.train_part

    def failing(*how):
        kernel = build(*how)

        def part(*arguments):
            if arguments[-1] == 2:
                raise error
            kernel(*arguments)

        return part

    monkeypatch.setattr(parallel_fit, "train_part", failing)
    with pytest.raises(error):
        HogwildClassifier(loss="log_loss", n_jobs=4, alpha=1e-3).fit(X, score > 0)


@pytest.mark.parametrize("epochs", [2, 60])
def test_one_worker_trains_while_the_kernel_is_compiled(text, monkeypatch, epochs):
    X, score = text
    monkeypatch.setattr(parallel_fit, "is_cached", lambda kernel: False)
    monkeypatch.setattr(parallel_fit, "SHORT", 1)
    asked = {"loss": "log_loss", "max_iter": epochs, "tol": None, "alpha": 1e-3, "random_state": 0}
    one, four = (HogwildClassifier(n_jobs=count, **asked).fit(X, score > 0) for count in (1, 4))
    assert four.n_iter_ == epochs
    assert objective(four, X, score > 0, 1e-3) <= 1.01 * objective(one, X, score > 0, 1e-3)


@pytest.mark.parametrize(
    "asked",
    [{"average": True}, {"penalty": "l1"}, {"shuffle": False}, {"loss": lambda z, y: ((z - y) ** 2, 2 * (z - y))}],
)
def test_what_the_loop_lacks_is_trained_by_one(text, calls, asked):
    X, score = text
    HogwildClassifier(n_jobs=4, max_iter=2, tol=None, eta0=0.01, learning_rate="constant", **asked).fit(X, score > 0)
    assert not calls


@pytest.mark.parametrize(
    "model",
    [
        HogwildOneClassSVM(n_jobs=4, max_iter=2, tol=None),
        HogwildRegressor("epsilon_insensitive", n_jobs=4, max_iter=2, tol=None),
    ],
)
def test_losses_of_unknown_curvature_are_for_a_single_worker(text, calls, model):
    X, score = text
    model.fit(X, score)
    assert not calls


def test_few_rows_are_for_a_single_worker(text, calls):
    X, score = text
    HogwildClassifier(n_jobs=4, max_iter=3, tol=None).fit(X[:2000], score[:2000] > 0)
    assert not calls


@pytest.mark.parametrize(
    ("schedule", "power"),
    [(loop.OPTIMAL, 0.0), (loop.CONSTANT, 0.0), (loop.INVERSE_SCALING, 0.25), (loop.INVERSE_SCALING, 1.0)],
)
def test_the_common_factor_is_the_product_of_all_decays(schedule, power):
    constants = np.zeros(loop.CONSTANTS)
    constants[[loop.SCHEDULE, loop.STEP_ALPHA, loop.T0, loop.POWER]] = schedule, 0.01, 10.0, power
    product = math.prod(1 - 0.01 * loop.step_size(constants, 0.3, t) for t in range(50, 500))
    assert linear_parallel.decay_between(constants, 0.3, 0.01, 50, 500) == pytest.approx(product, rel=2e-3)


def test_eigenvalues_are_those_of_second_moments(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((300, 12))).astype(np.float32) * np.linspace(2, 0.1, 12, dtype=np.float32)
    rows = sp.csr_matrix(X)
    weights, tiers = rng.random(300), np.array([0, 4, 12])
    ours = CSRRows(
        rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data, np.zeros(300), NO_WEIGHTS, 12, "sparse"
    )
    found = largest_eigenvalues(ours, weights, tiers, rounds=30)
    with monkeypatch.context() as patch:
        patch.setattr(feature_tiers, "PART_WORK", 100)
        in_parts = largest_eigenvalues(ours, weights, tiers, rounds=30, threads=2)
    assert in_parts == pytest.approx(found, rel=1e-5)
    for k, (low, high) in enumerate(((0, 4), (4, 12))):
        moments = (X[:, low:high] * weights[:, None]).T @ X[:, low:high] / 300
        assert found[k] == pytest.approx(np.linalg.eigvalsh(moments)[-1], rel=1e-3)
