"""Training on a GPU: its kernels on Numba's simulator, and what is said where there is no GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba import cuda

from hogwild import Cuda, Linear, minimise
from hogwild.errors import HogwildError


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
