"""Who crashes when, and whether it comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True)
class Crash:
    """A participant crashes at a time and is started again after a while, or never."""

    who: str
    at: float
    back_after: float | None = None

    def __post_init__(self) -> None:
        if not self.at >= 0:
            raise invalid_parameter("at", "a number of seconds", self.at)
        if self.back_after is not None and not self.back_after >= 0:
            raise invalid_parameter("back_after", "a number of seconds, or None for never", self.back_after)


@dataclass(frozen=True, slots=True)
class Crashes:
    """Every worker (and every server) crashes at random, ``every`` so many seconds on average, and comes back."""

    every: float
    back_after: float = 1.0
    servers: bool = False

    def __post_init__(self) -> None:
        if not self.every > 0:
            raise invalid_parameter("every", "a positive number of seconds", self.every)


Fault = Crash | Crashes
MANY = 1000  # crashes of each participant that are drawn


def checked(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Refuse what is no fault."""
    faults = tuple(faults)
    for fault in faults:
        if not isinstance(fault, (Crash, Crashes)):
            raise invalid_parameter("faults", "Crash(who, at, back_after) and Crashes(every, back_after)", fault)
    return faults


def planned(faults: Iterable[Fault], names: Iterable[str], random: np.random.Generator) -> Iterator[Crash]:
    """Every crash there may be. Their times are drawn beforehand, a good many: what happens does not change them.

    >>> list(planned([Crash("worker-1", at=2.0)], ["worker-0", "worker-1"], np.random.default_rng(0)))
    [Crash(who='worker-1', at=2.0, back_after=None)]
    """
    names = sorted(names)
    for fault in faults:
        if isinstance(fault, Crash):
            yield fault
            continue
        kinds = ("worker", "server") if fault.servers else ("worker",)
        for name in names:
            if name.startswith(kinds):
                for at in np.cumsum(random.exponential(fault.every, MANY)):
                    yield Crash(name, float(at), fault.back_after)
