"""Records between epochs, on threads and processes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from hogwild import Budget, Constant, Linear, minimise
from hogwild.errors import CheckpointError
from hogwild.runtimes.processes.shared_counters import SAMPLES
from hogwild.stopping import stop_reason
from hogwild.training import loop
from hogwild.training.epoch_recorder import EpochRecorder


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


@pytest.fixture
def large(monkeypatch):
    """Three hundred rows are large data, of which a record looks at fifty."""
    monkeypatch.setattr(loop, "WHOLE_NONZEROS", 0)
    monkeypatch.setattr(loop, "LEAST_SAMPLE", 50)


def test_records_of_large_data_are_of_a_sample_and_the_last_of_all_rows(large, monkeypatch):
    sampled = train(l2=0.01)
    monkeypatch.setattr(loop, "WHOLE_NONZEROS", 10**9)
    exact = train(l2=0.01)
    np.testing.assert_array_equal(sampled.model.weights, exact.model.weights)
    assert [record.get("sampled_rows") for record in sampled.history] == [50, 50, None]
    assert sampled.history[-1]["objective"] == exact.history[-1]["objective"]
    for one, other in zip(sampled.history[:-1], exact.history[:-1], strict=True):
        assert one["loss"] != other["loss"]
        assert one["loss"] == pytest.approx(other["loss"], rel=0.3)


@pytest.mark.parametrize("budget", [Budget(2, target=0.1), Budget(2, tolerance=1e-9), Budget(2, window=5)], ids=str)
def test_where_the_training_loss_decides_records_are_exact(large, budget):
    assert all("sampled_rows" not in record for record in train(budget=budget).history)


def test_the_record_of_the_best_parameters_is_exact(large):
    run = train(budget=Budget(epochs=9, patience=2), schedule=Constant(3.0), test=rows(40))
    best = next(record for record in run.history if record["test_loss"] == run.result["test_loss"])
    assert best is not run.history[-1]
    assert "sampled_rows" not in best
    X, y = rows()
    scores = X @ run.model.weights[:, 0] + run.model.intercept[0]
    assert run.result["accuracy"] == pytest.approx(np.mean((scores > 0) == (y > 0)))
    assert run.result["accuracy"] == best["accuracy"]


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


def test_losses_of_epochs_that_are_not_over_meet_no_condition():
    first = [{"epoch": 0, "loss": 0.01, "objective": 0.01}]
    budget = Budget(target=0.1)
    others = {"held_out": False, "best_epoch": 0, "stalled_epochs": 0}
    assert stop_reason(budget, first, **others) == "target"
    assert stop_reason(budget, first, **others, evaluated=False) == ""
    over = [*first, {"epoch": 1, "loss": 0.05, "objective": 0.05}]
    assert stop_reason(budget, over, **others, evaluated=False) == "target"
    # The losses of whole epochs fall, those of a few samples between them are higher and lower.
    epochs = [(0, 0.1), (1, 0.5), (1, 0.1), (2, 0.4), (2, 0.6), (3, 0.3), (3, 0.7), (4, 0.2)]
    history = [{"epoch": epoch, "loss": loss, "objective": loss} for epoch, loss in epochs]
    assert stop_reason(Budget(window=2), history[:4], **others) == "tolerance"
    assert not any(stop_reason(Budget(window=2), history[:k], **others, evaluated=False) for k in range(1, 9))
    stalled = [*history, {"epoch": 5, "loss": 0.3, "objective": 0.3}, {"epoch": 6, "loss": 0.3, "objective": 0.3}]
    assert stop_reason(Budget(window=2), stalled, **others, evaluated=False) == "tolerance"


def test_losses_that_are_not_evaluated_are_means_since_the_epoch_began():
    run = train(every=100, evaluate_every_epoch=False, schedule=Constant(1e-12), budget=2)
    assert [record["loss"] for record in run.history] == pytest.approx([np.log(2)] * 6, rel=1e-5)
    seldom = train(evaluate_every_epoch=False, budget=2)
    often = train(every=100, evaluate_every_epoch=False, budget=2)
    assert [record["loss"] for record in often.history[2::3]] == pytest.approx([r["loss"] for r in seldom.history])


@dataclass
class Counters:
    """Counters of two workers: the samples of each, and the loss of the samples after each other."""

    counts: np.ndarray
    lost: tuple[float, ...] = ()

    @property
    def samples(self) -> int:
        return len(self.lost)

    steps = samples

    def known_losses(self) -> tuple[int, float]:
        return len(self.lost), sum(self.lost)


def test_the_loss_of_a_record_of_a_module_is_the_mean_since_its_epoch_began():
    counters = Counters(np.zeros((2, 16), np.int64))
    recorder = EpochRecorder(counters, lambda samples, seconds: (0.1,), Budget(epochs=2))

    def train_on(worker, *losses):
        counters.counts[worker, SAMPLES] += len(losses)
        counters.lost += losses

    train_on(0, 4.0, 2.0)
    recorder.make(0, 0.1)
    train_on(1, 0.0)
    recorder.make(0, 0.2)
    train_on(0, 6.0)
    recorder.make(1, 0.3)
    train_on(0, 1.0)
    recorder.make(1, 0.4)
    train_on(0, 2.0)
    recorder.make(2, 0.5)
    records = list(recorder.ready())
    assert [record["loss"] for record in records] == [3.0, 2.0, 3.0, 1.0, 1.5]
    assert [record["workers_used"] for record in records] == [1, 2, 2, 1, 1]
    assert [record["epoch"] for record in records] == [0, 0, 1, 1, 2]


def test_a_module_stops_by_the_losses_of_its_epochs():
    torch = pytest.importorskip("torch")
    from hogwild import Module

    X, y = rows(128)
    data = torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y > 0).float()[:, None])
    problem = Module(torch.nn.Linear(4, 1), torch.nn.functional.binary_cross_entropy_with_logits, data, batch=1)
    # A sample has a loss of any size, also of less than this target; the mean of an epoch has not.
    run = minimise(problem, strategy="serial", budget=Budget(epochs=4, target=0.05, window=3), every=1)
    assert run.stop_reason == "epochs"
    assert run.history[-1]["epoch"] == 4


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
