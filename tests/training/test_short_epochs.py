"""Short epochs are prepared several at once, and nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest
from runs import problem, same_bits, told

from hogwild import Adaptive, Budget, Constant, Cosine, minimise
from hogwild.training import loop

ENDINGS: dict[str, dict[str, Any]] = {
    "all epochs": {"schedule": Cosine(0.05), "budget": 11},
    "one epoch": {"schedule": Cosine(0.05), "budget": 1},
    "steps that are halved": {"schedule": Constant(0.1), "budget": 5, "loss": "squared"},
    "steps that fall when it stalls": {"schedule": Adaptive(0.5), "budget": Budget(epochs=40, tolerance=1e-3)},
    "a mean from the middle of an epoch on": {"schedule": Constant(0.05), "budget": 10, "average": 0.25},
    "stored order": {"schedule": Constant(0.05), "budget": 10, "shuffle": False},
}


@pytest.mark.parametrize("how", ENDINGS.values(), ids=ENDINGS)
def test_several_epochs_prepared_at_once(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = dict(how)
    given = problem(asked.pop("loss", "logistic"), l2=1e-4)
    prepared: list[int] = []
    original = loop.prefetch_epoch
    monkeypatch.setattr(loop, "prefetch_epoch", lambda n, *rest: prepared.append(n) or original(n, *rest))
    several = minimise(given, "sgd", strategy="serial", **asked)
    assert prepared[:1] == [0]
    assert len(set(prepared)) == len(prepared)  # none twice, not even one that is gone back to
    assert max(prepared) < (asked["budget"] if isinstance(asked["budget"], int) else 40)
    monkeypatch.setattr(loop, "FEW_ROWS", 0)
    one_by_one = minimise(given, "sgd", strategy="serial", **asked)
    assert same_bits(several, one_by_one)
    assert len(told(several, "diverged")) == len(told(one_by_one, "diverged"))


def test_a_limit_of_time_leaves_nothing_to_prepare(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[int] = []
    original = loop.prefetch_epoch
    monkeypatch.setattr(loop, "prefetch_epoch", lambda n, *rest: prepared.append(n) or original(n, *rest))
    run = minimise(problem(), "sgd", Cosine(0.05), "serial", budget=Budget(seconds=0.05))
    assert run.stop_reason == "seconds"
    assert not prepared
