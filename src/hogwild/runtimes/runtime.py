"""Base class of runtimes. A runtime determines where workers run: threads, processes, a simulator or a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hogwild.delays import NONE, DelayOption, DelayStream, delayed_workers
from hogwild.errors import ParameterError
from hogwild.machine import MOST_SIMULATED_WORKERS, MOST_WORKERS, usable_cores
from hogwild.registry import invalid_parameter

if TYPE_CHECKING:
    from hogwild.messaging.job import MessageJob, Outcome
    from hogwild.runtimes.messaging.injected_faults import Fault


@dataclass(frozen=True, slots=True)
class SimulatedCosts:
    """Mean costs of a simulated run, in seconds and bytes a second."""

    update: float
    message: float  # latency of a push and a pull, and the handling of both
    handling: float  # handling of one message
    bandwidth: float


class Runtime:
    """Base class of runtimes, which determine where workers run.

    A derived class sets the class variables that describe its workers. Runtimes are frozen data classes, and their
    options are fields.
    """

    __slots__ = ()

    shares_memory: ClassVar[bool] = False  # whether workers are threads that share the same arrays
    trains_modules: ClassVar[bool] = False  # whether workers are processes that share the same PyTorch model
    uses_gpu: ClassVar[bool] = False  # whether rows are trained on a GPU
    passes_messages: ClassVar[bool] = False  # whether workers send each other messages
    simulated_time: ClassVar[bool] = False  # whether the seconds of a run are simulated
    saves_checkpoints: ClassVar[bool] = False  # whether a message-passing run can write checkpoints

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Crashes that the runtime injects."""
        return ()

    @property
    def message_seconds(self) -> float:
        """Seconds of a push and a pull without their contents."""
        return 1e-3

    @property
    def join_times(self) -> Mapping[int, float]:
        """Seconds after the start at which workers join, by worker number."""
        return {}

    @property
    def device_memory(self) -> int | None:
        """Largest number of bytes that rows take on a GPU; None: most of its memory."""
        return None

    @property
    def stall_timeout(self) -> float:
        """Seconds without any message after which a message-passing run fails."""
        return 600.0

    @property
    def delay(self) -> DelayOption:
        """Seconds that a worker waits with each of its updates, for all workers or for each of some."""
        return NONE

    @property
    def delays_workers(self) -> bool:
        """Whether any worker waits with its updates."""
        return self.delay != NONE and self.delay != {}

    def delay_streams(self, seed: int, workers: int) -> list[DelayStream] | None:
        """Return the delays of each worker's updates; None if no worker waits."""
        return [DelayStream(self.delay, seed, worker) for worker in range(workers)] if self.delays_workers else None

    @property
    def chooses_intervals(self) -> bool:
        """Whether a run chooses the updates between two exchanges if the user has not, or takes the textbook's."""
        return True

    @property
    def recorded_interval(self) -> int | None:
        """The updates between two exchanges of the recorded run that this one repeats; None without one."""
        return None

    @property
    def simulated_costs(self) -> SimulatedCosts | None:
        """The seconds that updates and exchanges take in a simulated run; None in a real one, which measures them."""
        return None

    @property
    def run_ahead(self) -> int:
        """The most pushes of a worker while a pull is on its way, where the strategy does not say."""
        return 1

    @property
    def replies_at_once(self) -> bool:
        """Whether a message takes no time to speak of, so that a worker may wait for each reply."""
        return False

    @property
    def most_workers(self) -> int:
        """The most workers of a run: beyond it, starting them and waiting for them takes all the time."""
        if self.simulated_time:
            return MOST_SIMULATED_WORKERS
        return MOST_WORKERS if self.passes_messages else min(MOST_WORKERS, max(128, 32 * usable_cores()))

    @property
    def mentioned_workers(self) -> set[int]:
        """Numbers of the workers that the options mention."""
        return {*self.join_times, *delayed_workers(self.delay)}

    def check_workers(self, workers: int) -> None:
        """Check the number of workers, and that options mention no others; raise ``ParameterError`` otherwise."""
        if workers > self.most_workers:
            on = "in a simulated run" if self.simulated_time else "on this machine"
            raise invalid_parameter("workers", f"at most {self.most_workers:,} {on}", workers)
        if any(number >= workers for number in self.mentioned_workers):
            there = "is one worker, number 0" if workers == 1 else f"are workers 0 to {workers - 1}"
            wrong = max(self.mentioned_workers)
            options = {"delay": delayed_workers(self.delay), "join_times": set(self.join_times)}
            where = [name for name, workers_named in options.items() if wrong in workers_named]
            # A simulator has another option that may mention workers.
            raise ParameterError(f"There {there}; {wrong} is none of them. Correct {(where or ['compute_time'])[0]!r}.")

    def play(self, job: MessageJob) -> Outcome:
        """Run a message-passing job to its end; raise ``ParameterError`` if the runtime passes no messages."""
        raise ParameterError(f"Workers do not send each other messages on {self!r}: use Local(), Simulator() or Ray().")
