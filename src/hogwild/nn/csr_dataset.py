"""Sparse rows of a data set, in memory or in a packed folder, as samples of a :class:`SparseMLP`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hogwild import data as sources
from hogwild.data.csr import CSRRows
from hogwild.data.dataset import Dataset
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.sampling import Blocks
from hogwild.errors import DataError
from hogwild.jit import compiled
from hogwild.nn.row_chunks import SHUFFLE, ChunkCache, PackedChunks, SparseSamples, check_shuffle

# Number of consecutive chunks of a folder that an epoch reads one after the other. While one is used, the system reads
# the next.
TOGETHER = 8


class CSRDataset(SparseSamples):
    """Data set whose samples become batches ``(indices, offsets[, values], target)``, one batch at a time.

    A target is the position of the row's label in ``labels``. A packed folder is read chunk by chunk, and may be larger
    than memory. :class:`Module` then visits its rows in blocks.

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
    shuffle : int, default 65536
        Number of rows of a packed folder that are shuffled together and held in memory; 0 keeps their stored order.
        Rows in memory are shuffled as a whole.

    Raises
    ------
    DataError
        If rows are dense, if a binary data set has other values than 1, if a label is unknown, or if there are more
        labels than classes can be.
    ParameterError
        If ``shuffle`` is not a number of rows.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = CSRDataset((csr_array([[0, 2.0], [1.0, 0]]), [1, -1]))
    >>> rows.labels, [part.tolist() for part in rows.batch_of(torch.tensor([1]))]
    ((-1.0, 1.0), [[0], [0, 1], [1.0], [0]])
    """

    def __init__(
        self,
        source: object,
        labels: tuple[float, ...] | None = None,
        *,
        binary: bool | None = None,
        width: int = 0,
        shuffle: int = SHUFFLE,
    ) -> None:
        check_shuffle(shuffle)
        opened = sources.as_dataset(source)
        rows = opened.rows if opened.rows is not None else opened.in_order()[0].rows
        if rows.layout == "dense":
            raise DataError("the rows are dense, and sparse ones are needed", path=opened.name,
                            remedy="Give a file with sparse rows, or a sparse matrix.")  # fmt: skip
        if binary and rows.layout != "binary":
            raise DataError("not every value is 1", remedy="Use binary=False for data with values.")
        self.binary = rows.layout == "binary" if binary is None else binary
        self.width: int = max(width, opened.n_features)
        self.nonzeros: int = opened.nonzeros
        self._stored: ChunkCache | None = None
        if isinstance(opened, InMemoryDataset):
            self._hold(opened, labels)
        else:
            self._stored = ChunkCache(PackedChunks(opened, len(rows)), shuffle)
            self.labels = _labels_on_disk(opened, labels)
            self.blocks = Blocks(tuple(self._stored.starts[:-1:TOGETHER].tolist()), shuffle)

    def _hold(self, opened: InMemoryDataset, labels: tuple[float, ...] | None) -> None:
        rows, given = opened.rows, opened.labels()
        self.labels = tuple(np.unique(given).tolist()) if labels is None else labels
        self._ids = np.arange(len(rows)) if opened.ids is None else opened.ids
        self._offsets, self._indices = rows.indptr, rows.indices.astype(np.uint32, copy=False).view(np.int32)
        self._values = None if rows.layout == "binary" else rows.values.astype(np.float32, copy=False)
        self._targets = numbered(given, self.labels)

    def __len__(self) -> int:
        return len(self._ids if self._stored is None else self._stored)

    @property
    def n_rows(self) -> int:
        """The number of samples."""
        return len(self)

    @property
    def n_features(self) -> int:
        """The number of features, which is the width of a dense row."""
        return self.width

    def batch_of(self, numbers: Tensor) -> tuple[Tensor, ...]:
        """Return a batch of these samples."""
        chosen = numbers.numpy()
        if self._stored is not None:
            stored = self._stored.gather(chosen)
            return batch_from(stored, numbered(stored.labels, self.labels), binary=self.binary)
        rows = self._ids[chosen]
        return collected(self._offsets, self._indices, self._values, rows, self._targets[chosen], binary=self.binary)


def _labels_on_disk(data: Dataset, known: tuple[float, ...] | None) -> tuple[float, ...]:
    """Return the known labels, or those of the data if none are known."""
    counted = data.label_counts()
    if counted is None:
        if known is not None:
            return known
        raise DataError("there are too many different labels for classes", path=data.name,
                        remedy="Give labels that are classes, such as 0 and 1.")  # fmt: skip
    found = tuple(counted[0].tolist())
    for label in found:
        if known is not None and label not in known:
            raise _unknown_label(label, known)
    return found if known is None else known


def batch_from(rows: CSRRows, targets: NDArray[np.int64], *, binary: bool) -> tuple[Tensor, ...]:
    """Return rows as one batch; the arrays have no entries before or after those of the rows."""
    indices = torch.from_numpy(rows.indices.astype(np.uint32, copy=False).view(np.int32))
    parts = [indices, torch.from_numpy(rows.indptr)]
    if not binary:
        valued = rows.layout != "binary"
        parts.append(
            torch.from_numpy(rows.values.astype(np.float32, copy=False)) if valued else torch.ones(len(indices))
        )
    return (*parts, torch.from_numpy(targets))


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
        raise _unknown_label(given[wrong[0]], labels, int(wrong[0]))
    return numbers


def _unknown_label(label: float, labels: tuple[float, ...], row: int | None = None) -> DataError:
    known = ", ".join(f"{each:g}" for each in labels[:10])
    return DataError(f"the label {label:g} is not one of those trained on", row=row, remedy=f"They are {known}.")


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
