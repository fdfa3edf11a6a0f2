"""Whole fits with default arguments beside scikit-learn's, from small data to large: what a changed import gives.

A fit is timed from the call to its return: checks, conversions, training and everything between. The first fit of each
kind, which compiles, is not among them (``startup`` has it).
"""

from __future__ import annotations

import statistics
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV, train_test_split

from benchmarks import results, sets
from hogwild import HogwildClassifier
from hogwild.estimators.parallel_fit import COMPILING

Kind = type[SGDClassifier] | type[HogwildClassifier]

TURNS = 7
SECONDS = 20.0  # for all turns of a line, after two
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "log loss, 20 epochs": {"loss": "log_loss", "max_iter": 20, "tol": None},
}
WORKERS = (2, 4, 16)
SEARCHED = 200  # small fits of a search


@dataclass(frozen=True, eq=False)
class Set:
    """Rows to fit, and rows to score."""

    name: str
    X: Any
    y: Any
    held_out: tuple[Any, Any]

    @property
    def nonzeros(self) -> int:
        return int(self.X.nnz if sp.issparse(self.X) else self.X.size)


def split(name: str, X: Any, y: Any) -> Set:
    """A set of which a fifth of the rows is held out."""
    X, test_X, y, test_y = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    return Set(name, X, y, (test_X, test_y))


def small() -> Iterator[Set]:
    """Sets that come with scikit-learn, scaled as its users scale them."""
    yield split("iris", *load_iris(return_X_y=True))
    X, y = load_breast_cancer(return_X_y=True)
    yield split("breast cancer", (X - X.mean(axis=0)) / X.std(axis=0), y)
    X, y = load_digits(return_X_y=True)
    yield split("digits", X / 16, y)


def from_kind(name: str, rows: int, **options: Any) -> Set:
    made = sets.generated(name, rows, 1e-5, **options)
    with sets.opened(made) as found:
        return Set(f"{name}-like, {rows:,} rows", found.X, found.y, found.held_out)


def bigrams(rows: int, features: int = 1_500_000, words: int = 350) -> Set:
    """Rows like pairs of words: a few columns in most rows, most columns in a few."""
    rng = np.random.default_rng(0)
    ranks = np.exp(rng.random(rows * words) * np.log(features)).astype(np.int64) - 1  # as by Zipf's law
    columns = rng.permutation(features)[ranks]
    X = sp.csr_matrix((np.ones(rows * words, np.float32), columns, np.arange(rows + 1) * words), (rows, features))
    X.sum_duplicates()
    X.data /= np.repeat(np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])), np.diff(X.indptr))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    y = np.where(X @ rng.standard_normal(features) + 0.05 * rng.standard_normal(rows) > 0, 1.0, -1.0)
    return split(f"bigram-like, {rows:,} rows", X, y)


def newsgroups() -> Set:
    def part(name: str) -> tuple[Any, Any]:
        with np.load(sets.SHARED / name) as arrays:
            X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), arrays["shape"]).astype(np.float32)
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
            return X, arrays["y"]

    return Set("20 newsgroups, 20 classes", *part("20news_train.npz"), part("20news_test.npz"))


def all_sets(quick: bool) -> Iterator[Set]:
    yield from small()
    if sets.SHARED.is_dir():
        for name in ("reuters", "a9a"):
            with sets.opened(sets.SETS[name]) as found:
                yield Set(name, found.X, found.y, found.held_out)
        if not quick:
            yield newsgroups()
    yield from_kind("rcv1", 2_000 if quick else 35_000)
    if not quick:
        yield bigrams(31_250)
        yield from_kind("clicks", 200_000, features=1_000_000)
        yield from_kind("rcv1", 800_000)


def timed(task: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    found = task()
    return found, time.perf_counter() - started


def interleaved(tasks: dict[str, Callable[[], Any]], turns: int) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """The last result of each task, and its seconds, turn by turn; long ones have fewer turns."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    found = {name: task() for name, task in tasks.items()}  # compiled and warm
    for thread in threading.enumerate():
        if thread.name.startswith(COMPILING):
            thread.join()
    started = time.perf_counter()
    for turn in range(turns):
        if turn >= 2 and time.perf_counter() - started > SECONDS:
            break
        for name, task in tasks.items():
            found[name], taken = timed(task)
            seconds[name].append(taken)
    return found, seconds


def fit(one: Set, **asked: Any) -> Any:
    return HogwildClassifier(**asked).fit(one.X, one.y)


def fits(one: Set, settings: str, workers: tuple[int, ...], turns: int) -> list[str]:
    """One line of the table: how many times as fast as scikit-learn's a fit is, by workers."""
    asked = {"random_state": 0, **SETTINGS[settings]}
    tasks = {"theirs": lambda: SGDClassifier(**asked).fit(one.X, one.y)}
    for count in (None, *workers):
        tasks[str(count)] = partial(fit, one, n_jobs=count, **asked)
    models, seconds = interleaved(tasks, turns)
    theirs = statistics.median(seconds.pop("theirs"))
    scores = {name: 100 * model.score(*one.held_out) for name, model in models.items()}
    better = [scores[str(count)] - scores["theirs"] for count in (None, *workers[-1:])]
    return [
        one.name, f"{one.nonzeros:,}", settings, f"{1e3 * theirs:.1f}",
        *(f"{theirs / statistics.median(taken):.2f}" for taken in seconds.values()),
        *(f"{points:+.2f}" for points in better),
    ]  # fmt: skip


def others(one: Set, turns: int) -> list[list[str]]:
    """What else one waits for: batches, predictions, and a search of many small fits."""
    batches = [(one.X[batch], one.y[batch]) for batch in np.array_split(np.arange(len(one.y)), 20)]
    fitted = {kind: kind(random_state=0).fit(one.X, one.y) for kind in (SGDClassifier, HogwildClassifier)}
    few = next(each for each in small() if each.name == "breast cancer")
    grid = {"alpha": np.logspace(-5, -1, SEARCHED // 5)}
    classes = np.unique(one.y)

    def stream(kind: Kind) -> None:
        model = kind(random_state=0)
        for X, y in batches:
            model.partial_fit(X, y, classes=classes)

    tasks: dict[str, Callable[[Kind], Any]] = {
        f"partial_fit, 20 batches of {one.name}": stream,
        f"predict, {one.name}": lambda kind: fitted[kind].predict(one.X),
        "predict, one row, 100 times": lambda kind: [fitted[kind].predict(one.X[:1]) for _ in range(100)],
        f"GridSearchCV, {SEARCHED} fits of {few.name}": lambda kind: GridSearchCV(kind(random_state=0), grid, cv=5).fit(
            few.X, few.y
        ),
    }
    lines = []
    for what, task in tasks.items():
        seconds = interleaved(
            {"theirs": partial(task, SGDClassifier), "ours": partial(task, HogwildClassifier)}, turns
        )[1]
        theirs, ours = (statistics.median(taken) for taken in seconds.values())
        lines.append([what, f"{1e3 * theirs:.1f}", f"{1e3 * ours:.1f}", f"{theirs / ours:.2f}"])
    return lines


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    from benchmarks import whole_minimise  # which has functions of this module

    warnings.simplefilter("ignore")
    turns = 2 if quick else TURNS
    workers = tuple(count for count in WORKERS if count <= results.cores())
    lines: list[list[str]] = []
    more: list[list[str]] = []
    for one in all_sets(quick):
        for settings in SETTINGS:
            lines.append(fits(one, settings, workers, turns))
            print(*lines[-1], flush=True)
        if one.name.startswith("rcv1") and not more:
            more = others(one, turns)
    whole_minimise.main(out, quick)
    scores = ["score of 1", f"score of {workers[-1]}"] if workers else ["score of 1"]
    head = ["set", "non-zeros", "settings", "scikit-learn ms", "1 worker", *map(str, workers), *scores]
    results.write(
        "whole_fit",
        "Whole fits",
        [
            "`HogwildClassifier` beside scikit-learn's `SGDClassifier` with the same arguments: how many times as fast",
            f"a whole call of `fit` is, by `n_jobs`; medians of up to {TURNS} turns, tool by tool in turn. The last",
            "columns are differences of held-out accuracies, ours less theirs, in percentage points.",
            "",
            *results.table(head, lines),
            "",
            *results.table(["what", "scikit-learn ms", "ours ms", "times as fast"], more),
        ],
        out,
    )
