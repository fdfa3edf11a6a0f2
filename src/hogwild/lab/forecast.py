"""Forecast of the duration of a study: from the speed of this machine, then from the trials that have ended."""

from __future__ import annotations

import functools
import heapq
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.jit import compiled

Clock = Callable[[], float]

# Durations of the two speed tests on the reference machine, to which the durations of experiments refer.
REFERENCE_PYTHON_SECONDS = 0.0217
REFERENCE_COMPILED_SECONDS = 0.0163
REPEATS = 5
# Seconds on the reference machine until processes have started, and have loaded the package and compiled kernels.
START_SECONDS = 4.0


def handle_events(count: int = 40_000) -> float:
    """Handle timed events in Python, as the simulator and the roles of message passing do."""
    queue = [(float(worker), worker) for worker in range(8)]
    values = dict.fromkeys(range(8), 0.0)
    for _ in range(count):
        at, worker = heapq.heappop(queue)
        values[worker] = 0.5 * (values[worker] + at)
        heapq.heappush(queue, (at + 1.0 + worker * 0.1, worker))
    return sum(values.values())


@compiled
def _descend(weights: Any, columns: Any, labels: Any) -> None:
    for row in range(len(labels)):
        score = 0.0
        for entry in range(columns.shape[1]):
            score += weights[columns[row, entry]]
        slope = -labels[row] / (1.0 + np.exp(labels[row] * score))
        for entry in range(columns.shape[1]):
            weights[columns[row, entry]] -= 0.1 * slope


@functools.cache
def _rows() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    random = np.random.default_rng(0)
    return random.integers(0, 10_000, (40_000, 12)), np.where(random.random(40_000) < 0.5, 1.0, -1.0)


def descend_rows() -> None:
    """Descend along sparse rows in compiled code, as trials in one memory do."""
    weights = np.zeros(10_000)
    for _ in range(10):
        _descend(weights, *_rows())


def relative_time(
    tasks: Sequence[tuple[Callable[[], object], float]], clock: Clock = time.perf_counter, repeats: int = REPEATS
) -> float:
    """Return the time of tasks relative to the reference machine: the mean ratio, each of the best of some repeats.

    Each task comes with its seconds on the reference machine. It runs once before it is timed, which may compile it.

    >>> moments = iter([0.0, 3.0, 3.0, 5.0])
    >>> relative_time([(int, 1.0)], lambda: next(moments), repeats=2)
    2.0
    """
    ratios = []
    for task, reference in tasks:
        task()
        times = []
        for _ in range(repeats):
            started = clock()
            task()
            times.append(clock() - started)
        ratios.append(min(times) / reference)
    return sum(ratios) / len(ratios)


@functools.cache
def pace() -> float:
    """Measure how many times as long as the reference machine this one takes for the work of trials.

    Trials run compiled kernels and handle events in Python, so both are timed. Operations of NumPy are no measure of
    either: a sort with AVX-512 is many times as fast as one without.
    """
    return relative_time(
        [(handle_events, REFERENCE_PYTHON_SECONDS), (descend_rows, REFERENCE_COMPILED_SECONDS)]
    )  # fmt: skip


@dataclass(slots=True)
class Forecast:
    """Remaining seconds of a study, corrected by each trial that ends.

    A trial with settings that were tried before, with another seed, is expected to take as long as those. Any other
    trial is expected to take ``usual`` seconds, times the mean ratio of measured to usual seconds. The usual duration
    counts as one measurement in this mean, so that one exceptional trial does not decide alone. With ``weight=0.0`` it
    does not count: it was measured on generated rows, and tells nothing about the rows of the user.

    Parameters
    ----------
    usual : float
        Seconds of one trial that are expected before any has ended.
    slots : int
        Number of trials that run at the same time.
    start : float, default 0.0
        Seconds until the first trial begins.
    weight : float, default 1.0
        Number of measurements for which the usual duration counts.

    Examples
    --------
    >>> forecast = Forecast(usual=1.0, slots=2)
    >>> for setting in "ab" * 2:
    ...     forecast.add(setting)
    >>> forecast.seconds_left()
    2.0
    >>> forecast.ended("a", 5.0)
    >>> forecast.seconds_left()  # 'a' again: 5 s; 'b' twice: 3 s each
    5.5
    """

    usual: float
    slots: int
    start: float = 0.0
    weight: float = 1.0
    _left: Counter[tuple[str, bool]] = field(default_factory=Counter)
    _measured: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, setting: str, alone: bool = False) -> None:
        """Add a trial that is to be run: ``alone``, or while others run."""
        self._left[setting, alone] += 1

    def ended(self, setting: str, seconds: float, alone: bool = False) -> None:
        """Record the duration of a trial; one that was added is no longer to be run."""
        self._measured[setting].append(seconds)
        if self._left[setting, alone]:
            self._left[setting, alone] -= 1

    @property
    def known(self) -> bool:
        """Whether there is anything to go by: a usual duration that counts, or a trial that has ended."""
        return self.weight > 0 or bool(self._measured)

    @property
    def ratio(self) -> float:
        """The ratio of measured to usual durations, in which the usual duration counts as ``weight`` measurements."""
        seconds = [one for several in self._measured.values() for one in several]
        if not self.known:
            return 1.0
        return (self.weight * self.usual + sum(seconds)) / (self.usual * (self.weight + len(seconds)))

    def seconds_left(self) -> float:
        """Return the expected seconds until all trials have ended, from the end of the last one."""
        ratio = self.ratio

        def expected(setting: str) -> float:
            times = self._measured.get(setting)
            return sum(times) / len(times) if times else self.usual * ratio

        left = [(expected(setting), alone) for (setting, alone), count in self._left.items() for _ in range(count)]
        together = [seconds for seconds, alone in left if not alone]
        in_turn = sum(seconds for seconds, alone in left if alone)
        side_by_side = max(sum(together) / self.slots, max(together, default=0.0))
        begins = self.start if left and not self._measured else 0.0
        return begins + in_turn + side_by_side


def seconds_left_of_all(finished: Sequence[tuple[float, float]], current: float, later: Sequence[float]) -> float:
    """Return the expected seconds until several studies have ended.

    Parameters
    ----------
    finished : sequence of (expected, measured)
        Seconds of the studies that have ended. Their ratio corrects the forecasts of studies that have not begun.
    current : float
        Seconds that are left of the study that runs.
    later : sequence of float
        Expected seconds of the studies that have not begun.

    Examples
    --------
    >>> seconds_left_of_all([], 10.0, [20.0, 30.0]), seconds_left_of_all([(10.0, 20.0)], 10.0, [20.0, 30.0])
    (60.0, 110.0)
    """
    before = sum(expected for expected, _ in finished)
    scale = sum(measured for _, measured in finished) / before if before > 0 else 1.0
    return current + scale * sum(later)


def in_words(seconds: float) -> str:
    """Return a duration in words.

    >>> in_words(0.2), in_words(40), in_words(200), in_words(9_000)
    ('1 second', '40 seconds', '3 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{round(seconds)} seconds" if seconds >= 1.5 else "1 second"
    return f"{round(seconds / 60)} minutes" if seconds < 5_400 else f"{seconds / 3600:.1f} hours"
