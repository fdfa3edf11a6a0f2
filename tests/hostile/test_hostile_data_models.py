"""Mutated model files of every kind, with right checksums: each is refused when it is loaded, or answers."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from mutations import MUTANTS, check_error, mutate_arrays, mutate_entries

from fuzz.damage import damage
from hogwild import array_file, models
from hogwild.errors import ModelError
from hostile_models import ENDINGS, MODELS, QUESTIONS

pytestmark = pytest.mark.usefixtures("bounded_memory")


@pytest.mark.parametrize("kind", MODELS)
def test_mutated_models(tmp_path: Path, kind: str) -> None:
    MODELS[kind](tmp_path / "model")
    question, path = tmp_path / f"question{ENDINGS.get(kind, '.svm')}", tmp_path / "mutant"
    question.write_bytes(QUESTIONS[kind])
    arrays, record = array_file.load(tmp_path / "model", ModelError)
    answered = 0
    for seed in range(MUTANTS):
        rng = random.Random(f"{kind} {seed}")
        mutant, entries = arrays, record
        for _ in range(rng.randint(1, 2)):
            if rng.random() < 0.5 and mutant:
                mutant = mutate_arrays(mutant, rng)
            else:
                entries = mutate_entries(entries, rng)
        try:
            array_file.save(path, mutant, entries)
        except Exception:  # safetensors has no such type: the file cannot be made, and nothing is tried.
            continue
        if rng.random() < 0.1:
            path.write_bytes(damage(path.read_bytes(), rng))
        try:
            values = models.load(path).answer(question).values
        except Exception as error:
            check_error(error, seed)
        else:
            assert not np.isnan(np.asarray(values, np.float64)).any(), f"mutant {seed} answers with NaN"
            answered += 1
    assert 0 < answered < MUTANTS
