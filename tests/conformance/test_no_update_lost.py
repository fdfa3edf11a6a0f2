"""Who loses updates, and who does not: many workers on one coordinate, each adding one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from hogwild import Constant, Linear, Locked, RoundRobin, Serial, minimise
from hogwild.losses import own

EXACT = 2**24  # up to here float32 counts


def _one_more(z, y):
    """Whatever the score: descend by one."""
    return 0.0, -1.0


# Made once, and called ours, so that its kernels are compiled once and kept on disk.
ONE_MORE = replace(own(_one_more), ours=True)


def counted(strategy, rows, epochs, intercept=False):
    """What is counted by a model of one feature, each of whose rows adds one: (weight, intercept, updates)."""
    assert rows * epochs < EXACT
    X = scipy.sparse.csr_matrix(np.ones((rows, 1), np.float32))
    problem = Linear((X, np.zeros(rows)), ONE_MORE, l2=0, intercept=intercept)
    run = minimise(problem, "sgd", Constant(1.0), strategy, budget=epochs)
    return float(run.model.weights[0, 0]), float(run.model.intercept[0]), run.result["updates"]


@pytest.mark.parametrize("intercept", [False, True])
def test_locked_loses_no_update(intercept):
    rows, epochs = 2**18, 4  # sixteen chunks for eight workers
    weight, bias, updates = counted(Locked(8), rows, epochs, intercept)
    assert updates == rows * epochs
    assert weight == updates
    assert bias == (updates if intercept else 0)


@pytest.mark.parametrize("intercept", [False, True])
def test_round_robin_loses_no_update(intercept):
    rows, epochs = 2**11, 2
    weight, bias, updates = counted(RoundRobin(8), rows, epochs, intercept)
    assert weight == updates == rows * epochs
    assert bias == (updates if intercept else 0)


def test_locked_loses_no_update_of_several_coordinates():
    """Rows of three out of twenty features: locks are taken in order, so that nobody waits for ever."""
    random = np.random.default_rng(0)
    rows = 2**16
    columns = np.sort(np.argsort(random.random((rows, 20)), axis=1)[:, :3], axis=1)
    X = scipy.sparse.csr_matrix((np.ones(columns.size, np.float32), columns.ravel(), np.arange(0, columns.size + 1, 3)))
    problem = Linear((X, np.zeros(rows)), ONE_MORE, l2=0)
    run = minimise(problem, "sgd", Constant(1.0), Locked(8), budget=2)
    np.testing.assert_array_equal(run.model.weights[:, 0], 2 * np.bincount(columns.ravel(), minlength=20))
    assert run.model.intercept[0] == 2 * rows


def test_serial_counts_as_well():
    assert counted(Serial(), 2**18, 4, intercept=True) == (2**20, 2**20, 2**20)
