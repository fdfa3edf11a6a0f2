"""Delayed threads: what they have read grows old before they write, and nothing waits for them at the end."""

import threading
import time

import numpy as np
import pytest

import hogwild
from hogwild import Budget, Linear, Threads, minimise
from hogwild.data.dataset import Chunk
from hogwild.errors import CheckpointError, ParameterError
from hogwild.kernels.sync_policies import DEBT, DELAYED_TERMS, DRAWN
from hogwild.rules import Sequential, named
from hogwild.strategies import Averaging, Hogwild, Locked, RoundRobin, Serial
from hogwild.training.loop import DELAYED_ROWS

ROWS, PATIENCE = 200, 60.0


@pytest.fixture(scope="module")
def problem():
    random = np.random.default_rng(2)
    X = random.standard_normal((ROWS, 3)).astype(np.float32)
    return Linear((X, X @ np.array([1.0, -2.0, 0.5])), "squared", intercept=False, l2=0.0)


@pytest.fixture(autouse=True)
def nothing_left():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def trained(problem, strategy, delay, budget=2, **options):
    return minimise(problem, "sgd", hogwild.Constant(0.02), strategy, Threads(delay=delay), budget, seed=3, **options)


def test_a_worker_waits_between_its_read_and_its_write(problem):
    """What others write in the meantime is not in its gradient. It failed before, as threads had no delay."""
    session = Threads(delay=3000.0).session(problem, named("sgd"), Hogwild(2, buffer=0), 2)
    try:
        delays, chunk = session.delays[0], problem.data.in_order()[0]
        assert delays.claim() == 1
        delays.load(1)
        one, rates = Chunk(chunk.rows, chunk.order[:1]), np.full(1, 0.5, session.precision)
        (weights, _), descend = session.state, session.descents[0]
        thread = threading.Thread(target=descend, args=(one, rates, session.state, delays.array))
        thread.start()
        until = time.monotonic() + PATIENCE
        while delays.array[DEBT] == 0 and time.monotonic() < until:  # It is in debt once it has read.
            time.sleep(0.001)
        assert not weights.any()
        weights[:, 0] += 1.0
        delays.skip()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    finally:
        session.close()
    alone = Threads().session(problem, named("sgd"), Serial(), 1)
    try:
        alone.descents[0](one, rates, alone.state, alone.sync)
        assert alone.state[0].any()
        np.testing.assert_allclose(weights[:, 0], 1.0 + alone.state[0][:, 0], rtol=1e-6)
    finally:
        alone.close()


def test_the_delays_of_a_claim_add_up(problem):
    session = Threads(delay="exponential:0.0001").session(problem, named("sgd"), Hogwild(2, buffer=0), 2, seed=5)
    try:
        delays, stream, total = session.delays[1], Threads(delay="exponential:0.0001").delay_streams(5, 2)[1], 0.0
        for _ in range(20):
            terms = delays.claim()
            assert 1 <= terms <= DELAYED_TERMS
            delays.load(max(1, terms - 1))  # an epoch may have no more
            written = delays.array[DRAWN : DRAWN + max(1, terms - 1)].sum()
            total += written - 1e6 * stream.total(max(1, terms - 1))
            assert abs(total) < 1.0  # microseconds: what was cut off is waited later
    finally:
        session.close()


@pytest.mark.parametrize("delay", [{0: 1e-5}, "exponential:0.00001"])
def test_one_delayed_worker_is_serial(problem, delay):
    alone, delayed = trained(problem, Serial(), 0.0), trained(problem, Serial(), delay)
    np.testing.assert_allclose(delayed.model.weights, alone.model.weights, rtol=1e-5)
    assert delayed.result["updates"] == 2 * ROWS
    assert delayed.loss == pytest.approx(alone.loss, rel=1e-4)


@pytest.mark.parametrize("strategy", [Hogwild(3), Averaging(3)], ids=["hogwild", "averaging"])
def test_every_row_is_trained_on_once_an_epoch(problem, strategy):
    run = trained(problem, strategy, {0: 1e-4, 2: "exponential:0.0001"}, budget=3)
    assert [record["updates"] for record in run.history] == [ROWS, 2 * ROWS, 3 * ROWS]
    assert run.history[-1]["loss"] < run.history[0]["loss"]
    assert "Exponential(mean=0.0001)" in run.events[0]["runtime"]


def test_a_limit_ends_all_delays(problem):
    run = trained(problem, Hogwild(2), 3000.0, Budget(seconds=0.05))
    assert run.stop_reason == "seconds"
    assert run.result["updates"] <= DELAYED_ROWS  # and not all rows without delay
    assert np.isfinite(run.model.weights).all()


def test_the_checkpoint_of_a_delayed_run_is_resumed_with_a_delay(problem, tmp_path):
    assert trained(problem, Hogwild(2), 1e-5, 1, checkpoint=tmp_path).config["delayed"]
    with pytest.raises(CheckpointError, match="delayed was True, now None"):
        trained(problem, Hogwild(2), 0.0, 2, checkpoint=tmp_path, resume=True)
    run = trained(problem, Hogwild(2), {1: 1e-5}, 2, checkpoint=tmp_path, resume=True)
    assert run.result["updates"] == 2 * ROWS


def test_an_error_in_a_callback_ends_all_delays(problem):
    class StoppedError(Exception):
        pass

    def listen(event):
        if event["event"] == "progress":
            raise StoppedError

    with pytest.raises(StoppedError):
        trained(problem, Hogwild(2), 3000.0, callbacks=[listen])


def test_what_cannot_be_delayed_is_refused(problem):
    for strategy in (Locked(2), RoundRobin(2)):
        with pytest.raises(ParameterError, match="leave out 'delay'"):
            trained(problem, strategy, 0.1)
    with pytest.raises(ParameterError, match=r"use Hogwild\(buffer=0\)"):
        trained(problem, Hogwild(2, buffer=8), 0.1)
    with pytest.raises(ParameterError, match="There are workers 0 to 1; 2 is none of them"):
        trained(problem, Hogwild(2), {2: 0.1})
    with pytest.raises(ParameterError, match="leave out 'delay'"):
        minimise(problem, Sequential(), hogwild.Constant(0.02), Serial(), Threads(delay=0.1), 1)
