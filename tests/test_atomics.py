from __future__ import annotations

import threading

import numpy as np
import pytest

from hogwild.jit import compiled
from hogwild.kernels.atomics import exchange_if, load, lock, store, unlock
from hogwild.kernels.sync_policies import new_turns, pass_on, wait_for


@compiled
def count_under_lock(locks, counter, times):
    for _ in range(times):
        lock(locks, 1)
        counter[0] += 1
        unlock(locks, 1)


@compiled
def exchange(array, index, expected, new):
    return exchange_if(array, index, expected, new)


@compiled
def write(array, index, value):
    store(array, index, value)


@compiled
def read(array, index):
    return load(array, index)


@compiled
def take_turns(turn, first, stride, log):
    for k in range(first, log.size, stride):
        wait_for(turn, k)
        log[k] = k if k == 0 else log[k - 1] + 1  # reads what the thread before has written
        pass_on(turn, k)


def run_at_once(targets):
    """Run functions in threads of their own, and give up on them after a minute instead of hanging."""
    workers = [threading.Thread(target=target, daemon=True) for target in targets]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert not any(worker.is_alive() for worker in workers)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_exchange_happens_only_where_the_expected_value_is_found(dtype):
    array = np.array([5, 7, 9], dtype)
    assert exchange(array, 1, 7, 8)
    assert not exchange(array, 1, 7, 1)
    assert not exchange(array, 0, 4, 1)
    assert array.tolist() == [5, 8, 9]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_store_and_load_reach_the_element_they_name(dtype):
    array = np.arange(4).astype(dtype)
    write(array, 2, 40)
    assert array.tolist() == [0, 1, 40, 3]
    assert [read(array, k) for k in range(4)] == array.tolist()


def test_they_reach_into_views():
    array = np.zeros(10, np.int64)
    write(array[::2], 3, 1)
    assert array.tolist() == [0] * 6 + [1] + [0] * 3
    assert read(array[::2], 3) == 1


def test_one_of_many_wins_an_exchange():
    race, wins = np.zeros(1, np.int32), []
    run_at_once([lambda k=k: wins.append(k) if exchange(race, 0, 0, k) else None for k in range(1, 9)])
    assert wins == race.tolist()


@pytest.mark.parametrize("workers", [2, 8])
def test_no_count_under_a_lock_is_lost(workers):
    locks, counter, times = np.zeros(3, np.int32), np.zeros(1, np.int64), 50_000
    run_at_once([lambda: count_under_lock(locks, counter, times)] * workers)
    assert counter[0] == workers * times
    assert locks.tolist() == [0, 0, 0]


def test_a_lock_that_is_held_keeps_others_waiting_until_it_is_given_back():
    locks, counter = np.zeros(2, np.int32), np.zeros(1, np.int64)
    count_under_lock(locks, counter, 1)
    lock(locks, 1)
    waiting = threading.Thread(target=count_under_lock, args=(locks, counter, 1), daemon=True)
    waiting.start()
    waiting.join(timeout=0.1)
    assert waiting.is_alive()
    assert counter[0] == 1
    unlock(locks, 1)
    waiting.join(timeout=60)
    assert counter[0] == 2


def test_different_locks_do_not_wait_for_each_other():
    locks = np.zeros(2, np.int32)
    lock(locks, 0)
    count_under_lock(locks, np.zeros(1, np.int64), 1)  # would hang if it were one lock
    assert locks.tolist() == [1, 0]


@pytest.mark.parametrize("workers", [1, 2, 8, 70])
def test_turns_are_taken_in_order_and_each_sees_what_was_written_before_it(workers):
    turns, log = new_turns(), np.full(2_000, -1, np.int64)
    run_at_once([lambda w=w: take_turns(turns, w, workers, log) for w in range(workers)])
    assert log.tolist() == list(range(2_000))
    wait_for(turns, 2_000)


def test_waiting_ends_when_the_turn_has_come_and_not_before():
    turns, passed = new_turns(), []

    def wait():
        wait_for(turns, 2)
        passed.append(2)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    pass_on(turns, 0)
    waiting.join(timeout=0.1)
    assert not passed
    pass_on(turns, 1)
    waiting.join(timeout=60)
    assert passed == [2]


def test_a_waiting_thread_does_not_hold_pythons_lock():
    locks = np.ones(1, np.int32)
    waiting = threading.Thread(target=lock, args=(locks, 0), daemon=True)
    waiting.start()
    locks[0] = 0  # this line could not run if it did
    waiting.join(timeout=60)
    assert locks[0] == 1
