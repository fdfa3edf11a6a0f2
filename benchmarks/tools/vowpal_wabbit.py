"""Vowpal Wabbit in its own way: passes over a cache file, a thread that reads and one that learns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import vowpalwabbit

from benchmarks.sets import Split
from benchmarks.tools.way import EPOCHS, Fit, Tool, Way, timed

CONSTANT = 11_650_396  # the number of the intercept's weight, before it is cut to so many bits
SETTINGS = {
    "SGD, -l 5": "--sgd -l 5 --l2 {l2}",
    "SGD, -l 0.5": "--sgd -l 0.5 --l2 {l2}",
    "FTRL": "--ftrl --l2 {l2}",
    "adaptive, normalised, invariant": "--l2 {l2}",
    "adaptive, normalised, invariant, l2/100": "--l2 {weak}",
    "adaptive, invariant, -l 0.05": "--adaptive --invariant -l 0.05 --l2 {l2}",
}
BFGS = "--bfgs --l2 {sum}"  # counts the penalty once, and the losses of all rows


@dataclass(frozen=True, eq=False)
class Loaded:
    """A cache file, and the features that occur in it."""

    cache: Path
    bits: int
    present: Any


def load(split: Split) -> Loaded:
    features = split.X.shape[1]
    bits = next(b for b in range(max(10, features.bit_length()), 31) if CONSTANT % 2**b >= features)
    cache = split.vw.with_suffix(".cache")
    vowpalwabbit.Workspace(f"-d {split.vw} -b {bits} --cache_file {cache} --noop --quiet").finish()
    present = np.unique(split.X.indices) if sp.issparse(split.X) else np.arange(features)
    return Loaded(cache, bits, present)


def fit(loaded: Loaded, split: Split, loss: str, settings: str, passes: float, seed: int) -> Fit:
    rows, l2 = len(split.y), split.l2
    options = (
        f"--cache_file {loaded.cache} -b {loaded.bits} --passes {int(passes)} --holdout_off --loss_function {loss} "
        f"--random_seed {seed} --no_bias_regularization --quiet " + settings.format(l2=l2, weak=l2 / 100, sum=l2 * rows)
    )
    model, seconds = timed(lambda: vowpalwabbit.Workspace(options))
    if settings != BFGS:
        # What --l2 still owes the weights is applied when they are saved: until then they are too large.
        saved = str(loaded.cache.with_suffix(".model"))
        model.save(saved)
        model.finish()
        model = vowpalwabbit.Workspace(f"-i {saved} -t --quiet")
    weights = np.zeros(split.X.shape[1])
    weights[loaded.present] = [model.get_weight(column) for column in loaded.present.tolist()]
    intercept = model.get_weight(CONSTANT % 2**loaded.bits)
    model.finish()
    return Fit(weights, float(intercept), seconds)


def ways(loaded: Loaded, split: Split, loss: str) -> list[Way]:
    found = [Way(name, partial(fit, loaded, split, loss, s), effort="passes") for name, s in SETTINGS.items()]
    if loss == "logistic":
        found.append(Way("BFGS", partial(fit, loaded, split, loss, BFGS), EPOCHS[1:], "passes"))
    return found


REMARK = (
    "Vowpal Wabbit reads its cache file while it learns, which is in its times. Its adaptive updates apply `--l2` by a "
    "step of their own, so that they settle elsewhere than the objective's minimum."
)
TOOLS = [Tool("Vowpal Wabbit", "vowpalwabbit", load, ways, from_arrays=False, remark=REMARK)]
