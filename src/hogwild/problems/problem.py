"""What a problem is to whoever runs it in one memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hogwild.data.dataset import Chunk, Dataset

State = tuple[NDArray[Any], ...]
"""The parameters: arrays with one row per coordinate, its value first, then what the rule remembers about it."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a problem is minimised with where nothing else is asked for; None: what suits its size."""

    rule: str = "adagrad"
    schedule: str = "cosine"
    step: float | Literal["auto"] = "auto"  # with this rule: others need other steps
    epochs: int | None = None


class BoundKernel(Protocol):
    """Compiled code that descends along one chunk.

    One for workers that take turns also takes ``first`` and ``stride``, for the terms ``order[first::stride]``. Others
    may have a method ``walk``, with which a worker claims chunks of a whole epoch until none is left.
    """

    def __call__(self, chunk: Chunk, rates: NDArray[Any], state: State, sync: NDArray[Any]) -> float:
        """Descend along the terms of a chunk, in place; return their summed loss."""


class Problem(Protocol):
    """A sum of many small terms, each of which can descend in place.

    A problem may have more than these, and is asked whether it has:

    - ``usual``, a :class:`Defaults`;
    - ``open_like(source)``, which opens held-out data where that is not rows of the same features;
    - ``buffers(rule, rows, workers)`` and ``crowds(rule)``, about copies of frequent coordinates for each worker;
    - ``sizes``, how large it is, by names of its own;
    - ``alike``, how many updates in a row may take the same step, where terms are short;
    - ``work``, how many multiplications an epoch takes, where that is not about one for each non-zero;
    - ``watchable``, whether ``descent`` takes an ``eye``, for workers that are watched;
    - ``survey`` and ``sums``, with which a worker measures parts of a walk until none is left.
    """

    @property
    def data(self) -> Dataset:
        """The terms, their labels encoded as the kernels want them."""

    def start(self, rule: Any) -> State:
        """Fresh parameters for a rule."""

    def descent(self, rule: Any, access: str, workers: int, alone: bool | None = None) -> BoundKernel:
        """The compiled inner loop for a rule and a way of sharing; ``alone``: as if there were no other workers."""

    def sync(self, access: str) -> NDArray[Any]:
        """The locks or the turn counter that this way of sharing needs."""

    def encoded(self, data: Dataset) -> Dataset:
        """Other data of the same kind, its labels encoded like those of :attr:`data`."""

    def measure(self, chunk: Chunk, state: State) -> NDArray[np.float64]:
        """Sums over a chunk from which :meth:`metrics` tells how good the parameters are."""

    def metrics(self, sums: NDArray[np.float64]) -> dict[str, float]:
        """The mean "loss", and scores such as "accuracy" by their names, from sums over all chunks."""

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
