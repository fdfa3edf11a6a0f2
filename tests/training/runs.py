"""Small problems, slow data and sudden ends, for tests of runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild import Linear, minimise
from hogwild.events import Event
from hogwild.run import Run
from hogwild.runtimes.shared_memory.threads import Session
from hogwild.training.loop import EpochPrefix

ROWS, FEATURES = 4_000, 50  # thirteen chunks an epoch


def arrays(loss: str = "logistic", rows: int = ROWS, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, FEATURES)).astype(np.float32)
    truth = np.random.default_rng(99).standard_normal(FEATURES)
    scores = X @ truth + 2 * rng.standard_normal(rows)
    return X, scores if loss == "squared" else np.sign(scores)


def problem(loss: str = "logistic", **settings: Any) -> Linear:
    return Linear(arrays(loss), loss, **settings)


def told(run: Run, event: str) -> list[Event]:
    return [record for record in run.events if record["event"] == event]


def same_bits(one: Run, other: Run) -> bool:
    """Whether two runs came to the same parameters by the same way, their timings aside.

    What is summed up on the way is summed leg by leg, so that the last digit of a figure may depend on where they end.
    """

    def figures(run: Run) -> list[Event]:
        return [{name: value for name, value in record.items() if name != "seconds"} for record in run.history]

    return (
        np.array_equal(one.model.weights, other.model.weights)
        and np.array_equal(one.model.intercept, other.model.intercept)
        and figures(one) == [pytest.approx(record, rel=1e-12) for record in figures(other)]
    )


class Killed(Exception):  # noqa: N818  (nothing went wrong)
    """Stands for the end of the process."""


class Dying:
    """A callback that ends the process, so to speak, when it hears of an event for the n-th time."""

    def __init__(self, event: str = "checkpoint", times: int = 1) -> None:
        self.event, self.left = event, times

    def __call__(self, event: Event) -> None:
        self.left -= event["event"] == self.event
        if self.left == 0:
            raise Killed


def survive(folder: Path, every: int = 1, **asked: Any) -> tuple[Run, int]:
    """Die at every checkpoint (or each n-th) and resume until the run ends; returns it, and how often it died."""
    deaths = 0
    while True:
        try:
            return minimise(callbacks=[Dying(times=every)], resume=True, **asked), deaths
        except Killed:
            deaths += 1


def in_legs(monkeypatch: pytest.MonkeyPatch, chunks: int) -> None:
    """Interrupt every epoch after so many chunks, as a clock would at moments nobody can foresee."""
    advance = Session.advance

    def short(self: Session, walk: Any, first: int, *others: Any) -> Any:
        return advance(self, EpochPrefix(walk, min(len(walk), first + chunks)), first, *others)

    monkeypatch.setattr(Session, "advance", short)


class Slow:
    """A data set that takes its time for every chunk of training."""

    def __init__(self, data: Any, seconds: float) -> None:
        self._data, self._seconds = data, seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)

    def epoch(self, seed: int, number: int) -> Any:
        return SlowWalk(self._data.epoch(seed, number), self._seconds)


class SlowWalk:
    def __init__(self, walk: Any, seconds: float) -> None:
        self._walk, self._seconds = walk, seconds

    def __len__(self) -> int:
        return len(self._walk)

    def __getitem__(self, number: int) -> Any:
        time.sleep(self._seconds)
        return self._walk[number]

    def whole(self) -> None:
        """It is slow, chunk by chunk."""

    def done(self, number: int) -> None:
        self._walk.done(number)


def slowed(problem: Linear, seconds: float) -> Linear:
    problem.__dict__["data"] = Slow(problem.data, seconds)
    return problem
