"""Counts of features in bytes, ranks of the most frequent ones, and columns that are present."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild.data import open as open_data
from hogwild.data import statistics
from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, CSRRows
from hogwild.data.frequent_first import COUNTS, most_frequent, ranking
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.packing.pack import pack
from hogwild.data.statistics import feature_counts
from hogwild.data.subsample import narrowed


def rows_of(rows: int, features: int, each: int, seed: int = 0) -> CSRRows:
    """Rows in which few features are frequent."""
    random = np.random.default_rng(seed)
    drawn = np.exp(random.random((rows, each)) * np.log(features)).astype(np.uint32) - 1
    lists = [np.unique(row) for row in drawn]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in lists])])
    return CSRRows(indptr, np.concatenate(lists), NO_VALUES, np.zeros(rows), NO_WEIGHTS, features, "binary")


@pytest.mark.parametrize("cores", [1, 3, 16])
@pytest.mark.parametrize("features", [5, 300, 70_000])
def test_counts_are_exact(monkeypatch, cores, features):
    monkeypatch.setattr(statistics, "usable_cores", lambda: cores)
    rows = rows_of(3_000, features, 40)
    expected = np.bincount(rows.indices, minlength=features)
    found = feature_counts(InMemoryDataset(rows, shuffled=False).in_order(), features, 10**9)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("count", [255, 256, 257, 511, 512, 65_536])
def test_counts_carry_beyond_a_byte(count):
    rows = CSRRows(
        np.arange(count + 1), np.zeros(count, np.uint32), NO_VALUES, np.zeros(count), NO_WEIGHTS, 2, "binary"
    )
    found = feature_counts(InMemoryDataset(rows, shuffled=False).in_order(), 2, count)
    np.testing.assert_array_equal(found, [count, 0])


def test_counts_of_a_part_of_the_rows():
    rows = rows_of(2_000, 50, 10)
    part = InMemoryDataset(rows, shuffled=False).split(0.25, seed=0)[1]
    expected = np.zeros(50, np.int64)
    for row in part.ids:
        np.add.at(expected, rows.indices[rows.indptr[row] : rows.indptr[row + 1]], 1)
    np.testing.assert_array_equal(feature_counts(part.in_order(), 50, part.nonzeros), expected)


def test_counts_of_dense_rows_and_of_packed_ones(tmp_path):
    dense = open_data(np.ones((700, 3), np.float32), np.zeros(700))
    np.testing.assert_array_equal(dense.frequencies(), [700] * 3)
    rows = rows_of(5_000, 100, 20)
    lines = [" ".join(f"{u + 1}:1" for u in rows.indices[slice(*rows.indptr[at : at + 2])]) for at in range(len(rows))]
    (tmp_path / "rows.svm").write_text("".join(f"1 {line}\n" for line in lines))
    packed = pack([tmp_path / "rows.svm"], tmp_path / "packed")
    found = feature_counts(packed.in_order(), packed.n_features, packed.nonzeros)
    np.testing.assert_array_equal(found, np.bincount(rows.indices, minlength=packed.n_features))


@pytest.mark.parametrize("wanted", [0, 1, 10, 999, 1_000])
@pytest.mark.parametrize("most", [3, 900, 5 * COUNTS])
def test_most_frequent_features_are_the_first_of_the_ranking(wanted, most):
    counts = np.random.default_rng(1).integers(0, most, 1_000)
    all_of_them, found = ranking(counts), most_frequent(counts, wanted)
    np.testing.assert_array_equal(found.features, all_of_them.features[:wanted])
    np.testing.assert_array_equal(found.ranks, np.minimum(all_of_them.ranks, wanted))


def test_narrowed_rows_have_the_columns_that_are_present():
    data = InMemoryDataset(rows_of(50, 10_000, 12), shuffled=True)
    few, present = narrowed(data), np.unique(data.rows.indices)
    assert few.n_features == len(present)
    np.testing.assert_array_equal(present[few.rows.indices], data.rows.indices)
