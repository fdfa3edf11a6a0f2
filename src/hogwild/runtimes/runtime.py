"""The contract of runtimes: where workers run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from hogwild.errors import ParameterError
from hogwild.messaging.job import MessageJob, Outcome
from hogwild.runtimes.messaging.faults import Fault


class Runtime:
    """Where workers run. A runtime derives from this class and says what its workers can do.

    Runtimes are frozen data classes; their options are fields.
    """

    __slots__ = ()

    shares_memory: ClassVar[bool] = False  # whether workers are threads around the same arrays
    trains_modules: ClassVar[bool] = False  # whether workers are processes around the same PyTorch model
    passes_messages: ClassVar[bool] = False  # whether workers send each other messages
    simulated_time: ClassVar[bool] = False  # whether its seconds are simulated
    saves_checkpoints: ClassVar[bool] = False  # whether a run by messages can write checkpoints

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Crashes to inject."""
        return ()

    @property
    def join_times(self) -> Mapping[int, float]:
        """Seconds after the start at which workers join, by worker number."""
        return {}

    @property
    def stall_timeout(self) -> float:
        """Seconds without any message after which a run by messages fails."""
        return 600.0

    @property
    def mentioned_workers(self) -> set[int]:
        """Numbers of workers that the options are about."""
        return set(self.join_times)

    def play(self, job: MessageJob) -> Outcome:
        """Run nodes that send each other messages to the end."""
        raise ParameterError(f"Workers do not send each other messages on {self!r}: use Local(), Simulator() or Ray().")
