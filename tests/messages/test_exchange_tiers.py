"""Changes of frequent features are exchanged after every burst, and those of rare ones less often."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hogwild import Checkpoints, Hogwild, Linear, Local, LocalSGD, ParameterServer, Simulator, minimise
from hogwild.messaging.deltas import SparseDelta, add, part
from hogwild.messaging.job import RunConfig
from hogwild.messaging.protocol import Train
from hogwild.rules import SGD, AdaGrad, Adam
from hogwild.runtimes.messaging.injected_faults import Crash, Link
from hogwild.schedules import Constant
from hogwild.strategies.roles import parts_of
from hogwild.training.change_weights import ChangeWeights, change_weights
from hogwild.training.exchange_tiers import BLOCK, ExchangeTiers, exchange_tiers
from hogwild.training.row_trainer import RowSource, pack_state
from hogwild.training.tiered_trainer import TieredTrainer

ROWS, FEATURES = 20_000, 60_000


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    """Rows with few frequent features and many rare ones, numbered by frequency."""
    random = np.random.default_rng(0)
    columns = (FEATURES * random.random((ROWS, 12)) ** 6).astype(np.int32)
    X = sp.csr_matrix((np.ones(columns.size, np.float32), columns.ravel(), np.arange(0, columns.size + 1, 12)))
    X.resize((ROWS, FEATURES))
    X.sum_duplicates()
    X = X[:, np.argsort(-X.getnnz(0), kind="stable")]
    X.sort_indices()
    return X, np.sign(X @ random.standard_normal(FEATURES) + 0.1)


def trainer_of(data: Any, tiers: ExchangeTiers, saves: bool = False) -> TieredTrainer:
    problem = Linear(data, l2=1e-4)
    full = ChangeWeights.full(problem.start(AdaGrad()))
    return TieredTrainer(
        RowSource(problem, AdaGrad(), Constant(0.3), 2, 0, 2), ChangeWeights(full.parts, full.fixed, tiers), tiers,
        saves=saves,
    )  # fmt: skip


def start_of(data: Any) -> Any:
    return pack_state(Linear(data).start(AdaGrad()))


def test_features_that_a_burst_has_often_are_frequent_and_the_others_are_exchanged_some_times_an_epoch(data) -> None:
    tiers = exchange_tiers(Linear(data), AdaGrad(), 2, 500)
    assert tiers is not None
    expected = 500 * data[0].getnnz(0) / ROWS
    assert (tiers.frequent + 1) % BLOCK == 0
    assert expected[tiers.frequent] < 0.5 <= expected[tiers.frequent - BLOCK]
    assert tiers.whole_every % 500 == 0
    assert tiers.whole_every <= ROWS // 2 // 2
    assert exchange_tiers(Linear(data), AdaGrad(), 1, 500) is None
    assert exchange_tiers(Linear(data), SGD(), 2, 500) is None
    oftener = exchange_tiers(Linear(data), SGD(), 2, 500, step=0.1)
    assert oftener is not None
    assert oftener.frequent == tiers.frequent
    assert oftener.whole_every < tiers.whole_every
    assert exchange_tiers(Linear(data), Adam(), 2, 500, step=0.1) is None  # How far its steps lead is not known.
    unordered = data[0][:, ::-1], data[1]
    assert exchange_tiers(Linear(unordered), AdaGrad(), 2, 500) is None


def test_all_features_are_exchanged_alike_where_rare_ones_would_be_exchanged_as_often(data) -> None:
    assert exchange_tiers(Linear(data), AdaGrad(), 2, 5_000) == ExchangeTiers(data[0].shape[1], 5_000)
    assert exchange_tiers(Linear(data), AdaGrad(), 200, 20) is None  # Vectors would have more zeros than changes.


def test_rare_features_are_weighed_by_the_workers_that_have_changed_them_until_they_are_exchanged(data) -> None:
    problem = Linear(data)
    state, tiers = problem.start(AdaGrad()), exchange_tiers(problem, AdaGrad(), 4, 250)
    assert tiers is not None
    usual, tiered = (change_weights(problem, AdaGrad(), state, 4, 250, False, each) for each in (None, tiers))
    assert usual is not None
    assert tiered is not None
    np.testing.assert_array_equal(usual.parts[0][: tiers.frequent], tiered.parts[0][: tiers.frequent])
    rare = slice(tiers.frequent, int((data[0].getnnz(0) > 0).sum()))
    assert (tiered.parts[0][rare] < usual.parts[0][rare]).all()


def test_nothing_is_lost_or_sent_twice(data) -> None:
    trainer = trainer_of(data, ExchangeTiers(127, 90))
    start = start_of(data)
    trainer.warm_up(start)
    server = start.copy()
    for first, terms in [*((at, 30) for at in range(0, 300, 30)), (300, 0)]:
        change = trainer.burst(Train(start if first == 0 else None, (0, 2), first, terms, 0, 1)).change
        whole = (first + terms) % 90 == 0 or not terms
        assert isinstance(change, SparseDelta) != whole
        if not whole:
            assert change.nbytes < 0.02 * start.nbytes
        add(server, change)
        held_back = pack_state(trainer.state) - server
        np.testing.assert_allclose(held_back[: 2 * 128], 0, atol=1e-5)
        assert np.allclose(held_back, 0, atol=1e-5) == whole
    np.testing.assert_allclose(pack_state(trainer.shared), server, atol=1e-5)


def test_changes_and_parameters_of_others_leave_what_is_held_back(data) -> None:
    trainer, start = trainer_of(data, ExchangeTiers(127, 1_000)), start_of(data)
    trainer.burst(Train(start, (0, 2), 0, 40, 0, 1))
    held_back = pack_state(trainer.state) - pack_state(trainer.shared)
    assert held_back.any()
    others = np.random.default_rng(1).random(start.size, np.float32)
    for train in (
        Train(None, (0, 2), 40, 0, 0, 1, received=others),
        Train(pack_state(trainer.shared) + others, (0, 2), 40, 0, 0, 1),
    ):
        again = trainer_of(data, ExchangeTiers(127, 1_000))
        again.remember(trainer.memory(None))
        change = again.burst(train).change
        np.testing.assert_allclose(change, held_back, atol=1e-6)


def test_until_its_result_is_handled_a_burst_can_be_taken_back(data) -> None:
    trainer, start = trainer_of(data, ExchangeTiers(127, 1_000), saves=True), start_of(data)
    trainer.burst(Train(start, (0, 2), 0, 40, 0, 1))
    before, train = trainer.memory(None), Train(None, (0, 2), 40, 40, 0, 1)
    np.testing.assert_array_equal(trainer.memory(train), before)  # it has not begun yet
    first = trainer.burst(train).change
    np.testing.assert_array_equal(trainer.memory(train), before)
    trainer.remember(before)
    np.testing.assert_array_equal(trainer.burst(train).change.values, first.values)


def test_changes_are_cut_for_servers_at_blocks(data) -> None:
    trainer, start = trainer_of(data, ExchangeTiers(127, 1_000)), start_of(data)
    change = trainer.burst(Train(start, (0, 2), 0, 40, 0, 1)).change
    for shards in (2, 3, 5):
        parts = parts_of(RunConfig(2, start, 1, 1, group=2 * BLOCK), shards)
        pieces = []
        for first, stop in parts:
            assert first % (2 * BLOCK) == 0
            pieces.append(np.zeros(stop - first, np.float32))
            add(pieces[-1], part(change, first, stop))
        assert all(one[1] == two[0] for one, two in pairwise(parts))
        np.testing.assert_array_equal(np.concatenate(pieces), change.dense())


STRATEGIES = [ParameterServer(2), ParameterServer(3, shards=2), LocalSGD(2)]


def tiered(monkeypatch: Any) -> list[int]:
    """Have features numbered by frequency; return a list of what trainers are made."""
    monkeypatch.setattr("hogwild.data.in_memory.InMemoryDataset._is_worth_copying", lambda self, epochs: True)
    made: list[int] = []
    usual = TieredTrainer.__post_init__

    def noted(self: TieredTrainer) -> None:
        made.append(self.tiers.frequent)
        usual(self)

    monkeypatch.setattr(TieredTrainer, "__post_init__", noted)
    return made


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_workers_come_as_far_as_one(data, strategy, monkeypatch) -> None:
    made = tiered(monkeypatch)
    problem, options = Linear(data, l2=1e-5), {"rule": "adagrad", "budget": 3}
    runtime = Simulator("log-normal:1e-6:0.1", Link(1e-5), intervals="chosen")
    run = minimise(problem, strategy=strategy, runtime=runtime, **options)
    assert made
    assert run.objective < 1.05 * minimise(problem, strategy=Hogwild(1), **options).objective


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_a_crash_does_not_spoil_the_result(data, strategy, monkeypatch) -> None:
    made = tiered(monkeypatch)
    names = ["worker-1", "server-0"] if strategy.servers > 1 else ["worker-1"]
    faults = tuple(Crash(name, 0.02 * (1 + at), 0.05) for at, name in enumerate(names))
    problem, runtime = Linear(data, l2=1e-5), Local(faults=faults, detection_delay=0.01)
    run = minimise(problem, "adagrad", strategy=strategy, runtime=runtime, budget=6)
    assert made
    assert run.stop_reason == "epochs"
    assert run.objective < 1.15 * minimise(problem, "adagrad", strategy=Hogwild(1), budget=6).objective


class StoppedError(Exception):
    """Raised by a callback in the middle of a run."""


def stop(event: Any) -> None:
    if event["event"] == "checkpoint" and event["epoch"] >= 2:
        raise StoppedError


def test_a_run_continues_from_a_checkpoint(data, tmp_path, monkeypatch) -> None:
    made = tiered(monkeypatch)
    options = {"rule": "adagrad", "budget": 4, "strategy": ParameterServer(2), "runtime": Local()}
    problem = Linear(data, l2=1e-5)
    with pytest.raises(StoppedError):
        minimise(problem, checkpoint=Checkpoints(tmp_path), callbacks=[stop], **options)
    run = minimise(problem, checkpoint=Checkpoints(tmp_path), resume=True, **options)
    assert made
    assert [record["epoch"] for record in run.history][-1] == 4
    assert run.objective < 1.1 * minimise(problem, "adagrad", strategy=Hogwild(1), budget=4).objective
