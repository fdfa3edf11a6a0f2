"""Real data: as good as scikit-learn's solvers, whatever the strategy."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import references
from hogwild import Cosine, Linear, Serial, minimise
from hogwild.data import as_dataset
from hogwild.strategies import STRATEGIES

FOLDER = Path(__file__).parents[3] / "shared" / "data"
FILES = {"reuters": "reuters.trn.svm.gz", "a9a": "a9a.svm.gz"}
EPOCHS = {"reuters": 60, "a9a": 10}
PROBLEMS = [
    (data, loss, l2)
    for data, l2 in (("reuters", 1e-4), ("a9a", 1e-4), ("a9a", "1/n"))
    for loss in ("logistic", "hinge")
]
SHARED = [name for name, kind in STRATEGIES.items() if kind.shares_memory and name != "serial"]
SHARING = [("serial", 1), *((name, n) for name in SHARED for n in (1, 2))]
# Workers that take turns on cores that others use as well wait for the clock's next tick, term after term: in minutes.
# That they come to the optimum is shown every day on less data, in test_strategies.py.
CASES = [
    (*problem, *sharing)
    for problem in PROBLEMS
    for sharing in SHARING
    if references.ALL or sharing != ("round-robin", 2)
]

pytestmark = pytest.mark.skipif(
    not all((FOLDER / file).exists() for file in FILES.values()), reason="the real data is not here"
)


@cache
def arrays(name):
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(FOLDER / FILES[name]), dtype=np.float64)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # liblinear takes no others
    return X, y


@cache
def source(name):
    if name == "reuters":
        return as_dataset(FOLDER / FILES[name])
    X, y = arrays(name)
    return as_dataset((X.astype(np.float32), y))


def strength(name, l2):
    return 1 / len(arrays(name)[1]) if l2 == "1/n" else l2


@cache
def solved(name, loss, l2):
    """The objective of scikit-learn's solution."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    (X, y), l2 = arrays(name), strength(name, l2)
    C = 1 / (l2 * len(y))
    if loss == "logistic":
        model = LogisticRegression(C=C, tol=1e-4, max_iter=1_000)
    else:
        model = LinearSVC(loss="hinge", C=C, tol=1e-3, max_iter=20_000, random_state=0)
    model.fit(X, y)
    return references.objective(X, y, model.coef_[0], float(model.intercept_[0]), loss, l2=l2)


@cache
def automatic(name, loss, l2):
    """A serial run of AdaGrad with nothing else chosen by hand, and the step it chose."""
    problem = Linear(source(name), loss, l2=strength(name, l2))
    run = minimise(problem, "adagrad", strategy=Serial(), budget=EPOCHS[name])
    (step,) = (event["step"] for event in run.events if event["event"] == "step chosen")
    return problem, run, step


@pytest.mark.parametrize(("name", "loss", "l2"), list(dict.fromkeys(case[:3] for case in CASES)))
def test_the_default_rule_is_within_a_hundredth_of_scikit_learn(name, loss, l2):
    problem = Linear(source(name), loss, l2=strength(name, l2))
    found = minimise(problem, strategy=Serial(), budget=EPOCHS[name]).objective
    assert 0.99 * solved(name, loss, l2) < found < 1.01 * solved(name, loss, l2)


@pytest.mark.parametrize(("name", "loss", "l2", "strategy", "workers"), CASES)
def test_within_a_hundredth_of_scikit_learn(name, loss, l2, strategy, workers):
    problem, run, step = automatic(name, loss, l2)
    if strategy != "serial":  # the step is chosen by trials of one worker, so it is the same for all: not once more
        run = minimise(problem, "adagrad", Cosine(step), STRATEGIES[strategy](workers), budget=EPOCHS[name])
    assert run.objective < 1.01 * solved(name, loss, l2)
    assert run.objective > 0.99 * solved(name, loss, l2)
