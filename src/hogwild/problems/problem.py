"""What a problem is to whoever runs it in one memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hogwild.data.dataset import Chunk, Dataset

State = tuple[NDArray[Any], ...]
"""The parameters: arrays with one row per coordinate, its value first, then what the rule remembers about it."""


class Descent(Protocol):
    """Compiled code that descends along one chunk.

    One for workers that take turns also takes ``first`` and ``stride``, for the terms ``order[first::stride]``. Others
    may have a method ``walk``, with which a worker claims chunks of a whole epoch until none is left.
    """

    def __call__(self, chunk: Chunk, rates: NDArray[Any], state: State, sync: NDArray[Any]) -> float:
        """Descend along the terms of a chunk, in place; return their summed loss."""


class Problem(Protocol):
    """A sum of many small terms, each of which can descend in place."""

    @property
    def data(self) -> Dataset:
        """The terms, their labels encoded as the kernels want them."""

    def start(self, rule: Any) -> State:
        """Fresh parameters for a rule."""

    def descent(self, rule: Any, access: str, workers: int, alone: bool | None = None) -> Descent:
        """The compiled inner loop for a rule and a way of sharing; ``alone``: as if there were no other workers."""

    def sync(self, access: str) -> NDArray[Any]:
        """The locks or the turn counter that this way of sharing needs."""

    def encoded(self, data: Dataset) -> Dataset:
        """Other data of the same kind, its labels encoded like those of :attr:`data`."""

    def measure(self, chunk: Chunk, state: State) -> NDArray[np.float64]:
        """Sums over a chunk from which :meth:`metrics` tells how good the parameters are.

        A problem may also have a method ``survey``, with which a worker measures parts of a walk that is all in memory
        until none is left, and then says in ``sums`` how many sums there are.
        """

    def metrics(self, sums: NDArray[np.float64]) -> dict[str, float]:
        """Loss and score from sums over all chunks."""

    def penalty(self, state: State) -> float:
        """What the objective has besides the loss."""

    def suited(self, rule: Any) -> Problem:
        """The same problem in the form that suits a rule."""

    def inward(self, state: State, rule: Any) -> State:
        """Parameters as a model has them, in the form in which they are trained."""

    def outward(self, state: State, rule: Any) -> State:
        """Parameters in the form in which they are trained, as a model has them."""

    def sample(self, rows: int, seed: int, narrow: bool = False) -> Problem:
        """The same problem on few rows in memory, for trials; a narrow one may leave out parameters that they lack."""

    def model(self, values: State, training: Mapping[str, Any]) -> Any:
        """What is kept of a run: something with ``save(path)``."""

    def describe(self) -> Mapping[str, Any]:
        """What was asked, for records: plain values only."""
