"""Scores of many rows: the chunks of a data set, on all cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.data.csr import CSRRows
from hogwild.data.dataset import Dataset
from hogwild.kernels import loss_sums
from hogwild.parallel import in_parallel


def scores_of_chunks(
    data: Dataset, kernel_of: Callable[[CSRRows], Any], parameters: tuple[Any, ...], outputs: int,
    prepare: Callable[[CSRRows], CSRRows] = lambda rows: rows,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the scores of all rows in their order, with one line per row and one column per output.

    Parameters
    ----------
    data : Dataset
        Rows to score.
    kernel_of : callable
        Returns the compiled loop for rows of some layout, which :func:`hogwild.kernels.loss_sums.scoring` has made.
    parameters : tuple
        Further arguments of the loop.
    outputs : int
        Number of scores of a row.
    prepare : callable
        Converts the rows of a chunk before they are scored.
    """
    epoch = data.in_order()

    def score(number: int) -> NDArray[Any]:
        chunk = epoch[number]
        rows = prepare(chunk.rows)
        found = loss_sums.scores_of(kernel_of(rows), rows, chunk.order, parameters, outputs)
        epoch.done(number)
        return found

    if len(epoch) == 0:
        return np.empty((0, outputs))
    # The first chunk compiles, or loads, the loop. Threads that did so at the same time would do it several times.
    pieces = [score(0), *in_parallel(score, range(1, len(epoch)))]
    return np.asarray(np.concatenate(pieces), np.float64)
