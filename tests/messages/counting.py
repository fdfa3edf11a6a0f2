"""Workers that add one for each term instead of learning, so that what became of every change can be seen."""

from __future__ import annotations

import numpy as np

from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.job import MessageJob, RunConfig
from hogwild.messaging.protocol import Train, Trained


class Counter:
    total = 0  # terms of all, those of the dead too

    def warm_up(self, start: Floats) -> None:
        """Nothing is compiled here."""

    def burst(self, train: Train) -> Trained:
        Counter.total += train.terms
        return Trained(frozen(train.values + np.float32(train.terms)), train.terms, train.terms, 0.0, 0.0)


def count(strategy, runtime, terms=240, seed=0, **config):
    """Run it; return what came out and the events."""
    events = []
    Counter.total = 0
    asked = RunConfig(strategy.workers, frozen(np.zeros(3, np.float32)), terms // 2, terms, **config)
    job = MessageJob(
        asked, strategy.roles(asked), lambda worker: Counter(), lambda values, exactly: {"loss": 1.0},
        lambda event, **what: events.append({"event": event, **what}), seed,
    )  # fmt: skip
    return runtime.play(job), events


def trained(outcome):
    """Terms of all workers that were there at the end."""
    return sum(counts["terms"] for counts in outcome.counts.values())
