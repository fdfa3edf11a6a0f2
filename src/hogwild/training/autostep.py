"""``step="auto"``: short trial runs on a sample choose the step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hogwild.schedules import Schedule, with_step
from hogwild.training.clock import Clock

ROWS = 10_000  # rows in the sample
EPOCHS = 16  #   walks over it in one trial, or more if that makes fewer than
WORK = 2**22  #  non-zeros, but never more than the run itself will make
FACTOR = 4.0  #  between neighbouring steps of the first search
LEAST, MOST = 2.0**-20, 2.0**14


@dataclass(frozen=True, slots=True)
class Choice:
    """The step that was chosen, and what every trial came to: (step, objective)."""

    step: float
    trials: list[tuple[float, float]]


def choose_step(problem: Any, rule: Any, schedule: Schedule, epochs: float, seed: int, alone: bool = True) -> Choice:
    """Try steps on a sample of the rows, from one half in both directions, until the objective gets worse.

    Then the two neighbours in between are tried. Of the best and its equals within a thousandth the smallest is
    chosen: with many workers, or on all of the data, a large step turns bad before a small one does. A trial is
    walked by the loop that workers have, who are ``alone`` with their parameters or not: no other need be compiled.
    """
    sample = problem.sample(ROWS, seed)
    descend, sync = sample.descent(rule, "free", 1, alone), sample.sync("free")
    walks = max(1, min(round(epochs), max(EPOCHS, WORK // max(1, sample.data.nonzeros))))

    def objective(step: float) -> float:
        clock = Clock(with_step(schedule, step), sample.data.n_rows, walks)
        state, updates = sample.start(rule), 0
        for number in range(walks):
            walk = sample.data.epoch(seed, number)
            for chunk in (walk[k] for k in range(len(walk))):
                loss = descend(chunk, clock.rates(updates, len(chunk.order)), state, sync)
                updates += len(chunk.order)
                if not math.isfinite(loss):
                    return math.inf
        walk = sample.data.in_order()
        found = sample.metrics(sum(sample.measure(walk[k], state) for k in range(len(walk))))
        total: float = found["loss"] + sample.penalty(state)
        return total if math.isfinite(total) else math.inf

    tried = {0.5: objective(0.5)}
    for factor in (FACTOR, 1 / FACTOR):
        step = best = min(tried, key=lambda s: (tried[s], s))
        while step == best and LEAST < step * factor < MOST:
            step *= factor
            if step not in tried:
                tried[step] = objective(step)
            best = min(tried, key=lambda s: (tried[s], s))
    best = min(tried, key=lambda s: (tried[s], s))
    for factor in (0.5, 2.0):
        tried[best * factor] = objective(best * factor)
    least = min(tried.values())
    good = [step for step, value in tried.items() if value <= least + 0.001 * abs(least)]
    return Choice(min(good, default=0.5), sorted(tried.items()))
