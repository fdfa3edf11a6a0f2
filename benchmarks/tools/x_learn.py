"""xLearn: its linear model, lock-free on all cores, from the binary form that it makes of text."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xlearn

from benchmarks.results import cores
from benchmarks.sets import Split
from benchmarks.tools.way import Fit, Tool, Way, timed

SETTINGS = {
    "AdaGrad, lr 0.2": {"opt": "adagrad", "lr": 0.2},
    "AdaGrad, lr 0.05": {"opt": "adagrad", "lr": 0.05},
    "AdaGrad, lr 1": {"opt": "adagrad", "lr": 1.0},
    "SGD, lr 0.2": {"opt": "sgd", "lr": 0.2},
    "SGD, lr 1": {"opt": "sgd", "lr": 1.0},
}
BESIDE = re.compile(r"Time cost for (?:reading problem|saving model|saving txt model): ([0-9.]+)")
ROUNDING = 0.005  # seconds


def fit(folder: Path, split: Split, settings: dict[str, Any], epochs: float, seed: int) -> Fit:
    """Fit; there is no seed to give. What it says that reading and saving took, to the hundredth, is taken off.

    Both may be half a hundredth less than it says, so that no more is taken off than leaves that.
    """
    os.environ.setdefault("USER", "nobody")  # without one it ends the process
    model, text = xlearn.create_linear(), folder / "xlearn.txt"
    model.setTrain(str(split.svm))
    model.setTXTModel(str(text))
    model.disableNorm()  # the rows are to stay as they are
    model.setQuiet()
    asked = {"task": "binary", "lambda": split.l2, "epoch": int(epochs), "nthread": cores(), "stop_window": 2}
    with _said() as said:
        _, seconds = timed(lambda: model.fit(asked | settings, str(folder / "xlearn.model")))
    beside = sum(map(float, BESIDE.findall(said[0])))
    return Fit(*_read(text, split.X.shape[1]), max(seconds - beside, ROUNDING))


def load(split: Split) -> Path:
    folder = split.svm.parent
    fit(folder, split, {"opt": "sgd", "lr": 0.1}, 1, 0)  # which writes the binary file beside the text
    return folder


def ways(folder: Path, split: Split, loss: str) -> list[Way]:
    if loss == "hinge":
        return []
    return [Way(name, partial(fit, folder, split, settings)) for name, settings in SETTINGS.items()]


def _read(path: Path, features: int) -> tuple[Any, float]:
    """Weights and intercept from a model in text; features are counted from one, as in the file it was trained on."""
    weights, intercept = np.zeros(features), 0.0
    for line in path.read_text().splitlines():
        name, _, value = line.partition(": ")
        if name == "bias":
            intercept = float(value)
        elif name.startswith("i_") and 1 <= int(name[2:]) <= features:
            weights[int(name[2:]) - 1] = float(value)
    return weights, intercept


@contextmanager
def _said() -> Iterator[list[str]]:
    """Catch what compiled code prints."""
    said: list[str] = [""]
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield said
        finally:
            os.dup2(kept, 1)
            os.close(kept)
            file.seek(0)
            said[0] = file.read().decode(errors="replace")


REMARK = (
    "xLearn has no hinge loss. It penalises a weight only in rows that have its feature, so that it settles elsewhere "
    "than the objective's minimum."
)
TOOLS = [Tool("xLearn", "xlearn", load, ways, from_arrays=False, remark=REMARK)]
