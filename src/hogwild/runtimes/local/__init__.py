"""Message-passing strategies on threads of this process, in real time and with real asynchrony."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hogwild.delays import Always, Delay, DelayOption, check_by_worker, named, per_worker
from hogwild.messaging.job import MessageJob, Outcome
from hogwild.registry import invalid_parameter
from hogwild.runtimes.local.driver import LocalDriver
from hogwild.runtimes.messaging.injected_faults import Fault, checked
from hogwild.runtimes.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Local(Runtime):
    """Runtime for message-passing strategies on threads of this process, one for each node, in real time.

    Parameters
    ----------
    delay : float, str, Delay, or mapping of int to these, default 0.0
        Seconds that a worker waits with each of its updates, for all workers or by worker number (`hogwild.delays`).
        After each burst the worker sleeps for the sum over the burst's updates. It holds the result of the burst
        meanwhile, which so becomes stale, and handles no message. When the run ends, no worker waits any longer.
    latency : float, str or Delay, default 0.0
        Delay of every message: seconds, a distribution of :mod:`hogwild.delays`, or its name with numbers.
    faults : tuple of Crash or Crashes, default ()
        Crashes to inject.
    join_times : mapping of int to float, default {}
        Seconds after the start at which a worker joins, by worker number. All others join at the start.
    detection_delay : float, default 1.0
        Seconds until the other nodes learn of a crash.
    stall_timeout : float, default 600.0
        Seconds without any message after which the run fails.
    record : bool, default False
        Whether the run keeps a ``trace`` of durations, for ``Simulator.replay``.

    Raises
    ------
    ParameterError
        If an option is outside its range.

    Examples
    --------
    >>> Local(delay={2: 0.05}).delay
    {2: Always(seconds=0.05)}
    """

    delay: DelayOption = 0.0
    latency: Delay | float | str = 0.0
    faults: tuple[Fault, ...] = ()
    join_times: Mapping[int, float] = field(default_factory=dict)
    detection_delay: float = 1.0
    stall_timeout: float = 600.0
    record: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", per_worker(self.delay))
        object.__setattr__(self, "latency", named(self.latency, "latency"))
        object.__setattr__(self, "faults", checked(self.faults))
        check_by_worker("join_times", self.join_times, "seconds")
        if not self.detection_delay >= 0:
            raise invalid_parameter("detection_delay", "a number of seconds", self.detection_delay)
        if not self.stall_timeout > 0:
            raise invalid_parameter("stall_timeout", "a positive number of seconds", self.stall_timeout)

    passes_messages = True
    saves_checkpoints = True

    @property
    def replies_at_once(self) -> bool:
        """Whether a message takes no time to speak of: nodes are threads of one process."""
        return self.latency == Always(0.0)

    def play(self, job: MessageJob) -> Outcome:
        """Run a job to its end on threads.

        Parameters
        ----------
        job : MessageJob
            Roles, trainers and configuration of the run.

        Returns
        -------
        Outcome
            Parameters, counters and traffic of the run.

        Raises
        ------
        WorkerError
            If a node fails.
        """
        return LocalDriver(self, job).play()
