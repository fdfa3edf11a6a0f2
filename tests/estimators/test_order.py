"""Rows in the order in which scikit-learn's SGD visits them."""

import numpy as np
import pytest
from sklearn.utils._seq_dataset import ArrayDataset64

from hogwild.estimators.inputs import Reshuffled


@pytest.mark.parametrize("rows", [1, 2, 37, 1000])
@pytest.mark.parametrize("seed", [0, 7, 2**31 - 2])
def test_each_epoch_is_theirs(rows, seed):
    numbers = np.arange(rows, dtype=float)
    theirs, ours = ArrayDataset64(numbers[:, None].copy(), numbers, np.ones(rows), seed=1), Reshuffled(rows)
    for epoch in range(3):
        theirs._shuffle_py(seed)
        expected = [int(theirs._next_py()[1]) for _ in range(rows)]
        assert ours(np.arange(rows), seed, epoch).tolist() == expected


def test_rows_set_aside_are_shuffled_with_the_rest_and_left_out():
    order, ids = Reshuffled(10), np.array([0, 3, 4, 8])
    whole = order(np.arange(10), 5, 1)
    assert order(ids, 5, 1).tolist() == [row for row in whole if row in ids]


def test_an_earlier_epoch_can_be_asked_for_again():
    order = Reshuffled(50)
    first = order(np.arange(50), 3, 0)
    order(np.arange(50), 3, 4)
    assert np.array_equal(order(np.arange(50), 3, 0), first)
