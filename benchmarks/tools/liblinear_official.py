"""LIBLINEAR by its own Python interface, which has one thread and a tolerance for an effort."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from liblinear.liblinearutil import parameter, problem, train

from benchmarks.sets import Split
from benchmarks.tools.way import Fit, Tool, Way, timed

TOLERANCES = (3, 1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4)
SOLVERS = {
    "logistic": {"trust region, primal (-s 0)": "-s 0 -R", "coordinate descent, dual (-s 7)": "-s 7"},
    "hinge": {"coordinate descent, dual (-s 3)": "-s 3"},
}


def load(split: Split) -> Any:
    return problem(split.y, sp.csr_matrix(split.X), bias=1)  # dense arrays it would go through in Python


def fit(loaded: Any, split: Split, options: str, tolerance: float, seed: int) -> Fit:
    """Fit; there is no seed to give. The primal solver leaves the intercept out of the penalty (-R), duals cannot."""
    asked = parameter(f"{options} -c {1 / (split.l2 * len(split.y))!r} -B 1 -e {tolerance} -q")
    model, seconds = timed(lambda: train(loaded, asked))
    features, sign = model.nr_feature, model.label[0]  # it knows those that occur in a row
    found = np.ctypeslib.as_array(model.w, (features + 1,)) * sign
    weights = np.zeros(split.X.shape[1])
    weights[:features] = found[:-1]
    return Fit(weights, float(found[-1]), seconds)


def ways(loaded: Any, split: Split, loss: str) -> list[Way]:
    return [
        Way(name, partial(fit, loaded, split, options), TOLERANCES, "tolerance")
        for name, options in SOLVERS[loss].items()
    ]


TOOLS = [Tool("LIBLINEAR", "liblinear-official", load, ways)]
