"""Delays have one vocabulary on every runtime."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild import Local, Processes, Ray, Simulator, Threads
from hogwild.cli.options.runtime import RuntimeOptions, make_runtime
from hogwild.cli.options.strategy import CommunicationOptions
from hogwild.delays import NONE, Always, DelayStream, Exponential, Normal, Slowed, named, per_worker
from hogwild.errors import ParameterError
from hogwild.kernels.bpr import ACCESS_OF_THREE
from hogwild.kernels.sync_policies import ACCESS
from hogwild.runtimes import RUNTIMES
from hogwild.strategies import Hogwild, ParameterServer

# A GPU has thousands of rows in flight, and no workers to delay.
KINDS = {name: kind for name, kind in RUNTIMES.items() if not kind.uses_gpu}
EVERYWHERE = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@EVERYWHERE
def test_every_runtime_takes_the_same_delays(kind):
    assert kind().delay == NONE
    assert not kind().delays_workers
    assert not kind(delay={}).delays_workers
    assert kind(delay=0.5).delay == Always(0.5)
    assert kind(delay="exponential:0.01").delay == Exponential(0.01)
    some = kind(delay={2: 0.05, 3: "exponential:0.01"})
    assert some == kind(delay="2=0.05, 3=exponential:0.01")
    assert some.delay == {2: Always(0.05), 3: Exponential(0.01)}
    assert some.mentioned_workers == {2, 3}
    some.check_workers(4)
    with pytest.raises(ParameterError, match="There are workers 0 to 2; 3 is none of them"):
        some.check_workers(3)
    with pytest.raises(ParameterError, match="There is one worker, number 0; 3 is none of them"):
        some.check_workers(1)


@EVERYWHERE
@pytest.mark.parametrize(
    "wrong",
    [-1.0, float("nan"), float("inf"), True, None, "sometimes", "normal", "normal:1:2:3", "-1", {2: -0.05}, {-1: 0.05},
     {"2": 0.05}, {True: 0.05}, "2=", "two=0.05", "2=0.05,0.01", "0.01,0.02", "2=0.05,2=0.01", [0.01]],
)  # fmt: skip
def test_what_is_no_delay_is_refused(kind, wrong):
    with pytest.raises(ParameterError):
        kind(delay=wrong)


@pytest.mark.parametrize(
    ("name", "strategy", "kind"),
    [(None, Hogwild(2), Threads), ("processes", Hogwild(2), Processes), (None, ParameterServer(), Local),
     ("simulator", ParameterServer(), Simulator), ("ray", ParameterServer(), Ray)],
)  # fmt: skip
def test_one_option_of_the_command_line(name, strategy, kind):
    def made(*words):
        return make_runtime(name, strategy, RuntimeOptions(delay=list(words)), CommunicationOptions())

    assert made("0.01") == kind(delay=0.01)
    assert made("normal:0.01:0.002") == kind(delay=Normal(0.01, 0.002))
    assert made("0=0.05", "1=exponential:0.01") == made("0=0.05,1=exponential:0.01")
    assert made("0=0.05", "1=exponential:0.01") == kind(delay={0: 0.05, 1: Exponential(0.01)})
    with pytest.raises(ParameterError, match="'delay' parameter"):
        made("0.01", "2=0.05")


def test_equal_seeds_and_workers_have_equal_delays():
    def drawn(seed, worker, incarnation=0):
        stream = DelayStream("exponential:1", seed, worker, incarnation)
        return [stream.next() for _ in range(5)]

    assert drawn(3, 1) == drawn(3, 1)
    assert len({tuple(each) for each in (drawn(3, 1), drawn(4, 1), drawn(3, 2), drawn(3, 1, 1))}) == 4
    stream = DelayStream("exponential:1", 3, 1)
    np.testing.assert_allclose([stream.total(2), stream.next()], [sum(drawn(3, 1)[:2]), drawn(3, 1)[2]])
    assert DelayStream({1: 0.5}, 0, 1).total(4) == 2.0
    assert DelayStream({1: 0.5}, 0, 0).total(4) == 0.0
    assert [DelayStream({1: 0.5}, 0, worker).waits for worker in (0, 1)] == [False, True]


def test_a_factor_of_some_workers():
    slow = Slowed("log-normal:0.01:0.3", {2: 10.0})
    usual, slowed = (slow.draw(np.random.default_rng(1), worker, 0) for worker in (0, 2))
    assert slowed == 10 * usual > 0
    assert Simulator(slow).mentioned_workers == {2}
    for wrong in ({2: -1.0}, {-1: 2.0}, {2: float("inf")}, 3.0):
        with pytest.raises(ParameterError, match="'times'"):
            Slowed(0.01, wrong)


def test_a_delay_of_ones_own():
    class Growing:
        def draw(self, random, worker, count):
            return worker + count - 1.0

    assert named(mine := Growing()) is mine
    assert per_worker({1: mine}) == {1: mine}
    assert DelayStream(mine, 0, 0).total(3) == 1.0  # -1 counts as 0, and then 0 and 1


def test_every_problem_has_the_same_ways_of_access():
    assert ACCESS.keys() == ACCESS_OF_THREE.keys()
