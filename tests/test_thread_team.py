"""Threads that are given one task after another."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from hogwild import Budget, Constant, Cosine, Hogwild, Linear, Serial, minimise
from hogwild.kernels import work_queue
from hogwild.kernels.work_queue import GATE, LIMIT, NEXT, STOPPED, halt, new_queue, reset_queue
from hogwild.runtimes.shared_memory.epoch_runner import claims_per_chunk
from hogwild.runtimes.shared_memory.thread_team import ThreadTeam


@pytest.fixture
def team():
    team = ThreadTeam(4)
    yield team
    team.close()


def test_every_worker_does_every_task(team):
    done = []
    for number in range(20):
        team.run(lambda worker, number=number: bool(done.append((number, worker))))
    assert sorted(done) == [(number, worker) for number in range(20) for worker in range(4)]
    assert [number for number, _ in done] == sorted(number for number, _ in done)  # none before the last was over


def test_a_task_is_called_again_while_it_says_so(team):
    calls = [0] * 4

    def task(worker):
        calls[worker] += 1
        return calls[worker] < worker + 2

    team.run(task)
    assert calls == [2, 3, 4, 5]


def test_what_goes_wrong_in_a_thread_is_raised_here_and_the_team_goes_on(team):
    def task(worker):
        if worker == 2:
            raise OSError("broken")
        return False

    with pytest.raises(OSError, match="broken"):
        team.run(task)
    seen = []
    team.run(lambda worker: bool(seen.append(worker)))
    assert sorted(seen) == [0, 1, 2, 3]


def asleep(thread):
    """Whether the kernel has put a thread to sleep."""
    return Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(") ")[2].startswith("S")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the state of a thread is read from Linux")
def test_workers_without_a_task_fall_asleep_and_come_back(team):
    """As after a callback that took its time: they must not burn the cores meanwhile."""
    seen = []
    for _ in range(3):
        team.run(lambda worker: bool(seen.append(worker)))
        limit = time.monotonic() + 60
        while not all(map(asleep, team._threads)):
            assert time.monotonic() < limit
            time.sleep(0.001)
    assert sorted(seen) == sorted([0, 1, 2, 3] * 3)


def test_the_threads_are_gone_when_it_is_closed():
    before = threading.active_count()
    team = ThreadTeam(5)
    assert threading.active_count() == before  # there was nothing to do
    team.run(lambda worker: False)
    assert threading.active_count() == before + 4
    team.close()
    assert threading.active_count() == before


def test_it_looks_up_while_others_are_at_work(team, monkeypatch):
    monkeypatch.setattr("hogwild.runtimes.shared_memory.thread_team.TICK", 0.0)
    ended, looks = threading.Event(), []

    def look():
        looks.append(1)
        ended.set()  # the others wait for it

    team.run(lambda worker: bool(worker and not ended.wait(30)), look)
    assert ended.is_set()
    assert len(looks) >= 2


def test_nothing_is_claimed_after_a_halt():
    queue = new_queue()
    reset_queue(queue, 2, 10, parts=3)
    assert (queue[NEXT], queue[work_queue.LAST], queue[STOPPED]) == (6, 30, -1)
    queue[NEXT] = 17
    halt(queue)
    halt(queue)
    assert queue[STOPPED] == 17
    assert queue[NEXT] > queue[work_queue.LAST]
    reset_queue(queue, 2, 10)
    queue[NEXT] = 13  # workers that found nothing have counted on
    halt(queue)
    assert queue[STOPPED] == 10
    assert queue[GATE] == 0


def test_parts_of_chunks_are_enough_for_all_and_not_too_small():
    chunks = np.arange(0, 64_001, 1_000)
    assert claims_per_chunk(chunks, 1) == 1
    assert claims_per_chunk(chunks, 8) == 4  # of 250 rows each
    assert claims_per_chunk(np.arange(0, 101, 50), 8) == 1


def test_a_tally_has_no_limit_unless_it_is_given_one():
    assert work_queue.new_tally()[LIMIT] == np.inf


def sparse_problem(rows=60_000):
    rng = np.random.default_rng(0)
    X = rng.random((rows, 20), np.float32) * (rng.random((rows, 20)) < 0.3)
    return Linear((X, X @ rng.standard_normal(20) > 0), "logistic", l2=1e-4)


@pytest.mark.parametrize("workers", [2, 3])
def test_an_epoch_that_was_prepared_is_walked_like_any_other(workers, monkeypatch):
    """Whether its order and steps were worked out before or not: each row once, and the same steps."""
    monkeypatch.setattr("hogwild.runtimes.shared_memory.epoch_runner.SETTLED", 0.0)
    problem = sparse_problem()
    prepared = []
    from hogwild.training import loop

    original = loop.prefetch_epoch
    monkeypatch.setattr(loop, "prefetch_epoch", lambda *what: prepared.append(what[0]) or original(*what))
    run = minimise(problem, "sgd", Cosine(0.1), Hogwild(workers, buffer=0), budget=4)
    serial = minimise(problem, "sgd", Cosine(0.1), Serial(), budget=4)
    assert set(prepared) <= {1, 2, 3}
    assert prepared
    assert [record["updates"] for record in run.history] == [60_000 * k for k in (1, 2, 3, 4)]
    assert run.objective == pytest.approx(serial.objective, rel=1e-2)


def test_little_data_gets_fewer_workers_and_the_run_says_so(monkeypatch):
    monkeypatch.setattr("hogwild.strategies.worker_count", lambda strategy: 16)
    X = np.random.default_rng(0).standard_normal((1_000, 10))
    run = minimise(Linear((X, X[:, 0] > 0), "logistic"), schedule=Constant(0.1), budget=1)
    told = [event for event in run.events if event["event"] == "workers"]
    assert [(event["workers"], event["cores"]) for event in told] == [(1, 16)]
    asked = minimise(Linear((X, X[:, 0] > 0), "logistic"), schedule=Constant(0.1), strategy=Hogwild(16), budget=1)
    assert not [event for event in asked.events if event["event"] == "workers" and "sooner" in event["message"]]


@pytest.mark.parametrize(("budget", "workers"), [(1, 1), (16, 2), (40, 4), (Budget(seconds=0.01), 4)])
def test_a_short_run_gets_fewer_workers_than_a_long_one(budget, workers, monkeypatch):
    monkeypatch.setattr("hogwild.strategies.worker_count", lambda strategy: strategy.workers or 16)
    monkeypatch.setattr("hogwild.training.thread_driver.LEAST_WORK", 2_500)
    X = np.random.default_rng(0).standard_normal((10_000, 1))
    run = minimise(Linear((X, X[:, 0] > 0), "logistic"), schedule=Constant(0.1), budget=budget)
    assert run.config["workers"] == workers
