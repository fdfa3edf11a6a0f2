"""The kernels for a GPU, under Numba's simulator, which must be asked for before Numba is loaded."""

import os
import subprocess
import sys
from pathlib import Path


def test_kernels_for_a_gpu_do_what_those_for_a_cpu_do():
    script = Path(__file__).parent / "simulated_gpu.py"
    done = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True,
        check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "the same" in done.stdout
