"""Processes that are forked from one that has fitted, fits, or compiles: they fit as well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FITS = """
import os, sys, threading, time
import numpy as np
from hogwild import Hogwild, HogwildClassifier, Linear, minimise

rng = np.random.default_rng(0)
X = rng.standard_normal((5000, 20))
y = (X[:, 0] > 0).astype(int)

def fits():
    HogwildClassifier(n_jobs=2, max_iter=20).fit(X, y).predict(X)
    minimise(Linear((X, y)), strategy=Hogwild(2), budget=2)
    minimise(Linear((X, y)), strategy="parameter-server", runtime="local", budget=1)

def forked(depth):
    child = os.fork()
    if child == 0:
        try:
            fits()
            os._exit(forked(depth - 1) if depth else 0)
        finally:
            os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
AFTER = "fits(); codes = [forked(1), forked(0)]; fits(); sys.exit(max(codes))"
MEANWHILE = """
done = threading.Event()
def again():
    while not done.is_set():
        fits()
fits()
busy = threading.Thread(target=again)
busy.start()
codes = []
for turn in range(4):
    time.sleep(0.07 * turn)
    codes.append(forked(0))
done.set(); busy.join(); fits()
sys.exit(max(codes))
"""
# The compiler's lock is taken as a compilation takes it, which would take longer than this test has.
COMPILING = """
from numba.core.compiler_lock import global_compiler_lock
fits()
taken, go_on = threading.Event(), threading.Event()
def compiles():
    with global_compiler_lock:
        taken.set()
        go_on.wait(0.5)
threading.Thread(target=compiles).start()
taken.wait()
child = os.fork()
if child == 0:
    with global_compiler_lock:
        os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("when", [AFTER, MEANWHILE, COMPILING], ids=["after", "meanwhile", "compiling"])
def test_a_forked_process_fits(when: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(FITS + when)
    with subprocess.Popen([sys.executable, program], stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            _, error = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            raise
    assert process.returncode == 0, error.decode()
