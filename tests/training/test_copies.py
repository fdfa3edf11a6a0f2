"""Runs on a copy of the rows of arrays: sooner done, and the same to the last bit."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import pytest
from runs import in_legs, problem, same_bits, survive

from hogwild import Checkpoints, Constant, Linear, Serial, minimise
from hogwild.data import InMemoryDataset, in_memory

HOW: dict[str, Any] = {"schedule": Constant(0.05), "strategy": Serial(), "budget": 3}


@pytest.fixture(autouse=True)
def few_rows_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "_NEAR", 0)
    monkeypatch.setattr(in_memory, "_FEWEST_BLOCKS", 1)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was copied: references that keep nothing alive."""
    found: list[Any] = []
    laid_out = InMemoryDataset.laid_out

    def noted(self: InMemoryDataset, seed: int, epochs: float, numbers: Any = None) -> InMemoryDataset | None:
        copy = laid_out(self, seed, epochs, numbers)
        found.append(None if copy is None else weakref.ref(copy.rows.values))
        return copy

    monkeypatch.setattr(InMemoryDataset, "laid_out", noted)
    return found


@pytest.mark.parametrize("strategy", ["serial", "hogwild", "round-robin"])
def test_the_copy_is_gone_when_the_run_is(strategy: str, copies: list[Any]) -> None:
    task = problem()
    run = minimise(task, "sgd", **{**HOW, "strategy": strategy})
    assert run.stop_reason == "epochs"
    assert len(copies) == 1
    assert copies[0] is not None
    assert copies[0]() is None


def test_it_changes_nothing_but_the_time(copies: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with_copy = minimise(problem(l2=1e-3), "adagrad", **HOW)
    monkeypatch.setattr(in_memory, "_SHARE", 10**12)
    without = minimise(problem(l2=1e-3), "adagrad", **HOW)
    assert [copy is None for copy in copies] == [False, True]
    assert same_bits(with_copy, without)


def test_a_run_goes_on_with_a_copy_where_it_began_without(copies: list[Any], tmp_path: Path) -> None:
    minimise(problem(), "sgd", checkpoint=tmp_path, **{**HOW, "budget": 1})
    longer = minimise(problem(), "sgd", checkpoint=tmp_path, resume=True, **{**HOW, "budget": 4})
    assert [copy is None for copy in copies] == [True, False]
    assert same_bits(longer, minimise(problem(), "sgd", **{**HOW, "budget": 4}))


def test_from_everywhere_within_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"problem": problem(), "rule": "adagrad", **HOW, "average": 0.4}
    undisturbed = minimise(**asked)
    in_legs(monkeypatch, 5)
    survivor, deaths = survive(tmp_path, checkpoint=Checkpoints(tmp_path, seconds=1e-9), **asked)
    assert deaths >= 9
    assert same_bits(survivor, undisturbed)


def test_rows_in_stored_order_are_not_copied(copies: list[Any]) -> None:
    minimise(problem(), "sgd", shuffle=False, **HOW)
    assert copies == []


def test_columns_far_from_zero(copies: list[Any]) -> None:
    X, y = problem().source.rows.values.reshape(-1, 50) + 100, problem().source.labels()
    task = Linear((X, y))
    assert task.frame is not None
    assert minimise(task, "sgd", **HOW).loss < 0.4
    assert copies[0] is not None
