"""A few rows for trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import hogwild.data
from hogwild.data import subsample as samples

X = scipy.sparse.random(9_000, 300, 0.05, "csr", np.float32, random_state=0)
DATA = hogwild.data.open(X, np.arange(9_000.0))
SETS = {
    "blocks": DATA,
    "a permutation": hogwild.data.open(X[:3_000], np.arange(3_000.0)),
    "a part": DATA.split(0.2, 1)[0],
}


@pytest.mark.parametrize("data", SETS.values(), ids=SETS)
@pytest.mark.parametrize("rows", [700, 2_000, 20_000])
def test_one_copy_has_the_rows_that_one_a_chunk_has(data, rows, monkeypatch):
    at_once = samples.subsample(data, rows, seed=3).rows
    monkeypatch.setattr(samples, "MANY_CHUNKS", 0)
    by_chunks = samples.subsample(data, rows, seed=3).rows
    assert len(at_once) == min(rows, data.n_rows)
    for one, other in zip(at_once.arrays, by_chunks.arrays, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("data", SETS.values(), ids=SETS)
@pytest.mark.parametrize("kind", ["sparse", "binary", "dense"])
@pytest.mark.parametrize("in_place", [True, False])
def test_the_mean_squared_norm_is_that_of_the_sample(data, kind, in_place, monkeypatch):
    if kind == "dense":
        data = hogwild.data.open(X[:2_500].toarray(), np.arange(2_500.0))
    elif kind == "binary":
        data = data.with_rows(lambda rows: replace(rows, values=rows.values[:0], layout="binary"))
    if not in_place:
        monkeypatch.setattr(samples, "MANY_CHUNKS", 0)
    rows = data.rows if kind == "binary" and data.ids is None else samples.subsample(data, 2_000).rows
    squares = rows.nonzeros if kind == "binary" else np.square(rows.values.astype(float)).sum()
    # All binary rows are counted, and otherwise only those of the sample.
    few = pytest.approx(squares / len(rows), rel=0.05 if kind == "binary" else 1e-9)
    assert samples.mean_squared_norm(data, 2_000) == few


def test_permutations_that_are_found_soon_have_every_row_once_and_differ():
    data = hogwild.data.open(X[:500], np.arange(500.0)).permuted_anew()
    first, second, again = (data.epoch(1, number).whole().order for number in (0, 1, 0))
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(500))
    assert np.array_equal(first, again)
    assert np.count_nonzero(first == second) < 20
