"""The simulator: delays, and what it counts of nodes that have crashed."""

import numpy as np
import pytest
from counting import Counter, count

from hogwild import Crash, Crashes, Link, ParameterServer, Simulator
from hogwild.errors import ParameterError
from hogwild.messaging.deltas import frozen
from hogwild.messaging.job import MessageJob, RunConfig
from hogwild.runtimes.simulator import event_loop, memory_accounting
from hogwild.strategies import Synchronous


def job_of(strategy, epoch, goal, seed=0):
    config = RunConfig(strategy.workers, frozen(np.zeros(3, np.float32)), epoch, goal)
    return MessageJob(
        config, strategy.roles(config), lambda worker: Counter(), lambda values, exactly: {"loss": 1.0},
        lambda event, **what: None, seed,
    )  # fmt: skip


def test_a_delay_adds_to_each_update():
    outcome, _ = count(Synchronous(2, accumulate=5), Simulator(0.001, delay={1: 0.01}), terms=20)
    assert outcome.busy == {"worker-0": pytest.approx(10 * 0.001), "worker-1": pytest.approx(10 * 0.011)}
    outcome, _ = count(Synchronous(2, accumulate=5), Simulator(0.001, delay=0.01), terms=20)
    assert outcome.busy == {name: pytest.approx(10 * 0.011) for name in ("worker-0", "worker-1")}


def test_drawn_delays_go_by_the_seed():
    def busy(seed):
        return count(Synchronous(2), Simulator(0.0, delay="exponential:0.01"), terms=20, seed=seed)[0].busy

    assert busy(1) == busy(1) != busy(2)
    assert len(set(busy(1).values())) == 2  # each worker has delays of its own


def test_memory_is_counted_in_the_same_time_at_every_epoch(monkeypatch):
    """The records of all epochs before were visited again at each, so that time was quadratic in epochs."""
    visited: list[int] = []
    arrays, held = memory_accounting._arrays, memory_accounting.held_bytes

    def counting_arrays(things, depth):
        things = list(things)
        visited[-1] += len(things)
        return arrays(things, depth)

    def counting_held(nodes):
        visited.append(0)
        return held(nodes)

    monkeypatch.setattr(memory_accounting, "_arrays", counting_arrays)
    monkeypatch.setattr(event_loop, "held_bytes", counting_held)
    outcome = Simulator().play(job_of(ParameterServer(workers=2), epoch=2, goal=120))
    assert len(visited) > 40
    assert max(visited) < 2 * visited[2]
    assert outcome.more["memory"] > 0


def test_what_crashed_nodes_sent_again_is_counted(monkeypatch):
    channels = []

    class Kept(event_loop.ReliableChannel):
        def __init__(self, *parts):
            super().__init__(*parts)
            channels.append(self)

    monkeypatch.setattr(event_loop, "ReliableChannel", Kept)
    faults = tuple(Crash("worker-1", at, 0.05) for at in (0.2, 0.6, 1.0))
    runtime = Simulator(0.005, Link(0.001, loss=0.3), faults=faults, detection_delay=0.01)
    outcome, _ = count(ParameterServer(workers=2), runtime, terms=400)
    crashed = [channel for channel in channels[:-3] if channel.resent]
    assert outcome.more["crashes"] >= 1
    assert crashed
    assert outcome.traffic["all"].resent == sum(channel.resent for channel in channels)


def test_queues_of_crashed_nodes_are_dropped():
    faults = tuple(Crash("worker-1", at, 0.02) for at in np.arange(0.05, 1.0, 0.1))
    runtime = Simulator(0.002, faults=faults, detection_delay=0.01, handling_time=0.02)
    loop = event_loop.EventLoop(runtime, job_of(ParameterServer(workers=2), epoch=50, goal=200))
    loop.play()
    assert loop.crashes > 2
    assert all(loop.incarnations.get(name) == incarnation for name, incarnation in loop._queues)


@pytest.mark.parametrize(
    "wrong",
    [{"compute_time": -1.0}, {"handling_time": "sometimes"}, {"link": 0.1}, {"delay": {1: -1.0}},
     {"join_times": {1: -1.0}}, {"join_times": {"one": 1.0}}, {"detection_delay": -1.0},
     {"detection_delay": float("inf")}, {"stall_timeout": 0.0}, {"stall_timeout": -1.0}, {"faults": ("crash",)}],
    ids=repr,
)  # fmt: skip
def test_what_cannot_be_simulated_is_refused(wrong):
    with pytest.raises(ParameterError):
        Simulator(**wrong)


def test_crashes_that_cannot_happen_are_refused():
    for wrong in (("worker", 1.0), ("worker-x", 1.0), (3, 1.0), ("worker-1", -1.0), ("worker-1", float("inf")),
                  ("worker-1", 1.0, -1.0), ("worker-1", 1.0, float("nan"))):  # fmt: skip
        with pytest.raises(ParameterError):
            Crash(*wrong)
    for wrong in ((0.0,), (-1.0,), (float("inf"),), (1.0, -1.0), (1.0, float("inf"))):
        with pytest.raises(ParameterError):
            Crashes(*wrong)
