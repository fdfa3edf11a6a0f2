"""Strategies by messages on a cluster of two nodes, here on one machine, come to the same as elsewhere.

With ``HOGWILD_CONFORMANCE`` all of them on every problem, as in tests/messages; else some, on one.
"""

from __future__ import annotations

import os
import platform

import numpy as np
import pytest
from talkers import TALKERS, optimum, rows, train

from hogwild import (
    AllToAll,
    Cosine,
    Gossip,
    Linear,
    LocalSGD,
    Module,
    ParameterServer,
    Ray,
    Simulator,
    Synchronous,
    minimise,
)  # fmt: skip
from hogwild.data.packing.pack import pack
from hogwild.errors import DataError

pytestmark = pytest.mark.skipif("HOGWILD_CLUSTER" not in os.environ, reason="make cluster")

ray = pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")

ALL = "HOGWILD_CONFORMANCE" in os.environ
SMALL = {
    "parameter server": ParameterServer(2, shards=2, push_every=4),
    "gossip": Gossip("ring", workers=2, period=4),
}
IN_STEP = {
    "a server in step": ParameterServer(3, staleness=0, push_every=1),
    "synchronous": Synchronous(3),
    "local steps of one": LocalSGD(3, period=1),
    "gossip in a clique": Gossip("clique", workers=3, period=1),
    "all to all": AllToAll(3, period=1),
}
NODE = {"num_cpus": 2, "object_store_memory": 100 << 20}
PLACE = Ray(
    cpus_per_worker=0.5, startup_timeout=240.0
)  # a machine with other things to do takes its time to start processes


@pytest.fixture(scope="module", autouse=True)
def cluster():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    cluster.add_node(**NODE)
    ray.init(cluster.address, logging_level="error", log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def undisturbed(run):
    """Whether everybody was on one of two nodes, and nothing went wrong."""
    assert len({event["ray_node"] for event in run.events if event["event"] == "placed"}) == 2
    waiting = next(event for event in run.events if event["event"] == "idle")
    assert (waiting["crashes"], waiting["malformed"]) == (0, 0)
    return run.stop_reason == "epochs" and run.result["messages"] > 0


@pytest.mark.parametrize("kind", ["logistic", "squared"] if ALL else ["logistic"])
@pytest.mark.parametrize("strategy", TALKERS.values() if ALL else SMALL.values(), ids=TALKERS if ALL else SMALL)
def test_comes_to_the_optimum(strategy, kind):
    run = train(strategy, PLACE, kind, budget=20 if ALL else 12)
    assert undisturbed(run)
    assert run.objective <= 1.01 * optimum(kind)
    if "consensus" in run.result:
        assert run.result["consensus"] < 1e-3


MODELS = TALKERS if ALL else {"local steps": LocalSGD(2, period=4)}


@pytest.mark.parametrize("strategy", MODELS.values(), ids=MODELS)
def test_a_model_is_trained_too(strategy):
    torch = pytest.importorskip("torch", reason="pip install 'hogwild[torch]'")
    random = torch.Generator().manual_seed(1)
    X = torch.randn(96, 3, generator=random)
    y = X @ torch.tensor([[1.0], [-2.0], [0.5]]) + 1.0
    problem = Module(torch.nn.Linear(3, 1), torch.nn.functional.mse_loss, torch.utils.data.TensorDataset(X, y), batch=8)
    before = torch.nn.functional.mse_loss(problem.net(X), y).item()
    step = 0.4 if getattr(strategy, "accumulate", 1) > 1 else 0.1  # four batches are one step
    run = minimise(problem, torch.optim.SGD, Cosine(step), strategy, PLACE, 40 if ALL else 12)
    assert undisturbed(run)
    assert before > 1.0
    assert run.objective < 1e-3
    assert run.model.net is problem.net


@pytest.mark.parametrize("name", IN_STEP if ALL else ["a server in step"])
def test_in_step_it_is_what_the_simulator_comes_to(name):
    here, there = (train(IN_STEP[name], runtime, budget=2) for runtime in (PLACE, Simulator()))
    assert undisturbed(here)
    assert np.abs(there.model.weights).max() > 0.1
    np.testing.assert_allclose(here.model.weights, there.model.weights, rtol=0, atol=1e-6)
    np.testing.assert_allclose(here.model.intercept, there.model.intercept, rtol=0, atol=1e-6)


@pytest.fixture
def folder(tmp_path):
    X, y = rows("logistic")
    lines = [f"{label} " + " ".join(f"{i}:{v}" for i, v in enumerate(row, 1)) for row, label in zip(X, y, strict=True)]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    pack([tmp_path / "rows.svm"], tmp_path / "rows.packed")
    return tmp_path / "rows.packed"


def test_nodes_open_a_packed_folder_themselves(folder):
    here, there = (
        minimise(Linear(folder, l2=0.01), "sgd", Cosine(0.2), ParameterServer(2, staleness=0, push_every=4), runtime, 2)
        for runtime in (PLACE, Simulator())
    )
    assert undisturbed(here)
    np.testing.assert_allclose(here.model.weights, there.model.weights, rtol=0, atol=1e-6)


def test_a_node_without_the_folder_is_named(folder):
    problem = Linear(folder, l2=0.01)

    def move(event):
        if event["event"] == "started":
            folder.rename(folder.with_name("elsewhere"))

    said = rf"rows\.packed: worker-0 reads this folder, and no machine of the cluster has it: {platform.node()} "
    with pytest.raises(DataError, match=said):
        minimise(problem, "sgd", Cosine(0.2), ParameterServer(2), PLACE, 2, callbacks=[move])
