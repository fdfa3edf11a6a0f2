"""Workers with copies of their own of the frequent coordinates."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import references
from hogwild import Constant, Hogwild, HogwildClassifier, Linear, Serial, minimise
from hogwild.data import Chunk
from hogwild.errors import ParameterError
from hogwild.iterate_average import IterateAverage
from hogwild.kernels.linear_replicated import EVENT
from hogwild.problems import hot_replicas
from hogwild.rules import named
from hogwild.runtimes.shared_memory.epoch_runner import CompiledRunner

RNG = np.random.default_rng(0)
ROWS, FEATURES = 3_000, 400


def text(binary=False):
    """Sparse rows whose features get rarer with their number, and labels that a model can learn."""
    present = RNG.random((ROWS, FEATURES)) < 3 / (3 + np.arange(FEATURES))
    X = np.where(present, 1.0 if binary else RNG.random((ROWS, FEATURES)), 0.0).astype(np.float32)[
        :, RNG.permutation(FEATURES)
    ]
    return sp.csr_array(X), np.sign(X @ RNG.standard_normal(FEATURES) + 0.3 * RNG.standard_normal(ROWS) + 1e-9)


DATA = {
    "sparse": text(),
    "binary": text(binary=True),
    "dense": (text()[0].toarray()[:, :60], text()[1]),
}
# Each of these has loops of its own to compile, with each loss, rule and penalty: most tests here have the same ones.
KINDS = list(DATA) if references.ALL else ["sparse", "dense"]
RULES, HOTS = ("sgd", "adagrad"), ("all", "some")


@pytest.fixture
def few_hots(hots, monkeypatch):
    if hots == "some":
        monkeypatch.setattr(hot_replicas, "CACHED", 0)
        monkeypatch.setattr(hot_replicas, "FREQUENT", 50)
        monkeypatch.setattr(hot_replicas, "FIRST_TIER", 8)


@pytest.mark.usefixtures("few_hots")
@pytest.mark.parametrize(
    ("rule", "l1", "kind", "hots"),
    [
        *((rule, 0.0, kind, hots) for rule in RULES for kind in KINDS for hots in HOTS if references.ALL),
        *((rule, 1e-5, kind, hots) for rule in RULES for kind in KINDS for hots in HOTS if references.ALL),
        *([] if references.ALL else [("adagrad", 1e-5, "sparse", "some"), ("sgd", 0.0, "dense", "all")]),
    ],
)
def test_one_of_the_workers_alone_takes_the_steps_of_serial(rule, l1, kind, hots):
    """Then nothing is merged but its own changes, so the copies must make no difference."""
    small = {"sgd": 0.01, "adagrad": 1e-4}[rule]  # so small that nothing is damped
    problem, step = Linear(DATA[kind], "logistic", l1=l1, l2=1e-4), np.full(ROWS, small, np.float32)
    rule = named(rule)
    copies, order = problem.hot_replicas(rule, 32, 2), np.arange(ROWS, dtype=np.uint32)
    assert copies.plan.everything == (hots == "all" or kind == "dense")
    state, expected = problem.start(rule), problem.start(rule)
    for _ in range(2):
        chunk = Chunk(problem.data.in_order()[0].rows, order[: len(problem.data.in_order()[0].order)])
        copies.gather(state, 1e-6)
        found = copies.descent(1)(chunk, step[: len(chunk.order)], state, problem.sync_buffer("free"))
        copies.settle(1, state)
        copies.scatter(state)
        loss = problem.kernel(rule, "free", 2)(chunk, step[: len(chunk.order)], expected, problem.sync_buffer("free"))
        assert found == pytest.approx(loss, rel=1e-3)
    for mine, theirs in zip(state, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-2, atol=2e-4)
    assert copies.own[1].control[EVENT] > 10


@pytest.mark.usefixtures("few_hots")
@pytest.mark.parametrize(
    ("loss", "rule", "kind", "hots"),
    [
        *(
            ("logistic", rule, kind, hots)
            for rule in RULES
            for kind in KINDS
            for hots in HOTS
            if references.ALL or (kind == "sparse") == (rule == "adagrad")
        ),
        *(("hinge", rule, kind, hots) for rule in RULES for kind in KINDS for hots in HOTS if references.ALL),
        *([] if references.ALL else [("hinge", "sgd", "sparse", "all")]),
    ],
)
@pytest.mark.parametrize("workers", [2, 4] if references.ALL else [4])
def test_they_come_to_where_serial_comes(workers, loss, rule, kind):
    problem = Linear(DATA[kind], loss, l2=1e-3)
    serial, buffered = (
        minimise(problem, rule, strategy=strategy, budget=60) for strategy in (Serial(), Hogwild(workers, buffer=32))
    )
    assert buffered.objective == pytest.approx(serial.objective, rel=1e-2)


def test_a_state_goes_out_and_comes_back_as_it_was():
    problem, rule = Linear(DATA["sparse"], "logistic"), named("adagrad")
    copies, state = problem.hot_replicas(rule, 32, 3), problem.start(rule)
    state[0][:] = RNG.random(state[0].shape)
    before = state[0].copy()
    copies.gather(state, 1e-6)
    assert np.array_equal(copies.hot, before[np.argsort(-problem.data.frequencies(), kind="stable")])
    for worker in range(3):
        copies.settle(worker, state)
    copies.scatter(state)
    assert np.array_equal(state[0], before)


def test_changes_of_all_workers_count():
    problem, rule = Linear(DATA["sparse"], "logistic"), named("sgd")
    copies, state = problem.hot_replicas(rule, 32, 3), problem.start(rule)
    copies.gather(state, 1e-6)
    for own in copies.own:
        own.copy[copies.plan.places[5]] += 1
    for worker in range(3):
        copies.settle(worker, state)
    copies.scatter(state)
    assert state[0][copies.plan.by_rank[5], 0] == pytest.approx(3)


def test_no_sum_of_squares_is_lost_when_all_merge_all_the_time():
    """Steps are so small that no slope changes: every worker adds up the same whoever comes first."""
    problem, rule, workers = Linear(DATA["dense"], "logistic", l2=1e-6, intercept=False), named("adagrad"), 2
    copies, state, whole = problem.hot_replicas(rule, 4, workers), problem.start(rule), problem.data.in_order().whole()
    copies.compile(Chunk(whole.rows, whole.order[:0]), state)  # so that they begin at the same time
    order = np.tile(whole.order, 40)
    step = np.full(len(order), 1e-12, np.float32)
    with ThreadPoolExecutor(workers) as pool:
        walks = [
            pool.submit(copies.descent(w), Chunk(whole.rows, order), step, state, problem.sync_buffer("free"))
            for w in range(workers)
        ]
    assert all(np.isfinite(walk.result()) for walk in walks)
    for worker in range(workers):
        copies.settle(worker, state)
    copies.scatter(state)
    rows = whole.rows.values.reshape(ROWS, -1).astype(np.float64)[order]
    expected = rule.initial_accumulator + workers * np.square(rows / 2).sum(axis=0)
    # Without a door it is some 0.02. One that the system stops while it merges is not waited for: that costs a little.
    assert np.abs(1 - state[0][:, 1] / expected).mean() < 3e-3


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_who_finds_another_merging_goes_on_and_does_not_wait_for_ever(kind):
    problem, rule = Linear(DATA[kind], "logistic", l2=1e-4), named("adagrad")
    copies, state, whole = problem.hot_replicas(rule, 32, 2), problem.start(rule), problem.data.in_order().whole()
    copies.gather(state, 0.1)
    copies.locks[:] = 1
    step = np.full(len(whole.order), 0.1, np.float32)
    copies.descent(0)(Chunk(whole.rows, whole.order), step, state, problem.sync_buffer("free"))
    assert not copies.hot[:, 0].any()
    assert (copies.locks == 1).all()  # it is for the other one to open them
    copies.locks[:] = 0
    copies.descent(0)(Chunk(whole.rows, whole.order), step, state, problem.sync_buffer("free"))
    assert copies.hot[:, 0].any()
    assert not copies.locks.any()


@pytest.mark.parametrize("rule", ["sgd", "adagrad"])
def test_terms_of_all_lengths_are_looked_up(rule, monkeypatch):
    """Empty ones, and one as long as there are features, at the ends and in between."""
    monkeypatch.setattr(hot_replicas, "CACHED", 0)
    monkeypatch.setattr(hot_replicas, "FREQUENT", 50)
    X, y = DATA["binary"]
    X = X.toarray()
    X[[0, 7, 8, ROWS - 1]], X[[3, ROWS - 2]] = 0, 1
    problem, rule = Linear((sp.csr_array(X), y), "logistic", l2=1e-4), named(rule)
    whole = problem.data.in_order().whole()
    for some in (whole.order, whole.order[:1], whole.order[:4], whole.order[:0]):
        copies, state, expected = problem.hot_replicas(rule, 32, 2), problem.start(rule), problem.start(rule)
        chunk, step = Chunk(whole.rows, some), np.full(len(some), 1e-4, np.float32)
        copies.gather(state, 1e-4)
        found = copies.descent(0)(chunk, step, state, problem.sync_buffer("free"))
        copies.settle(0, state)
        copies.scatter(state)
        assert found == pytest.approx(
            problem.kernel(rule, "free", 2)(chunk, step, expected, problem.sync_buffer("free"))
        )
        for mine, theirs in zip(state, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=2e-2, atol=2e-5)


def test_none_where_they_are_of_no_use():
    problem = Linear(DATA["sparse"], "logistic")
    assert problem.hot_replicas(named("adagrad"), 32, 1) is None
    assert problem.hot_replicas(named("adam"), 32, 2) is None
    assert problem.hot_replicas(named("adagrad"), 0, 2) is None
    assert problem.hot_replicas(named("adagrad"), "auto", 4) is None  # too few rows
    assert Linear((DATA["sparse"][0], np.arange(ROWS) % 3)).hot_replicas(named("sgd"), 32, 2) is None
    for buffer in (-1, True, "some"):
        with pytest.raises(ParameterError, match="'buffer'"):
            Hogwild(2, buffer=buffer)


def test_one_works_alone_until_the_loop_with_buffers_is_compiled(monkeypatch):
    """And all of them from then on, in the middle of an epoch if need be."""
    monkeypatch.setattr("hogwild.runtimes.shared_memory.threads.is_cached", lambda kernel: False)
    monkeypatch.setattr("hogwild.runtimes.shared_memory.threads.LONG", 0.0)
    may_end, compiled, at_work, compile_now = threading.Event(), threading.Event(), [], hot_replicas.HotReplicas.compile
    worked = CompiledRunner._work

    def compile_later(self, *given):
        assert may_end.wait(60)
        compile_now(self, *given)
        compiled.set()

    def after_an_epoch(event):
        if event["event"] == "epoch" and event["epoch"] >= 2:
            may_end.set()
            assert compiled.wait(60)

    monkeypatch.setattr(hot_replicas.HotReplicas, "compile", compile_later)
    monkeypatch.setattr(CompiledRunner, "_work", lambda self, worker: at_work.append(worker) or worked(self, worker))
    problem = Linear(DATA["sparse"], "logistic", l2=1e-3)
    how = {"rule": "adagrad", "schedule": Constant(0.1), "budget": 20}
    run = minimise(problem, strategy=Hogwild(2), callbacks=[after_an_epoch], **how)
    assert set(at_work[:2]) == {0}
    assert set(at_work) == {0, 1}
    assert run.objective == pytest.approx(minimise(problem, strategy=Serial(), **how).objective, rel=1e-2)


def test_what_is_on_the_disk_is_there_from_the_start(monkeypatch):
    monkeypatch.setattr("hogwild.runtimes.shared_memory.threads.is_cached", lambda kernel: True)
    at_work, worked = [], CompiledRunner._work
    monkeypatch.setattr(CompiledRunner, "_work", lambda self, worker: at_work.append(worker) or worked(self, worker))
    minimise(Linear(DATA["sparse"], "logistic", l2=1e-4), "adagrad", Constant(0.1), Hogwild(2), budget=1)
    assert set(at_work) == {0, 1}


@pytest.mark.parametrize(("rule", "workers"), [("adagrad", 16), ("adam", 1)])
def test_few_parameters_that_cannot_be_copied_are_for_one_worker(rule, workers, monkeypatch):
    monkeypatch.setattr("hogwild.strategies.worker_count", lambda strategy: strategy.workers or 16)
    monkeypatch.setattr("hogwild.training.thread_driver.LEAST_WORK", 1)
    monkeypatch.setattr("hogwild.problems.hot_replicas.FEWEST_ROWS", 1)  # replicas pay for any number of workers
    monkeypatch.setattr("hogwild.problems.hot_replicas.WORTH", 0)
    problem = Linear(DATA["sparse"], "logistic", l2=1e-4)
    run = minimise(problem, rule, Constant(0.1), budget=1)
    assert run.config["workers"] == workers
    said = [event for event in run.events if event["event"] == "workers" and "sooner" in event["message"]]
    told = [event["workers"] for event in said]
    assert told == ([] if workers == 16 else [1])
    asked = minimise(problem, rule, Constant(0.1), Hogwild(3), budget=1)
    assert asked.config["workers"] == 3


def test_a_mean_is_of_what_workers_have_merged_not_of_the_ends_of_epochs(monkeypatch):
    seen, add = [], IterateAverage.add
    monkeypatch.setattr(
        IterateAverage, "add", lambda self, state: seen.append(state[0][:, 0].copy()) or add(self, state)
    )
    minimise(
        Linear(DATA["sparse"], "logistic", l2=1e-3), "sgd", Constant(0.5), Hogwild(2, buffer=32), budget=2, average=1.0
    )
    assert len({values.tobytes() for values in seen}) > 4


def test_estimators_pass_it_on():
    X, y = DATA["sparse"]
    model = HogwildClassifier("log_loss", n_jobs=2, buffer=64, random_state=0, learning_rate="constant").fit(X, y)
    assert model.score(X, y) > 0.8
    with pytest.raises(ValueError, match="buffer"):
        HogwildClassifier(buffer=-1).fit(X, y)


def test_a_run_with_buffers_is_interrupted_between_chunks_and_goes_on(tmp_path):
    problem = Linear(DATA["sparse"], "logistic", l2=1e-3)
    how = {"rule": "adagrad", "schedule": Constant(0.1), "strategy": Hogwild(2, buffer=32)}
    whole = minimise(problem, budget=20, **how)
    told = [event for event in whole.events if event["event"] == "replicas"]
    assert [(event["coordinates"], event["of"], event["rows"]) for event in told] == [(FEATURES, FEATURES, 32)]
    minimise(problem, budget=10, checkpoint=tmp_path, **how)
    rest = minimise(problem, budget=20, checkpoint=tmp_path, resume=True, **how)
    assert rest.objective == pytest.approx(whole.objective, rel=1e-2)
