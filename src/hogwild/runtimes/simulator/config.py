"""The simulator: what is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hogwild.delays import Delay, named
from hogwild.messaging.job import MessageJob, Outcome
from hogwild.messaging.trace import Trace
from hogwild.registry import invalid_parameter
from hogwild.runtimes.messaging.faults import Fault, checked
from hogwild.runtimes.messaging.network_model import Link
from hogwild.runtimes.simulator.event_loop import EventLoop


@dataclass(frozen=True, slots=True)
class Simulator:
    """Run a strategy by messages in simulated time. The same seed gives the same run, to the last bit.

    ``compute`` is how long one update takes: seconds, a distribution of :mod:`hogwild.delays`, or its name with numbers
    ("log-normal:0.001:0.5"); ``slow`` are workers that take so many times as long. ``link`` is what lies between
    participants, and ``handling`` how long each takes to react to one message after the other. ``faults`` are
    :class:`Crash` and :class:`Crashes`; that somebody crashed is noticed after ``detection`` seconds. ``late`` are
    workers that come at a time of their own.

    With a ``trace``, which runtime ``Local`` records, everything takes as long as it did there.

    With ``within=`` workers of k cores each take a k-th of the time; those are real threads, which meet differently
    each time, so that even with one seed runs are not the same to the last bit.

    Parameters and gradients are real, and what they come to under delays is; only time is made up.
    """

    compute: Delay | float | str = "log-normal:0.001:0.1"
    link: Link = field(default_factory=Link)
    slow: Mapping[int, float] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    late: Mapping[int, float] = field(default_factory=dict)
    detection: float = 1.0
    silence: float = 1e6
    handling: Delay | float | str = 0.0
    trace: Trace | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compute", named(self.compute))
        object.__setattr__(self, "handling", named(self.handling))
        object.__setattr__(self, "faults", checked(self.faults))
        if not self.detection >= 0:
            raise invalid_parameter("detection", "a number of seconds", self.detection)

    @classmethod
    def replay(cls, trace: Trace) -> Simulator:
        """A simulator in which bursts, messages and reactions take as long as they did in a recorded run.

        >>> from hogwild.messaging.trace import NodeTrace
        >>> Simulator.replay(Trace({"worker-0": NodeTrace(bursts=[(0.1, 8)])})).trace is not None
        True
        """
        return cls(trace=trace)

    virtual = True  # whether its seconds are made up
    saves = True  # whether it can write checkpoints

    def play(self, company: MessageJob) -> Outcome:
        """Run it to its end."""
        return EventLoop(self, company).play()
