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
from hogwild.runtimes.runtime import Runtime
from hogwild.runtimes.simulator.event_loop import EventLoop


@dataclass(frozen=True, slots=True)
class Simulator(Runtime):
    """Run a message-passing strategy in simulated time. The same seed gives the same run, to the last bit.

    Parameters and gradients are computed for real; only durations are simulated. Workers of several cores (``within=``
    of a strategy) train on real threads, whose interleaving differs from run to run.

    Parameters
    ----------
    compute_time : float, str or Delay, default "log-normal:0.001:0.1"
        Duration of one update: seconds, a distribution of :mod:`hogwild.delays`, or its name with numbers. A worker of
        k cores takes a k-th of it.
    link : Link, default Link()
        Latency, bandwidth, loss, duplication and reordering of messages.
    slowdown : mapping of int to float, default {}
        Factor by which a worker's updates take longer, by worker number.
    faults : tuple of Crash or Crashes, default ()
        Crashes to inject.
    join_times : mapping of int to float, default {}
        Seconds after the start at which a worker joins, by worker number; all others join at the start.
    detection_delay : float, default 1.0
        Seconds until the other nodes learn of a crash.
    stall_timeout : float, default 1e6
        Seconds without any message after which the run fails.
    handling_time : float, str or Delay, default 0.0
        Duration of a node's reaction to one message; a node handles one message at a time.
    trace : Trace, optional
        Durations recorded by ``Local(record=True)``; they replace ``compute_time``, ``link`` and ``handling_time``.
    """

    compute_time: Delay | float | str = "log-normal:0.001:0.1"
    link: Link = field(default_factory=Link)
    slowdown: Mapping[int, float] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    join_times: Mapping[int, float] = field(default_factory=dict)
    detection_delay: float = 1.0
    stall_timeout: float = 1e6
    handling_time: Delay | float | str = 0.0
    trace: Trace | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compute_time", named(self.compute_time))
        object.__setattr__(self, "handling_time", named(self.handling_time))
        object.__setattr__(self, "faults", checked(self.faults))
        if not self.detection_delay >= 0:
            raise invalid_parameter("detection_delay", "a number of seconds", self.detection_delay)

    @classmethod
    def replay(cls, trace: Trace) -> Simulator:
        """A simulator in which bursts, messages and reactions take as long as they did in a recorded run.

        >>> from hogwild.messaging.trace import NodeTrace
        >>> Simulator.replay(Trace({"worker-0": NodeTrace(bursts=[(0.1, 8)])})).trace is not None
        True
        """
        return cls(trace=trace)

    simulated_time = True
    passes_messages = True
    saves_checkpoints = True

    @property
    def mentioned_workers(self) -> set[int]:
        """Numbers of workers that the options are about."""
        return {*self.slowdown, *self.join_times}

    def play(self, job: MessageJob) -> Outcome:
        """Run it to its end."""
        return EventLoop(self, job).play()
