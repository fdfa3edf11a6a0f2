"""Predictions are written as NumPy's savetxt writes them, in less time."""

import io

import numpy as np
import pytest

from hogwild.cli import prediction_writers


def written(values):
    lines = io.StringIO()
    np.savetxt(lines, values, fmt="%.9g", delimiter="\t")
    return lines.getvalue()


@pytest.mark.parametrize("at_once", [1, 7, 2**16])
@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-20, 30),
        np.random.default_rng(0).integers(0, 3, 100).astype(float),
        np.random.default_rng(0).random((20, 3)),
        np.array([np.nan, np.inf, -np.inf, np.nan, 0.1, 1e9, 123456789.5]),
        np.empty(0),
    ],
    ids=["numbers", "classes", "probabilities", "not finite", "none"],
)
def test_lines_are_those_of_savetxt(values, at_once, monkeypatch):
    monkeypatch.setattr(prediction_writers, "_AT_ONCE", at_once)
    monkeypatch.setattr(prediction_writers, "_FEW", 4)
    assert prediction_writers.text_of(values) == written(values)


def test_names_and_zeros():
    assert prediction_writers.text_of(np.array(["ja", "größer"])) == "ja\ngrößer\n"
    assert prediction_writers.text_of(np.array([-0.0, 0.0, 1.0])) == "0\n0\n1\n"
