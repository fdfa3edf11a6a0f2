"""Records between epochs, on threads and processes."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild import Budget, Constant, Linear, minimise
from hogwild.errors import CheckpointError


def rows(count: int = 300) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    X = random.standard_normal((count, 4))
    return X, np.where(X @ [1.0, -2.0, 0.5, 0.0] + random.logistic(size=count) > 0, 1, -1)


def train(**options):
    given = {"rule": "sgd", "schedule": Constant(0.05), "strategy": "serial", "budget": 3}
    return minimise(Linear(rows(), l2=options.pop("l2", 0.0)), **{**given, **options})


def test_records_every_so_many_updates_are_exact_and_change_nothing():
    often, seldom = train(every=70), train()
    assert [record["updates"] for record in often.history] == [
        70, 140, 210, 280, 300, 350, 420, 490, 560, 600, 630, 700, 770, 840, 900,
    ]  # fmt: skip
    assert [record["epoch"] for record in often.history] == [0] * 4 + [1] * 5 + [2] * 5 + [3]
    np.testing.assert_array_equal(often.model.weights, seldom.model.weights)
    ends = [record["objective"] for record in often.history if record["updates"] % 300 == 0]
    assert ends == [record["objective"] for record in seldom.history]


def test_records_change_a_penalised_run_by_no_more_than_rounding():
    often, seldom = train(every=70, l2=0.01), train(l2=0.01)
    np.testing.assert_allclose(often.model.weights, seldom.model.weights, rtol=1e-4)


def test_records_of_several_workers():
    run = train(every=100, strategy="hogwild")
    assert [record["updates"] for record in run.history] == list(range(100, 901, 100))


def test_a_target_may_be_reached_between_epochs():
    run = train(every=50, budget=Budget(epochs=3, target=0.66))
    assert run.stop_reason == "target"
    assert run.history[-1]["updates"] % 300


def test_stalls_count_epochs_and_not_records():
    run = train(every=50, budget=Budget(epochs=9, tolerance=100.0, stall_epochs=2))
    assert run.stop_reason == "tolerance"
    assert run.history[-1]["epoch"] == 3


def test_a_divergence_takes_back_the_records_of_its_epoch():
    run = minimise(
        Linear(rows(), loss="squared"), rule="sgd", schedule=Constant(3.0), strategy="serial", budget=3, every=50
    )
    assert any(event["event"] == "diverged" for event in run.events)
    updates = [record["updates"] for record in run.history]
    assert updates == sorted(set(updates))
    assert updates[-1] == 900


def test_a_run_resumes_with_its_records(tmp_path):
    whole = train(every=70)
    train(every=70, budget=Budget(epochs=3, target=0.45), checkpoint=tmp_path)
    again = train(every=70, checkpoint=tmp_path, resume=True)
    assert [record["updates"] for record in again.history] == [record["updates"] for record in whole.history]
    np.testing.assert_array_equal(again.model.weights, whole.model.weights)


def test_a_checkpoint_is_of_its_interval(tmp_path):
    train(every=70, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="every was 70, now 50"):
        train(every=50, checkpoint=tmp_path, resume=True)


def test_a_window_without_improvement():
    run = train(every=100, budget=Budget(epochs=50, window=4))
    assert run.stop_reason == "tolerance"
    values = [record["objective"] for record in run.history]
    assert min(values[-4:]) >= min(values[-8:-4])


def test_records_of_a_module():
    torch = pytest.importorskip("torch")
    from hogwild import Module

    X, y = rows(128)
    data = torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y > 0).float()[:, None])
    problem = Module(torch.nn.Linear(4, 1), torch.nn.functional.binary_cross_entropy_with_logits, data, batch=1)
    run = minimise(problem, strategy="serial", budget=Budget(epochs=20), every=32, test=data)
    updates = [record["updates"] for record in run.history]
    assert updates == sorted(updates)
    assert len(updates) > 20
