"""On a GPU: a process finds the kernels that another one compiled (``make gpu``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba import cuda

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="there is no GPU here")

PROGRAM = """
import json
import numpy as np
from hogwild import Cuda, FactorisationMachine, Linear, MatrixCompletion, minimise
from numba.cuda.dispatcher import _Kernel

compiled, make = [], _Kernel.__init__

def counted(self, function, *rest, **options):
    compiled.append(function.__name__)
    make(self, function, *rest, **options)

_Kernel.__init__ = counted
random = np.random.default_rng(0)
X = random.standard_normal((3_000, 10))
y = np.sign(X[:, 0] + 0.3 * random.standard_normal(3_000))
ratings = random.integers(0, 80, 3_000), random.integers(0, 60, 3_000), random.integers(1, 6, 3_000).astype(float)
problems = Linear((X, y), l2=1e-3), FactorisationMachine((X, y), rank=4), MatrixCompletion(ratings, 8)
runs = [minimise(problem, runtime=Cuda(), budget=3) for problem in problems]
print(json.dumps({"compiled": compiled, "objectives": [run.objective for run in runs]}))
"""


def run_with(folder: Path) -> dict[str, Any]:
    """Run the program with its kernels in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
    )  # fmt: skip
    # Numba warns of launches of few threads, which users cannot change.
    assert "under-utilization" not in done.stderr
    return dict(json.loads(done.stdout))


def test_a_process_compiles_nothing_that_is_there(tmp_path: Path) -> None:
    first, second = run_with(tmp_path), run_with(tmp_path)
    assert "descend" in first["compiled"]
    assert second["compiled"] == []
    assert second["objectives"] == pytest.approx(first["objectives"], rel=0.02)
    files = list(tmp_path.rglob("cuda-*.nbc"))
    for file in files:
        file.write_bytes(file.read_bytes()[:-100])
    third = run_with(tmp_path)
    assert sorted(third["compiled"]) == sorted(first["compiled"])
    assert sorted(tmp_path.rglob("cuda-*")) == sorted(files)
