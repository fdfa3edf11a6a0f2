"""Watching workers in one memory: what they note, and the groups of coordinates it is noted of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.data.statistics import row_lengths
from hogwild.kernels.conflict_counters import COLLIDED, WHOLE, ConflictCounters

GROUPS = 24  # of coordinates, from the most frequent to the rarest
MOMENTS = 48  # into which a run is divided
MOST = 4096  # updates that may land meanwhile; more are counted as so many


class ConflictMonitor:
    """One run that is watched: an eye for each worker, and what all of them have seen."""

    def __init__(self, problem: Any, rule: Any, workers: int, updates: int) -> None:
        frequencies = problem.source.frequencies()
        self.groups, self.starts = group_by_frequency(frequencies)
        self.shares = np.sort(frequencies)[::-1] / max(1, problem.source.n_rows)  # of rows, the most frequent first
        stamps, clock = np.zeros(len(frequencies), np.int64), np.zeros(16, np.int64)
        longest = max(1, row_lengths(problem.data)[0])
        numbers = np.array(rule.initial, rule.precision)
        self.eyes = [
            ConflictCounters(stamps, clock, self.groups, np.zeros(longest, np.int64), _notes(updates),
                np.zeros(MOST, np.int64), np.zeros((len(self.starts) - 1, 4), np.int64),
                np.zeros((MOMENTS, len(self.starts) - 1), np.int64), np.zeros((1, len(numbers)), numbers.dtype))
            for _ in range(workers)
        ]  # fmt: skip

    @property
    def collided(self) -> int:
        """Updates of which some coordinate was changed by others between reading and writing it."""
        return sum(int(eye.notes[COLLIDED]) for eye in self.eyes)

    @property
    def delays(self) -> NDArray[np.int64]:
        """For each worker how often so many updates by others landed meanwhile."""
        return np.array([eye.delays for eye in self.eyes])

    @property
    def tally(self) -> NDArray[np.int64]:
        """Writes, those that met others', how often, and what was lost, of each group."""
        found: NDArray[np.int64] = np.sum([eye.tally for eye in self.eyes], axis=0)
        return found

    @property
    def heat(self) -> NDArray[np.int64]:
        """Writes by worker, moment and group."""
        return np.array([eye.heat for eye in self.eyes])


def group_by_frequency(frequencies: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The group of each coordinate, and the rank at which each group starts; ranks are those of frequencies.

    Groups of frequent coordinates are small: each ends at about the same multiple of the rank where it starts.

    >>> group_by_frequency(np.array([3, 0, 9, 1]))
    (array([1, 3, 0, 2], dtype=uint8), array([0, 1, 2, 3, 4]))
    """
    count = len(frequencies)
    starts = np.unique([0, *np.geomspace(1, count, min(GROUPS, count)).round().astype(np.int64)])
    groups = np.empty(count, np.uint8)
    groups[np.argsort(-frequencies, kind="stable")] = np.searchsorted(starts, np.arange(count), "right") - 1
    return groups, starts


def _notes(updates: int) -> NDArray[np.int64]:
    notes = np.zeros(16, np.int64)
    notes[WHOLE] = max(1, updates)
    return notes
