"""Monitor of conflicts between worker threads, by groups of coordinates of similar frequency."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.data.statistics import row_lengths
from hogwild.kernels.conflict_counters import COLLIDED, WHOLE, ConflictCounters
from hogwild.rules.rule import Rule

GROUPS = 24  # largest number of groups of coordinates, from the most frequent coordinates to the rarest
MOMENTS = 48  # intervals of equal numbers of updates into which a run is divided
MOST = 4096  # bins of the staleness histogram; the last bin counts a staleness of 4,095 updates or more


class ConflictMonitor:
    """Conflict counters of one run: one set of counters for each worker, and their sums."""

    def __init__(self, problem: Any, rule: Rule, workers: int, updates: int) -> None:
        frequencies = problem.source.frequencies()
        self.groups, self.starts = group_by_frequency(frequencies)
        # Share of the rows that have each coordinate, in descending order.
        self.shares = np.sort(frequencies)[::-1] / max(1, problem.source.n_rows)
        stamps, clock = np.zeros(len(frequencies), np.int64), np.zeros(16, np.int64)
        longest = max(1, row_lengths(problem.data)[0])
        numbers = np.array(rule.initial, rule.precision)
        self.counters = [
            ConflictCounters(stamps, clock, self.groups, np.zeros(longest, np.int64), _notes(updates),
                np.zeros(MOST, np.int64), np.zeros((len(self.starts) - 1, 4), np.int64),
                np.zeros((MOMENTS, len(self.starts) - 1), np.int64), np.zeros((1, len(numbers)), numbers.dtype))
            for _ in range(workers)
        ]  # fmt: skip

    @property
    def collided(self) -> int:
        """The number of updates of which another worker changed a coordinate between its read and its write."""
        return sum(int(one.notes[COLLIDED]) for one in self.counters)

    @property
    def delays(self) -> NDArray[np.int64]:
        """The staleness histogram of each worker, of shape (workers, ``MOST``).

        Element (w, s) counts worker w's updates between whose read and write other workers made s updates.
        """
        return np.array([one.delays for one in self.counters])

    @property
    def tally(self) -> NDArray[np.int64]:
        """The counts of each group of coordinates, of shape (groups, 4), summed over workers.

        The columns are the writes; the writes to a coordinate that others had changed since its read; the number of
        these changes; and the changes by others that were overwritten unread.
        """
        found: NDArray[np.int64] = np.sum([one.tally for one in self.counters], axis=0)
        return found

    @property
    def heat(self) -> NDArray[np.int64]:
        """The number of writes, of shape (workers, ``MOMENTS``, groups)."""
        return np.array([one.heat for one in self.counters])


def group_by_frequency(frequencies: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the group of each coordinate, and the rank at which each group starts.

    The most frequent coordinate has rank 0. Groups of frequent coordinates are small: the starts of the groups form a
    geometric sequence.

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
