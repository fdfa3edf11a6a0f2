"""Message-passing strategies in simulated time: parameters and gradients are computed, only durations are simulated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hogwild.delays import Delay, DelayOption, check_by_worker, delayed_workers, named, per_worker
from hogwild.messaging.job import MessageJob, Outcome
from hogwild.messaging.trace import Trace
from hogwild.registry import invalid_parameter
from hogwild.runtimes.messaging.injected_faults import Fault, Link, checked
from hogwild.runtimes.runtime import Runtime, SimulatedCosts
from hogwild.runtimes.simulator.event_loop import EventLoop
from hogwild.runtimes.simulator.loop_choice import is_compilable, pays

INTERVALS = ("textbook", "chosen")
DRAWS = 256  # durations of which the mean is taken to choose an interval


@dataclass(frozen=True, slots=True)
class Simulator(Runtime):
    """Runtime for message-passing strategies in simulated time. The same seed gives the same run, to the last bit.

    Parameters and gradients are computed; only durations are simulated. Workers of several cores (``within=`` of a
    strategy) are an exception: they train on real threads, whose interleaving differs between runs.

    Parameters
    ----------
    compute_time : float, str or Delay, default "log-normal:0.001:0.1"
        Duration of one update: seconds, a distribution of :mod:`hogwild.delays`, or its name with numbers. A worker
        with k cores takes 1/k of this duration. ``Slowed`` multiplies the duration for some workers.
    link : Link, default Link()
        Latency, bandwidth, loss, duplication and reordering of messages.
    delay : float, str, Delay, or mapping of int to these, default 0.0
        Seconds that a worker waits with each of its updates, for all workers or by worker number (`hogwild.delays`).
        They are added to the duration of the update, between the worker's read of the parameters and its write.
    faults : tuple of Crash or Crashes, default ()
        Crashes to inject.
    join_times : mapping of int to float, default {}
        Seconds after the start at which a worker joins, by worker number. All others join at the start.
    detection_delay : float, default 1.0
        Seconds until the other nodes learn of a crash.
    stall_timeout : float, default 1e6
        Seconds without any message after which the run fails.
    handling_time : float, str or Delay, default 0.0
        Duration of a node's reaction to one message, in seconds or as a distribution. A node handles one message at a
        time.
    intervals : {"textbook", "chosen"}, default "textbook"
        Updates between two exchanges of a strategy with ``push_every="auto"`` or ``period="auto"``: those of the
        paper that the strategy is from, or those that suit the simulated costs, as in a real run.
    trace : Trace, optional
        Durations recorded by ``Local(record=True)``. They replace ``compute_time``, ``delay``, ``link`` and
        ``handling_time``.

    Raises
    ------
    ParameterError
        If an option is outside its range.

    Examples
    --------
    >>> Simulator(delay={2: "exponential:0.05"}).delay
    {2: Exponential(mean=0.05)}
    """

    compute_time: Delay | float | str = "log-normal:0.001:0.1"
    link: Link = field(default_factory=Link)
    delay: DelayOption = 0.0
    faults: tuple[Fault, ...] = ()
    join_times: Mapping[int, float] = field(default_factory=dict)
    detection_delay: float = 1.0
    stall_timeout: float = 1e6
    handling_time: Delay | float | str = 0.0
    intervals: str = "textbook"
    trace: Trace | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compute_time", named(self.compute_time, "compute_time"))
        object.__setattr__(self, "handling_time", named(self.handling_time, "handling_time"))
        object.__setattr__(self, "delay", per_worker(self.delay))
        object.__setattr__(self, "faults", checked(self.faults))
        check_by_worker("join_times", self.join_times, "seconds")
        if not isinstance(self.link, Link):
            raise invalid_parameter("link", "Link(latency, bandwidth, loss, duplication, reordering)", self.link)
        if not 0 <= self.detection_delay < math.inf:
            raise invalid_parameter("detection_delay", "a number of seconds", self.detection_delay)
        if self.intervals not in INTERVALS:
            raise invalid_parameter("intervals", "one of 'textbook', 'chosen'", self.intervals)
        if not self.stall_timeout > 0:
            raise invalid_parameter("stall_timeout", "a positive number of seconds", self.stall_timeout)

    @classmethod
    def replay(cls, trace: Trace) -> Simulator:
        """Return a simulator in which bursts, messages and reactions take as long as in a recorded run.

        Parameters
        ----------
        trace : Trace
            Durations recorded by ``Local(record=True)``.

        Returns
        -------
        Simulator
            Simulator with this trace.

        Examples
        --------
        >>> from hogwild.messaging.trace import NodeTrace
        >>> Simulator.replay(Trace({"worker-0": NodeTrace(bursts=[(0.1, 8)])})).trace is not None
        True
        """
        return cls(trace=trace)

    simulated_time = True
    passes_messages = True
    saves_checkpoints = True

    @property
    def run_ahead(self) -> int:
        """The most pushes of a worker while a pull is on its way: many, so that latency becomes staleness.

        A replay, and a run that chooses its intervals, have those of a real run.
        """
        return 1024 if self.trace is None and not self.chooses_intervals else 1

    @property
    def chooses_intervals(self) -> bool:
        """Whether a run chooses the updates between two exchanges, or repeats those of a run that did."""
        return self.intervals == "chosen" or self.recorded_interval is not None

    @property
    def recorded_interval(self) -> int | None:
        """The updates between two exchanges of the recorded run that this one repeats; None without one."""
        return None if self.trace is None else self.trace.interval

    @property
    def simulated_costs(self) -> SimulatedCosts:
        """The mean seconds of updates and exchanges."""
        trial = np.random.default_rng(0)
        update, latency, handling = (
            float(np.mean([named(delay).draw(trial, 0, k) for k in range(DRAWS)]))
            for delay in (self.compute_time, self.link.latency, self.handling_time)
        )
        return SimulatedCosts(max(update, 1e-12), 2 * latency + 2 * handling, handling, self.link.bandwidth)

    @property
    def mentioned_workers(self) -> set[int]:
        """Numbers of the workers that ``compute_time``, ``delay`` and ``join_times`` mention."""
        return {*delayed_workers(self.compute_time), *delayed_workers(self.delay), *self.join_times}

    def play(self, job: MessageJob) -> Outcome:
        """Run a job to its end in simulated time.

        Parameters
        ----------
        job : MessageJob
            Roles, trainers and configuration of the run.

        Returns
        -------
        Outcome
            Parameters, counters and traffic of the run, with simulated seconds.
        """
        if job.compiled is not None and is_compilable(self, job) and pays(job):
            from hogwild.runtimes.simulator.compiled_loop import CompiledLoop

            return CompiledLoop(self, job, job.compiled).play()
        return EventLoop(self, job).play()
