"""The step of each update."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hogwild import Constant, Cosine, InverseScaling, InverseTime, Steps, Warmup
from hogwild.schedules import Moment, Schedule
from hogwild.training import step_sizes as clocks
from hogwild.training.step_sizes import LAST, StepSizes

SCHEDULES = [Constant(0.3), Cosine(0.1), InverseTime(0.5, 2.0), InverseScaling(0.2), Steps(0.1), Warmup(Constant(0.2))]


def one_by_one(clock: StepSizes, before: int, count: int) -> Any:
    """As it is defined, without a thought for how long it takes."""
    steps = []
    for done in range(before, before + count):
        epochs = done / clock.rows
        fraction = min(max(epochs / clock.epochs if clock.epochs else 0.0, clock.spent()), LAST)
        moment = Moment(*(np.array([float(x)]) for x in (done + clock.earlier + 1, epochs, fraction)))
        steps.append(clock.precision(clock.schedule(moment)[0] * clock.scale))
    return steps


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
@pytest.mark.parametrize(
    "given",
    [
        {"epochs": 3},
        {"epochs": 3, "scale": 0.25},
        {"epochs": 3, "earlier": 1_000, "precision": np.float64},
        {"epochs": 3, "spent": lambda: 0.9},
        {"epochs": None, "spent": lambda: 2.0},
        {"epochs": None},
    ],
    ids=["epochs", "scaled", "begun before", "most time spent", "time alone", "no limit"],
)
def test_all_steps_of_a_stretch(schedule: Schedule, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "_PIECE", 16)
    clock = StepSizes(schedule, rows=23, **given)
    for before, count in ((0, 69), (40, 29), (60, 30), (5, 1), (5, 0)):
        steps = clock.rates(before, count)
        assert steps.dtype == clock.precision
        np.testing.assert_allclose(steps, one_by_one(clock, before, count), rtol=1e-6 if steps.itemsize == 4 else 1e-14)
