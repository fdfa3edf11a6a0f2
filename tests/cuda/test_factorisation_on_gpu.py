"""Factorisation machines on a GPU: their kernels on Numba's simulator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("machine", ["fm", "ffm"])
def test_factorisation_machines_on_the_simulator(machine: str) -> None:
    script = Path(__file__).with_name("simulated_factorisation.py")
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, script, machine], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
