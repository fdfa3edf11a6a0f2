"""The same random state in the parent, in threads and in processes."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.datasets import make_classification

import hogwild
from hogwild.estimators.sklearn_parameters import processors_left

LIMIT_SECONDS = 120


def coefficients(params: dict[str, Any]) -> bytes:
    X, y = make_classification(300, 8, n_informative=4, n_classes=params.pop("classes", 2), random_state=0)
    fitted = hogwild.HogwildClassifier(random_state=0, max_iter=5, tol=None, **params).fit(X, y)
    return np.asarray(fitted.coef_).tobytes()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_number_of_workers_is_the_same_in_every_process(method: str) -> None:
    """Processes of a pool may start no processes, but they may start threads."""
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply_async(processors_left, (2,)).get(LIMIT_SECONDS) == processors_left(2) == 2


def test_inside_joblib_a_fit_has_its_share() -> None:
    assert set(Parallel(2)(delayed(processors_left)(64) for _ in range(2))) != {64}


@pytest.mark.parametrize("params", [{}, {"n_jobs": 1}, {"n_jobs": 2, "classes": 3}, {"strategy": "serial"}])
def test_one_worker_gives_the_same_bits_everywhere(params: dict[str, Any]) -> None:
    expected = coefficients(dict(params))
    found = []
    thread = threading.Thread(target=lambda: found.append(coefficients(dict(params))))
    thread.start()
    thread.join(LIMIT_SECONDS)
    with ThreadPoolExecutor(2) as pool:
        found += pool.map(coefficients, [dict(params), dict(params)], timeout=LIMIT_SECONDS)
    with multiprocessing.get_context("fork").Pool(1) as pool_of_forks:
        found.append(pool_of_forks.apply_async(coefficients, (dict(params),)).get(LIMIT_SECONDS))
    found += Parallel(2)(delayed(coefficients)(dict(params)) for _ in range(2))
    assert len(found) == 6
    assert set(found) == {expected}
