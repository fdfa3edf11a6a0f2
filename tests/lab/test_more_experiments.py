"""Topologies on two problems, one pass against many, and sweeps of sparse networks."""

import numpy as np
import pytest

from hogwild.lab.experiment import Results
from hogwild.lab.experiments import one_pass, sparse_networks, topologies
from hogwild.lab.report_model import Table
from hogwild.lab.synthetic_problems import population

SHARPNESS = [
    "sharpness", "ball_1_loss", "ball_1_gradient_norm", "ball_2_loss", "ball_2_gradient_norm", "ball_inf_loss",
    "ball_inf_gradient_norm", "coordinates_loss", "coordinates_gradient_norm",
]  # fmt: skip


def test_a_perceptron_on_a_topology_has_norms_a_gap_and_sharpness(monkeypatch):
    pytest.importorskip("torch", reason="pip install 'hogwild[torch]'")
    monkeypatch.setitem(topologies.EPOCHS, topologies.PERCEPTRON, 2)
    figures = topologies.trial({"problem": topologies.PERCEPTRON, "topology": "ring"}, 0)
    assert {"norm", "norm_2", "gap_to_test", "consensus", *SHARPNESS} <= set(figures)
    assert figures["gap_to_test"] == pytest.approx(figures["test_loss"] - figures["train_loss"])
    assert len(figures["curve"]) == len(figures["epochs"]) == len(figures["apart"]) >= 2


def test_topologies_show_the_gap_the_norms_and_sharpness_of_each_problem():
    names = ["ring", "torus", "clique"]
    results = Results(tuple(
        {"problem": kind, "topology": name, "seed": seed, "gap": 0.3 * k + 0.1, "changes": False, "neighbours": 2,
         "consensus": 1 / (k + 1), "bytes": 100 * (k + 1), "simulated_seconds": 1.0 + k, "excess": 0.1,
         "train_loss": 0.2, "test_loss": 0.3 + 0.25 * k, "gap_to_test": 0.1 + 0.25 * k, "norm": 5.0 + seed + k,
         "norm_2": 1.0, **dict.fromkeys(SHARPNESS, 0.5 + 0.1 * k), "epochs": [1], "apart": [0.1], "times": [1.0],
         "curve": [0.5]}
        for kind in topologies.EPOCHS for k, name in enumerate(names) for seed in range(3)
    ))  # fmt: skip
    findings, parts = topologies.read(results)
    assert [finding.text.split(":")[0] for finding in findings[:4]] == [
        kind for kind in topologies.EPOCHS for _ in range(2)
    ]
    assert all("gap between them 0.5 (" in finding.text for finding in findings[1:4:2])
    tables = [part for part in parts if isinstance(part, Table)]
    assert len(tables) == 4
    for table in tables:
        assert [row[0] for row in table.rows] == names
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert "gap" in tables[0].columns
    assert "l2-norm" in tables[1].columns


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_excess_of_planted_weights_is_zero_and_that_of_the_minimiser_that_of_theory(loss):
    rows, features, noise = 4000, 10, 0.5
    excesses = []
    for seed in range(5):
        made = population(seed, loss, rows=rows, features=features, noise=noise)
        assert made.excess(made.weights) == pytest.approx(0, abs=1e-12)
        excesses.append(made.attainable(rows))
    variance = noise**2 if loss == "squared" else 1.0  # in the limit of many rows: variance times features over 2 rows
    assert np.mean(excesses) == pytest.approx(variance * features / (2 * rows), rel=0.5)


def test_one_pass_of_the_average_comes_near_the_exact_minimiser():
    point = {"problem": "least squares", "rows": 400}
    one = one_pass.trial({**point, "method": one_pass.ONE}, 0)
    short = one_pass.trial({**point, "method": one_pass.EQUAL_TIME}, 0)
    assert one["samples"] == 400
    assert short["samples"] == 50
    assert one["staleness"] > 1
    assert one["times"] < short["times"]  # with an eighth of the rows


def test_one_pass_is_compared_for_equal_samples_and_equal_time():
    def record(method, seed, times):
        kind = one_pass.METHODS[method]
        return {"problem": "least squares", "method": method, "seed": seed, "times": times + 0.01 * (seed % 3),
                "seconds": 10.0 * kind.passes / kind.workers, "samples": 100 * kind.passes * kind.share, "step": 1.0,
                "train_loss": 0.1, "staleness": None}  # fmt: skip

    results = Results(tuple(
        record(method, seed, 1.2 if method == one_pass.ONE else 1.1 if "64" in method else 3.0)
        for method in one_pass.METHODS for seed in range(4)
    ))  # fmt: skip
    findings, parts = one_pass.read(results)
    assert "the best of many passes, SGD, 64 passes," in findings[0].text
    assert findings[0].text.endswith("one pass is worse.")
    assert findings[0].holds is False
    assert "for equal samples SGD, 16 passes over 1/16 of the rows" in findings[1].text
    assert "for about equal time SGD, 1 pass over 1/8 of the rows" in findings[1].text
    assert all(len(row) == len(part.columns) for part in parts if isinstance(part, Table) for row in part.rows)


def test_sweeps_of_sparse_networks_are_compared_by_device():
    points = [
        point for device in ("cpu", "cuda")
        for point in sparse_networks._points(100, {"batch": (32,), "width": (8,), "depth": (1,)}, [device])
    ]  # fmt: skip
    assert len(points) == 8
    results = Results(tuple(
        {**point, "seed": 0, "cores": 4, "samples_a_second": 100.0 * point["batch"] * (1 + (point["device"] != "cpu")),
         "train_loss": 0.5, "test_loss": 0.6, "test_accuracy": 0.7, "parameters": 1000, "samples": 300}
        for point in points
    ))  # fmt: skip
    findings, parts = sparse_networks.read(results)
    assert len(findings) == 7  # three sweeps on two devices, and both devices
    assert "a batch of 256 trains 8 times as many samples" in findings[0].text
    assert findings[-1].text.startswith("The GPU trains 2.00")
    table = next(part for part in parts if isinstance(part, Table))
    assert len(table.rows) == 8
    alone, _ = sparse_networks.read(results.where(device="cpu"))
    assert len(alone) == 3
    assert not any("GPU" in finding.text for finding in alone)
