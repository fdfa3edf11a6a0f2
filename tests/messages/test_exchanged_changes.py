"""Workers that exchange as often as pays, and only what has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from hogwild import (
    AllToAll,
    Checkpoints,
    FactorisationMachine,
    Gossip,
    Hogwild,
    Linear,
    Local,
    LocalSGD,
    ParameterServer,
    Simulator,
    WarmStart,
    minimise,
)
from hogwild.data import open as open_data
from hogwild.delays import Slowed
from hogwild.errors import ParameterError
from hogwild.messaging.deltas import INDEX, SparseDelta, add, joined, part, total
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import Begin, ChangesReply, JoinRequest, Pull, PullChanges, Push
from hogwild.messaging.protocol import Delivered, PeerJoined, PeerLost, Send, Started, Train
from hogwild.problems.feature_tiers import mean_squares
from hogwild.rules import FTRL, SGD, AdaGrad, Adam
from hogwild.runtimes.messaging.injected_faults import Crash, Link
from hogwild.schedules import Constant, Schedule
from hogwild.strategies.roles.change_log import ChangeLog
from hogwild.strategies.roles.parameter_server import ParameterServerRole
from hogwild.training import resident_trainer
from hogwild.training.change_shares import ChangeShares
from hogwild.training.change_weights import ChangeWeights, change_weights, levels
from hogwild.training.renumbered_problem import RenumberedProblem
from hogwild.training.resident_trainer import ResidentTrainer, add_change
from hogwild.training.row_trainer import RowSource, RowTrainer, pack_state


def sparse_data(rows: int, features: int = 2_000, entries: int = 20, seed: int = 0) -> tuple[Any, Any]:
    """Rows whose features are the rarer the larger their numbers."""
    random = np.random.default_rng(seed)
    columns = (features * random.random((rows, entries)) ** 3).astype(np.int32)
    X = sp.csr_matrix((np.ones(columns.size, np.float32), columns.ravel(), np.arange(0, columns.size + 1, entries)))
    X.resize((rows, features))
    X.sum_duplicates()
    return X, np.sign(X @ random.standard_normal(features) + 0.1)


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    return sparse_data(30_000)


def exchanges(run: Any) -> list[Any]:
    return [event for event in run.events if event["event"] == "exchanges"]


# How often


STRATEGIES = [
    ParameterServer(2),
    LocalSGD(2),
    AllToAll(2, synchronous=False),
    Gossip(workers=2),
    Gossip(workers=2, synchronous=False),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_a_run_chooses_how_often_workers_exchange(data, strategy) -> None:
    run = minimise(Linear(data, l2=1e-5), strategy=strategy, runtime=Local(), rule="adagrad", budget=3)
    (told,) = exchanges(run)
    assert 1 <= told["updates"] <= 30_000 // strategy.workers // 4
    assert told["message"].startswith(f"workers exchange changes every {told['updates']:,} update")
    assert run.objective < 0.5 * np.log(2)  # How far it comes depends on what else the machine does.


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_workers_that_exchange_rarely_come_as_far_as_one(data, strategy) -> None:
    problem, options = Linear(data, l2=1e-5), {"rule": "adagrad", "budget": 3}
    runtime = Simulator("log-normal:1e-6:0.1", Link(1e-4), intervals="chosen")
    run = minimise(problem, strategy=strategy, runtime=runtime, **options)
    (told,) = exchanges(run)
    # Workers that average sums of squared gradients need half as many exchanges.
    assert told["updates"] == 30_000 // strategy.workers // (16 if isinstance(strategy, AllToAll) else 8)
    assert run.objective < 1.2 * minimise(problem, strategy=Hogwild(1), **options).objective


def test_an_interval_that_is_given_is_taken_and_a_simulated_run_has_that_of_the_textbook(data) -> None:
    small = Linear((data[0][:600], data[1][:600]), l2=1e-3)
    given = minimise(small, strategy=ParameterServer(2, push_every=7), runtime=Local(), budget=1)
    assert not exchanges(given)
    assert "push_every=7" in given.config["strategy"]
    simulated = minimise(small, strategy=LocalSGD(2), runtime=Simulator(), budget=1)
    assert not exchanges(simulated)
    assert LocalSGD(2).interval == 8


@pytest.mark.parametrize("options", [{"push_every": "often"}, {"push_every": 0}, {"push_every": 1.5}])
def test_other_intervals_are_refused(options) -> None:
    with pytest.raises(ParameterError, match=r"push_every.*'auto'"):
        ParameterServer(2, **options)


def test_frequent_coordinates_are_averaged_and_rare_ones_added(data) -> None:
    problem = Linear(data)
    state = problem.start(AdaGrad())
    frequencies = data[0].getnnz(0)
    added, averaged = (change_weights(problem, AdaGrad(), state, 4, 100, averages) for averages in (False, True))
    assert added is not None
    assert averaged is not None
    features, intercept = added.parts
    assert features[np.argmax(frequencies)] == pytest.approx(0.25, rel=1e-3)
    assert intercept == pytest.approx(0.25)
    assert features[np.argmin(frequencies)] > 2 * features.min()
    assert added.packed().shape == pack_state(state).shape
    np.testing.assert_allclose(averaged.packed(), 4 * added.packed(), rtol=1e-6)
    np.testing.assert_array_equal(added.packed()[1::2], 0.25)  # Sums of squares are averaged, rare ones as well.
    assert change_weights(problem, AdaGrad(), state, 1, 500, False) is None


@pytest.mark.parametrize(("gossip", "among"), [(Gossip("ring"), 3), (Gossip("clique"), 8), (Gossip("star"), 8 / 7)])
def test_a_worker_that_mixes_with_neighbours_keeps_what_it_has_learnt_of_rare_coordinates(data, gossip, among) -> None:
    problem, rows = Linear(data), 30_000
    few = change_weights(problem, AdaGrad(), problem.start(AdaGrad()), gossip.neighbourhood(8), 10, True)
    assert few is not None
    rates = data[0].getnnz(0) / rows
    assert gossip.neighbourhood(8) == pytest.approx(among)
    # A mixing gives the worker a part of its change, which the weight makes up for unless neighbours make it too.
    assert few.parts[0][rates < 1e-3] == pytest.approx(among, rel=0.08)
    assert few.parts[1] == pytest.approx(1, rel=1e-4)


# What is exchanged


def trainers(data: Any) -> tuple[RowTrainer, ResidentTrainer]:
    problem = Linear(data, l2=1e-3)
    rows = RowSource(problem, AdaGrad(), Constant(0.3), 2, 0, 2)
    state = problem.start(AdaGrad())
    weights = np.random.default_rng(1).choice([0.5, 0.7, 1.0], len(state[0])).astype(np.float32)
    both = ChangeWeights((weights, np.array([0.5], np.float32)), np.array([0.0, 0.5], np.float32))
    return RowTrainer(rows, both.packed()), ResidentTrainer(rows, both)


def start_of(trainer: RowTrainer) -> Any:
    """Return parameters, and sums of squares that are not zero."""
    values = np.random.default_rng(2).normal(0, 0.1, len(trainer.weights)).astype(np.float32)
    values[1::2] = 0.5
    return values


@pytest.mark.parametrize("many", [0, 10**9], ids=["all features", "those of the rows"])
def test_a_trainer_that_keeps_its_parameters_makes_the_changes_of_one_that_does_not(data, many, monkeypatch) -> None:
    monkeypatch.setattr(resident_trainer, "MANY", many)
    usual, resident = trainers(data)
    values = start_of(usual)
    moved = np.array([0.5, 0.1, -1.0, 0.1, 0.25, 0.2], np.float32)
    others = SparseDelta(np.array([3, 2_000, 1_004], INDEX), moved, len(values), 2)
    whole, received = values, None
    for first in (0, 40):
        start = whole.copy()
        if received is not None:
            add(start, received)
        whole = usual.burst(Train(start, (0, 2), first, 40, 0, 1)).values
        change = resident.burst(
            Train(values if first == 0 else None, (0, 2), first, 40, 0, 1, received=received)
        ).change
        got = start.copy()
        add(got, change)
        np.testing.assert_allclose(got, whole, rtol=1e-4, atol=1e-6)
        received = others
    np.testing.assert_allclose(resident.memory(None), whole, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("outputs", [1, 3])
def test_changes_are_added_to_features_and_intercepts_sparse_or_not(width, outputs) -> None:
    random = np.random.default_rng(width)
    state = random.random((500 * outputs, width), np.float32), random.random((outputs, width), np.float32)
    places = np.append(random.choice(500, 200, replace=False), [500, 7, 7]).astype(INDEX)
    values = random.standard_normal(len(places) * width * outputs).astype(np.float32)
    change = SparseDelta(places, values, pack_state(state).size, width * outputs)
    expected = pack_state(state) + np.float32(0.5) * change.dense()
    others = tuple(part.copy() for part in state)
    add_change(state, change, 0.5)
    np.testing.assert_allclose(pack_state(state), expected, rtol=1e-5, atol=1e-6)
    add_change(others, change.dense(), 0.5)
    np.testing.assert_allclose(pack_state(others), expected, rtol=1e-5, atol=1e-6)


@given(st.lists(st.floats(1 / 64, 1), min_size=1, max_size=50))
def test_a_level_has_weights_that_are_about_the_same(some) -> None:
    weights = np.array(some)
    level_of, of_level = levels(weights)
    np.testing.assert_allclose(of_level[level_of], weights, rtol=0.05)
    assert len(of_level) == len(np.unique(level_of))


def test_a_burst_across_the_end_of_an_epoch_returns_the_change_of_the_features_of_both(data, monkeypatch) -> None:
    plain, resident = trainers(data)
    start = np.full(2 * 2_001, 0.25, np.float32)
    train = Train(start, (0, 2), 14_990, 30, 0, 1)  # of 15,000 rows
    found, values = resident.burst(train), plain.burst(train).values
    assert isinstance(found.change, SparseDelta)
    assert len(np.unique(found.change.indices)) == len(found.change.indices)
    changed = start.copy()
    add(changed, found.change)
    np.testing.assert_allclose(changed, values, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(resident.memory(train), start)


def test_until_its_result_is_handled_a_burst_can_be_taken_back(data) -> None:
    _, resident = trainers(data)
    start = np.full(2 * 2_001, 0.25, np.float32)
    resident.burst(Train(start, (0, 2), 0, 30, 0, 1))
    before = resident.memory(None)
    others = SparseDelta(np.array([5], INDEX), np.array([0.5, 0.0], np.float32), len(start), 2)
    train = Train(None, (0, 2), 30, 30, 0, 1, received=others)
    np.testing.assert_array_equal(resident.memory(train), before)  # it has not begun yet
    resident.burst(train)
    assert not np.array_equal(resident.memory(None), before)
    np.testing.assert_allclose(resident.memory(train), before, rtol=1e-6)


SLOW = [(1.0, 1.002), (10.0, 1.005), (60.0, 1.005)]


@pytest.mark.parametrize("rule", ["sgd", "adagrad", "ftrl"])
@pytest.mark.parametrize(("slower", "bound"), SLOW, ids=["alike", "10 times slower", "60 times slower"])
def test_a_slow_worker_does_not_undo_what_others_have_learned(data, rule: str, slower: float, bound: float) -> None:
    problem, options = Linear(data, l2=1e-3), {"rule": rule, "budget": 4}
    times = Slowed("log-normal:1e-6:0.1", {1: slower})
    runtime = Simulator(times, Link(latency=1e-5, bandwidth=1e9), intervals="chosen")
    run = minimise(problem, strategy=ParameterServer(2), runtime=runtime, **options)
    assert run.objective < bound * minimise(problem, strategy=Hogwild(1), **options).objective


def test_a_late_delta_counts_for_less_and_its_worker_gets_the_difference() -> None:
    config = RunConfig(2, np.zeros(4, np.float32), 100, 100, resident=True)
    role = ParameterServerRole(0, 0, 4, config, log=ChangeLog(10_000))
    list(role.react(Started(None, frozenset({"worker-0", "worker-1"}))))

    def deliver(sender: str, body: Any) -> list[Any]:
        return [action.body for action in role.react(Delivered(sender, body)) if isinstance(action, Send)]

    deliver("coordinator", Begin((), 0, 0, ("worker-0", "worker-1")))
    for clock in range(16):
        deliver("worker-0", Push(np.eye(4, dtype=np.float32)[0], clock, clock, 0, 1, 1, 0.1))
    deliver("worker-1", Push(np.eye(4, dtype=np.float32)[1], 0, 0, 0, 1, 1, 0.1))
    np.testing.assert_array_equal(role.values, [16, 0.25, 0, 0])
    for worker, lacked in (("worker-0", [0, 0.25, 0, 0]), ("worker-1", [0, -0.75, 0, 0])):
        (reply,) = deliver(worker, PullChanges(16, 16))
        np.testing.assert_array_equal(reply.change, lacked)


@pytest.mark.parametrize("server", [True, False])
def test_a_run_goes_on_from_ftrl_of_a_server(data, server: bool) -> None:
    problem, options = Linear(data, l2=1e-3), {"rule": "ftrl", "schedule": 0.5}
    by_messages = {"strategy": ParameterServer(2), "runtime": Local()}
    first = minimise(problem, **options, **by_messages, budget=3)
    following = by_messages if server else {"strategy": Hogwild(1)}
    again = minimise(problem, **options, **following, budget=1, init=WarmStart(first.state))
    assert again.objective < 1.01 * first.objective


def test_a_worker_that_comes_back_pulls_what_it_had_pushed_before_it_crashed() -> None:
    config = RunConfig(2, np.zeros(4, np.float32), 100, 100, resident=True)
    role = ParameterServerRole(0, 0, 4, config, staleness=0, log=ChangeLog(1_000))

    def deliver(sender: str, body: Any) -> list[Any]:
        return [action for action in role.react(Delivered(sender, body)) if isinstance(action, Send)]

    def push(place: int) -> Push:
        return Push(np.eye(4, dtype=np.float32)[place], 0, 0, 0, 1, 1, 0.1)

    list(role.react(Started(None, frozenset({"worker-0", "worker-1"}))))
    deliver("coordinator", Begin((), 0, 0, ("worker-0", "worker-1")))
    deliver("worker-1", push(0))
    list(role.react(PeerLost("worker-1", 0)))
    list(role.react(PeerJoined("worker-1", 1)))
    deliver("worker-1", JoinRequest())
    (reply,) = [action.body for action in deliver("worker-1", Pull(0))]
    assert not reply.values.any()
    deliver("worker-1", push(1))
    deliver("worker-1", PullChanges(1, reply.version))
    answers = deliver("worker-0", push(2))
    (changes,) = [action.body for action in answers if isinstance(action.body, ChangesReply)]
    np.testing.assert_array_equal(changes.change, [1, 0, 1, 0])
    np.testing.assert_array_equal(role.values, [1, 1, 1, 0])
    assert set(role.delays) == {"worker-0", "worker-1"}


def test_sparse_vectors_are_merged_cut_and_joined() -> None:
    random, size = np.random.default_rng(0), 300
    vectors = [
        SparseDelta(np.sort(random.choice(size, 60, replace=False)).astype(INDEX), random.random(60, np.float32), size)
        for _ in range(2)
    ]
    np.testing.assert_allclose(total(vectors).dense(), vectors[0].dense() + vectors[1].dense(), rtol=1e-6)
    parts = [(0, 100), (100, 250), (250, 300)]
    pieces = [part(vectors[0], *each) for each in parts]
    np.testing.assert_array_equal(joined(pieces, parts).dense(), vectors[0].dense())
    mixed = joined([pieces[0].dense(), None, pieces[2]], parts)
    np.testing.assert_array_equal(mixed[:100], vectors[0].dense()[:100])
    assert not mixed[100:250].any()


def test_features_are_numbered_by_frequency_while_they_are_trained(monkeypatch) -> None:
    data = sparse_data(30_000, seed=3)
    problem = Linear(data, l2=1e-5)
    monkeypatch.setattr("hogwild.data.in_memory.InMemoryDataset._is_worth_copying", lambda self, epochs: True)
    renumbered = RenumberedProblem.of(problem, AdaGrad(), 0, 3)
    assert renumbered.by_rank is not None
    assert (np.diff(renumbered.problem.source.frequencies()) <= 0).all()
    state = problem.start(AdaGrad())
    state[0][:, 0] = np.arange(2_000)
    there = renumbered.enter(state)
    np.testing.assert_array_equal(renumbered.leave(there)[0], state[0])
    run = minimise(problem, "adagrad", strategy=ParameterServer(2), runtime=Local(), budget=3, test=data)
    last = run.history[-1]
    assert last["test_loss"] == pytest.approx(last["loss"], rel=1e-5)
    margins = data[0] @ run.model.weights[:, 0] + run.model.intercept[0]
    assert np.log1p(np.exp(-data[1] * margins)).mean() == pytest.approx(last["loss"], rel=1e-4)


def test_features_that_no_row_has_take_no_part(monkeypatch) -> None:
    X, y = sparse_data(30_000, seed=3)
    wide = sp.csr_matrix((X.data, 50 * X.indices, X.indptr), shape=(30_000, 100_000))
    monkeypatch.setattr("hogwild.data.in_memory.InMemoryDataset._is_worth_copying", lambda self, epochs: True)
    problem = Linear((wide, y), l2=1e-5)
    renumbered = RenumberedProblem.of(problem, AdaGrad(), 0, 3)
    assert renumbered.problem.data.n_features == len(renumbered.by_rank) < 2_001
    state = problem.start(AdaGrad())
    for back, usual in zip(renumbered.leave(renumbered.enter(state)), state, strict=True):
        np.testing.assert_array_equal(back, usual)
    run = minimise(problem, "adagrad", strategy=ParameterServer(2), runtime=Local(), budget=3, test=(wide, y))
    last = run.history[-1]
    assert run.model.weights.shape == (100_000, 1)
    assert last["test_loss"] == pytest.approx(last["loss"], rel=1e-5)
    margins = wide @ run.model.weights[:, 0] + run.model.intercept[0]
    assert np.log1p(np.exp(-y * margins)).mean() == pytest.approx(last["loss"], rel=1e-4)


# When something goes wrong


@pytest.mark.parametrize("who", ["server-0", "worker-1"])
def test_a_crash_does_not_spoil_the_result(data, who) -> None:
    faults = (Crash(who, 0.02, 0.05), Crash(who, 0.2, 0.05))
    problem, runtime = Linear(data, l2=1e-5), Local(faults=faults, detection_delay=0.01)
    run = minimise(problem, "adagrad", strategy=ParameterServer(2, shards=2), runtime=runtime, budget=8)
    usual = minimise(problem, "adagrad", strategy=Hogwild(1), budget=8)
    assert run.stop_reason == "epochs"
    assert run.objective < 1.15 * usual.objective


class StoppedError(Exception):
    """Raised by a callback in the middle of a run."""


def stop(event: Any) -> None:
    if event["event"] == "checkpoint" and event["epoch"] >= 2:  # A busy machine may pass over the second.
        raise StoppedError


@pytest.mark.parametrize("rule", ["adagrad", "adam", "ftrl"])
@pytest.mark.parametrize(
    ("first", "second"),
    [(Local(), Local()), (Local(), Simulator()), (Simulator(), Local())],
    ids=["same", "to", "from"],
)
def test_a_run_continues_from_a_checkpoint_with_the_interval_that_it_had(data, tmp_path, first, second, rule) -> None:
    problem, options = Linear((data[0][:5_000], data[1][:5_000]), l2=1e-4), {"rule": rule, "budget": 4}

    def train(runtime: Any, resume: bool, callbacks: Any = ()) -> Any:
        return minimise(
            problem, strategy=ParameterServer(2), runtime=runtime, checkpoint=Checkpoints(tmp_path), resume=resume,
            callbacks=callbacks, **options,
        )  # fmt: skip

    with pytest.raises(StoppedError):
        train(first, False, [stop])
    run = train(second, True)
    assert not exchanges(run)
    assert [record["epoch"] for record in run.history][-1] == 4
    assert run.objective < 1.2 * minimise(problem, strategy=Hogwild(1), **options).objective


def test_with_an_l1_penalty_runs_end_about_as_low_as_in_one_memory_and_most_weights_are_zero(
    data,
) -> None:
    problem, options = Linear((data[0][:600], data[1][:600]), l1=0.01), {"rule": "adagrad", "budget": 5}
    alone = minimise(problem, strategy="serial", **options)
    for strategy in (ParameterServer(2), LocalSGD(2), Gossip(workers=2)):
        run = minimise(problem, strategy=strategy, runtime=Local(), **options)
        assert exchanges(run)
        assert run.objective < alone.objective + 0.15 * (np.log(2) - alone.objective)
        assert (run.model.weights == 0).mean() > 0.5


@pytest.mark.parametrize("rule", ["adam", "momentum"])
@pytest.mark.parametrize("strategy", [ParameterServer(3), LocalSGD(3), Gossip(workers=3)], ids=str)
def test_rules_whose_state_is_a_mean_exchange_some_times_an_epoch(data, rule, strategy) -> None:
    X, y = data[0][:3000], data[1][:3000]
    for problem in (Linear((X, y), l2=1e-3), FactorisationMachine((X, y), rank=2)):
        alone = minimise(problem, rule, strategy="serial", budget=3)
        run = minimise(problem, rule, strategy=strategy, runtime=Local(), budget=3)
        assert 1 < exchanges(run)[0]["updates"] <= 1000 / 4
        assert run.objective < alone.objective + 0.5 * (np.log(2) - alone.objective)


def test_means_of_adam_stay_means_on_a_parameter_server() -> None:
    """Its mean of squares became negative where changes of older parameters were added."""
    random = np.random.default_rng(0)
    X = random.normal(size=(100_000, 5)).astype(np.float32)
    problem = Linear((X, np.sign(X @ random.normal(size=5))), "hinge", l2=0)
    for workers in (2, 8):
        run = minimise(problem, "adam", Constant(0.03), strategy=ParameterServer(workers), runtime=Local(), budget=5)
        assert not [event for event in run.events if event["event"] == "diverged"]
        assert run.objective < 0.03
        assert "staleness=0" in run.config["strategy"]


def test_curvature_is_that_of_the_columns_that_are_trained_and_that_of_intercepts_their_own() -> None:
    random = np.random.default_rng(0)
    far = (1e-3 + 1e-5 * random.normal(size=(20_000, 20))).astype(np.float32)
    small = sp.random(20_000, 500, density=0.02, format="csr", random_state=0, dtype=np.float32)
    small.data[:] = 0.01
    for X, score, step in ((far, far.sum(1) - 0.02, 0.3), (small, small.sum(1) - 0.05, 1.0)):
        problem = Linear((X, np.where(np.ravel(score) > 0, 1, -1)), l2=0)
        alone = minimise(problem, "sgd", Constant(step), strategy="serial", budget=3)
        for strategy in (LocalSGD(8), ParameterServer(8)):
            run = minimise(problem, "sgd", Constant(step), strategy=strategy, runtime=Local(), budget=3)
            assert run.objective < alone.objective + 0.1


@pytest.mark.parametrize(("loss", "known"), [("logistic", True), ("hinge", True), ("poisson", False)])
def test_progress_is_known_where_the_curvature_has_a_bound_and_the_schedule_a_step(data, loss, known) -> None:
    problem = Linear((data[0], np.maximum(data[1], 0)), loss)
    state, rates = problem.start(SGD()), problem.touch_rates()[0]
    by_changers = 1 / (1 + 3 * -np.expm1(-rates * 1000))
    weights = [change_weights(problem, SGD(), state, 4, 1000, False, step=step).parts[0] for step in (None, 1e-3)]
    np.testing.assert_allclose(weights[0], by_changers, rtol=1e-6)
    assert np.allclose(weights[1], by_changers, rtol=1e-6) != known


@dataclass(frozen=True)
class Table(Schedule):
    step: float = 0.3

    def __call__(self, moment: Any) -> Any:
        return self.step * np.array([1.0, 0.5, 0.5, 0.5])[moment.epochs.astype(int)]


def test_the_largest_step_is_looked_for_in_the_epochs_of_the_run(data) -> None:
    problem = Linear((data[0][:5_000], data[1][:5_000]), l2=1e-4)
    for runtime in (Local(), Simulator()):
        run = minimise(problem, "sgd", Table(), strategy=LocalSGD(2), runtime=runtime, budget=2)
        assert run.objective < np.log(2)


def test_features_of_dense_rows_have_mean_squares_of_their_own() -> None:
    X = np.tile(np.array([100.0, 1.0, 0.01], np.float32), (50, 1)) * np.resize([1, -1], (50, 1))
    rows = open_data(X.astype(np.float32), np.resize([1, -1], 50)).rows
    np.testing.assert_allclose(mean_squares(rows), [1e4, 1, 1e-4], rtol=1e-5)


def test_features_of_a_block_have_their_mean_weight() -> None:
    weights = ChangeWeights(
        (np.linspace(0.1, 1, 40, dtype=np.float32), np.ones(1, np.float32)), np.zeros(1, np.float32)
    )
    shares = ChangeShares(weights, 1, in_blocks=True)
    found = shares.shares[shares.level_of]
    blocks = [weights.parts[0][first : first + 16].mean() for first in range(0, 40, 16)]
    np.testing.assert_allclose(found, blocks, rtol=0.03)


@pytest.mark.parametrize("rule", [AdaGrad(), Adam()], ids=str)
def test_where_it_is_not_known_who_changes_a_coordinate_means_are_averaged_and_sums_added(data, rule) -> None:
    problem = FactorisationMachine((data[0][:300], data[1][:300]), rank=2)
    state = problem.start(rule)
    weights = change_weights(problem, rule, state, 4, 100, False)
    if rule.adds_up:
        assert weights is None
    else:
        assert set(weights.packed().tolist()) == {0.25}
        assert change_weights(problem, rule, state, 4, 100, True) is None


@pytest.mark.parametrize("rule", [SGD(), FTRL()], ids=str)
def test_changes_add_up_where_steps_are_short_and_are_averaged_where_each_worker_comes_to_the_optimum(
    data, rule
) -> None:
    problem = Linear(data)
    state = problem.start(rule)
    counts = data[0].getnnz(0)

    def weights(step: float | None) -> Any:
        return change_weights(problem, rule, state, 4, 1000, False, step=step).parts[0]

    usual, short, long = weights(None), weights(1e-5), weights(1e5)
    assert (short > 0.9).all()
    np.testing.assert_allclose(long[counts > counts.max() / 2], 0.25, rtol=1e-3)
    assert (np.diff([each.mean() for each in (long, weights(1.0), weights(0.1), short)]) > 0).all()
    assert usual.mean() < weights(0.1).mean()


@pytest.mark.parametrize("workers", [2, 8])
@pytest.mark.parametrize("rule", ["sgd", "ftrl"])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_copies_of_a_feature_that_move_together_do_not_overshoot(rule, workers, loss) -> None:
    X, y = sparse_data(8_000, features=500)
    problem = Linear((sp.hstack([X] * 20).tocsr(), y), loss, l2=1e-5)
    alone = minimise(problem, rule, strategy=Hogwild(2), budget=4)
    run = minimise(problem, rule, strategy=LocalSGD(workers), runtime=Local(), budget=4)
    start = 1.0 if loss == "hinge" else np.log(2)
    assert run.objective < alone.objective + 0.3 * (start - alone.objective)
    assert max(record["objective"] for record in run.history) < start


def test_a_server_sends_all_parameters_where_changes_would_take_longer() -> None:
    log, size = ChangeLog(4 * 400), 100
    for number in range(6):
        log.append(f"worker-{number}", np.full(size, 1.0, np.float32))
    assert log.since(6, version=6, worker="worker-0") == (True, None)
    known, change = log.since(5, version=6, worker="worker-0")
    assert known
    assert change.tolist() == [1.0] * size
    assert log.since(3, version=6, worker="worker-0") == (False, None)  # more than all parameters
    assert log.since(0, version=6, worker="worker-0") == (False, None)  # not all of them are there any more


def test_at_a_given_interval_workers_keep_their_parameters_too() -> None:
    problem = Linear(sparse_data(10_000, features=20_000), l2=1e-5)
    options = {"rule": "adagrad", "budget": 2, "runtime": Local()}
    sent = {
        pull_every: minimise(problem, strategy=ParameterServer(2, push_every=50, pull_every=pull_every), **options)
        for pull_every in (None, 50)  # with an interval of pulls, all parameters are exchanged
    }
    sizes = {each: run.history[-1]["bytes"] / run.history[-1]["messages"] for each, run in sent.items()}
    assert sizes[None] < 0.3 * sizes[50]
    assert sent[None].objective < 0.6 * np.log(2)


@pytest.mark.parametrize("second", [Local(), Simulator()], ids=["same", "to"])
def test_a_run_at_a_given_interval_continues_from_a_checkpoint(data, tmp_path, second) -> None:
    problem = Linear((data[0][:5_000], data[1][:5_000]), l2=1e-4)
    options = {"rule": "adagrad", "budget": 4, "strategy": ParameterServer(2, push_every=40)}
    with pytest.raises(StoppedError):
        minimise(problem, runtime=Local(), checkpoint=Checkpoints(tmp_path), callbacks=[stop], **options)
    run = minimise(problem, runtime=second, checkpoint=Checkpoints(tmp_path), resume=True, **options)
    assert [record["epoch"] for record in run.history][-1] == 4
    assert run.objective < 1.2 * minimise(problem, "adagrad", strategy=Hogwild(1), budget=4).objective
