"""Participants on threads: they come to the same as elsewhere, and nothing is left of them."""

import threading
import time
from collections import Counter

import numpy as np
import pytest

import hogwild
from hogwild import Budget, Crash, Crashes, Linear, Local, ParameterServer, Simulator, minimise
from hogwild.errors import ParameterError, WorkerError
from hogwild.messaging.job import MessageJob
from hogwild.training import message_launch, row_message_driver

SMALL = 400


@pytest.fixture(autouse=True)
def nothing_left():
    """No thread outlives its run."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


@pytest.fixture(scope="module")
def squares():
    random = np.random.default_rng(1)
    X = random.standard_normal((SMALL, 5)).astype(np.float32)
    y = X @ np.array([1.0, -2.0, 0.5, 0.0, 3.0]) + 0.1 * random.standard_normal(SMALL)
    return Linear((X, y), "squared", intercept=False), np.linalg.lstsq(X, y, rcond=None)[0]


def descended(problem, strategy, runtime, epochs=10, **options):
    return minimise(
        problem, "sgd", hogwild.Cosine(0.02), strategy, runtime, options.pop("budget", epochs), seed=3, **options
    )


def weights(run):
    return np.ravel(run.model.weights)


def of(run, name):
    return next(event for event in run.events if event["event"] == name)


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize(
    "options", [{"push_every": 4}, {"staleness": 1, "push_every": 4}, {"shards": 2, "push_every": 4}], ids=repr
)
def test_it_comes_to_the_optimum(squares, workers, options):
    problem, optimum = squares
    run = descended(problem, ParameterServer(workers=workers, **options), Local(), epochs=20)
    np.testing.assert_allclose(weights(run), optimum, atol=0.03)
    assert run.stop_reason == "epochs"
    assert of(run, "traffic")["messages"] > 0


def test_one_worker_is_serial(squares):
    problem, _ = squares
    alone = minimise(problem, "sgd", hogwild.Cosine(0.02), "serial", budget=2, seed=3)
    run = descended(problem, ParameterServer(workers=1), Local(), epochs=2)
    np.testing.assert_allclose(weights(run), weights(alone), rtol=1e-6, atol=1e-6)


def test_in_step_it_is_what_the_simulator_comes_to(squares):
    problem, _ = squares
    strategy = ParameterServer(workers=3, staleness=0, push_every=5)
    here, there = (descended(problem, strategy, runtime, epochs=4) for runtime in (Local(), Simulator()))
    np.testing.assert_allclose(weights(here), weights(there), rtol=1e-6, atol=1e-6)


def test_with_a_bound_all_wait_for_the_slow(squares):
    problem, _ = squares
    strategy, bound = ParameterServer(workers=3, staleness=2, push_every=20), 2
    run = descended(problem, strategy, Local(delay={1: 0.0005}), epochs=4)
    staleness = of(run, "staleness")
    assert 0 < staleness["most_clocks_behind"] <= bound
    assert len({each["count"] for each in staleness["workers"].values()}) == 1


def test_without_a_bound_nobody_waits(squares):
    problem, _ = squares
    run = descended(problem, ParameterServer(workers=3, push_every=20), Local(delay={1: 0.01}), epochs=4)
    pushes = {name: each["count"] for name, each in of(run, "staleness")["workers"].items()}
    assert pushes["worker-1"] < min(pushes["worker-0"], pushes["worker-2"])
    assert run.stop_reason == "epochs"


def test_messages_may_take_their_time(squares):
    problem, optimum = squares
    strategy = ParameterServer(workers=2, staleness=1, push_every=20)
    run = descended(problem, strategy, Local(latency="exponential:0.001"), epochs=20)
    np.testing.assert_allclose(weights(run), optimum, atol=0.03)
    assert of(run, "idle")["idle_share"] > 0


def test_many_workers(squares):
    problem, _ = squares
    run = descended(problem, ParameterServer(workers=100, staleness=0), Local(), epochs=2)
    counts = Counter(each["count"] for each in of(run, "staleness")["workers"].values())
    assert counts == {2 * SMALL // 100: 100}


@pytest.mark.parametrize("staleness", [None, 1])
def test_the_dead_are_not_waited_for_and_may_come_back(squares, staleness):
    problem, optimum = squares
    faults = (
        Crash("worker-0", 0.02), Crash("worker-1", 0.04, 0.05), Crash("server-0", 0.06, 0.02),
        Crashes(every=0.2, back_after=0.02),
    )  # fmt: skip
    runtime = Local(
        faults=faults,
        detection_delay=0.02,
        join_times={2: 0.05},
        delay=0.0005,
        stall_timeout=60,
    )
    run = descended(problem, ParameterServer(workers=3, staleness=staleness, push_every=8), runtime, epochs=12)
    assert of(run, "idle")["crashes"] >= 3
    assert {"lost", "joined"} <= {event["event"] for event in run.events}
    np.testing.assert_allclose(weights(run), optimum, atol=0.15)


def test_time_and_targets_end_it(squares):
    problem, _ = squares
    run = descended(problem, ParameterServer(workers=2), Local(delay=0.01), budget=Budget(seconds=0.1))
    assert run.stop_reason == "seconds"
    run = descended(problem, ParameterServer(workers=2), Local(), budget=Budget(epochs=500, target=0.1))
    assert run.stop_reason == "target"


@pytest.mark.parametrize("budget", [Budget(epochs=1), Budget(seconds=0.1)], ids=["epochs", "seconds"])
def test_the_end_of_the_run_ends_all_delays(squares, budget):
    """A worker that waits reads no message, not even the one that it is over: before, the run failed here."""
    delay = {1: 3000.0} if budget.epochs else 3000.0
    run = descended(squares[0], ParameterServer(workers=2), Local(delay=delay, stall_timeout=20), budget=budget)
    assert run.stop_reason == ("epochs" if budget.epochs else "seconds")


class BrokenError(Exception):
    """Something nobody expected."""


def broken(*_):
    raise BrokenError("in the middle of it")


def test_what_fails_in_a_worker_is_told(squares, monkeypatch):
    monkeypatch.setattr("hogwild.training.row_trainer.RowSource.rates", broken)
    with pytest.raises(WorkerError, match=r"worker-\d failed: BrokenError: in the middle of it") as failure:
        descended(squares[0], ParameterServer(workers=3, push_every=1), Local())
    assert isinstance(failure.value.__cause__, BrokenError)


def test_the_seconds_of_a_run_are_those_of_training(squares, monkeypatch):
    """The parameters of a record are as old as its seconds say, and nobody trains during the last evaluation."""
    measure, pause = row_message_driver.Evaluation.__call__, 0.5

    def slow(evaluation, values, exactly):
        time.sleep(pause if exactly else 0.0)
        return measure(evaluation, values, exactly)

    monkeypatch.setattr(row_message_driver.Evaluation, "__call__", slow)
    began = time.perf_counter()
    run = descended(squares[0], ParameterServer(workers=2), Local(), epochs=1)
    whole = time.perf_counter() - began
    assert 0 < run.history[-1]["seconds"] == run.seconds <= whole - pause


def test_what_fails_while_measuring_is_told(squares, monkeypatch):
    usual, calls = row_message_driver._sums, []

    def broken_later(*given):
        """Work once, for the loss at the start, and never again."""
        calls.append(given)
        return usual(*given) if len(calls) == 1 else broken()

    monkeypatch.setattr("hogwild.training.row_message_driver._sums", broken_later)
    with pytest.raises(WorkerError, match="measurement failed: BrokenError"):
        descended(squares[0], ParameterServer(workers=2), Local())


def test_what_a_callback_raises_goes_on_its_way(squares):
    threads = set()

    def listen(event):
        threads.add(threading.current_thread())
        if event["event"] == "epoch":
            raise BrokenError

    with pytest.raises(BrokenError):
        descended(squares[0], ParameterServer(workers=2), Local(), callbacks=[listen])
    assert threads == {threading.current_thread()}


def interrupting(monkeypatch, after):
    """Have Ctrl-C pressed once it was looked for so often."""

    def pressed():
        pressed.looks += 1
        return pressed.looks > after

    pressed.looks = 0

    def job(*parts):
        return MessageJob(*parts[:6], pressed)

    monkeypatch.setattr(message_launch, "MessageJob", job)


@pytest.mark.parametrize("bound", [None, 1])
@pytest.mark.parametrize("runtime", [Local(delay={0: 0.002, 1: 30.0}), Simulator()], ids=["local", "simulator"])
def test_ctrl_c_ends_it_with_what_it_has(squares, runtime, bound, monkeypatch):
    interrupting(monkeypatch, after=3)
    run = descended(squares[0], ParameterServer(workers=2, staleness=bound), runtime, epochs=1000)
    assert run.stop_reason == "interrupted"
    assert run.result["updates"] < 1000 * SMALL
    assert np.isfinite(weights(run)).all()


def test_what_cannot_be_asked_for():
    for wrong in ({"delay": {1: -1.0}}, {"join_times": {0: float("inf")}}, {"detection_delay": -1.0},
                  {"stall_timeout": 0.0}, {"faults": ("crash",)}, {"latency": "sometimes"}):  # fmt: skip
        with pytest.raises(ParameterError):
            Local(**wrong)


def test_silence_is_noticed(squares, monkeypatch):
    monkeypatch.setattr(
        "hogwild.strategies.roles.parameter_server.ParameterServerRole._answer", lambda self, worker: iter(())
    )
    with pytest.raises(WorkerError, match=r"nothing was heard of worker-0.* for 0\.2 s"):
        descended(squares[0], ParameterServer(workers=2), Local(stall_timeout=0.2))


def test_who_sends_more_than_is_received_goes_on_when_it_is(squares, monkeypatch):
    """Receipts wake nobody, but who waits for them."""
    monkeypatch.setattr("hogwild.messaging.reliable_channel.WINDOW", 2)
    strategy = ParameterServer(workers=2, shards=2, pull_every=50)
    run = descended(squares[0], strategy, Local(stall_timeout=60), epochs=2)
    assert run.stop_reason == "epochs"
    assert of(run, "traffic")["kinds"]["Push"]["messages"] >= 2 * 2 * SMALL
