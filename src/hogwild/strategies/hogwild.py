"""Lock-free."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.registry import invalid_parameter
from hogwild.strategies.strategy import Strategy, check_workers


@dataclass(frozen=True, slots=True)
class Hogwild(Strategy):
    """Hogwild! (Niu et al. 2011): every worker reads, computes and writes the shared parameters, with no lock at all.

    When terms are sparse, two workers seldom touch the same coordinate at the same time, and little is lost when they
    do. The intercept, which is in every term, is stepped in a copy per worker and merged every few terms.

    On many cores the coordinates that most terms have in common would travel from core to core with every write. With a
    ``buffer`` each worker steps a copy of its own of those, and merges it with the shared one every so many rows. 0 is
    the algorithm of the paper; "auto" has buffers where they were measured to pay: where there is much data, with many
    rows for each worker, and memory enough. Buffers are for the rules SGD and AdaGrad and models with one output;
    others do without.
    """

    workers: int | None = None
    buffer: int | str = "auto"

    shares_memory = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
        number = isinstance(self.buffer, int) and not isinstance(self.buffer, bool) and self.buffer >= 0
        if not number and self.buffer != "auto":
            raise invalid_parameter("buffer", "a number of rows, or 'auto'", self.buffer)
