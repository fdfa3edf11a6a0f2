"""Runs whose results must not change when code is moved or renamed: one function for each kind, one entry for each run.

A result is a mapping from names to arrays. Names of events and of files are no part of it.
"""

from __future__ import annotations

import numbers
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from safetensors.numpy import load_file
from talkers import TALKERS
from talkers import train as train_by_messages

import hogwild
from hogwild import losses, rules
from hogwild.delays import Slowed

Result = Mapping[str, Any]
FILES = Path(__file__).parent / "files"
MARGIN = {"hinge", "squared-hinge", "logistic", "softmax", "modified-huber", "perceptron"}
TWO_RULES = ("sgd", "adagrad")
STEPS = {"sgd": 0.05, "momentum": 0.01, "adagrad": 0.1, "ftrl": 0.1, "adam": 0.02}


@cache
def rows(kind: str) -> tuple[Any, Any]:
    random = np.random.default_rng(11)
    X = scipy.sparse.random_array((600, 30), density=0.2, rng=random, format="csr", dtype=np.float32)
    scores = X @ random.standard_normal(30) + 0.2 * random.standard_normal(600)
    if kind == "count":
        return X, random.poisson(np.exp(np.clip(scores, -3, 2))).astype(float)
    if kind == "classes":
        return X, np.digitize(scores, [-0.3, 0.3])
    return X, scores if kind == "numbers" else np.where(scores > 0, 1, -1)


def data_for(loss: str) -> tuple[Any, Any]:
    return rows("sign" if loss in MARGIN else "count" if loss == "poisson" else "numbers")


def minimised(make: Callable[[], Any], rule: Any, step: float, budget: int = 4, **options: Any) -> Result:
    run = hogwild.minimise(make(), rule, hogwild.Cosine(step), "serial", budget=budget, **options)
    return {"objective": [record["objective"] for record in run.history], **parameters(run.model)}


def parameters(model: Any) -> dict[str, Any]:
    """The arrays of a fitted model, as its file has them."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        return load_file(Path(folder, "model"))


def linear(loss: str, rule: str) -> Result:
    step = 0.002 if loss in ("poisson", "squared-epsilon-insensitive") else STEPS[rule]
    return minimised(lambda: hogwild.Linear(data_for(loss), loss, l2=1e-3, l1=1e-4), rule, step)


def of_classes(loss: str) -> Result:
    return minimised(lambda: hogwild.Linear(rows("classes"), loss, l2=1e-3), "adagrad", 0.1, average=0.5)


def factorised(kind: str, rule: str) -> Result:
    def make() -> Any:
        if kind == "fm":
            return hogwild.FactorisationMachine(rows("sign"), rank=4, l2=0, l2_factors=0.01, seed=3)
        fields = np.arange(30) % 4
        return hogwild.FieldAwareFactorisationMachine(
            rows("sign"), fields=fields, rank=4, l2=0, l2_factors=0.001, seed=3
        )

    return minimised(make, rule, STEPS[rule])


def ratings(loss: str, rule: str) -> Result:
    random = np.random.default_rng(2)
    users, items = random.integers(0, 40, 900), random.integers(0, 25, 900)
    stars = (users % 5 + items % 3 + random.standard_normal(900)).astype(np.float32)
    given = (users, items) if loss == "bpr" else (users, items, stars)
    options = {"loss": "bpr"} if loss == "bpr" else {}
    return minimised(lambda: hogwild.MatrixCompletion(given, rank=4, seed=5, **options), rule, STEPS[rule])


def graph_cut(rule: str) -> Result:
    random = np.random.default_rng(4)
    one, other = random.integers(0, 50, 400), random.integers(0, 50, 400)
    apart = one != other
    graph = one[apart], other[apart], 1.0 + random.random(int(apart.sum()))
    return minimised(lambda: hogwild.GraphCut(graph, {0: 0, 1: 1}), rule, 0.05)


# Workers that wait for every pull; by default they go on meanwhile.
WAITING = {
    name: replace(TALKERS[name], run_ahead=0)
    for name in ("parameter server", "parameter server, two shards, seldom", "elastic averaging")
}


def simulated(name: str, ahead: bool = False) -> Result:
    """What a run in simulated time ends with, and all numbers of all its events."""
    slow = Slowed("log-normal:0.001:0.1", {1: 3.0})
    strategy = TALKERS[name] if ahead else WAITING.get(name, TALKERS[name])
    run = train_by_messages(strategy, hogwild.Simulator(slow), budget=3, seed=4)
    told = sorted(figure for event in run.events for figure in figures(event))
    return {"weights": run.model.weights, "told": told}


def figures(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping):
        for one in value.values():
            yield from figures(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from figures(one)
    elif isinstance(value, numbers.Real) and not isinstance(value, bool) and not np.isnan(value):
        yield float(value)


def estimated(kind: str, **options: Any) -> Result:
    classes, numbers_ = rows("classes"), rows("numbers")
    known = {"max_iter": 6, "tol": None, "random_state": 0, **options}
    if kind == "classifier":
        model = hogwild.HogwildClassifier(**known).fit(*classes)
    elif kind == "regressor":
        model = hogwild.HogwildRegressor(**known).fit(*numbers_)
    else:
        model = hogwild.HogwildOneClassSVM(**known).fit(classes[0])
    return {"coef": model.coef_, "intercept": getattr(model, "intercept_", getattr(model, "offset_", 0.0))}


def kept(name: str) -> Result:
    """The scores of a model from a file that was written long ago."""
    model = hogwild.load(FILES / f"{name}.model")
    return {"scores": model.predict(rows("sign")[0])}


def resumed(name: str) -> Result:
    """Where a run comes that goes on from a checkpoint of long ago."""
    with tempfile.TemporaryDirectory() as folder:
        for file in (FILES / name).iterdir():
            Path(folder, file.name).write_bytes(file.read_bytes())
        return checkpointed(name, Path(folder), 6, resume=True)


def checkpointed(name: str, folder: Path, budget: int, **options: Any) -> Result:
    rule = name.removesuffix(".checkpoint")
    problem = hogwild.Linear(rows("sign"), "logistic", l2=1e-3)
    run = hogwild.minimise(
        problem, rule, hogwild.Constant(STEPS[rule]), "serial", budget=budget, checkpoint=folder, **options
    )
    return parameters(run.model)


RECIPES: dict[str, Callable[[], Result]] = {
    **{f"linear {loss} {rule}": partial(linear, loss, rule)
       for loss in losses.LOSSES for rule in rules.COORDINATE_RULES
       if rule in TWO_RULES or loss in ("logistic", "squared")},
    **{f"classes {loss}": partial(of_classes, loss) for loss in ("softmax", "logistic", "hinge")},
    **{f"{kind} {rule}": partial(factorised, kind, rule) for kind in ("fm", "ffm") for rule in TWO_RULES},
    **{f"ratings {loss} {rule}": partial(ratings, loss, rule) for loss in ("squared", "bpr") for rule in TWO_RULES},
    **{f"graph cut {rule}": partial(graph_cut, rule) for rule in TWO_RULES},
    **{f"simulated {name}": partial(simulated, name) for name in TALKERS},
    **{f"simulated {name}, ahead": partial(simulated, name, ahead=True) for name in WAITING},
    "estimated classifier": partial(estimated, "classifier"),
    "estimated classifier elastic net": partial(estimated, "classifier", penalty="elasticnet", average=True),
    "estimated classifier adagrad": partial(estimated, "classifier", loss="log_loss", rule="adagrad"),
    "estimated regressor": partial(estimated, "regressor"),
    "estimated regressor huber": partial(estimated, "regressor", loss="huber", learning_rate="adaptive"),
    "estimated one class": partial(estimated, "one class"),
    **{f"kept {name}": partial(kept, name) for name in ("linear", "fm")},
    **{f"resumed {rule}": partial(resumed, f"{rule}.checkpoint") for rule in ("adagrad", "adam")},
}  # fmt: skip
