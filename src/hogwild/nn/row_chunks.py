"""Samples of data that exceeds memory: chunks of rows are read when a batch needs them, and a few are held."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hogwild.data.csr import CSRRows, concatenate
from hogwild.data.dataset import Dataset
from hogwild.data.sampling import Blocks
from hogwild.data.shuffle import gather
from hogwild.registry import invalid_parameter

SHUFFLE = 65_536  # Default number of rows on disk that are shuffled together.


class SparseSamples(ABC):
    """Data set of sparse rows, whose samples become batches ``(indices, offsets[, values], target)``."""

    # Order in which an epoch reads rows on disk; None where the rows are in memory.
    blocks: Blocks | None = None
    # Whether rows can be reached only by reading all rows before them, so that no other order is possible.
    in_sequence: bool = False

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def batch_of(self, numbers: Tensor) -> tuple[Tensor, ...]:
        """Return a batch of the samples with these numbers."""

    def describe(self) -> dict[str, Any]:
        """Return plain values for records, by which a resumed run recognises its data; by default none."""
        return {}

    def __getitem__(self, number: int) -> tuple[Tensor, ...]:
        """Return one sample as a batch of one."""
        return self.batch_of(torch.tensor([number]))


class ChunkReader(Protocol):
    """Rows on disk in chunks of consecutive rows."""

    @property
    def starts(self) -> NDArray[np.int64]:
        """The first row of each chunk, and after them the number of all rows."""

    def read(self, number: int) -> Iterator[tuple[int, CSRRows]]:
        """Yield the chunk of this number and its rows, after the chunks that had to be read on the way to it."""

    def release(self, number: int) -> None:
        """Announce that the rows of this chunk are not used any more."""


class ChunkCache:
    """Chunks of rows that were used last.

    Parameters
    ----------
    reader : ChunkReader
        Source of the chunks.
    shuffle : int
        Number of rows that are shuffled together. The cache holds at most this number of rows, and two chunks more: the
        first and the last chunk of a buffer of rows may be used in part.
    """

    def __init__(self, reader: ChunkReader, shuffle: int) -> None:
        check_shuffle(shuffle)
        self.reader, self.shuffle, self.starts = reader, shuffle, reader.starts
        self.most = shuffle + 2 * int(np.diff(self.starts).max(initial=1))
        self._held: OrderedDict[int, CSRRows] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __reduce__(self) -> tuple[Callable[..., ChunkCache], tuple[Any, ...]]:
        """Pickle the cache without chunks: another process reads them itself."""
        return ChunkCache, (self.reader, self.shuffle)

    @property
    def held(self) -> int:
        """The number of rows in memory."""
        return sum(map(len, self._held.values()))

    def gather(self, numbers: NDArray[np.int64]) -> CSRRows:
        """Copy the rows with these numbers, in this order."""
        chunks = np.searchsorted(self.starts, numbers, side="right") - 1
        found = [
            gather(self._chunk(int(chunk)), numbers[chunks == chunk] - self.starts[chunk])
            for chunk in np.unique(chunks)
        ]
        if len(found) == 1:
            return found[0]
        return gather(concatenate(found), np.argsort(np.argsort(chunks, kind="stable")))

    def _chunk(self, number: int) -> CSRRows:
        # Batches for a GPU are made on several threads.
        with self._lock:
            if number not in self._held:
                for passed, rows in self.reader.read(number):
                    self._hold(passed, rows)
            self._held.move_to_end(number)
            return self._held[number]

    def _hold(self, number: int, rows: CSRRows) -> None:
        self._held.pop(number, None)
        while self._held and self.held + len(rows) > self.most:
            self.reader.release(self._held.popitem(last=False)[0])
        self._held[number] = rows


@dataclass(frozen=True, slots=True, eq=False)
class PackedChunks:
    """Chunks of a data set on disk, in stored order, such as those of a packed folder."""

    data: Dataset
    size: int  # Rows of each chunk but the last.

    @property
    def starts(self) -> NDArray[np.int64]:
        """The first row of each chunk, and after them the number of all rows."""
        return np.append(np.arange(0, self.data.n_rows, self.size), self.data.n_rows)

    def read(self, number: int) -> Iterator[tuple[int, CSRRows]]:
        """Yield the chunk of this number."""
        yield number, self.data.in_order()[number].rows

    def release(self, number: int) -> None:
        """Release the memory of a chunk."""
        self.data.in_order().done(number)


def check_shuffle(shuffle: object) -> None:
    """Raise a ParameterError unless the number of rows that are shuffled together is one."""
    if not isinstance(shuffle, int) or isinstance(shuffle, bool) or shuffle < 0:
        raise invalid_parameter("shuffle", "a number of rows that are shuffled together, or 0", shuffle)
