"""A small problem with a ledger beside its weights: every burst adds one to a place of its own in the parameters.

Each life of a worker has a row of places, and a file with a line for every burst that it has made. So after the run the
parameters tell which bursts they contain and how much of each, and the files which there were. What goes through
the ledger goes through the same messages as the weights. There are two copies of it, one in each half of the
parameters, for two servers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from talkers import rows

from hogwild.messaging.deltas import add, change, frozen
from hogwild.messaging.job import MessageJob, Outcome, RunConfig
from hogwild.messaging.protocol import Trained

LIVES, BURSTS = 6, 400
L2 = 0.01
NEAR = 1e-4


def job(
    strategy: Any, bursts: int, seconds: float, folder: Path, emit: Any, step: float = 0.2, late: Iterable[int] = (),
    resident: bool = False,
) -> MessageJob:  # fmt: skip
    """Workers that do so many bursts together, each of which takes so long, and measure after every tenth of them.

    Those that are ``resident`` keep their parameters from burst to burst.
    """
    X, y = rows("logistic")
    features, workers, terms = X.shape[1] + 1, strategy.workers, strategy.interval
    half = features + workers * LIVES * BURSTS
    start = frozen(np.zeros(2 * half, np.float32))
    config = RunConfig(
        workers, start, max(1, bursts // 10) * terms, bursts * terms, silence=60.0, late=frozenset(late),
        resident=resident, run_ahead=1 if resident else 0, fresh=math.inf,
    )  # fmt: skip
    make_trainer = learners(np.column_stack([X, np.ones(len(y))]), y, half, str(folder), seconds, step, bursts * terms)
    return MessageJob(config, strategy.roles(config), make_trainer, measures(X, y, features), emit)


def measures(X: Any, y: Any, features: int) -> Any:
    """The objective of the weights. All is made in functions: then it can be sent to where tests are not installed."""

    def measure(values: Any, exactly: bool = True) -> dict[str, float]:
        import numpy as np

        weights = values[:features].astype(np.float64)
        loss = np.log1p(np.exp(-y * (X @ weights[:-1] + weights[-1]))).mean() + L2 / 2 * weights[:-1] @ weights[:-1]
        return {"loss": float(loss)}

    return measure


def learners(A: Any, y: Any, half: int, folder: str, seconds: float, step: float, goal: int) -> Any:
    """For each life of a worker one."""

    class Learner:
        def __init__(self, worker: int) -> None:
            import os
            from itertools import count

            for life in count():
                try:
                    self.file = open(f"{folder}/{worker}-{life}", "x")  # noqa: PTH123, SIM115
                except FileExistsError:
                    continue
                with open(f"{folder}/{worker}-{life}.process", "w") as file:  # noqa: PTH123
                    file.write(str(os.getpid()))
                self.first, self.made = A.shape[1] + (worker * LIVES + life) * BURSTS, 0
                return

        def gradient(self, weights: Any, row: int) -> Any:
            import numpy as np

            slope = -y[row] / (1 + np.exp(y[row] * (A[row] @ weights)))
            return slope * A[row] + L2 * weights * (np.arange(len(weights)) < len(weights) - 1)

        def warm_up(self, start: Any) -> None:
            """Nothing is compiled here."""

        def burst(self, train: Any) -> Any:
            import time

            import numpy as np

            time.sleep(seconds)
            shard, shards = train.shard
            values = (train.values if train.values is not None else self.values).copy()
            if train.received is not None:
                add(values, train.received)
            before = values.copy()
            weights = values[: A.shape[1]].astype(np.float64)
            origin, pace = weights.copy(), step * (1 + np.cos(np.pi * min(1.0, train.progress / goal))) / 2
            for term in range(train.first, train.first + train.terms):
                at = origin if train.together else weights
                epoch, place = divmod(term, len(range(shard, len(y), shards)))
                row = np.random.default_rng(epoch).permutation(len(y))[shard::shards][place]  # dealt out anew each time
                weights -= pace * self.gradient(at, row) / (train.terms if train.together else 1)
            values[: A.shape[1]] = weights
            values[[self.first + self.made, half + self.first + self.made]] += 1.0
            self.made += 1
            assert self.made < BURSTS, "so many bursts, and still no end"
            self.file.write(f"{train.progress}\n")
            self.file.flush()
            self.values = frozen(values)
            return Trained(self.values, train.terms, train.terms, float(train.terms), 1.0, change(before, values))

    return Learner


@dataclass(frozen=True)
class Row:
    """What a life of a worker has done, and how much of each burst is in one half of the parameters."""

    who: str
    rounds: list[int]  # how far all were when it began each burst
    counted: Any
    died: bool


def check(outcome: Outcome, folder: Path, strategy: Any, bursts: int, events: Iterable[dict[str, Any]]) -> None:
    """No burst counts twice or in part, and none is lost but for the last ones of those who have died."""
    events = list(events)
    for half in halves(outcome, folder, strategy.workers, events):
        for row in half:
            present = row.counted > 0
            count = int(present.sum())
            assert present[:count].all(), f"{row.who}: a burst is missing before others"
            assert row.died or count == len(row.rounds), f"{row.who}: {len(row.rounds) - count} bursts are lost"
        if hasattr(strategy, "topology"):
            views = sum(event["event"] == "topology" for event in events)
            check_mixed(half, strategy, views - 1)
        elif strategy.bounded and getattr(strategy, "combine", None) != "sum":
            check_rounds(half, -(-bursts // strategy.workers))
        else:
            assert all(set(row.counted) <= {0.0, 1.0} for row in half), "a push counts twice, or in part"


def halves(outcome: Outcome, folder: Path, workers: int, events: list[dict[str, Any]]) -> list[list[Row]]:
    """The ledger, in both copies."""
    assert outcome.values is not None
    places = workers * LIVES * BURSTS
    both = outcome.values.reshape(2, -1)[:, -places:].reshape(2, workers, LIVES, BURSTS)
    dead, found = processes_of_the_dead(events), [list[Row](), list[Row]()]
    for worker in range(workers):
        for life in range(LIVES):
            file = folder / f"{worker}-{life}"
            made = [int(line) for line in file.read_text().split()] if file.exists() else []
            died = file.exists() and int(file.with_suffix(".process").read_text()) in dead
            for copy, half in zip(both[:, worker, life], found, strict=True):
                assert not copy[len(made) :].any(), f"worker {worker}, life {life}: there is what nobody has done"
                half.append(Row(f"worker {worker}, life {life}", made, copy[: len(made)], died))
    return found


def check_rounds(half: list[Row], rounds: int) -> None:
    """Servers that add the mean of a round: each of k pushes counts for a k-th of it, and every round for one."""
    parts = np.concatenate([row.counted for row in half])
    shares = 1 / parts[parts > 0]
    sizes, counts = np.unique(np.round(shares), return_counts=True)
    assert np.allclose(shares, np.round(shares), rtol=NEAR), "a push counts for more or less than its share of a round"
    assert not (counts % sizes).any(), f"{counts} pushes are none of rounds of {sizes}"
    assert abs(parts.sum() - rounds) < 0.01, f"{parts.sum()} rounds are counted, of {rounds}"


def check_mixed(half: list[Row], strategy: Any, changes: int) -> None:
    """Workers that mix: a round of all counts for one, and each of k bursts for a k-th of it.

    When somebody comes or goes some may have mixed a round and others not, and some may be a round ahead. In those
    rounds each counts as much as those who stay have of it, which is no more than one in all. Who waits for nobody
    keeps the mean, as long as nobody dies; then every burst counts for as much as there are workers.
    """
    if not strategy.synchronous:
        parts = np.concatenate([row.counted for row in half])
        assert changes or np.allclose(parts, 1 / strategy.workers, atol=NEAR), "a burst counts for more or less"
        return
    uneven = 0
    for progress, parts in by_round(half).items():
        assert min(parts) >= 0, f"the round at {progress}: {parts}"
        assert sum(parts) <= 1 + NEAR, f"the round at {progress}: {parts}"
        uneven += not np.allclose(parts, 1 / len(parts), atol=NEAR)
    assert uneven <= 2 * changes, f"{uneven} rounds do not count as they should, with {changes} changes"


def by_round(half: list[Row]) -> dict[int, list[float]]:
    """How much of each burst counts, by how far all were."""
    found: dict[int, list[float]] = defaultdict(list)
    for row in half:
        for progress, part in zip(row.rounds, row.counted, strict=True):
            found[progress].append(float(part))
    return found


def processes_of_the_dead(events: Iterable[dict[str, Any]]) -> set[int]:
    """The processes of those who have died, as far as they had begun, by what was told."""
    events = list(events)
    died = {(event["node"], event["incarnation"]) for event in events if event["event"] == "crashed"}
    placed = (event for event in events if event["event"] == "placed")
    return {event["process"] for event in placed if (event["node"], event["incarnation"]) in died}
