"""Workers without servers end whatever dies when: random executions, more of them by make conformance."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from counting import Counter, count

from hogwild import AllToAll, Crash, Crashes, Gossip, Link, Simulator

EXECUTIONS = 400 if os.environ.get("HOGWILD_CONFORMANCE") == "all" else 20
KINDS = {
    "gossip": lambda random, workers: Gossip(_topology(random), True, workers, random.choice([1, 3])),
    "gossip, asynchronous": lambda random, workers: Gossip(_topology(random), False, workers, random.choice([1, 3])),
    "all to all": lambda random, workers: AllToAll(workers, True, random.choice([1, 3])),
    "all to all, asynchronous": lambda random, workers: AllToAll(workers, False, 2, "mean"),
}


def _topology(random):
    return random.choice(["ring", "clique", "exponential", "one-peer-exponential", "star"])


def _runtime(random, workers):
    faults = [Crashes(random.choice([0.05, 0.2, 1.0]), random.choice([0.0, 0.02, 0.1]))] * random.choice([0, 1, 1])
    for _ in range(random.randrange(3)):
        faults.append(Crash(f"worker-{random.randrange(workers)}", random.random() / 4, random.choice([0.0, 0.01])))
    if workers > 1 and random.random() < 0.4:
        faults.append(Crash("worker-0", random.random() / 4))
    link = Link(
        random.choice([1e-4, "exponential:0.002"]), loss=random.choice([0.0, 0.1]),
        duplication=random.choice([0.0, 0.1]), reordering=random.choice([0.0, 0.3]),
    )  # fmt: skip
    late = {workers - 1: random.random() / 4} if workers > 1 and random.random() < 0.3 else {}
    return Simulator(
        random.choice(["log-normal:0.001:0.5", 0.001]), link, {0: random.choice([1.0, 5.0])}, tuple(faults), late,
        random.choice([0.0, 0.003, 0.05]),
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_run_always_ends(kind):
    for seed in range(EXECUTIONS):
        chance = random.Random(seed)
        workers = chance.choice([1, 2, 3, 4, 6])
        strategy, runtime = KINDS[kind](chance, workers), _runtime(chance, workers)
        seconds = chance.choice([None, None, 0.1])
        late = frozenset(runtime.late)
        outcome, _ = count(strategy, runtime, 120, seed, seconds=seconds, late=late)
        what = f"{strategy} on {runtime}, seed {seed}"
        assert outcome.reason in ("epochs", "seconds"), f"{outcome.reason}: {what}"
        # Everybody adds one a term, and all are averaged.
        assert np.all(outcome.values >= 0), what
        assert np.all(outcome.values <= Counter.total), what
