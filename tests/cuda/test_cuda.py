"""Training on a GPU: its kernels on Numba's simulator, and what is said where there is no GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba import cuda

from hogwild import (
    Cuda,
    Hogwild,
    HogwildClassifier,
    HogwildRecommender,
    Linear,
    Serial,
    Synchronous,
    minimise,
)
from hogwild.errors import HogwildError, ParameterError


@pytest.mark.parametrize("name", ["a_little_of_each", "averages", "linear", "estimators", "ratings", "lanes", "cuts"])
def test_training_on_the_simulator(name: str, tmp_path: Path) -> None:
    script = Path(__file__).with_name(f"simulated_{name}.py")
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, script, tmp_path], env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.skipif(cuda.is_available(), reason="there is a GPU here")
def test_estimators_without_a_gpu() -> None:
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    with pytest.raises(HogwildError, match=r"There is no GPU here .*hogwild doctor"):
        HogwildClassifier(device="cuda").fit(X, y)
    usual, auto = (HogwildClassifier(device=device, random_state=0).fit(X, y) for device in ("cpu", "auto"))
    assert (usual.coef_ == auto.coef_).all()
    with pytest.raises(ValueError, match="'device' parameter"):
        HogwildClassifier(device="gpu").fit(X, y)
    with pytest.raises(HogwildError, match="'device' parameter"):
        HogwildRecommender(rank=2, device="gpu").fit(([0, 1], [0, 1], [1.0, 2.0]))
    with pytest.raises(ParameterError, match="identical_to_sklearn"):
        HogwildClassifier(device="cuda", identical_to_sklearn=True).fit(X, y)


@pytest.mark.skipif(cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_that_is_said() -> None:
    with pytest.raises(HogwildError, match=r"There is no GPU here .*hogwild doctor"):
        minimise(Linear(([[0.0], [1.0]], [-1, 1])), runtime=Cuda(), budget=1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"strategy": Serial()}, r"use Hogwild\(\)"),
        ({"strategy": Hogwild(2)}, "leave out 'workers'"),
        ({"strategy": Synchronous(2)}, "leave out 'workers'"),
        ({"strategy": Synchronous(accumulate=2)}, r"use Hogwild\(\)"),
        ({"strategy": Hogwild(buffer=32)}, r"use Hogwild\(\)"),
        ({"count_conflicts": True}, "leave out 'count_conflicts'"),
    ],
)
def test_what_only_threads_have_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        minimise(Linear(([[0.0], [1.0]], [-1, 1])), runtime=Cuda(), budget=1, **options)
