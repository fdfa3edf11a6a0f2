"""How often the thread that looks up goes back to Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runs import problem

from hogwild import Constant, Serial, minimise
from hogwild.problems.problem import QueueKernel
from hogwild.runtimes.shared_memory import thread_team
from hogwild.runtimes.shared_memory.thread_team import SliceTuner


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The epochs that were walked, one entry for each time that compiled code was called."""
    found: list[Any] = []
    descend = QueueKernel.descend

    def noted(self: QueueKernel, whole: Any, *others: Any) -> None:
        found.append(whole)
        descend(self, whole, *others)

    monkeypatch.setattr(QueueKernel, "descend", noted)
    return found


def calls(walks: list[Any]) -> list[int]:
    """How often each epoch was."""
    changes = [number for number in range(1, len(walks)) if walks[number] is not walks[number - 1]]
    return np.diff([0, *changes, len(walks)]).tolist()


def test_what_was_learnt_in_one_epoch_is_known_in_the_next(walks: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_team, "TICK", 1e6)
    minimise(problem(), "sgd", Constant(0.01), Serial(), budget=5)
    assert calls(walks) == [4, 2, 1, 1, 1]  # of thirteen parts: 1, 2, 4 and 6; 8 and 5; all


def test_it_looks_up_in_time(walks: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_team, "TICK", 1e-9)
    minimise(problem(), "sgd", Constant(0.01), Serial(), budget=2)
    assert calls(walks) == [14, 14]


def test_slow_parts_make_slices_short_again() -> None:
    slices = SliceTuner()
    for _ in range(6):
        slices.record(slices.parts_for(0.05), 0.001)
    assert slices.parts_for(0.05) == 64
    slices.record(64, 3.2)
    assert slices.parts_for(0.05) == 1
