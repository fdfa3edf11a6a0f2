"""Snap ML: LogisticRegression and SupportVectorMachine, with one thread and with one per core."""

from __future__ import annotations

import importlib
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from benchmarks.results import cores
from benchmarks.sets import Split
from benchmarks.tools.way import Fit, Tool, Way, timed

# The library makes its thread round subnormal numbers to zero. All else in this process keeps them.
OWN_THREAD = ThreadPoolExecutor(1, thread_name_prefix="snapml")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # as errors they would make it do without AVX2
    snapml = OWN_THREAD.submit(importlib.import_module, "snapml").result()


def model_of(split: Split, loss: str, threads: int, dual: bool, iterations: float, seed: int) -> Any:
    asked = {
        "max_iter": int(iterations), "regularizer": split.l2 * len(split.y), "n_jobs": threads, "tol": 0.0,
        "fit_intercept": True, "random_state": seed,
    }  # fmt: skip
    if loss == "hinge":
        return snapml.SupportVectorMachine(loss="hinge", **asked)
    return snapml.LogisticRegression(dual=dual, **asked)


def fit(split: Split, loss: str, threads: int, dual: bool, iterations: float, seed: int) -> Fit:
    model = model_of(split, loss, threads, dual, iterations, seed)
    _, seconds = OWN_THREAD.submit(timed, lambda: model.fit(split.X, split.y)).result()
    return Fit(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]), seconds)


def ways(_: Any, split: Split, loss: str) -> list[Way]:
    return [
        Way(
            f"{'dual' if dual else 'primal'}, n_jobs={threads}",
            partial(fit, split, loss, threads, dual),
            effort="iterations",
        )
        for dual in ((True,) if loss == "hinge" else (True, False))
        for threads in sorted({1, cores()}, reverse=True)
    ]


REMARK = "" if any(name.endswith("_avx2") for name in sys.modules) else "Snap ML found no AVX2 here and does without."
TOOLS = [Tool("Snap ML", "snapml", lambda split: None, ways, remark=REMARK)]
