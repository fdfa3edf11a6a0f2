"""Matrix completion beside LIBMF, and preferences beside implicit: how long each takes to come as far as the others.

Generated ratings in the shape of MovieLens-1M, a tenth of them held out, rank 32, two threads. Every run has a budget
of so many passes, and its own schedule over them; what counts is the shortest time of a run that comes as far as the
target, which is what the worse of two comes to at its best. ``LIBMF_OBJ`` may name a library of LIBMF's that is
compiled with vector instructions (``-O3 -march=native -DUSEAVX``), which its package does not do.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import hogwild
from benchmarks import results
from hogwild.data.generate.ratings import GeneratedRatings
from hogwild.data.ratings import Ratings

RANK, THREADS, ROUNDS = 32, 2, 3
PASSES = {"held-out RMSE": (4, 5, 6, 7, 8, 10, 12, 16), "1 - AUC": (1, 2, 4, 10, 20, 40)}
SLACK = 1.001  # times the target: no run hits it exactly
# What suits each of them on these ratings is found by the same search.
LIBMF = [{"lambda": strength, "eta": eta} for strength in (0.02, 0.03, 0.04, 0.05) for eta in (0.05, 0.1, 0.15, 0.2)]
OURS = [{"l2": strength, "step": step} for strength in (0.03, 0.04, 0.05, 0.06) for step in (0.06, 0.08, 0.1, 0.12)]
IMPLICIT = [{"regularization": 0.01, "learning_rate": rate} for rate in (0.005, 0.01, 0.02)]
PREFERENCES = [{"l2": 0.01, "step": step} for step in (0.05, 0.1, 0.2)]
Setting = dict[str, float]


@dataclass(frozen=True)
class Outcome:
    """What one run came to; ``error`` is what is to be low."""

    passes: int
    setting: Setting
    seconds: float
    error: float


def squared(training: Ratings, test: Ratings) -> dict[str, Callable[[int, Setting], tuple[float, float]]]:
    """How each tool is run on ratings: (passes, setting) -> (seconds, held-out RMSE)."""
    users, items, ratings = training.columns
    tested_users, tested_items, tested = test.columns
    columns = np.column_stack([users, items, ratings]).astype(np.float32)

    def rmse(predicted: Any) -> float:
        return float(np.sqrt(np.mean((np.clip(predicted, 1, 5) - tested) ** 2)))

    def ours(passes: int, setting: Setting) -> tuple[float, float]:
        started = time.perf_counter()
        run = hogwild.minimise(
            hogwild.MatrixCompletion(training, RANK, l2=setting["l2"]), "sgd", hogwild.Cosine(setting["step"]),
            hogwild.Hogwild(workers=THREADS), budget=passes,
            evaluate_every_epoch=False,
        )  # fmt: skip
        return time.perf_counter() - started, rmse(run.model.scores_of(tested_users, tested_items))

    def libmf(passes: int, setting: Setting) -> tuple[float, float]:
        with silence():
            from libmf import mf

            engine = mf.MF(
                k=RANK, nr_threads=THREADS, nr_iters=passes, lambda_p2=setting["lambda"], lambda_q2=setting["lambda"],
                lambda_p1=0.0, lambda_q1=0.0, eta=setting["eta"], quiet=True, copy_data=False,
            )  # fmt: skip
            started = time.perf_counter()
            engine.fit(columns)
            seconds = time.perf_counter() - started
            # Not by its own ``predict``, which takes users and items for each other's.
            shape, model = np.ctypeslib.as_array, engine.model
            users_, items_ = shape(model.P, (model.m, model.k)), shape(model.Q, (model.n, model.k))
            predicted = np.einsum("nk,nk->n", users_[tested_users], items_[tested_items])
            return seconds, rmse(np.where(np.isnan(predicted), model.b, predicted))

    return {"hogwild": ours, "libmf": libmf}


def preferences(training: Ratings, test: Ratings) -> dict[str, Callable[[int, Setting], tuple[float, float]]]:
    """The same on who has met what: (passes, setting) -> (seconds, one less the share of preferences met)."""
    users, items, _ = training.columns
    tested_users, tested_items, _ = test.columns
    others = np.random.default_rng(0).integers(0, training.n_items, len(tested_items))
    matrix = scipy.sparse.csr_matrix((np.ones(len(users), np.float32), (users, items)),
                                     (training.n_users, training.n_items))  # fmt: skip

    def missed(first: Any, second: Any) -> float:
        return 1 - float(np.mean(first > second))

    def ours(passes: int, setting: Setting) -> tuple[float, float]:
        started = time.perf_counter()
        run = hogwild.minimise(
            hogwild.MatrixCompletion(training, RANK, loss="bpr", l2=setting["l2"]), "sgd",
            hogwild.Cosine(setting["step"]), hogwild.Hogwild(workers=THREADS), budget=passes,
            evaluate_every_epoch=False,
        )  # fmt: skip
        score = run.model.scores_of
        return time.perf_counter() - started, missed(score(tested_users, tested_items), score(tested_users, others))

    def implicit(passes: int, setting: Setting) -> tuple[float, float]:
        from implicit.cpu.bpr import BayesianPersonalizedRanking

        model = BayesianPersonalizedRanking(RANK, iterations=passes, num_threads=THREADS, random_state=0, **setting)
        started = time.perf_counter()
        model.fit(matrix, show_progress=False)
        seconds = time.perf_counter() - started

        def score(who: Any, what: Any) -> Any:
            return np.einsum("nk,nk->n", model.user_factors[who], model.item_factors[what])

        return seconds, missed(score(tested_users, tested_items), score(tested_users, others))

    return {"hogwild": ours, "implicit": implicit}


def grouped(outcomes: list[Outcome]) -> dict[tuple[int, str], tuple[list[float], float]]:
    """By passes and setting: the seconds of each round, and the median error."""
    ways: dict[tuple[int, str], list[Outcome]] = {}
    for outcome in outcomes:
        ways.setdefault((outcome.passes, json.dumps(outcome.setting)), []).append(outcome)
    return {
        key: ([outcome.seconds for outcome in each], float(np.median([outcome.error for outcome in each])))
        for key, each in ways.items()
    }


def compared(tools: Any, settings: dict[str, list[Setting]], passes: Any, rounds: int) -> dict[str, Any]:
    """Every tool with every setting; then what takes each of them to the same error."""
    found: dict[str, list[Outcome]] = {name: [] for name in tools}
    for name, run in tools.items():
        run(1, settings[name][0])  # whatever is to be compiled or loaded
    for _ in range(rounds):
        for name, run in tools.items():
            found[name] += [Outcome(n, s, *run(n, s)) for s in settings[name] for n in passes]
    ways = {name: grouped(outcomes) for name, outcomes in found.items()}
    best = {name: min(error for _, error in each.values()) for name, each in ways.items()}
    target, soonest = SLACK * max(best.values()), {}
    for name, each in ways.items():
        there = {key: seconds for key, (seconds, error) in each.items() if error <= target}
        key = min(there, key=lambda key: float(np.median(there[key])))
        soonest[name] = {"passes": key[0], "setting": json.loads(key[1]), "seconds": there[key], "best": best[name]}
    return {"target": target, "tools": soonest}


@contextmanager
def silence() -> Iterator[None]:
    """Let compiled code that talks talk to nobody."""
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)


def main(out: Path, quick: bool = False) -> None:
    """Measure both, and write a table of each."""
    made = GeneratedRatings(users=300, items=200, n_rows=5_000) if quick else GeneratedRatings()
    training, test = made.data.split(0.1, seed=0)
    vectors = "compiled with vector instructions" if "LIBMF_OBJ" in os.environ else "as its package compiles it"
    about = (
        f"{made.n_rows:,} generated ratings by {made.users:,} users of {made.items:,} items, a tenth held out; rank "
        f"{RANK}, {THREADS} threads."
    )
    told = f"{about} The planted ratings themselves have an RMSE of {made.floor:.4f}. LIBMF is {vectors}."
    contest("ratings", "held-out RMSE", squared(training, test), {"hogwild": OURS, "libmf": LIBMF}, told, out, quick)
    tools = preferences(training, test)
    contest("preferences", "1 - AUC", tools, {"hogwild": PREFERENCES, "implicit": IMPLICIT}, about, out, quick)


def contest(
    name: str, what: str, tools: Any, settings: dict[str, list[Setting]], told: str, out: Path, quick: bool
) -> None:
    """The time each tool takes to come as far as the other; nothing is written where there is no other."""
    present = {tool: run for tool, run in tools.items() if tool == "hogwild" or results.version_of(tool)}
    if len(present) == 1:
        print(f"{name}: {' and '.join(set(tools) - set(present))} is not installed; nothing measured")
        return
    rounds = 1 if quick else ROUNDS
    outcome = compared(present, settings, (3, 5) if quick else PASSES[what], rounds)
    rows = []
    for tool, found in outcome["tools"].items():
        setting = ", ".join(f"{key} {value:g}" for key, value in found["setting"].items())
        rows.append([tool, f"{found['best']:.4f}", f"{outcome['target']:.4f}",
                     results.span(found["seconds"], ".2f", " s"), str(found["passes"]), setting])  # fmt: skip
    about = (
        f"{told} The time is that of the shortest budget that comes to the target, which is the best of the tool that "
        f"is worse, the median of {rounds} (and from least to most); for hogwild it is all of `minimise`, compiled "
        "before."
    )
    head = ["tool", f"its best {what}", "target", "time to the target", "passes", "setting"]
    results.write(name, name.capitalize(), [about, "", *results.table(head, rows)], out, outcome)
