"""Run with NUMBA_ENABLE_CUDASIM=1: matrix completion by the kernels for a GPU, on its simulator, against one thread."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numba import config

from hogwild import SGD, Cosine, Cuda, MatrixCompletion, Serial, WarmStart, Weighted, load, minimise

USERS, ITEMS, RATINGS, RANK = 14, 12, 132, 2
RULES = "sgd", "momentum", "adagrad", "ftrl", "adam"
STEPS = {"sgd": 0.2, "momentum": 0.03, "adagrad": 0.3, "ftrl": 0.5, "adam": 0.1}


def columns() -> tuple[Any, Any, Any]:
    random = np.random.default_rng(3)
    pairs = random.choice(USERS * ITEMS, RATINGS, replace=False)
    users, items = pairs // ITEMS, pairs % ITEMS
    factors = random.standard_normal((USERS, 1))[users] * random.standard_normal((ITEMS, 1))[items]
    return users, items, np.round(3 + factors[:, 0] + 0.2 * random.standard_normal(RATINGS), 1)


def both(problem: MatrixCompletion, rule: str, epochs: int) -> tuple[float, float]:
    given = {"budget": epochs, "schedule": Cosine(STEPS[rule])}
    alone = minimise(problem, rule, strategy=Serial(), **given)
    gpu = minimise(problem, rule, runtime=Cuda(), **given)
    assert gpu.history[-1]["updates"] == epochs * RATINGS
    return gpu.objective, alone.objective


def check_rules() -> None:
    for number, rule in enumerate(RULES):
        gpu, alone = both(MatrixCompletion(columns(), RANK, biases=number % 2 == 0, l2=0.1), rule, 10)
        assert gpu < 1.05 * alone, (rule, gpu, alone)


def check_signs() -> None:
    """Factors that may not be negative are not, and biases that are not wanted stay zero."""
    problem = MatrixCompletion(columns(), RANK, nonnegative=True, biases=False)
    gpu, alone = both(problem, "adagrad", 5)
    assert gpu < 1.05 * alone, (gpu, alone)
    model = minimise(problem, "adagrad", runtime=Cuda(), budget=2).model
    assert min(model.user_factors.min(), model.item_factors.min()) >= 0
    assert (model.user_biases == 0).all()


def check_preferences() -> None:
    """Over several seeds, as a run draws other items than another, and the items are few."""
    users, items, _ = columns()
    for rule in ("momentum", "adagrad"):
        problems = (MatrixCompletion((users, items), RANK, loss="bpr", seed=seed) for seed in range(4))
        gpu, alone = np.mean([both(problem, rule, 3) for problem in problems], axis=0)
        assert gpu < 1.15 * alone, (rule, gpu, alone)


def check_evaluation() -> None:
    """The figures of a record are those that processors find for the same parameters."""
    users, items, ratings = columns()
    for loss in ("squared", "bpr"):
        problem = MatrixCompletion((users, items, ratings), RANK, loss=loss)
        given = {"budget": 1, "schedule": 1e-9, "test": (users[:30], items[:30], ratings[:30])}
        values = problem.start(SGD())[0]
        start = WarmStart((np.random.default_rng(0).normal(0, 0.5, values.shape).astype(np.float32),))
        gpu = minimise(problem, "sgd", runtime=Cuda(), init=start, **given)
        alone = minimise(problem, "sgd", strategy=Serial(), init=start, **given)
        for name in ("loss", "test_loss", *(("rmse", "test_rmse") if loss == "squared" else ("auc", "test_auc"))):
            np.testing.assert_allclose(gpu.result[name], alone.result[name], rtol=1e-5, err_msg=f"{loss} {name}")
        some = gpu.model.predict(users[:9], items[:9])
        np.testing.assert_allclose(some, alone.model.predict(users[:9], items[:9]), rtol=1e-5)


def check_weights() -> None:
    """Ratings that are drawn more often weigh less, and the mean of iterates is evaluated."""
    problem = MatrixCompletion(columns(), RANK, sampling=Weighted(np.arange(1.0, RATINGS + 1)))
    start = minimise(problem, "adagrad", runtime=Cuda(), budget=1, schedule=1e-9).objective
    run = minimise(problem, "adagrad", runtime=Cuda(), budget=6, schedule=0.2, average=0.3)
    assert run.objective < 0.5 * start


def check_splits() -> None:
    """A part of the ratings is copied, so that its order is a formula; its penalty is that of the problem."""
    problem, aside = MatrixCompletion(columns(), RANK, l2="auto").split(0.25, seed=1)
    free = problem.with_penalty(2.0)
    plain, heavy = problem.in_any_order(), free.in_any_order()
    assert plain.in_any_order() is plain is problem.in_any_order()
    assert (plain.l2, heavy.l2, plain.data.ids, plain.data.n_rows) == (problem.l2, free.l2, None, problem.data.n_rows)
    np.testing.assert_array_equal(np.sort(plain.data.labels()), np.sort(problem.data.labels()))
    given = {"budget": 6, "schedule": Cosine(0.3), "test": aside}
    gpu = minimise(problem, "adagrad", runtime=Cuda(), **given)
    alone = minimise(problem, "adagrad", strategy=Serial(), **given)
    assert gpu.result["test_rmse"] < 1.3 * alone.result["test_rmse"]


def check_checkpoints(folder: Path) -> None:
    problem, given = MatrixCompletion(columns(), RANK), {"runtime": Cuda(), "checkpoint": folder, "schedule": 0.2}
    minimise(problem, "adam", budget=1, **given)
    run = minimise(problem, "adam", budget=2, resume=True, **given)
    assert [record["epoch"] for record in run.history] == [1, 2]
    run.model.save(folder / "model")
    users, items, _ = columns()
    np.testing.assert_array_equal(load(folder / "model").predict(users, items), run.model.predict(users, items))


if __name__ == "__main__":
    assert config.ENABLE_CUDASIM
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)  # Drawing multiplies modulo 2**64.
    check_rules()
    check_signs()
    check_preferences()
    check_evaluation()
    check_weights()
    check_splits()
    check_checkpoints(Path(sys.argv[1]))
