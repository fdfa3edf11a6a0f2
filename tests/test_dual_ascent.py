"""Dual coordinate ascent: it reaches the optimum of every loss, loses no change, and is chosen where it is fastest."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from sklearn.linear_model import SGDClassifier

from hogwild import (
    Averaging,
    Budget,
    Constant,
    Hogwild,
    HogwildClassifier,
    Linear,
    ParameterServer,
    Run,
    WarmStart,
    Warmup,
    minimise,
)
from hogwild.data.dataset import Chunk
from hogwild.data.generate import kind
from hogwild.data.in_memory import InMemoryDataset
from hogwild.errors import ParameterError
from hogwild.jit import bind
from hogwild.losses import LOSSES
from hogwild.losses.proximal import by_bisection
from hogwild.problems import linear as linear_problem
from hogwild.problems.dual_replicas import DualReplicas
from hogwild.problems.hot_replicas import HotReplicas
from hogwild.rules import named
from hogwild.runtimes.shared_memory import epoch_runner, thread_team

CONVEX = [loss for name, loss in LOSSES.items() if name not in ("softmax",)]
SMOOTH = ("logistic", "squared", "huber", "squared-hinge", "modified-huber", "squared-epsilon-insensitive")


WAYS = [(loss, way) for loss in CONVEX for way in ("own", "bisection") if loss.prox is not None or way == "bisection"]


@pytest.mark.parametrize(("loss", "way"), WAYS, ids=str)
def test_a_proximal_point_minimises_what_it_says(loss, way):
    prox = loss.prox if way == "own" else bind(by_bisection, loss=loss.function)
    generator = np.random.default_rng(0)
    for _ in range(60):
        v, t, y = generator.normal(0, 3), 10 ** generator.uniform(-3, 2), generator.choice([-1.0, 1.0])

        def cost(u, v=v, t=t, y=y):
            return t * loss(min(u, 300.0), y)[0] + (u - v) ** 2 / 2

        found = prox(v, t, y, loss.parameter, generator.normal(0, 3))
        reach = abs(v) + 5 * t + 5
        best = minimize_scalar(cost, bounds=(v - reach, v + reach), method="bounded", options={"xatol": 1e-9}).x
        assert cost(found) <= cost(best) + 1e-4 * abs(cost(best)) + 1e-9


def table(rows=400, features=12, seed=0, dense=False):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, features)) * (1.0 if dense else generator.random((rows, features)) < 0.4)
    y = X @ generator.normal(size=features) + 0.3 * generator.normal(size=rows) + 0.7
    return X.astype(np.float32), y


def labels_for(loss, y):
    if loss.targets == "classes":
        return np.where(y > 0, 1.0, -1.0)
    return np.round(np.exp(y / 4)) if loss.targets == "counts" else y


def gradient(loss, X, y, weights, intercept, l2, row_weights):
    slopes = np.array([loss(z, each)[1] for z, each in zip(X @ weights + intercept, y, strict=True)]) * row_weights
    return np.append(X.T @ slopes / len(y) + l2 * weights, slopes.mean())


@pytest.mark.parametrize("loss", [LOSSES[name] for name in SMOOTH], ids=str)
@pytest.mark.parametrize("form", ["dense", "sparse", "binary", "weighted"])
def test_it_comes_to_the_optimum_of_smooth_losses(loss, form):
    X, y = table(dense=form == "dense")
    if form == "binary":
        X = (X != 0).astype(np.float32)
    given = X if form == "dense" else sp.csr_matrix(X)
    labels, l2 = labels_for(loss, y), 0.01
    row_weights = np.random.default_rng(1).uniform(0.2, 3, len(y)) if form == "weighted" else np.ones(len(y))
    source = (given, labels, row_weights) if form == "weighted" else (given, labels)
    run = minimise(Linear(source, loss, l2=l2), "sdca", strategy="serial", budget=60)
    found = run.model.weights.ravel().astype(float), float(run.model.intercept[0])
    at_start = gradient(loss, X, labels, np.zeros(X.shape[1]), 0.0, l2, row_weights)
    assert np.linalg.norm(gradient(loss, X, labels, *found, l2, row_weights)) < 2e-4 * np.linalg.norm(at_start) + 2e-5


@pytest.mark.parametrize("name", ["hinge", "epsilon-insensitive", "quantile:0.8", "poisson"])
def test_it_is_not_worse_than_adagrad_for_other_losses(name):
    X, y = table()
    loss = Linear((X, y > 0) if name == "hinge" else (X, abs(np.round(y))), name).loss
    problem = Linear((X, labels_for(loss, y)), name, l2=0.01)
    ours = minimise(problem, "sdca", strategy="serial", budget=100).objective
    theirs = minimise(problem, "adagrad", strategy="serial", budget=300).objective
    assert ours <= theirs * 1.002


def weights_of_duals(problem, run):
    """The weights that the dual variables of a run stand for."""
    return weights_of(problem, run.state[2][:, 0])


def weights_of(problem, duals):
    rows = problem.data.rows
    X = sp.csr_matrix((rows.values, rows.indices.astype(np.int64), rows.indptr), (len(rows), rows.features))
    return X.T @ duals / (problem.l2 * len(rows))


def large(rows=24_000):
    return InMemoryDataset(kind("rcv1", rows=rows, features=20_000).rows, shuffled=True, name="large")


@pytest.fixture(scope="module")
def rows():
    return large()


def test_no_change_of_a_worker_is_lost(rows):
    problem = Linear(rows, "logistic", l2=1e-4)
    assert isinstance(problem.hot_replicas(problem.complete("sdca", None)[0], "auto", 2), DualReplicas)
    one = minimise(problem, "sdca", strategy="serial", budget=4)
    problem.hot_replicas(one_rule(), "auto", 2).compile(*nothing(problem))
    two = minimise(problem, "sdca", strategy=Hogwild(2), budget=4)
    assert max(record["workers_used"] for record in two.history) == 2
    assert two.objective == pytest.approx(one.objective, rel=2e-3)
    for run in (one, two):
        assert np.allclose(run.state[0][:, 0], weights_of_duals(problem, run), atol=2e-4)


def one_rule():
    return named("sdca")


def nothing(problem, rule=None):
    """A chunk without rows, and a state."""
    chunk = problem.data.in_order()[0]
    return Chunk(chunk.rows, chunk.order[:0]), problem.start(rule or one_rule())


def test_the_rule_is_chosen_where_the_penalty_is_not_weak():
    X, y = table()
    strong, weak = (Linear((sp.csr_matrix(X), y > 0), "logistic", l2=l2) for l2 in (0.1, 1e-6))
    assert minimise(strong, strategy="serial", budget=2).config["rule"] == "SDCA()"
    assert minimise(weak, strategy="serial", budget=2).config["rule"].startswith("AdaGrad")
    for other in ({"average": 0.5}, {"strategy": Averaging(2)}, {"schedule": "constant"}, {"every": 100}):
        assert minimise(strong, budget=2, **other).config["rule"].startswith("AdaGrad")


@pytest.mark.parametrize(
    ("problem", "options", "message"),
    [
        ({"l2": 0.0}, {}, "a penalty l2"),
        ({"l1": 0.1, "l2": 0.1}, {}, "no penalty l1"),
        ({"l2": 0.1, "sampling": "replacement"}, {}, "linear models"),
        ({"l2": "auto"}, {}, "a number"),
        ({"l2": 0.1}, {"strategy": Averaging(2)}, "Serial"),
        ({"l2": 0.1}, {"strategy": Hogwild(2, buffer=0)}, "Serial"),
        ({"l2": 0.1}, {"strategy": ParameterServer(2), "runtime": "local"}, "on threads"),
        ({"l2": 0.1}, {"count_conflicts": True}, "counts of conflicts"),
        ({"l2": 0.1}, {"average": 0.5}, "average"),
        ({"l2": 0.1}, {"init": WarmStart((np.zeros((12, 1)), np.zeros((1, 1))))}, "starts at zero"),
        ({"l2": 0.1}, {"schedule": "cosine", "budget": Budget(seconds=0.1)}, "constant schedule"),
    ],
)
def test_what_it_cannot_do_is_refused(problem, options, message):
    X, y = table()
    with pytest.raises(ParameterError, match=message):
        minimise(Linear((X, y > 0), **problem), "sdca", **options)


def test_several_classes_are_refused():
    X, y = table()
    with pytest.raises(ParameterError, match="one output"):
        minimise(Linear((X, np.digitize(y, [-1, 1])), l2=0.1), "sdca")


@pytest.mark.parametrize("laid_out", [False, True])
def test_a_resumed_run_is_the_same(tmp_path, monkeypatch, laid_out):
    if laid_out:
        monkeypatch.setattr(linear_problem, "NEW_PERMUTATIONS", 0)
        X, y = kind("rcv1", rows=6_000, features=5_000).rows, None
        source = InMemoryDataset(X, shuffled=False)
    else:
        X, y = table()
        source = (X, y > 0)
    problem = Linear(source, l2=1e-3)
    whole = minimise(problem, "sdca", strategy="serial", budget=6)
    minimise(problem, "sdca", strategy="serial", budget=5, checkpoint=tmp_path)
    rest = minimise(problem, "sdca", strategy="serial", budget=6, checkpoint=tmp_path, resume=True)
    assert np.array_equal(whole.model.weights, rest.model.weights)
    assert rest.objective == whole.objective


@pytest.mark.parametrize("workers", [1, 2])
def test_a_limit_of_seconds_ends_it_in_the_middle_of_a_chunk(rows, workers, monkeypatch):
    monkeypatch.setattr(epoch_runner, "FEWEST_ROWS", 16)
    monkeypatch.setattr(epoch_runner, "PARTS_EACH", 10_000)
    monkeypatch.setattr(epoch_runner, "SETTLED", 1e-4)
    monkeypatch.setattr(thread_team, "TICK", 1e-4)
    problem = Linear(rows, l2=1e-4)
    problem.hot_replicas(one_rule(), "auto", 2).compile(*nothing(problem))
    for tenths in range(1, 5):
        run = minimise(problem, "sdca", strategy=Hogwild(workers), budget=Budget(seconds=tenths / 50))
        assert isinstance(run, Run)
        assert run.stop_reason == "seconds"
        assert np.allclose(run.state[0][:, 0], weights_of_duals(problem, run), atol=2e-4)


@pytest.mark.parametrize("rule", ["sdca", "adagrad"])
def test_features_of_a_copy_are_numbered_by_frequency(rows, rule, monkeypatch):
    """Rows that are not stored in random order are copied, where merges of replicas are then contiguous."""
    monkeypatch.setattr(linear_problem, "NEW_PERMUTATIONS", 0)
    data, asked = InMemoryDataset(rows.rows, shuffled=False), []
    renumber = DualReplicas.renumber if rule == "sdca" else HotReplicas.renumber
    owner = DualReplicas if rule == "sdca" else HotReplicas
    monkeypatch.setattr(owner, "renumber", lambda self: (asked.append(1), renumber(self))[1])
    problem = Linear(data, "logistic", l2=1e-4)
    made = problem.for_rule(named(rule))
    made.hot_replicas(named(rule), "auto" if rule == "sdca" else 512, 2).compile(*nothing(made, named(rule)))
    one = minimise(problem, rule, strategy="serial", budget=5)
    two = minimise(problem, rule, strategy=Hogwild(2, **({} if rule == "sdca" else {"buffer": 512})), budget=5)
    assert asked == [1]
    assert two.objective == pytest.approx(one.objective, rel=2e-2)
    if rule == "sdca":
        duals = np.empty(len(data.rows), np.float32)
        duals[data._places(0)] = two.state[2][:, 0]
        assert np.allclose(two.state[0][:, 0], weights_of(problem, duals), atol=2e-4)


def test_a_step_of_zero_changes_nothing_and_a_run_goes_on():
    X, y = table()
    schedule = Warmup(Constant(1.0), epochs=2, start=0.0)
    run = minimise(Linear((X, y > 0), l2=0.01), "sdca", schedule, "serial", budget=30)
    default = minimise(Linear((X, y > 0), l2=0.01), "sdca", strategy="serial", budget=30)
    assert run.objective == pytest.approx(default.objective, rel=1e-4)


def test_another_rule_starts_from_its_values():
    X, y = table()
    first = minimise(Linear((sp.csr_matrix(X), y > 0), l2=0.1), strategy="serial", budget=20)
    assert first.config["rule"] == "SDCA()"
    second = minimise(
        Linear((sp.csr_matrix(X), y > 0), l2=0.1),
        "sgd",
        Constant(1e-9),
        "serial",
        budget=1,
        init=WarmStart(first.state),
    )
    assert second.objective == pytest.approx(first.objective, rel=1e-5)


def test_several_workers_bear_large_weights(rows):
    """Weights make steps longer, so that workers have to merge more often."""
    weights = np.random.default_rng(0).choice([0.1, 20.0], rows.n_rows, p=[0.9, 0.1]).astype(np.float32)
    weighted = InMemoryDataset(replace(rows.rows, weights=weights), shuffled=True, name="weighted")
    problem = Linear(weighted, "logistic", l2=1e-3)
    one = minimise(problem, "sdca", strategy="serial", budget=6)
    problem.hot_replicas(one_rule(), "auto", 2).compile(*nothing(problem))
    two = minimise(problem, "sdca", strategy=Hogwild(2), budget=6)
    assert max(record["workers_used"] for record in two.history) == 2
    assert two.objective == pytest.approx(one.objective, rel=5e-3)


def test_the_path_of_scikit_learn_has_a_step_for_every_update(monkeypatch):
    """Other rules have one step size for several updates of many rows."""
    monkeypatch.setattr(linear_problem, "MANY_ROWS", 1)
    X, y = table()
    asked = {"random_state": 0, "max_iter": 3, "tol": None}
    ours = HogwildClassifier(identical_to_sklearn=True, **asked).fit(X, y > 0)
    assert np.array_equal(ours.coef_, SGDClassifier(**asked).fit(X, y > 0).coef_)


@pytest.mark.parametrize("l2", [0.1, 0.01])
def test_the_default_number_of_epochs_comes_to_the_optimum_and_no_further(l2):
    X, y = table(rows=2_000)
    problem = Linear((sp.csr_matrix(X), y > 0), l2=l2)
    usual = minimise(problem, strategy="serial")
    assert usual.config["rule"] == "SDCA()"
    assert len(usual.history) < 20
    assert usual.objective == pytest.approx(minimise(problem, strategy="serial", budget=200).objective, rel=1e-5)
