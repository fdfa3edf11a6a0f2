"""Random orders that are formulas."""

import numpy as np
import pytest

from hogwild.data.random_order import RandomOrder


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 64, 65, 1000, 4097, 100_000])
def test_every_row_occurs_once(rows: int) -> None:
    for number in range(3):
        order = RandomOrder(rows, seed=7, number=number)[:]
        assert np.array_equal(np.sort(order), np.arange(rows))


def test_parts_are_those_of_the_whole() -> None:
    order = RandomOrder(10_000, seed=1, number=2)
    assert np.array_equal(np.concatenate([order[:3000], order[3000:3001], order[3001:]]), order[:])


def test_orders_differ_by_seed_and_epoch() -> None:
    orders = [RandomOrder(1000, seed, number)[:] for seed in range(3) for number in range(3)]
    for one in range(9):
        for other in range(one):
            assert np.mean(orders[one] == orders[other]) < 0.02


def test_every_place_is_as_likely_for_every_row() -> None:
    rows, orders = 10, 4000
    counts = np.zeros((rows, rows))
    for number in range(orders):
        counts[np.arange(rows), RandomOrder(rows, seed=3, number=number)[:]] += 1
    expected = orders / rows
    # The sum has 81 degrees of freedom: a mean of 81 and a standard deviation of 12.7 if all places are as likely.
    assert np.sum((counts - expected) ** 2 / expected) < 81 + 5 * 12.7


def test_neighbours_are_far_from_each_other() -> None:
    order = RandomOrder(2**16 - 5, seed=0, number=0)[:].astype(int)
    steps = np.abs(np.diff(order))
    assert 0.9 < steps.mean() / (len(order) / 3) < 1.1  # the mean distance of two random numbers is a third
    assert len(np.unique(np.diff(order))) > len(order) / 4
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.05
