"""Held-out error on real ratings, with the usual settings, beside Surprise's SVD where that is installed.

``RATINGS`` names the file, such as MovieLens' ``u.data`` or ``ratings.dat``. A tenth is held out at random, five times.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hogwild
from benchmarks import results
from hogwild.data.generate.ratings import GeneratedRatings
from hogwild.data.ratings import open_ratings

RANK, HELD_OUT = 32, 0.1
Columns = tuple[Any, Any, Any]
Fit = Callable[[Columns, int], Callable[[Any, Any], Any]]


def ours(training: Columns, seed: int) -> Callable[[Any, Any], Any]:
    model = hogwild.HogwildRecommender(rank=RANK, random_state=seed).fit(training)
    return lambda users, items: model.predict((users, items))


def surprise(**settings: Any) -> Fit:
    """Surprise's SVD, which is the same model."""

    def fit(training: Columns, seed: int) -> Callable[[Any, Any], Any]:
        from pandas import DataFrame
        from surprise import SVD, Dataset, Reader

        frame = DataFrame(dict(zip(("user", "item", "rating"), training, strict=True)))
        scale = Reader(rating_scale=(training[2].min(), training[2].max()))
        model = SVD(random_state=seed, **settings).fit(Dataset.load_from_df(frame, scale).build_full_trainset())
        return lambda users, items: [model.predict(*pair).est for pair in zip(users, items, strict=True)]

    return fit


def contestants() -> dict[str, Fit]:
    found = {"ours, as it is": ours}
    if results.version_of("scikit-surprise"):
        found["Surprise's SVD, as it is (rank 100)"] = surprise()
        for penalty in (0.05, 0.08, 0.1):
            for epochs in (20, 40):
                name = f"Surprise's SVD, rank {RANK}, penalty {penalty}, {epochs} epochs"
                found[name] = surprise(n_factors=RANK, reg_all=penalty, n_epochs=epochs)
    return found


def measured(fit: Fit, columns: Columns, splits: int) -> tuple[list[float], list[float]]:
    """Held-out errors, and seconds."""
    errors, times = [], []
    for seed in range(splits):
        held = np.random.default_rng(seed).random(len(columns[2])) < HELD_OUT
        users, items, expected = (column[held] for column in columns)
        begun = time.perf_counter()
        predict = fit((columns[0][~held], columns[1][~held], columns[2][~held]), seed)
        times.append(time.perf_counter() - begun)
        errors.append(float(np.sqrt(np.mean((np.asarray(predict(users, items)) - expected) ** 2))))
    return errors, times


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    source = os.environ.get("RATINGS")
    if source is None and not quick:
        print("real_ratings: RATINGS=FILE must name the ratings (MovieLens' u.data, for example); nothing measured")
        return
    columns = GeneratedRatings(300, 200, 5_000).columns if quick else open_ratings(source).columns
    ours(columns, 0)  # compiles
    rows = []
    for name, fit in contestants().items():
        errors, times = measured(fit, columns, 1 if quick else 5)
        rows.append([name, f"{statistics.mean(errors):.4f}", results.span(times, ".2f", " s")])
        print(*rows[-1], flush=True)
    text = [
        f"{Path(source or 'generated').name}: {len(columns[2]):,} ratings, a tenth held out: the mean of five splits.",
        "", *results.table(["what", "held-out RMSE", "training"], rows),
    ]  # fmt: skip
    results.write("real_ratings", "Real ratings", text, out)
