"""Nodes that train on several cores, each with a strategy in one memory."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np
import pytest

from hogwild import (
    Averaging,
    Constant,
    Cosine,
    DiLoCo,
    Hogwild,
    Linear,
    Local,
    LocalSGD,
    Locked,
    RoundRobin,
    Run,
    Serial,
    Simulator,
    Synchronous,
    minimise,
)
from hogwild.errors import ParameterError
from hogwild.messaging.protocol import Train
from hogwild.rules import SGD
from hogwild.strategies import ParameterServer
from hogwild.training.burst_loops import cores_of
from hogwild.training.row_trainer import RowSource, RowTrainer, pack_state

INNER = [Hogwild(workers=2), Locked(workers=2), RoundRobin(workers=2), Averaging(workers=2)]


@cache
def problem(count: int = 2000) -> Linear:
    random = np.random.default_rng(5)
    X = random.standard_normal((count, 4))
    return Linear((X, np.sign(X @ [1.0, -2.0, 0.5, 0.0] + random.logistic(size=count))), l2=0.01)


def train(strategy: Any, runtime: Any = None) -> Run:
    return minimise(problem(), rule="sgd", schedule=Cosine(0.1), strategy=strategy, runtime=runtime, budget=5)


@cache
def serial() -> Run:
    return train("serial")


@pytest.mark.parametrize("within", INNER)
def test_nodes_with_cores_come_to_where_one_worker_does(within: Any) -> None:
    run = train(ParameterServer(workers=2, push_every=200, within=within), Simulator(compute_time=1e-3))
    assert run.objective <= 1.01 * serial().objective
    assert run.history[-1]["updates"] >= 10_000
    busy = run.seconds * sum(1 - each["share"] for each in waiting(run)["workers"].values())
    np.testing.assert_allclose(busy, 1e-3 * run.history[-1]["updates"] / 2)  # two cores: half the time


def waiting(run: Run) -> Any:
    return next(event for event in run.events if event["event"] == "idle")


@pytest.mark.parametrize("within", ["serial", Serial(), Hogwild(workers=1)])
def test_one_core_is_none_in_particular(within: Any) -> None:
    plain, alone = (train(LocalSGD(2, period=100, within=each), Simulator()) for each in (None, within))
    assert alone.model.weights.tobytes() == plain.model.weights.tobytes()


@pytest.mark.parametrize("within", INNER[1:])
@pytest.mark.parametrize("terms", [3, 150, 301])
def test_every_row_of_a_burst_is_descended_once(within: Any, terms: int) -> None:
    """With steps so small that no margin is reached, the hinge loss makes a sum of them, in whatever order."""
    random, step, y = np.random.default_rng(1), 1e-5, np.repeat([-1.0, 1.0], 100)
    X = random.standard_normal((200, 3)).astype(np.float32)
    given = Linear((X, y), loss="hinge", intercept=False)
    rows = RowSource(given, SGD(), Constant(step), 5, 0, 1, shuffle=False)
    with cores_of(within) as cores:
        assert cores is not None
        trained = RowTrainer(rows, cores=cores).burst(Train(pack_state(given.start(SGD())), (0, 1), 150, terms, 0, 1))
    order = np.arange(150, 150 + terms) % 200
    total = step * (X[order] * y[order, None]).sum(0)
    shares = within.workers if within.replicas and terms > 3 else 1  # three rows are too few to be dealt out
    assert (trained.terms, trained.samples) == (terms, terms)
    np.testing.assert_allclose(trained.values[1:], total / shares, rtol=1e-4, atol=1e-8)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ParameterError, match="in one memory"):
        train(ParameterServer(workers=2, within=ParameterServer(2)), Simulator())
    with pytest.raises(ParameterError, match="2,001 workers and 2,000 rows"):
        train(Synchronous(2001), Simulator())


def threads() -> set[threading.Thread]:
    """Return the threads of this process but those for short work, which stay."""
    return {thread for thread in threading.enumerate() if not thread.name.startswith("hogwild-helper")}


@pytest.mark.parametrize("nodes", [1, 2])
def test_nodes_with_cores_exchange_only_what_has_changed(nodes: int) -> None:
    from test_exchanged_changes import sparse_data

    given = Linear(sparse_data(20_000), l2=1e-3)
    before = threads()
    runs = [
        minimise(given, strategy=strategy, budget=4, runtime=Local())
        for strategy in (ParameterServer(nodes, within=Hogwild(2)), ParameterServer(nodes))
    ]
    assert runs[0].objective < 1.02 * runs[1].objective
    assert all(run.history[-1]["updates"] >= 80_000 for run in runs)
    assert threads() == before


def test_outer_steps_of_one_worker_are_as_frequent_as_of_many() -> None:
    from test_exchanged_changes import exchanges, sparse_data

    run = minimise(Linear(sparse_data(20_000), l2=1e-4), strategy=DiLoCo(1), budget=2, runtime=Local())
    assert all(event["updates"] < 20_000 for event in exchanges(run))


def test_a_node_alone_exchanges_once_an_epoch() -> None:
    from test_exchanged_changes import exchanges, sparse_data

    run = minimise(Linear(sparse_data(20_000), l2=1e-4), strategy=ParameterServer(1), budget=2, runtime=Local())
    assert [event["updates"] for event in exchanges(run)] == [20_000]
