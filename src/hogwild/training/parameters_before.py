"""Parameters of the features that a burst touches, as they were before it.

Only these are copied: a copy of all parameters would take room in the cache that the parameters themselves need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hogwild.data.dataset import Chunk
from hogwild.kernels.touched_parameters import copy_rows, note_features, put_back, unmark
from hogwild.messaging.deltas import INDEX, Floats


@dataclass(eq=False)
class ParametersBefore:
    """Features of a burst, in the order of their first visit, and a copy of their parameters before it.

    The memory of the copy is the same for all bursts. There is room for all features, of which the system provides only
    what bursts have used.
    """

    table: Floats  # a row of parameters for each feature
    count: int = 0  # features of this burst; those of the last one until the next begins
    whole: bool = False  # whether all parameters are copied, in the order of the features
    _features: Any = field(init=False)
    _values: Any = field(init=False)

    def __post_init__(self) -> None:
        self._marks = np.zeros(-(-len(self.table) // 64), np.uint64)
        # One place more than features, for one that is noted already.
        self._features, self._values = np.empty(len(self.table) + 1, INDEX), np.empty(self.table.shape, np.float32)

    def begin(self, whole: bool) -> None:
        """Begin a burst; with ``whole``, copy all parameters, because it has most features."""
        if not self.whole:
            unmark(self._marks, self._features[: self.count])
        self.count, self.whole = 0, whole
        if whole:
            self._values[:] = self.table

    def note(self, chunk: Chunk) -> None:
        """Copy the parameters of the new features of a chunk, before its rows are trained."""
        if self.whole:
            return
        rows, first = chunk.rows, self.count
        self.count = note_features(rows.indptr, rows.indices, chunk.order, self._marks, self._features, first)
        copy_rows(self.table, self._features[first : self.count], self._values[first:])

    @property
    def features(self) -> Any:
        """The features of the burst."""
        return self._features[: self.count]

    @property
    def values(self) -> Floats:
        """Their parameters before it, or all parameters."""
        before: Floats = self._values[: len(self.table) if self.whole else self.count]
        return before

    def restored(self, table: Floats) -> Floats:
        """Return a copy of a table with the parameters before the burst."""
        found = self.values.copy() if self.whole else table.copy()
        if not self.whole:
            put_back(found, self.features, self.values)
        return found
