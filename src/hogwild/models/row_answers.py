"""Predictions for the rows of a file, block by block: blocks are scored while the next ones are read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.data.dataset import Dataset
from hogwild.data.loader import map_in_order
from hogwild.data.open_dataset import paths_of
from hogwild.data.packing.sharded_rows import is_packed
from hogwild.data.sources import local_folder
from hogwild.models.predictions import Classes, Predictions, Quality

Values = NDArray[Any]


def row_answers(
    blocks: Iterable[Dataset], answer: Callable[[Dataset], tuple[Values, Values]], name: str, classes: Classes
) -> Iterator[Predictions]:
    """Yield predictions for blocks of rows, in order.

    Parameters
    ----------
    blocks : iterable of Dataset
        Rows of a file in its order.
    answer : callable
        Returns what is asked for, and the predictions, of a block.
    name : str
        Name of what is asked for.
    classes : tuple of float or None
        Class labels; None if predictions are numbers.
    """
    quality = Quality(classes)
    for block, (values, predicted) in _in_order(answer, iter(blocks)):
        quality.add(predicted, block.labels())
        yield Predictions(values, name, quality.scores(), {"classes": classes})


def is_file(data: object) -> bool:
    """Return whether rows to predict are a file, or several."""
    return isinstance(data, (str, Path)) or (isinstance(data, (list, tuple)) and paths_of(data) is not None)


def warn_if_shuffled(source: object) -> None:
    """Warn of predictions in another order than that of the file that a packed folder was made of."""
    folder = local_folder(source) if isinstance(source, (str, Path)) else None
    if folder is not None and is_packed(folder):
        message = (
            f"{folder}: the rows were shuffled when they were packed. Predictions are in the order of "
            "hogwild.data.open(folder).labels(), not of the file that was packed: for that order, predict the file."
        )
        warnings.warn(message, UserWarning, stacklevel=4)


def scores_of_blocks(blocks: Iterable[Dataset], decide: Callable[[Dataset], NDArray[np.float64]]) -> Values:
    """Return the scores of all blocks, in order."""
    return np.concatenate([scores for _, scores in _in_order(decide, iter(blocks))])


def _in_order(answer: Callable[[Dataset], Any], blocks: Iterator[Dataset]) -> Iterator[tuple[Dataset, Any]]:
    # The first block compiles, or loads, the loops. Threads that did so at the same time would do it several times.
    for first in blocks:
        yield first, answer(first)
        break
    yield from map_in_order(answer, blocks)
