"""Parameters of the features that a burst touches, as they were before it.

Only these are copied: a copy of all parameters would take room in the cache that the parameters themselves need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hogwild.data.dataset import Chunk
from hogwild.kernels.touched_parameters import copy_rows
from hogwild.messaging.deltas import Floats
from hogwild.messaging.places import Places
from hogwild.problems.problem import State


@dataclass(eq=False)
class ParametersBefore:
    """Features of a burst, and a copy of their parameters before it.

    The memory of the copy is the same for all bursts: new memory takes longer to get than to fill.
    """

    state: State
    all_features: Any
    _pieces: list[Any] = field(default_factory=list)  # features of each chunk that earlier chunks do not have
    _rows: int = 0  # parameters that are copied

    def __post_init__(self) -> None:
        self.outputs = len(self.state[1])
        self._places = Places(len(self.all_features))
        self._values: Any = np.empty((0, self.state[0].shape[1]), np.float32)

    def note_all(self) -> None:
        """Copy all parameters, for a burst that has most features."""
        self._copy(self.all_features)

    def note(self, chunk: Chunk) -> None:
        """Copy the parameters of the features of a chunk, before its rows are trained."""
        self._places.mark_rows(chunk.rows.indptr, chunk.rows.indices, chunk.order)
        features = self._places.take()
        if self._pieces:
            features = np.setdiff1d(features, np.concatenate(self._pieces), assume_unique=True)
        self._copy(features)

    def take(self) -> tuple[Any, Floats]:
        """Return the features in ascending order, and a row for each of their parameters; begin anew."""
        rows = self._rows
        if len(self._pieces) == 1:
            features = self._pieces[0]
        else:
            features = np.concatenate([self.all_features[:0], *self._pieces])
            order = np.argsort(features)
            features, places = features[order], order[:, None] * self.outputs + np.arange(self.outputs)
            self._values[:rows] = self._values[places.ravel()]
        self._pieces, self._rows = [], 0
        return features, self._values[:rows]

    def _copy(self, features: Any) -> None:
        first, self._rows = self._rows, self._rows + len(features) * self.outputs
        if self._rows > len(self._values):
            longer = np.empty((self._rows, self._values.shape[1]), np.float32)
            longer[:first] = self._values[:first]
            self._values = longer
        copy_rows(self.state[0], features, self.outputs, self._values[first : self._rows])
        self._pieces.append(features)
