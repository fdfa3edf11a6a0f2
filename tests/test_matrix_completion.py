"""Matrix completion: its gradients, its objective, what it finds, and what is kept of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hogwild import Constant, Cosine, MatrixCompletion, WarmStart, load, minimise
from hogwild.data.dataset import Chunk
from hogwild.data.generate.ratings import GeneratedRatings
from hogwild.errors import CheckpointError, ModelError, ParameterError
from hogwild.rules import SGD, AdaGrad
from hogwild.schedules import step_of

RNG = np.random.default_rng(3)
COLUMNS = [0, 0, 1, 2, 2], [0, 1, 1, 0, 2], [5.0, 3.0, 4.0, 1.0, 2.0]


def one_step(problem, row, rate):
    """The table before, and after a step along one rating."""
    (table,) = problem.start(SGD())
    values = table[:, 0].reshape(-1, problem.room)
    values[:-1, problem.wide] = 0.1 * RNG.standard_normal(len(values) - 1)  # biases, which begin at zero
    before = table.copy()
    chunk = problem.data.in_order()[0]
    some = Chunk(chunk.rows, np.array([row], chunk.order.dtype))
    problem.kernel(SGD(), "free", 1)(some, np.full(1, rate, np.float32), (table,), problem.sync_buffer("free"))
    return before[:, 0].astype(float), table[:, 0].astype(float)


def numerical(function, at, wanted, width=1e-3):
    found = np.zeros(len(at))
    for k in wanted:
        low, high = at.copy(), at.copy()
        low[k] -= width
        high[k] += width
        found[k] = (function(high) - function(low)) / (2 * width)
    return found


def term(problem, row, drawn=None):
    """What one rating adds to the objective, as a function of all parameters."""
    user, item = problem.data.rows.indices.reshape(-1, 2)[row].astype(int)
    rating = problem.data.labels()[row]

    def objective(values):
        rows = values.reshape(-1, problem.room)
        factors, biases = rows[:, : problem.wide], rows[:, problem.wide]
        if drawn is None:
            z = problem.mean + biases[user] + biases[item] + factors[user] @ factors[item]
            return 0.5 * (z - rating) ** 2 + problem.l2 / 2 * ((rows[user] ** 2).sum() + (rows[item] ** 2).sum())
        gap = factors[user] @ (factors[item] - factors[drawn]) + biases[item] - biases[drawn]
        squares = sum((rows[entity] ** 2).sum() for entity in (user, item, drawn))
        return np.logaddexp(0, -gap) + problem.l2 / 2 * squares

    return objective


@pytest.mark.parametrize("row", [0, 4])
def test_a_step_along_a_rating_is_its_numerical_gradient(row):
    problem = MatrixCompletion(COLUMNS, rank=3, l2=0.3)
    before, after = one_step(problem, row, rate := 0.01)
    expected = -rate * numerical(term(problem, row), before, range(len(before)))
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_allclose(after - before, expected, atol=2e-6)


def test_a_step_along_a_preference_is_its_numerical_gradient():
    problem = MatrixCompletion(COLUMNS[:2], rank=3, l2=0.3, loss="bpr")
    before, after = one_step(problem, 2, rate := 0.01)  # user 1 has met item 1
    rows = (after - before).reshape(-1, problem.room)
    changed = np.flatnonzero(np.abs(rows).sum(axis=1))
    drawn = ({*changed.tolist()} - {1, 3 + 1}).pop()
    assert len(changed) == 3
    assert drawn in (3 + 0, 3 + 2)  # one that the user has not met
    biased = np.delete(np.arange(len(before)), [1 * problem.room + problem.wide])  # no user's bias is in a preference
    expected = -rate * numerical(term(problem, 2, drawn), before, biased)
    np.testing.assert_allclose((after - before)[biased], expected[biased], atol=2e-6)


def test_items_that_are_drawn_were_not_met_and_vary():
    problem = MatrixCompletion(([0, 0, 1], [0, 1, 5]), rank=2, loss="bpr", seed=5)
    (table,) = problem.start(SGD())
    chunk, descend, drawn = problem.data.in_order()[0], problem.kernel(SGD(), "free", 1), set()
    for _ in range(40):
        before = table.copy()
        descend(Chunk(chunk.rows, chunk.order[:1]), np.full(1, 0.05, np.float32), (table,), problem.sync_buffer("free"))
        moved = np.flatnonzero(np.abs(table - before).reshape(-1, problem.room).sum(axis=1))
        drawn |= {*moved.tolist()} - {0, 2}
    assert drawn == {4}  # items 0 and 1 were met, item 5 is the only other: user numbers come first
    others = MatrixCompletion(([0, 0, 1], [0, 1, 5]), rank=2, loss="bpr")
    assert others.ratings.n_items == 3


def test_who_has_met_everything_has_nothing_to_learn():
    problem = MatrixCompletion(([0, 0, 1], [0, 1, 0]), rank=2, loss="bpr")
    before, after = one_step(problem, 0, 0.1)
    assert (before == after).all()


def test_who_has_met_almost_everything_learns_nothing_of_what_was_met():
    """Sixteen draws rarely find the one item that the user has not met; no other item takes its place."""
    problem = MatrixCompletion(([0] * 199 + [1], [*range(199), 199]), rank=2, loss="bpr")
    outcomes = set()
    for row in range(199):
        before, after = one_step(problem, row, 0.1)
        moved = np.flatnonzero(np.abs(after - before).reshape(-1, problem.room).sum(axis=1))
        outcomes.add(frozenset(moved.tolist()) - {2 + row})
    assert outcomes <= {frozenset(), frozenset({0, 2 + 199})}
    assert frozenset() in outcomes
    found = problem.metrics(problem.measure(problem.data.in_order()[0], problem.start(SGD())))
    assert found["loss"] == pytest.approx(np.log(2), rel=0.05)  # of the pairs that there are


def test_factors_beyond_the_rank_stay_zero_and_the_unknown_too():
    problem = MatrixCompletion(GeneratedRatings(60, 50, 1_000, 3).columns, rank=3)
    run = minimise(problem, strategy="serial", budget=3)
    rows = run.state[0][:, 0].reshape(-1, problem.room)
    assert not rows[:, problem.rank : problem.wide].any()
    assert not rows[:, problem.wide + 1 :].any()
    assert not rows[-1].any()


def test_the_objective_is_the_mean_of_its_terms():
    problem = MatrixCompletion(COLUMNS, rank=3, l2=0.3)
    state = problem.start(SGD())
    walk = problem.data.in_order()
    found = problem.metrics(sum(problem.measure(walk[k], state) for k in range(len(walk))))["loss"]
    terms = [term(problem, row)(state[0][:, 0].astype(float)) for row in range(5)]
    assert found + problem.penalty(state) == pytest.approx(np.mean(terms), rel=1e-6)


def test_planted_ratings_are_recovered_to_within_their_noise():
    made = GeneratedRatings(users=400, items=300, n_rows=40_000, rank=3, noise=0.4, seed=2, stars=False)
    training, held_out = made.data.split(0.1, seed=0)
    run = minimise(
        MatrixCompletion(training, rank=3, l2=0.01), strategy="hogwild", budget=40, test=held_out, schedule="cosine"
    )
    assert 0.4 * 0.95 < run.result["test_rmse"] < 0.4 * 1.05
    assert run.result["rmse"] < 0.4


def test_nonnegative_factors_are():
    made = GeneratedRatings(200, 100, 5_000, 3, seed=1)
    run = minimise(MatrixCompletion(made.columns, rank=4, nonnegative=True), strategy="serial", budget=5)
    assert min(run.model.user_factors.min(), run.model.item_factors.min()) == 0
    assert run.model.user_biases.min() < 0
    assert run.history[-1]["rmse"] < run.history[0]["rmse"]


def test_without_biases_there_are_none():
    run = minimise(MatrixCompletion(COLUMNS, rank=2, biases=False), strategy="serial", budget=3)
    assert not run.model.user_biases.any()
    assert run.model.user_factors.any()


def test_preferences_are_learnt():
    random = np.random.default_rng(0)
    taste, kind = random.integers(0, 2, 100), random.integers(0, 2, 80)
    users, items = random.integers(0, 100, 6_000), random.integers(0, 80, 6_000)
    liked = taste[users] == kind[items]
    problem = MatrixCompletion((users[liked][:-300], items[liked][:-300]), rank=4, loss="bpr")
    run = minimise(problem, strategy="serial", budget=20, test=(users[liked][-300:], items[liked][-300:]))
    assert run.result["test_auc"] > 0.8 > 0.6 > run.history[0]["test_auc"] - 0.2
    scores = run.model.predict(users, items)
    assert scores[liked].mean() > scores[~liked].mean() + 0.5


def test_ratings_of_the_unknown_are_predicted_by_what_is_known():
    model = minimise(MatrixCompletion(COLUMNS, rank=2), strategy="serial", budget=5).model
    expected = model.mean + model.item_biases[model.items.numbers_of([2])[0]]
    assert model.predict([99], [2])[0] == pytest.approx(expected, rel=1e-6)
    assert model.predict([99], [99])[0] == pytest.approx(3.0)
    problem = MatrixCompletion(COLUMNS, rank=2)
    run = minimise(problem, strategy="serial", budget=2, test=([99], [99], [4.0]))
    assert run.result["test_rmse"] == pytest.approx(1.0)


def test_a_model_is_kept_in_a_file(tmp_path: Path):
    names = ["ann", "bö", "c d"]
    users, items, ratings = [names[u] for u in COLUMNS[0]], *COLUMNS[1:]
    model = minimise(MatrixCompletion((users, items, ratings), rank=2), strategy="serial", budget=2).model
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.users.names.tolist() == names
    assert (again.predict(users, items) == model.predict(users, items)).all()
    assert again.training["rank"] == 2
    broken = replace(model, user_biases=model.user_biases[:1])
    broken.save(tmp_path / "b")
    with pytest.raises(ModelError, match="inconsistent"):
        load(tmp_path / "b")


def test_a_run_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(tmp_path: Path):
    made = GeneratedRatings(200, 100, 5_000, 3)

    def run(**more):
        return minimise(MatrixCompletion(made.columns, rank=4), schedule=Constant(0.02), strategy="serial", **more)

    whole = run(budget=4)
    run(budget=2, checkpoint=tmp_path)
    resumed = run(budget=4, checkpoint=tmp_path, resume=True)
    assert (resumed.model.user_factors == whole.model.user_factors).all()
    with pytest.raises(CheckpointError, match="rank was 4, now 5"):
        minimise(
            MatrixCompletion(made.columns, rank=5), schedule=Constant(0.02), strategy="serial", budget=4,
            checkpoint=tmp_path, resume=True,
        )  # fmt: skip


def test_a_run_begins_where_another_ended():
    made = GeneratedRatings(200, 100, 5_000, 3)
    first = minimise(MatrixCompletion(made.columns, rank=4), strategy="serial", budget=3)
    second = minimise(
        MatrixCompletion(made.columns, rank=4), schedule=Constant(1e-9), strategy="serial", budget=1,
        init=WarmStart(first.state),
    )  # fmt: skip
    assert second.history[0]["rmse"] == pytest.approx(first.history[-1]["rmse"], rel=1e-4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rank": 0}, "'rank' parameter must be a positive integer"),
        ({"l2": -1.0}, "'l2' parameter must be a number of at least 0"),
        ({"loss": "hinge"}, "'bpr', 'squared'"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        MatrixCompletion(COLUMNS, **given)


def test_what_is_for_linear_models_is_refused():
    problem = MatrixCompletion(COLUMNS, rank=2)
    with pytest.raises(ParameterError, match="'optimal' is for linear models"):
        minimise(problem, schedule="optimal", strategy="serial", budget=1)
    from hogwild import Hogwild, Sequential

    with pytest.raises(ParameterError, match="is for linear models"):
        minimise(problem, Sequential(), strategy="serial", budget=1)
    with pytest.raises(ParameterError, match="no buffers"):
        minimise(problem, strategy=Hogwild(workers=2, buffer=8), budget=1)


def test_each_rule_has_a_step_size_of_its_own() -> None:
    """Trials of a few thousand ratings would choose steps with which factors stay where they are."""
    problem = MatrixCompletion(([0, 1, 1], [0, 0, 1], [1.0, 2.0, 3.0]), rank=2)
    found = {rule: step_of(problem.complete(rule, None)[1]) for rule in ("sgd", "momentum", "adagrad", "ftrl", "adam")}
    assert found == {"sgd": 0.03, "momentum": pytest.approx(0.01), "adagrad": 0.1, "ftrl": 0.2, "adam": 0.01}
    assert step_of(problem.complete(AdaGrad(0.5), None)[1]) == "auto"
    assert step_of(problem.complete("adagrad", "constant")[1]) == 0.1
    assert step_of(problem.complete("adagrad", Cosine("auto"))[1]) == "auto"
    pairs = MatrixCompletion(([0, 1, 1], [0, 0, 1]), rank=2, loss="bpr")
    assert step_of(pairs.complete("adagrad", None)[1]) == "auto"
