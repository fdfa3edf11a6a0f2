"""Sparse rows of a data set as samples of a :class:`SparseMLP`."""

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
    """Data set in memory, whose samples become batches ``(indices, offsets[, values], target)``, one batch at a time.

    A target is the position of the row's label in ``labels``.

    Parameters
    ----------
    source : path, tuple (X, y) or Dataset
        Any source of sparse rows that :func:`hogwild.data.open` accepts.
    labels : tuple of float, optional
        Labels in ascending order; by default those that occur. Held-out data needs the labels of the training data.
    binary : bool, optional
        Whether batches omit values because every value is 1; by default the data determines it.
    width : int, default 0
        Minimum number of features.

    Raises
    ------
    DataError
        If rows are dense or packed, if a binary data set has other values than 1, or if a label is unknown.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = CSRDataset((csr_array([[0, 2.0], [1.0, 0]]), [1, -1]))
    >>> rows.labels, [part.tolist() for part in rows.batch_of(torch.tensor([1]))]
    ((-1.0, 1.0), [[0], [0, 1], [1.0], [0]])
    """

    def __init__(
        self, source: object, labels: tuple[float, ...] | None = None, *, binary: bool | None = None, width: int = 0
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
        """The number of samples."""
        return len(self)

    @property
    def n_features(self) -> int:
        """The number of features, which is the width of a dense row."""
        return self.width

    @property
    def nonzeros(self) -> int:
        """The number of non-zeros of all samples."""
        return int((self._offsets[self._ids + 1] - self._offsets[self._ids]).sum())

    def __getitem__(self, number: int) -> tuple[Tensor, ...]:
        """Return one sample as a batch of one."""
        return self.batch_of(torch.tensor([number]))

    def batch_of(self, numbers: Tensor) -> tuple[Tensor, ...]:
        """Return a batch of these samples."""
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
    """Return rows of a matrix as one batch; if no values are stored, they are ones."""
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
    """Return the position of each given label in ``labels``.

    Raises
    ------
    DataError
        If a given label is unknown.
    """
    known = np.asarray(labels)
    numbers = np.minimum(np.searchsorted(known, given), len(known) - 1)
    wrong = np.flatnonzero(known[numbers] != given)
    if wrong.size:
        raise DataError(f"the label {given[wrong[0]]:g} is not one of those trained on", row=int(wrong[0]),
                        remedy=f"They are {', '.join(f'{label:g}' for label in labels[:10])}.")  # fmt: skip
    return numbers


@compiled
def _collect(
    starts: NDArray[Any], indices: NDArray[Any], values: NDArray[Any], rows: NDArray[Any], offsets: NDArray[np.int64],
    to: NDArray[np.int32], values_to: NDArray[np.float32],
) -> None:  # fmt: skip
    """Copy the entries of rows to consecutive positions."""
    for number in range(len(rows)):
        start, place = starts[rows[number]], offsets[number]
        for k in range(offsets[number + 1] - place):
            to[place + k] = indices[start + k]
        if len(values_to) > 0:
            for k in range(offsets[number + 1] - place):
                values_to[place + k] = values[start + k]
