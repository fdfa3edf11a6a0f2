"""One short run on Ray, for every change: the rest of ``tests/cluster`` and ``tests/chaos`` takes long."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild import Constant, Linear, ParameterServer, Ray, minimise

ray = pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")


def test_a_parameter_server_on_ray_learns_and_leaves_no_cluster_behind():
    X = np.random.default_rng(0).standard_normal((600, 5)).astype(np.float32)
    problem = Linear((X, X[:, 0] > 0), "logistic")
    run = minimise(problem, "sgd", Constant(0.1), ParameterServer(2, push_every=50), Ray(), budget=4)
    assert run.result["accuracy"] > 0.9
    assert run.result["updates"] >= 4 * len(X)  # and what was under way when that was reached
    assert run.staleness["most"] >= 0
    assert not ray.is_initialized()
