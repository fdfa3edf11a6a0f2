"""Records between epochs are evaluated on a sample that stands for all rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from hogwild import Linear, Serial, minimise
from hogwild.data import open as open_data
from hogwild.data.subsample import spread_sample

ROWS, FEATURES, A_ROW = 160_000, 1_000_000, 30


@pytest.fixture(scope="module")
def rows() -> tuple[sp.csr_matrix, np.ndarray]:
    """More features than rows, so that a row that was trained on early has another loss than one that was late."""
    random = np.random.default_rng(5)
    indices = (FEATURES * random.random((ROWS, A_ROW)) ** 3).astype(np.int32)
    X = sp.csr_matrix(
        (np.ones(ROWS * A_ROW, np.float32), indices.ravel(), np.arange(0, ROWS * A_ROW + 1, A_ROW)),
        shape=(ROWS, FEATURES),
    )
    X.sum_duplicates()
    weights = random.standard_normal(FEATURES)
    return X, np.where(X @ weights + random.standard_normal(ROWS) > 0, 1.0, -1.0)


def test_the_loss_on_a_sample_is_about_that_on_all_rows(rows: tuple[sp.csr_matrix, np.ndarray]) -> None:
    for seed in range(3):
        sampled = minimise(Linear(rows, l2=1e-6), "adagrad", 0.05, Serial(), budget=2, seed=seed).history[0]
        exact = minimise(Linear(rows, l2=1e-6), "adagrad", 0.05, Serial(), budget=1, seed=seed)
        assert sampled["sampled_rows"] == pytest.approx(ROWS / 16, rel=0.01)
        assert sampled["loss"] == pytest.approx(exact.loss, rel=0.015)


def test_a_sample_has_every_kth_row_whatever_the_chunks(rows: tuple[sp.csr_matrix, np.ndarray]) -> None:
    X, y = rows
    data = open_data(X, y)
    sample = spread_sample(data, 1_000)
    stride = ROWS // 1_000
    np.testing.assert_array_equal(sample.labels(), y[stride // 2 :: stride])
    part = data.split(0.5, seed=0)[0]  # its rows have numbers among all rows
    wanted = spread_sample(part, 1_000)
    np.testing.assert_array_equal(wanted.labels(), part.labels()[(part.n_rows // 1_000) // 2 :: part.n_rows // 1_000])
