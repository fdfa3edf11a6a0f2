"""A few rows for trials."""

from __future__ import annotations

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
