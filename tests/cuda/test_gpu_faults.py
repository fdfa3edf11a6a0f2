"""On a GPU: full memory, no driver, signals and killed processes (``make gpu``)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import cuda
from sklearn.datasets import dump_svmlight_file

from hogwild import Cuda, FactorisationMachine, Linear, load, minimise
from hogwild.errors import HogwildError
from hogwild.kernels.cuda_device import DeviceError, driver_errors
from hogwild.training.checkpoints import LATEST

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="there is no GPU here")

LIMIT = 60.0  # seconds that anything here may take


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    X = random.standard_normal((2_000, 20))
    dump_svmlight_file(X, np.sign(X[:, 0] + 0.3 * random.standard_normal(2_000)), str(tmp_path / "rows.svm"))
    return tmp_path / "rows.svm"


def started(rows: Path, *options: object, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "hogwild", "train", rows, "--runtime", "cuda", *options]
    return subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip


def within_limit(what: str, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def bytes_free() -> int:
    """Return the free memory of the GPU, as every process sees it."""
    return int(cuda.current_context().get_memory_info()[0])


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_the_model(rows: Path, tmp_path: Path, sent: signal.Signals, code: int) -> None:
    points, model = tmp_path / "points", tmp_path / "a.model"
    run = started(rows, "--epochs", 10**6, "--checkpoint", points, "--out", model)
    within_limit("a checkpoint", (points / LATEST).exists)
    run.send_signal(sent)
    told, _ = run.communicate(timeout=LIMIT)
    assert run.returncode == code, told
    assert "Traceback" not in told
    assert np.isfinite(load(model).decide(np.ones((1, 20)))).all()


def test_a_killed_run_leaves_no_memory_and_goes_on(rows: Path, tmp_path: Path) -> None:
    points, before = tmp_path / "points", bytes_free()
    run = started(rows, "--epochs", 10**6, "--checkpoint", points)
    within_limit("a checkpoint", (points / LATEST).exists)
    within_limit("use of memory", lambda: bytes_free() < before)
    run.kill()
    run.communicate(timeout=LIMIT)
    within_limit("free memory", lambda: bytes_free() >= before)
    again = started(rows, "--epochs", 10**6, "--resume", points, "--seconds", 1e-3, "--out", tmp_path / "a.model")
    told, _ = again.communicate(timeout=LIMIT)
    assert again.returncode == 0, told
    assert (tmp_path / "a.model").exists()


def test_no_device_is_one_line(rows: Path) -> None:
    run = started(rows, CUDA_VISIBLE_DEVICES="")
    told, _ = run.communicate(timeout=LIMIT)
    assert run.returncode != 0
    assert "There is no GPU here" in told
    assert "Traceback" not in told


def problems() -> list[Any]:
    random = np.random.default_rng(0)
    X, y = random.standard_normal((5_000, 1_000)).astype(np.float32), np.sign(random.standard_normal(5_000))
    return [Linear((X, y)), FactorisationMachine((X, y), rank=64)]


@pytest.fixture
def full() -> Iterator[list[Any]]:
    """Most of the GPU's memory, which the test may give back."""
    taken, size = [], 2**36
    while size >= 2**21:  # The largest pieces first, until a few megabytes are left.
        try:
            with driver_errors():
                taken.append(cuda.device_array(size, np.uint8))
        except DeviceError:
            size //= 2
    yield taken
    taken.clear()
    cuda.current_context().deallocations.clear()


def test_a_program_that_finds_no_memory_is_told(rows: Path, full: list[Any]) -> None:
    told, _ = (run := started(rows)).communicate(timeout=LIMIT)
    assert run.returncode == 1
    assert "GPU's memory" in told
    assert len(told.strip().splitlines()[-1]) < 500
    assert "should not happen" not in told


@pytest.mark.parametrize("number", [0, 1])
def test_a_full_memory_is_told_and_passes(number: int, full: list[Any]) -> None:
    """With next to no free memory a run ends with one line, or on rows in the host's memory; afterwards it works."""
    problem = problems()[number]
    told = ""
    try:
        run = minimise(problem, "adagrad", 0.01, runtime=Cuda(), budget=1)
        assert np.isfinite(run.objective)
    except HogwildError as error:
        told = str(error)
    assert not told or ("GPU's memory" in told and "\n" not in told)
    full.clear()
    cuda.current_context().deallocations.clear()
    assert np.isfinite(minimise(problem, "adagrad", 0.01, runtime=Cuda(), budget=1).objective)
