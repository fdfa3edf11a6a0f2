"""Rows of a data set as samples of a :class:`SparseMLP`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hogwild import data as sources
from hogwild.errors import DataError
from hogwild.jit import compiled


class CSRDataset:
    """A data set in memory, whose samples are made into batches ``(indices, offsets[, values], target)`` at once.

    ``source`` is whatever :func:`hogwild.data.open` takes. Targets are the numbers of the labels in ``labels``, which
    are those that occur unless they are given, as for held-out data they must be.

    >>> from scipy.sparse import csr_array
    >>> rows = CSRDataset((csr_array([[0, 2.0], [1.0, 0]]), [1, -1]))
    >>> rows.labels, [part.tolist() for part in rows.batch_of(torch.tensor([1]))]
    ((-1.0, 1.0), [[0], [0, 1], [1.0], [0]])
    """

    def __init__(
        self, source: Any, labels: tuple[float, ...] | None = None, *, binary: bool | None = None, width: int = 0
    ) -> None:
        opened: Any = sources.as_dataset(source)
        rows = opened.rows
        if rows is None or rows.layout == "dense":
            kind = "dense" if rows is not None else "packed"
            raise DataError(f"the rows are {kind}, and sparse ones in memory are needed",
                            remedy="Give a file with sparse rows, or a sparse matrix.")  # fmt: skip
        if binary and rows.layout != "binary":
            raise DataError("not every value is 1", remedy="Use binary=False for data with values.")
        self.binary = rows.layout == "binary" if binary is None else binary
        self.width: int = max(width, rows.features)
        given = opened.labels()
        self.labels = tuple(np.unique(given).tolist()) if labels is None else labels
        self._ids = np.arange(len(rows)) if opened.ids is None else opened.ids
        self._offsets, self._indices = rows.indptr, rows.indices.astype(np.uint32, copy=False).view(np.int32)
        self._values = None if rows.layout == "binary" else rows.values.astype(np.float32, copy=False)
        self._targets = numbered(given, self.labels)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def n_rows(self) -> int:
        """How many samples there are."""
        return len(self)

    @property
    def n_features(self) -> int:
        """How wide they would be with their zeros."""
        return self.width

    @property
    def nonzeros(self) -> int:
        """How many entries they have in all."""
        return int((self._offsets[self._ids + 1] - self._offsets[self._ids]).sum())

    def __getitem__(self, number: int) -> tuple[Tensor, ...]:
        """One sample, as a batch of one."""
        return self.batch_of(torch.tensor([number]))

    def batch_of(self, numbers: Tensor) -> tuple[Tensor, ...]:
        """A batch of these samples."""
        chosen = numbers.numpy()
        rows = self._ids[chosen]
        return collected(self._offsets, self._indices, self._values, rows, self._targets[chosen], binary=self.binary)


def collected(
    starts: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any] | None,
    rows: NDArray[Any],
    targets: NDArray[Any],
    *,
    binary: bool,
) -> tuple[Tensor, ...]:
    """Some rows of a matrix behind each other, as a batch; where no values are stored, they are ones."""
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(starts[rows + 1] - starts[rows], out=offsets[1:])
    chosen = np.empty(offsets[-1], np.int32)
    weights = np.empty(0 if binary or values is None else offsets[-1], np.float32)
    _collect(starts, indices, weights if values is None else values, rows, offsets, chosen, weights)
    parts = [torch.from_numpy(chosen), torch.from_numpy(offsets)]
    if not binary:
        parts.append(torch.ones(len(chosen)) if values is None else torch.from_numpy(weights))
    return (*parts, torch.from_numpy(targets))


def numbered(given: NDArray[Any], labels: tuple[float, ...]) -> NDArray[np.int64]:
    """Which of the labels each of those given is."""
    known = np.asarray(labels)
    numbers = np.minimum(np.searchsorted(known, given), len(known) - 1)
    wrong = np.flatnonzero(known[numbers] != given)
    if wrong.size:
        raise DataError(f"the label {given[wrong[0]]:g} is not one of those trained on", row=int(wrong[0]),
                        remedy=f"They are {', '.join(f'{label:g}' for label in labels[:10])}.")  # fmt: skip
    return numbers


@compiled
def _collect(starts: Any, indices: Any, values: Any, rows: Any, offsets: Any, to: Any, values_to: Any) -> None:
    """Put the entries of some rows behind each other."""
    for number in range(len(rows)):
        start, place = starts[rows[number]], offsets[number]
        for k in range(offsets[number + 1] - place):
            to[place + k] = indices[start + k]
        if len(values_to) > 0:
            for k in range(offsets[number + 1] - place):
                values_to[place + k] = values[start + k]
