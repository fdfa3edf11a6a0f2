"""Factorisation machines: time to the same held-out log loss, ours and xLearn's, on the same files."""

from __future__ import annotations

import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from hogwild import Cosine, FactorisationMachine, FieldAwareFactorisationMachine, Hogwild, Linear, minimise
from hogwild import data as sources
from hogwild.data.generate import interactions
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.reader import ReadOptions

SHARED = Path(__file__).parents[2] / "shared" / "data"
LADDER = (1, 2, 4, 8)  # epochs
TURNS = 3
RATES = (0.1, 0.2, 0.4)  # that both tools are tried with
PENALTIES = {"fm": 1e-2, "ffm": 1e-3}  # on factors, for both tools
BESIDE = re.compile(r"Time cost for (?:reading problem|saving model|saving txt model): ([0-9.]+)")


@dataclass(frozen=True)
class Case:
    """A model of some data, in files for both tools."""

    name: str
    kind: str
    rank: int
    train: Path
    test: Path
    fields: bool = False


@dataclass(frozen=True)
class Fit:
    """What a fit came to."""

    tool: str
    setting: str
    epochs: int
    seconds: float
    loss: float


def main(out: Path = results.FOLDER, *, quick: bool = False) -> None:
    """Measure, and keep the tables."""
    with tempfile.TemporaryDirectory() as folder:
        text: list[str] = []
        for case in cases(Path(folder), quick):
            ladder, turns = ((1, 2), 1) if quick else (LADDER, TURNS)
            fits = [*ours(case, ladder, turns), *theirs(case, ladder, turns, Path(folder))]
            text += [f"## {case.name}, {case.kind}, rank {case.rank}", "", *summary(fits, linear(case)), ""]
    about = (
        f"Held-out log loss; AdaGrad on {results.cores()} cores; medians of {TURNS}. Of each tool the setting that "
        "comes to a loss soonest. Ours are without compiling; of xLearn's times what it says that reading and saving "
        f"took is taken off. xLearn {results.version_of('xlearn') or 'is not installed'}."
    )
    results.write("interactions", "Factorisation machines", [about, "", *text], out)


def cases(folder: Path, quick: bool) -> Iterator[Case]:
    """The data sets, written as text."""
    rows, features = (2_000, 60) if quick else (60_000, 500)
    made = interactions(rows, features, fields=10, rank=4, seed=1)
    paths = folder / "train.ffm", folder / "test.ffm"
    held_out = rows // 5
    for path, part in zip(paths, (made.rows[:-held_out], made.rows[-held_out:]), strict=True):
        path.write_bytes(made.libffm_text(part))
    yield Case("Planted interactions", "fm", 8, *paths, fields=True)
    yield Case("Planted interactions", "ffm", 4, *paths, fields=True)
    if SHARED.exists() and not quick:
        import gzip

        plain = []
        for name in ("a9a", "a9a.t"):
            plain.append(folder / f"{name}.txt")
            plain[-1].write_bytes(gzip.decompress((SHARED / f"{name}.svm.gz").read_bytes()))
        yield Case("a9a", "fm", 8, *plain)


def opened(case: Case) -> tuple[InMemoryDataset, Any]:
    train = sources.open(case.train)
    same = ReadOptions(features=train.n_features, extra="ignore", base=1 if train.base else 0, table=train.table)
    return train, sources.open(case.test, reading=same)


def linear(case: Case) -> float:
    """The held-out loss of a linear model, to compare with."""
    train, test = opened(case)
    return float(minimise(Linear(train, l2=1e-5), budget=20, test=test).result["test_loss"])


def ours(case: Case, ladder: tuple[int, ...], turns: int) -> Iterator[Fit]:
    train, test = opened(case)
    kind: Callable[..., Any] = FactorisationMachine if case.kind == "fm" else FieldAwareFactorisationMachine
    strategy = Hogwild()  # which takes as many workers as are of use
    penalty = PENALTIES[case.kind]
    for rate in RATES:
        problem, schedule = kind(train, rank=case.rank, l2_factors=penalty), Cosine(rate)
        minimise(problem, "adagrad", schedule, strategy, budget=1)  # compiles
        for epochs in ladder:
            taken = []
            for turn in range(turns):
                began = time.perf_counter()
                run = minimise(
                    problem, "adagrad", schedule, strategy, budget=epochs, evaluate_every_epoch=False, seed=turn
                )
                taken.append((time.perf_counter() - began, log_loss(run.model.decide(test)[:, 0], test.labels())))
            yield fit("hogwild", f"step {rate:g}", epochs, taken)


def theirs(case: Case, ladder: tuple[int, ...], turns: int, folder: Path) -> Iterator[Fit]:
    try:
        import xlearn
    except ImportError:
        return
    os.environ.setdefault("USER", "nobody")  # without one it ends the process
    from benchmarks.tools.x_learn import _said

    for rate, epochs in product(RATES, ladder):
        asked = {
            "task": "binary", "k": case.rank, "lr": rate, "lambda": PENALTIES[case.kind], "epoch": epochs,
            "opt": "adagrad", "nthread": results.cores(), "stop_window": epochs + 1,
        }  # fmt: skip
        taken = []
        for _ in range(turns):
            model = xlearn.create_fm() if case.kind == "fm" else xlearn.create_ffm()
            model.setTrain(str(case.train))
            model.setQuiet()
            if case.kind == "fm":
                model.disableNorm()
            with _said() as said:
                began = time.perf_counter()
                model.fit(asked, str(folder / "xlearn.model"))
                seconds = time.perf_counter() - began
            beside = sum(map(float, BESIDE.findall(said[0])))
            model.setTest(str(case.test))
            with _said():
                model.predict(str(folder / "xlearn.model"), str(folder / "xlearn.out"))
            loss = log_loss(np.loadtxt(folder / "xlearn.out"), test_labels(case))
            taken.append((max(seconds - beside, 0.005), loss))
        yield fit("xLearn", f"step {rate:g}", epochs, taken)


def test_labels(case: Case) -> Any:
    """In the order of the file."""
    return np.array([float(line.split()[0]) for line in case.test.read_text().splitlines()])


def log_loss(scores: Any, labels: Any) -> float:
    return float(np.logaddexp(0, -scores * np.where(labels > 0, 1, -1)).mean())


def fit(tool: str, setting: str, epochs: int, taken: list[tuple[float, float]]) -> Fit:
    seconds, losses = zip(*taken, strict=True)
    return Fit(tool, setting, epochs, statistics.median(seconds), statistics.median(losses))


def summary(fits: list[Fit], linear_loss: float) -> list[str]:
    """Each tool's lowest loss, and how soon it comes to the loss that all of them come to."""
    tools = list(dict.fromkeys(found.tool for found in fits))
    best = {tool: min((f for f in fits if f.tool == tool), key=lambda f: f.loss) for tool in tools}
    target = max(found.loss for found in best.values())
    lines = []
    for tool in tools:
        soonest = min((f for f in fits if f.tool == tool and f.loss <= target), key=lambda f: f.seconds)
        lines.append([
            tool, f"{best[tool].loss:.4f} ({best[tool].setting}, {best[tool].epochs} epochs)",
            f"{soonest.seconds:.2f} s ({soonest.setting}, {soonest.epochs} epochs)",
            f"{soonest.seconds / soonest.epochs * 1e3:.0f} ms",
        ])  # fmt: skip
    head = ["tool", "lowest loss", f"time to {target:.4f}", "an epoch of it"]
    return [f"A linear model comes to {linear_loss:.4f}.", "", *results.table(head, lines)]
