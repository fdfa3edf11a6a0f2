"""The kernels for a GPU, under Numba's simulator, which must be asked for before Numba is loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("cases", ["some", "all"])
def test_kernels_for_a_gpu_do_what_those_for_a_cpu_do(cases):
    script = Path(__file__).parent / "simulated_gpu.py"
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, str(script), cases]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == 0, done.stderr
    assert "the same" in done.stdout
