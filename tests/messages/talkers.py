"""Strategies by messages and small problems for them, for tests of several files."""

from __future__ import annotations

from functools import cache

import numpy as np

import hogwild
from hogwild import (
    AllToAll,
    DiLoCo,
    ElasticAveraging,
    Gossip,
    Linear,
    LocalSGD,
    ParameterServer,
    Synchronous,
    minimise,
)  # fmt: skip

WORKERS = 3

# One of each kind, exchanging often enough for so little data.
TALKERS = {
    "synchronous": Synchronous(WORKERS),
    "synchronous, large batches": Synchronous(WORKERS, accumulate=4),
    "parameter server": ParameterServer(WORKERS),
    "parameter server, two shards, seldom": ParameterServer(WORKERS, shards=2, push_every=2, pull_every=4),
    "parameter server, bounded": ParameterServer(WORKERS, staleness=2, push_every=2),
    "parameter server, in step": ParameterServer(WORKERS, staleness=0),
    "local steps": LocalSGD(WORKERS, period=4),
    "diloco": DiLoCo(WORKERS, period=4, momentum=0.5),
    "elastic averaging": ElasticAveraging(WORKERS, period=2),
    "averaging": hogwild.Averaging(WORKERS),
    "gossip": Gossip("ring", workers=WORKERS),
    "gossip, one peer, seldom": Gossip("one-peer-exponential", workers=WORKERS, period=4),
    "gossip, asynchronous": Gossip("ring", synchronous=False, workers=WORKERS),
    "all to all": AllToAll(WORKERS),
    "all to all, asynchronous": AllToAll(WORKERS, synchronous=False, period=2),
}
# What one worker does with it is not what it would do alone.
NOT_SERIAL = {"synchronous, large batches", "diloco"}


@cache
def rows(kind: str, count: int = 120) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(5)
    X = random.standard_normal((count, 4))
    scores = X @ [1.0, -2.0, 0.5, 0.0] + 0.3
    if kind == "squared":
        return X, scores + 0.1 * random.standard_normal(count)
    return X, np.where(scores + random.logistic(size=count) > 0, 1, -1)


def problem(kind: str = "logistic", l2: float = 0.01) -> Linear:
    return Linear(rows(kind), loss=kind, l2=l2)


def train(strategy, runtime, kind="logistic", budget=30, step=0.2, **options):
    options = {"rule": "sgd", "schedule": hogwild.Cosine(step), **options}
    return minimise(problem(kind), strategy=strategy, runtime=runtime, budget=budget, **options)


@cache
def optimum(kind: str) -> float:
    """The least objective there is, by Newton's method in double precision."""
    X, y = rows(kind)
    A = np.column_stack([X, np.ones(len(y))])
    penalty = np.diag([0.01] * X.shape[1] + [0.0])
    w = np.zeros(A.shape[1])
    for _ in range(50):
        z = A @ w
        if kind == "squared":
            slope, bend = z - y, np.ones(len(y))
        else:
            p = 1 / (1 + np.exp(y * z))
            slope, bend = -y * p, p * (1 - p)
        gradient = A.T @ slope / len(y) + penalty @ w
        w -= np.linalg.solve(A.T @ (A * bend[:, None]) / len(y) + penalty, gradient)
    z = A @ w
    loss = (z - y) ** 2 / 2 if kind == "squared" else np.log1p(np.exp(-y * z))
    return float(loss.mean() + w @ penalty @ w / 2)
