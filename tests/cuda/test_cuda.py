"""Training on a GPU: its kernels on Numba's simulator, and what is said where there is no GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba import cuda

from hogwild import Averaging, Cuda, Hogwild, Linear, Serial, minimise
from hogwild.errors import HogwildError, ParameterError


def test_linear_models_on_the_simulator(tmp_path: Path) -> None:
    script = Path(__file__).with_name("simulated_linear.py")
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, script, tmp_path], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.skipif(cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_that_is_said() -> None:
    with pytest.raises(HogwildError, match=r"There is no GPU here .*hogwild doctor"):
        minimise(Linear(([[0.0], [1.0]], [-1, 1])), runtime=Cuda(), budget=1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"strategy": Serial()}, r"use Hogwild\(\)"),
        ({"strategy": Averaging(2)}, r"use Hogwild\(\)"),
        ({"strategy": Hogwild(2)}, "leave out 'workers'"),
        ({"strategy": Hogwild(buffer=32)}, r"use Hogwild\(\)"),
        ({"count_conflicts": True}, "leave out 'count_conflicts'"),
    ],
)
def test_what_only_threads_have_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        minimise(Linear(([[0.0], [1.0]], [-1, 1])), runtime=Cuda(), budget=1, **options)
