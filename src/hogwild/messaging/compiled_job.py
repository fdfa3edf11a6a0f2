"""Description of a run by messages for a compiled event loop, in place of its roles and trainers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hogwild.messaging.deltas import Floats


@dataclass(frozen=True, slots=True)
class PlainServer:
    """Protocol of a parameter server that adds changes as they are: one server, no correction and no compression."""

    push_every: int  # Updates between two pushes.
    pull_every: int  # Pushes between two pulls.
    run_ahead: int  # Most pushes of a worker while a pull is on its way.
    bound: int | None  # Bound on the staleness, in pushes; None without one.
    mean: bool  # Whether the server adds the mean of the workers' changes.
    rounds: bool  # Whether all workers train the same number of terms.


class CompiledRows(Protocol):
    """Rows of all workers, their step sizes, and the compiled descent along them."""

    @property
    def data(self) -> tuple[NDArray[Any], ...]:
        """The arrays of the rows: place of the first entry of each, feature of each entry, and others."""

    @property
    def order_type(self) -> np.dtype[Any]:
        """The type of row numbers."""

    def descent(self, rows: NDArray[Any], rates: Floats, state: tuple[Floats, ...]) -> tuple[NDArray[Any], int]:
        """Return the record of arguments and the address of the descent along ``rows``, which changes ``state``."""

    def start(self, values: Floats) -> tuple[Floats, ...]:
        """Return exchanged values as a state: the numbers of all features, and those beside them."""

    def vector(self, state: tuple[Floats, ...]) -> Floats:
        """Return the exchanged values of a state."""

    @property
    def longest(self) -> int:
        """The most entries of a row."""

    @property
    def span(self) -> int:
        """The number of step sizes in a table; a burst beyond a table has one for every ``alike`` terms."""

    @property
    def alike(self) -> int:
        """The number of consecutive terms with the same step size, beyond a table."""

    def order(self, epoch: int) -> NDArray[Any]:
        """Return the rows of an epoch, those of each worker after those of the one before."""

    def rates(self, first: int, stop: int) -> Floats:
        """Return the step sizes after ``first`` updates of all workers, up to ``stop``."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledJob:
    """Run that a compiled event loop can simulate."""

    server: PlainServer
    rows: CompiledRows
