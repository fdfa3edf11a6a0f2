"""What the benchmarks measure with: the search for the least effort, the judge, and the tools that are compared."""

import doctest
import importlib

import numpy as np
import pytest
from benchmarks import peers, sets
from benchmarks.objective import LOSSES, Judge
from benchmarks.reference import reference
from benchmarks.search import Outcome, Trials, least_rung
from benchmarks.tools import installed
from benchmarks.tools.way import EPOCHS, Fit, Way

TOOLS, _ = installed()


@pytest.mark.parametrize(
    "name",
    ["results", "search", "objective", "scaling", "show", "large_batch", "synchronous", "replay", "hosts", "tools.way"],
)
def test_examples(name):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    tried = doctest.testmod(importlib.import_module(f"benchmarks.{name}"), optionflags=flags)
    assert tried.attempted > 0
    assert tried.failed == 0


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    return sets.generated("rcv1", 600, 1e-2, features=200, nonzeros=20)(tmp_path_factory.mktemp("split"))


def test_files_have_the_rows_of_the_arrays(split):
    lines = [line.split(" | ") for line in split.vw.read_text().splitlines()]
    assert [float(label) for label, _ in lines] == split.y.tolist()
    for (_, entries), row in zip(lines, split.X, strict=True):
        pairs = [entry.split(":") for entry in entries.split()]
        assert [int(column) for column, _ in pairs] == row.indices.tolist()
        np.testing.assert_allclose([float(value) for _, value in pairs], row.data, rtol=1e-6)
    assert len(split.held_out[1]) == 120


def test_the_judge_has_the_reference_at_a_minimum(split):
    for loss in LOSSES:
        weights, intercept = reference(split, loss)
        judge, random = Judge(split, loss), np.random.default_rng(0)
        best, accuracy = judge(weights, intercept)
        assert accuracy > 0.7
        for _ in range(20):
            assert judge(weights + 0.05 * random.standard_normal(len(weights)), intercept)[0] > best


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_is_asked_for_the_same_objective(tool, loss, split):
    loaded, judge = tool.load(split), Judge(split, loss)
    ways = tool.ways(loaded, split, loss)
    best = judge(*reference(split, loss))[0]
    found = []
    for way in ways:
        rungs = [way.ladder[k] for k in (0, len(way.ladder) // 2, len(way.ladder) * 2 // 3)]
        fits = [way.fit(effort, 0) for effort in rungs]
        assert all(fit.seconds > 0 for fit in fits)
        found.append(min(judge(fit.weights, fit.intercept)[0] for fit in fits))
    if ways:
        assert best * 0.999 < min(found) < best * 1.02


def trials_of(gaps):
    """Fits whose objective is given rung by rung, and which take as long as their effort."""
    ladder = EPOCHS[: len(gaps)]
    way = Way("given", lambda effort, seed: Fit(gaps[ladder.index(effort)], 0.0, effort), ladder)
    return Trials(way, lambda weights, intercept: (weights, 0.0))


def gap(outcome: Outcome) -> float:
    return outcome.objective


@pytest.mark.parametrize("least", range(len(EPOCHS)))
def test_the_least_rung_is_found(least):
    falling = [2.0**-k if k < least else -1.0 for k in range(len(EPOCHS))]
    assert least_rung(trials_of(falling), gap, limit=1e9) == least


def test_the_search_ends_at_the_limit_and_where_nothing_comes_closer():
    falling = [2.0**-k if k < 9 else -1.0 for k in range(len(EPOCHS))]
    assert least_rung(trials_of(falling), gap, limit=EPOCHS[9] - 1) is None
    stuck = trials_of([1.0] * (len(EPOCHS) - 1) + [-1.0])
    assert least_rung(stuck, gap, limit=1e9) is None
    assert len(stuck.made) == 3


def test_the_summary_says_who_is_faster_and_where_ours_fails():
    def one(task, tool, seconds, times):
        fits = [] if seconds is None else [{"seconds": seconds, "note": "half was lost"}]
        return {"set": task, "loss": "hinge", "tool": tool, "target": "objective", "times_ours": times, "fits": fits}

    found = [
        one("small", "hogwild, 2 workers", 0.2, 1.0), one("small", "quick", 0.1, 0.5), one("small", "slow", 0.4, 2.0),
        one("hard", "hogwild, 2 workers", None, None), one("hard", "quick", 2.5, None), one("hard", "slow", None, None),
    ]  # fmt: skip
    lines = peers.summary(found, ["hogwild, 2 workers", "quick", "slow"])
    assert "| small, hinge | 1.00x | 0.50x | 2.00x |" in lines
    assert "- small, hinge: quick 2.00 times as fast. Of our time half was lost." in lines
    assert "| hard, hinge | - | 2.50 s | - |" in lines
    assert "- hard, hinge: ours does not come to it within 3 s; quick in 2.50 s." in lines
    assert "No peer is faster to the same held-out accuracy." in lines
