"""Rows with features numbered by frequency: the same rows, each with its frequent features first."""

import numpy as np
import pytest
import scipy.sparse as sp

from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, CSRRows
from hogwild.data.frequent_first import frequent_first
from hogwild.data.min_max import WORTH_A_THREAD, min_max
from hogwild.data.shuffle import random_permutation


def rows_of(count=3000, features=500, binary=False):
    rng = np.random.default_rng(0)
    X = sp.random(count, features, 0.05, "csr", np.float32, rng, data_rvs=lambda n: 1 + rng.random(n))
    X = X[:, np.minimum(rng.geometric(0.01, features), features) - 1]  # some columns many times, most never
    X.sort_indices()
    indices = X.indices.astype(np.uint32)
    values = NO_VALUES if binary else X.data
    layout = "binary" if binary else "sparse"
    labels = rng.random(count)
    return CSRRows(X.indptr.astype(np.int64), indices, values, labels, labels.astype(np.float32), features, layout)


def entries(rows, i, numbers=None):
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    columns = rows.indices[start:stop] if numbers is None else numbers[rows.indices[start:stop]]
    values = rows.values[start:stop] if rows.values.size else np.ones(stop - start)
    return sorted(zip(columns.tolist(), values.tolist(), strict=True))


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("frequent", [0, 37, 500])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_keep_their_entries(binary, frequent, threads):
    rows = rows_of(binary=binary)
    order = random_permutation(len(rows), seed=1)
    found = frequent_first(rows, order, frequent, threads)
    assert sorted(found.numbers) == list(range(rows.features))
    assert np.array_equal(found.rows.labels, rows.labels[order])
    assert np.array_equal(found.rows.weights, rows.weights[order])
    for at, i in enumerate(order[:200]):
        assert entries(found.rows, at) == entries(rows, i, found.numbers)
        if frequent < rows.features:
            start, middle, stop = found.rows.indptr[at], found.rare_starts[at], found.rows.indptr[at + 1]
            assert (found.rows.indices[start:middle] < frequent).all()
            assert (found.rows.indices[middle:stop] >= frequent).all()
    assert len(found.rare_starts) == (0 if frequent == rows.features else len(rows))


def test_numbers_are_by_frequency():
    rows = rows_of()
    found = frequent_first(rows, np.arange(len(rows)), rows.features // 2, threads=2)
    counts = np.bincount(rows.indices, minlength=rows.features)
    by_number = counts[np.argsort(found.numbers)]
    assert (np.diff(by_number) <= 0).all()


def test_no_row_at_all():
    rows = CSRRows(np.zeros(1, np.int64), np.empty(0, np.uint32), NO_VALUES, np.empty(0), NO_WEIGHTS, 3, "binary")
    assert len(frequent_first(rows, np.empty(0, np.int64), 1, threads=2).rows) == 0


def test_a_permutation_is_random():
    firsts = [random_permutation(10, seed).tolist() for seed in range(3000)]
    assert all(sorted(each) == list(range(10)) for each in firsts)
    counts = np.zeros((10, 10))
    for each in firsts:
        counts[np.arange(10), each] += 1
    assert abs(counts - 300).max() < 90  # five standard deviations


def test_smallest_and_largest_of_a_long_array():
    array = np.arange(3 * WORTH_A_THREAD, dtype=np.float32)
    array[-5] = -7
    assert min_max(array, threads=3) == (-7.0, float(array[-1]))
    array[WORTH_A_THREAD] = np.nan
    assert np.isnan(min_max(array, threads=3)).all()
