"""A problem whose parameters are a ledger: every burst adds one to a place of its own, in each half of the parameters.

Each life of a worker has a row of places and a file with a line for every burst that it has made, so that after the run
the parameters tell which pushes they contain, and the files which there were.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.messages.company import Company, Outcome
from hogwild.messages.events import Trained
from hogwild.messages.setting import Setting
from hogwild.messages.vectors import frozen

LIVES, BURSTS = 6, 1500


def company(strategy: Any, bursts: int, seconds: float, folder: Path, tell: Any) -> Company:
    """Workers that do so many bursts together, each of which takes so long."""
    workers, terms = strategy.workers, strategy.period
    half = workers * LIVES * BURSTS
    start = frozen(np.zeros(2 * half, np.float32))
    setting = Setting(workers, start, max(1, bursts // 3) * terms, bursts * terms, silence=60.0)
    return Company(
        setting, strategy.cast(setting), learners(half, str(folder), seconds), lambda values: {"loss": 1.0}, tell
    )


def learners(half: int, folder: str, seconds: float) -> Any:
    """For each life of a worker one. All is made in functions: then it can be sent to where tests are not installed."""

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
                self.first, self.made = (worker * LIVES + life) * BURSTS, 0
                return

        def burst(self, train: Any) -> Any:
            import time

            time.sleep(seconds)
            values = train.values.copy()
            values[[self.first + self.made, half + self.first + self.made]] += 1.0
            self.made += 1
            assert self.made < BURSTS, "so many bursts, and still no end"
            self.file.write("1")
            self.file.flush()
            return Trained(frozen(values), train.terms, train.terms, float(train.terms), 1.0)

    return Learner


def processes_of_the_dead(events: Iterable[dict[str, Any]]) -> set[int]:
    """The processes of those who have died, as far as they had begun, by what was told."""
    events = list(events)
    died = {(event["participant"], event["life"]) for event in events if event["event"] == "died"}
    placed = (event for event in events if event["event"] == "placed")
    return {event["process"] for event in placed if (event["participant"], event["life"]) in died}


def check(outcome: Outcome, folder: Path, workers: int, dead: set[int]) -> None:
    """No push counts twice and none is lost, but for the last ones of those whose processes have died."""
    assert outcome.values is not None
    halves = outcome.values.reshape(2, workers, LIVES, BURSTS)
    assert set(np.unique(halves)) <= {0.0, 1.0}, "a push counts twice, or in part"
    for worker in range(workers):
        for life in range(LIVES):
            file = folder / f"{worker}-{life}"
            made = file.stat().st_size if file.exists() else 0
            for row in halves[:, worker, life]:
                counted = int(row.sum())
                assert row[:counted].all(), f"worker {worker}, life {life}: a push is missing before others"
                assert counted <= made
                if counted < made:
                    process = int(file.with_suffix(".process").read_text())
                    assert process in dead, f"worker {worker}, life {life}: {made - counted} pushes are lost"
