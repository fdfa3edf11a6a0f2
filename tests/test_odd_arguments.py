"""Arguments that users give by mistake, and numbers of NumPy: taken as they are meant, or refused with a reason."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import hogwild
from hogwild import (
    Budget,
    Cosine,
    FactorisationMachine,
    Hogwild,
    HogwildClassifier,
    HogwildRecommender,
    HogwildRegressor,
    Linear,
    LocalSGD,
    Simulator,
    minimise,
)
from hogwild.callbacks import JsonLines, TensorBoard
from hogwild.data.graphs import Graph
from hogwild.errors import DataError, ModelError, ParameterError
from hogwild.schedules import Adaptive, Cooldown, LinearScaling, Optimal, Steps, Warmup

X = np.random.default_rng(0).standard_normal((300, 4))
Y = (X[:, 0] > 0).astype(int)


def loss_at(run):
    return run.history[-1]["loss"]


@pytest.mark.parametrize("seed", [np.int64(5), np.uint8(5), np.int8(5), np.uint64(5)])
def test_a_seed_may_be_a_number_of_numpy(seed):
    plain, given = (minimise(Linear((X, Y)), strategy="serial", seed=each, budget=2) for each in (5, seed))
    assert loss_at(plain) == loss_at(given)
    assert given.config == plain.config


@pytest.mark.parametrize("budget", [np.int8(100), np.uint8(100)])
def test_a_number_of_epochs_may_be_a_small_one_of_numpy(budget):
    assert minimise(Linear((X, Y)), budget=budget).history[-1]["epoch"] == 100


def test_numbers_of_budgets_strategies_and_ranks_may_be_those_of_numpy():
    budget = Budget(np.uint8(5), seconds=np.float32(60), window=np.uint64(2))
    assert repr(budget) == repr(Budget(5, seconds=60.0, window=2))
    minimise(Linear((X, Y)), budget=budget)
    run = minimise(Linear((X, Y)), strategy=Hogwild(np.int64(2)), budget=2)
    assert run.config["strategy"] == repr(Hogwild(2))
    local = LocalSGD(np.int8(2), period=np.int64(20))
    assert minimise(Linear((X, Y)), strategy=local, runtime=Simulator(), budget=2).stop_reason == "epochs"
    problem = FactorisationMachine((X, Y), rank=np.int64(2), seed=np.int64(1))
    assert minimise(problem, budget=2).stop_reason == "epochs"
    for wrong in (True, np.int64(0), 2.0, "2"):
        with pytest.raises(ParameterError, match="'workers' parameter must be a positive integer"):
            Hogwild(wrong)
        with pytest.raises(ParameterError, match="'rank' parameter must be a positive integer"):
            FactorisationMachine((X, Y), rank=wrong)
    for wrong in (False, -1, np.int64(-1), "0"):
        with pytest.raises(ParameterError, match="buffer"):
            Hogwild(buffer=wrong)


@pytest.mark.parametrize("n", [-1, 0, 1.5, None, "a", True])
def test_a_number_of_recommendations_is_a_positive_integer(n):
    model = HogwildRecommender(rank=2, random_state=0).fit(([0, 0, 1, 2], [0, 1, 1, 0], [5.0, 4, 1, 2]))
    for ask in (model.recommend, model.similar_items, model.model_.recommend, model.model_.similar_items):
        with pytest.raises(ParameterError, match="'n' parameter must be a positive integer"):
            ask(0, n)
    assert len(model.recommend(0, np.int64(1), exclude_seen=False)[0]) == 1


def test_indices_of_another_byte_order_are_read():
    swapped = scipy.sparse.csr_matrix(X)
    swapped.indices, swapped.indptr = swapped.indices.astype(">i4"), swapped.indptr.astype(">i4")
    fitted = HogwildClassifier(n_jobs=1, random_state=0).fit(scipy.sparse.csr_matrix(X), Y)
    again = HogwildClassifier(n_jobs=1, random_state=0).fit(swapped, Y)
    assert np.array_equal(fitted.coef_, again.coef_)
    assert np.array_equal(fitted.predict(X), fitted.predict(swapped))
    columns = scipy.sparse.csc_matrix(X)
    columns.indices = columns.indices.astype(">i4")
    assert np.array_equal(fitted.predict(X), fitted.predict(columns))
    assert Linear((swapped, Y)).source.fingerprint == Linear((scipy.sparse.csr_matrix(X), Y)).source.fingerprint
    graph = scipy.sparse.csr_matrix(np.ones((4, 4)) - np.eye(4))
    graph.indices = graph.indices.astype(">i4")
    assert len(Graph.of_matrix(graph).weights) == 6
    ratings = scipy.sparse.coo_matrix(np.arange(1.0, 5).reshape(2, 2))
    ratings.row = ratings.row.astype(">i4")
    assert HogwildRecommender(rank=1, random_state=0).fit(ratings).model_.items.names.tolist() == [0, 1]


class Squared:
    """A loss as an object, which cannot be compiled."""

    __hash__ = None

    def __call__(self, z, y):
        return (z - y) ** 2 / 2, z - y

    def method(self, z, y):
        return self(z, y)


@pytest.mark.parametrize("loss", [Squared(), Squared().method, partial(lambda a, z, y: (z - y, a), 1.0)])
@pytest.mark.parametrize(
    "use",
    [
        lambda loss: Linear((X, Y), loss),
        lambda loss: FactorisationMachine((X, Y), loss),
        lambda loss: HogwildClassifier(loss=loss).fit(X, Y),
        lambda loss: HogwildRegressor(loss=loss).fit(X, Y),
    ],
)
def test_a_loss_that_is_an_object_is_refused(use, loss):
    with pytest.raises(ParameterError, match=r"must be a function .* written with 'def' or 'lambda'"):
        use(loss)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Warmup("cosine"), "'base' parameter must be a schedule"),
        (lambda: Warmup(5), "'base' parameter must be a schedule"),
        (lambda: LinearScaling("cosine"), "'base' parameter must be a schedule"),
        (lambda: Warmup(Cosine), r"Got the class Cosine: write Cosine\(...\)"),
        (lambda: Warmup(Cosine(0.1), "5"), "'epochs' parameter must be a positive number"),
        (lambda: Warmup(Cosine(0.1), start=None), "'start' parameter"),
        (lambda: LinearScaling(reference="x"), "'reference' parameter"),
        (lambda: LinearScaling(total="x"), "'total' parameter"),
        (lambda: Optimal("x"), "'alpha' parameter must be a positive number"),
        (lambda: Cosine(floor="x"), "'floor' parameter"),
        (lambda: Cooldown(start="x"), "'start' parameter"),
        (lambda: Steps(at=("x",)), "'at' parameter"),
        (lambda: Adaptive(factor=None), "'factor' parameter"),
    ],
)
def test_a_schedule_says_which_of_its_parameters_is_wrong(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


NO_FLAGS = ["no", [], pytest.param(object(), id="object"), 1.5, float("nan"), None, 1, np.array([True])]


@pytest.mark.parametrize("wrong", NO_FLAGS, ids=repr)
@pytest.mark.parametrize(
    ("name", "use"),
    [
        *((name, lambda **given: Linear((X, Y), **given)) for name in ("intercept", "standardise", "compact")),
        *((name, lambda **given: FactorisationMachine((X, Y), **given)) for name in ("intercept", "normalise")),
        *(
            (name, lambda **given: minimise(Linear((X, Y)), budget=1, **given))
            for name in ("evaluate_every_epoch", "count_conflicts", "shuffle")
        ),
    ],
)
def test_what_is_on_or_off_is_true_or_false(name, use, wrong):
    with pytest.raises(ParameterError, match=f"'{name}' parameter must be True or False"):
        use(**{name: wrong})


def test_truth_values_of_numpy_are_taken():
    problem = Linear((X, Y), intercept=np.False_, standardise=np.True_)
    assert problem.intercept is False
    assert minimise(problem, budget=1, evaluate_every_epoch=np.True_).model.intercept == [0]


@pytest.mark.parametrize("factor", ["x", None, 0, float("nan"), True])
def test_a_divergence_factor_is_a_positive_number(factor):
    with pytest.raises(ParameterError, match="'divergence_factor' parameter must be a positive number"):
        minimise(Linear((X, Y)), budget=1, divergence_factor=factor)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_single_column_is_no_table(library):
    module = pytest.importorskip(library)
    column = module.chunked_array([X[:, 0]]) if library == "pyarrow" else module.Series(X[:, 0])
    with pytest.raises(DataError, match=r"single column.*to_frame\(\)"):
        Linear((column, Y))
    model = minimise(Linear((X[:, :1], Y)), budget=1).model
    with pytest.raises(DataError, match=r"single column.*to_frame\(\)"):
        model.predict(column)


@pytest.mark.parametrize("rows", [(X, Y, Y, Y), ()])
def test_rows_are_data_labels_and_weights(rows):
    with pytest.raises(ParameterError, match=r"\(X, y\) or \(X, y, weights\)"):
        Linear(rows)
    with pytest.raises(ParameterError, match=r"\(X, y\) or \(X, y, weights\)"):
        minimise(Linear((X, Y)), budget=1, test=rows)


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(DataError, match="all weights are 0"):
        Linear((X, Y, np.zeros(len(Y))))
    for estimator in (HogwildClassifier(), HogwildRegressor()):
        with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero number"):
            estimator.fit(X, Y, sample_weight=np.zeros(len(Y)))


def turns_negative(moment):
    return np.where(moment.fraction > 0.5, -1.0, 0.1)


def explodes(moment):
    return np.where(moment.fraction > 0.5, np.inf, 0.1)


def is_lost(moment):
    return np.where(moment.fraction > 0.5, np.nan, 0.1)


@pytest.mark.parametrize("schedule", [turns_negative, explodes, is_lost])
@pytest.mark.parametrize("parts", [{}, {"strategy": "serial"}, {"strategy": LocalSGD(2), "runtime": Simulator()}])
def test_steps_of_a_schedule_of_ones_own_are_finite_and_not_negative_later_as_well(schedule, parts):
    with pytest.raises(ParameterError, match=f"The schedule {schedule.__name__} must give steps that are finite"):
        minimise(Linear((X, Y)), "sgd", schedule, budget=4, **parts)


@pytest.mark.parametrize("address", ["s3://bucket/x", "https://me:secret@host/x", "file:///x"])
def test_outputs_are_not_written_to_addresses(tmp_path, monkeypatch, address):
    monkeypatch.chdir(tmp_path)
    run = minimise(Linear((X, Y)), budget=1)
    for write in (
        lambda: TensorBoard(address),
        lambda: minimise(Linear((X, Y)), budget=1, checkpoint=address),
        lambda: minimise(Linear((X, Y)), budget=1, checkpoint=hogwild.Checkpoints(address)),
        lambda: minimise(Linear((X, Y)), budget=1, folder=address),
        lambda: JsonLines(address),
        lambda: run.save(address),
        lambda: run.model.save(address),
    ):
        with pytest.raises(ParameterError, match="on this machine") as caught:
            write()
        assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [None, 3, b"x", "a\0", "x" * 5000, Path("a\0")], ids=lambda name: repr(name)[:20])
def test_what_names_no_model_is_refused(name):
    with pytest.raises(ModelError):
        hogwild.load(name)


async def waits(event):
    """A callback that is called, and never runs."""


def yields(event):
    yield event


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (lambda: None, r"'callbacks' parameter must be a function \(event\) -> None. Got <lambda>\(\)"),
        (lambda event, run: None, r"must be a function \(event\) -> None"),
        (waits, "callback waits would not run when it is called: write it with 'def'"),
        (yields, "callback yields would not run when it is called"),
    ],
)
def test_a_callback_takes_an_event_and_runs(callback, words):
    with pytest.raises(ParameterError, match=words):
        minimise(Linear((X, Y)), budget=1, callbacks=[callback])


def test_a_share_to_average_may_be_a_number_of_numpy():
    run = minimise(Linear((X, Y)), average=np.float32(0.5), budget=2)
    assert run.config["average"] == 0.5
    with pytest.raises(ParameterError, match="'average' parameter must be between 0 and 1"):
        minimise(Linear((X, Y)), average=True, budget=2)


def test_epochs_to_stall_are_a_number():
    with pytest.raises(ParameterError, match="'stall_epochs' parameter must be a positive integer"):
        Budget(5, tolerance=1e-3, stall_epochs=None)
