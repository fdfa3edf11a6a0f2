"""What is counted of workers in one memory is what happened."""

from __future__ import annotations

import json
import random
from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import random as random_matrix

import references
from hogwild import Averaging, Constant, Hogwild, Linear, Locked, ParameterServer, RoundRobin, Serial, minimise
from hogwild.cli import main
from hogwild.errors import ParameterError
from hogwild.jit import bind, specialise
from hogwild.kernels.conflict_counters import COLLIDED, LOST, MET, MISSED, WHOLE, WRITES, ConflictCounters, step_watched
from hogwild.kernels.row_layouts import stored_column
from hogwild.kernels.sync_policies import ways
from hogwild.runtimes.shared_memory.conflict_monitor import group_by_frequency

FEATURES, WORKERS = 12, 3


def sgd(state, u, g, rate, l1, l2, constants):
    state[u, 0] -= rate * g


def eyes(groups):
    stamps, clock = np.zeros(FEATURES, np.int64), np.zeros(16, np.int64)
    for _ in range(WORKERS):
        notes = np.zeros(16, np.int64)
        notes[WHOLE] = 1000
        yield ConflictCounters(
            stamps, clock, groups, np.zeros(FEATURES, np.int64), notes, np.zeros(64, np.int64),
            np.zeros((FEATURES, 4), np.int64), np.zeros((8, FEATURES), np.int64), np.zeros((1, 1), np.float32),
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_a_known_interleaving(seed):
    """Workers hold a term, write its coordinates one by one and release it, in an order that is drawn."""
    chance, all_eyes = random.Random(seed), list(eyes(np.arange(FEATURES, dtype=np.uint8)))
    watched = ways("free", stored_column, watching=True)
    hold, release = specialise(watched["hold"], cache=False), specialise(watched["release"], cache=False)
    step = specialise(bind(step_watched, step=sgd), cache=False)
    state, sync = np.zeros((FEATURES, 1), np.float32), np.zeros(1, np.int64)
    now, writes, updates = 0, defaultdict(list), []  # by coordinate (when, who); (when, who)
    seen = {"met": 0, "missed": 0, "collided": 0}
    delays, at_work = [], {}
    for _ in range(4000):
        now, worker = now + 1, chance.randrange(WORKERS)
        eye = all_eyes[worker]
        if worker not in at_work:
            term = np.array(sorted(chance.sample(range(FEATURES), chance.randint(1, 4))), np.uint32)
            at_work[worker] = term, list(term), now
            hold((sync, eye), term, np.uint64(0), np.uint64(len(term)))
            continue
        term, left, since = at_work[worker]
        if left:
            u = left.pop()
            step(state, u, np.float32(1), np.float32(0.5), np.float32(0), np.float32(0), ((), eye))
            writes[u].append((now, worker))
            continue
        release((sync, eye), term, np.uint64(0), np.uint64(len(term)), 0)
        del at_work[worker]
        missed = [sum(when > since and who != worker for when, who in writes[u]) for u in term]
        seen["met"] += sum(count > 0 for count in missed)
        seen["missed"] += sum(missed)
        seen["collided"] += any(missed)
        delays.append(sum(when > since for when, _ in updates))
        updates.append((now, worker))
    tally = np.sum([eye.tally for eye in all_eyes], axis=0)
    assert seen["missed"] > 100
    assert tally[:, MET].sum() == seen["met"]
    assert tally[:, MISSED].sum() == seen["missed"]
    assert tally[:, LOST].sum() == 0
    assert sum(eye.notes[COLLIDED] for eye in all_eyes) == seen["collided"]
    assert np.array_equal(np.sum([eye.delays for eye in all_eyes], axis=0), np.bincount(delays, minlength=64))
    finished = [len(writes[u]) - sum(u in term and u not in left for term, left, _ in at_work.values())
                for u in range(FEATURES)]  # fmt: skip
    assert tally[:, WRITES].tolist() == finished
    assert sum(eye.heat.sum() for eye in all_eyes) == sum(finished)


def step_while_others_write(state, u, g, rate, l1, l2, constants):
    """A step during which other workers add one to the same coordinate, some times."""
    shared, times = constants
    for _ in range(times):
        shared[0, 0] += 1
    state[u, 0] -= rate * g


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_write_over_what_others_wrote_meanwhile_is_counted_as_lost(times):
    """Others write between this worker's read and its write; that they did is seen by what it overwrites."""
    eye, other, _ = eyes(np.zeros(FEATURES, np.uint8))
    step = specialise(bind(step_watched, step=step_while_others_write), cache=False)
    shared = np.zeros((FEATURES, 1), np.float32)
    step(shared, 0, np.float32(-1), np.float32(1), np.float32(0), np.float32(0), ((shared, times), eye))
    assert shared[0, 0] == 1  # what the others wrote is gone
    assert (eye.tally[0, LOST] > 0) == (times > 0)
    step(shared, 0, np.float32(-1), np.float32(1), np.float32(0), np.float32(0), ((shared, 0), other))
    assert shared[0, 0] == 2
    assert other.tally[0, LOST] == 0


def sparse(rows=4000, features=60, seed=0):
    """Rows of which none is empty, in two classes."""
    random = np.random.default_rng(seed)
    diagonal = sp.coo_array((np.ones(rows), (np.arange(rows), np.arange(rows) % features)), (rows, features))
    X = (random_matrix(rows, features, 0.1, "csr", rng=random) + diagonal).tocsr()
    return X, np.where(X @ random.standard_normal(features) > 0, 1.0, -1.0)


@pytest.mark.parametrize("rule", ["sgd", "adagrad"] if references.ALL else ["sgd"])
def test_one_worker_that_is_watched_does_the_same(rule):
    problem = Linear(sparse(), "logistic", l2=1e-4)
    alone, seen = (
        minimise(problem, rule, Constant(0.1), Serial(), budget=2, count_conflicts=each) for each in (False, True)
    )
    assert np.allclose(alone.model.weights, seen.model.weights, rtol=1e-5, atol=1e-7)
    assert alone.conflicts is None
    assert seen.conflicts["updates"] == 8000
    assert seen.conflicts["collided"] == seen.conflicts["lost_writes"] == 0
    assert seen.conflicts["staleness"]["histogram"] == {0: 8000}


@pytest.mark.parametrize("strategy", [Hogwild(3, buffer=0), RoundRobin(3), *([Locked(3)] if references.ALL else [])])
def test_every_strategy_in_one_memory(strategy):
    problem = Linear(sparse(), "logistic", l2=1e-4)
    run = minimise(problem, "sgd", Constant(0.1), strategy, budget=3, count_conflicts=True)
    seen = run.conflicts
    assert seen["workers"] == 3
    assert seen["updates"] == 12_000 == sum(seen["staleness"]["histogram"].values())
    assert seen["writes"] == 3 * problem.source.nonzeros == sum(group["writes"] for group in seen["groups"])
    assert np.sum(seen["heat"]) == seen["writes"]
    assert sum(group["coordinates"] for group in seen["groups"]) == 60
    assert run.loss < 0.6931
    if isinstance(strategy, Locked):
        assert seen["collided"] == seen["missed"] == seen["lost_writes"] == 0
    if isinstance(strategy, RoundRobin):  # in turns nothing is lost, however stale what was read
        assert seen["lost_writes"] == 0
    json.dumps(seen)


def test_groups_go_from_the_most_frequent_to_the_rarest():
    frequencies = np.random.default_rng(0).integers(0, 1000, 5000)
    groups, starts = group_by_frequency(frequencies)
    means = [frequencies[groups == group].mean() for group in range(len(starts) - 1)]
    assert means == sorted(means, reverse=True)
    assert np.bincount(groups).tolist() == np.diff(starts).tolist()


def test_what_cannot_be_watched_is_refused():
    classes = Linear((np.eye(6), [0, 1, 2, 0, 1, 2]), "softmax")
    with pytest.raises(ParameterError, match="one output"):
        minimise(classes, strategy="serial", budget=1, count_conflicts=True)
    two = Linear(sparse(), "logistic")
    with pytest.raises(ParameterError, match="no conflicts to count"):
        minimise(two, strategy=Averaging(2), budget=1, count_conflicts=True)
    with pytest.raises(ParameterError, match="one memory"):
        minimise(two, strategy=ParameterServer(2), runtime="simulator", budget=1, count_conflicts=True)


def test_observed_from_the_command_line(tmp_path, capsys):
    data = tmp_path / "rows.svm"
    data.write_text("".join(f"{1 if k % 3 else -1} {k % 7 + 1}:1 {k % 5 + 8}:0.5\n" for k in range(500)))
    log = tmp_path / "run.jsonl"
    code = main(
        ["train", str(data), "--count-conflicts", "--workers", "2", "--epochs", "2", "--json", "--log", str(log)]
    )
    assert code == 0
    record = json.loads(capsys.readouterr().out)
    assert record["conflicts"]["updates"] == 1000
    assert '"conflicts"' in log.read_text()
