"""Threads that talk: what is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from hogwild.delays import Delay, named
from hogwild.messaging.job import MessageJob, Outcome
from hogwild.registry import invalid_parameter
from hogwild.runtimes.local.driver import LocalDriver
from hogwild.runtimes.messaging.faults import Fault, checked


@dataclass(frozen=True, slots=True)
class Local:
    """Run a strategy by messages on threads of this process, one for each participant, in real time.

    ``slow`` are workers that take so many seconds more for each burst, and ``latency`` is how long every message is
    held up: seconds, a distribution of :mod:`hogwild.delays`, or its name with numbers. ``faults`` are
    :class:`~hogwild.Crash` and :class:`~hogwild.Crashes`; that somebody crashed is noticed after ``detection`` seconds.
    ``late`` are workers that come at a time of their own. With ``record`` the run has a ``trace`` of what took how
    long, from which ``Simulator.replay`` plays it again. When nobody has said anything for ``silence`` seconds, the run
    has failed.

    >>> Local(slow={2: 0.05}).slow
    {2: 0.05}
    """

    slow: Mapping[int, float] = field(default_factory=dict)
    latency: Delay | float | str = 0.0
    faults: tuple[Fault, ...] = ()
    late: Mapping[int, float] = field(default_factory=dict)
    detection: float = 1.0
    silence: float = 600.0
    record: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "latency", named(self.latency))
        object.__setattr__(self, "faults", checked(self.faults))
        for name in ("slow", "late"):
            if not all(0 <= seconds < math.inf for seconds in getattr(self, name).values()):
                raise invalid_parameter(name, "seconds for some workers, such as {2: 0.05}", getattr(self, name))
        if not self.detection >= 0:
            raise invalid_parameter("detection", "a number of seconds", self.detection)
        if not self.silence > 0:
            raise invalid_parameter("silence", "a positive number of seconds", self.silence)

    saves = True  # whether it can write checkpoints
    virtual = False  # its seconds are real

    def play(self, company: MessageJob) -> Outcome:
        """Run it to its end."""
        return LocalDriver(self, company).play()
