"""Model files with a right checksum and wrong contents: refused when they are loaded."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild import array_file, models
from hogwild.errors import DataError, ModelError
from hostile_models import ENDINGS, MODELS, QUESTIONS

ODD: tuple[Any, ...] = (None, "x", -1, 0, 2.5, float("nan"), True, [], [1], ["a", "b"], {}, {"a": 1}, 10**400)
FREE = ("training", "format", "kind")  # what is told about the run, and what another test has


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_is_loaded_and_answers(tmp_path: Path, kind: str) -> None:
    MODELS[kind](tmp_path / "model")
    question = tmp_path / f"question{ENDINGS.get(kind, '.svm')}"
    question.write_bytes(QUESTIONS[kind])
    assert len(models.load(tmp_path / "model").answer(question).values) >= 2


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(tmp_path: Path, kind: str, number: float) -> None:
    MODELS[kind](tmp_path / "model")
    arrays, record = array_file.load(tmp_path / "model", ModelError)
    for name in [name for name, array in arrays.items() if array.dtype.kind == "f" and array.size]:
        damaged = {**arrays, name: arrays[name].copy()}
        damaged[name].flat[-1] = number
        array_file.save(tmp_path / "damaged", damaged, record)
        with pytest.raises(ModelError, match=f"'{name}' has numbers that are not finite"):
            models.load(tmp_path / "damaged")


@pytest.mark.parametrize("kind", MODELS)
def test_wrong_types_in_the_record_are_refused(tmp_path: Path, kind: str) -> None:
    """A record with one entry of another type is refused, or loads and answers: no other error."""
    MODELS[kind](tmp_path / "model")
    question = tmp_path / f"question{ENDINGS.get(kind, '.svm')}"
    question.write_bytes(QUESTIONS[kind])
    arrays, record = array_file.load(tmp_path / "model", ModelError)
    refused = 0
    for name in record.keys() - set(FREE):
        for odd in (*ODD, "missing"):
            damaged = copy.deepcopy(record)
            damaged[name] = odd
            if odd == "missing":
                del damaged[name]
            array_file.save(tmp_path / "damaged", arrays, damaged)
            try:
                models.load(tmp_path / "damaged").answer(question)
            except ModelError:
                refused += 1
            except DataError:  # The type is right, and the file does not fit the model.
                pass
    assert refused >= 10 * (len(record.keys() - set(FREE)) - 1)
