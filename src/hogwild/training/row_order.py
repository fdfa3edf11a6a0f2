"""Order in which the workers of a run by messages visit rows: rows in memory, or shares of a folder on disk."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.dataset import Chunk, Dataset, Epoch, EpochPlan
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.data.packing.sharded_rows import is_packed
from hogwild.errors import ParameterError

FEW_EPOCHS = 4  # number of epochs whose order of rows is cached: most workers are in one epoch or the next


class RowOrder(Protocol):
    """Rows of each shard in the order in which the epochs of a run visit them."""

    def size(self, shard: int, shards: int) -> int:
        """Return the number of rows of a shard in an epoch."""

    def chunk(self, shard: int, shards: int, epoch: int, place: int, most: int) -> Chunk:
        """Return at most ``most`` rows of a shard from a place in an epoch on, and at least one."""


def order_of(data: Dataset, seed: int, shuffle: bool, draws: bool, own: int | None = None) -> RowOrder:
    """Return the order of rows in memory, or of shares of a packed folder that is larger than memory or in shards.

    ``own`` is the share of the worker that asks. Where its machine lacks another share, it reads its own instead.

    Raises
    ------
    ParameterError
        If the order needs all rows in memory, and they are too large.
    """
    shards = isinstance(data, PackedDataset) and data.sharded  # This machine may have some of them only.
    found = None if shards else data.at_once()
    if found is not None:
        return InMemoryOrder(found, seed, shuffle)
    if draws and shards:
        raise ParameterError(
            f"{data.name} is in shards, and every worker would draw from all of them: leave out the sampling of rows, "
            "or pack the data without --shards."
        )
    if draws or not isinstance(data, PackedDataset):
        raise ParameterError(
            f"{data.name} is larger than memory, and every worker draws from all of it: give more memory, or leave out "
            "the sampling of rows."
        )
    return StreamedOrder(data, seed, shuffle, own)


def needed_folders(data: Dataset, worker: int, workers: int) -> list[Path]:
    """Return the packed folders that the machine of a worker must have, in one piece or the shards with its rows."""
    return data.shard(worker, workers).folders() if isinstance(data, PackedDataset) else []


def local_shard(data: Dataset, workers: int) -> tuple[int, int]:
    """Return a shard whose rows this machine has, and the number of shards."""
    if not isinstance(data, PackedDataset) or not data.sharded:
        return 0, workers
    here = data.here()
    found = (number for number in range(workers) if here.contains(data.shard(number, workers)))
    return next(found, 0), workers


@dataclass(eq=False)
class _WholeEpoch:
    """Order of the rows of an epoch, with the rows of each shard that has been requested."""

    whole: EpochPlan
    shuffled: bool
    _shards: dict[tuple[int, int], Array] = field(default_factory=dict)

    def shard(self, shard: int, shards: int) -> Array:
        """Return the rows of a shard as one contiguous array.

        A shard of shuffled rows is one contiguous part of the order. Every n-th row would be the same rows in each
        epoch, because blocks of rows stay together. The rows of a worker that is always slow would then hardly count.
        """
        if self.shuffled:
            few, more = divmod(len(self.whole.order), shards)
            first = shard * few + min(shard, more)
            return self.whole.order[first : first + few + (shard < more)]
        found = self._shards.get((shard, shards))
        if found is None:  # two threads may compute it at the same time, with the same result
            found = self._shards[shard, shards] = np.ascontiguousarray(self.whole.order[shard::shards])
        return found


@dataclass(eq=False)
class InMemoryOrder:
    """Order of rows in memory: in each epoch a shard has other rows."""

    data: Dataset
    seed: int
    shuffle: bool
    _epochs: OrderedDict[int, _WholeEpoch] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)  # Workers may be threads of one process.

    def __post_init__(self) -> None:
        self._epoch(0)

    def size(self, shard: int, shards: int) -> int:
        """Return the number of rows of a shard in an epoch."""
        return len(range(shard, self.data.n_rows, shards))

    def chunk(self, shard: int, shards: int, epoch: int, place: int, most: int) -> Chunk:
        """Return at most ``most`` rows of a shard from a place in an epoch on."""
        found = self._epoch(epoch)
        return Chunk(found.whole.rows, found.shard(shard, shards)[place : place + most])

    def whole(self, epoch: int) -> EpochPlan:
        """Return the order of all rows in an epoch."""
        return self._epoch(epoch).whole

    def shard(self, shard: int, shards: int, epoch: int) -> Array:
        """Return the rows of a shard in an epoch."""
        return self._epoch(epoch).shard(shard, shards)

    def _epoch(self, number: int) -> _WholeEpoch:
        with self._lock:
            if number not in self._epochs:
                chunks = self.data.epoch(self.seed, number) if self.shuffle else self.data.in_order()
                whole = chunks.whole()
                assert whole is not None
                self._epochs[number] = _WholeEpoch(whole, self.shuffle)
                if len(self._epochs) > FEW_EPOCHS:
                    self._epochs.popitem(last=False)
            return self._epochs[number]


@dataclass(eq=False)
class StreamedOrder:
    """Order of the rows of a packed folder that is larger than memory: a shard is the same part of it in each epoch.

    A process reads the parts of its workers alone. The rows of a folder are stored in random order, so each part is a
    random sample. A worker that is to go on for another one, whose part is on another machine, therefore reads its own
    part once more instead.
    """

    data: PackedDataset
    seed: int
    shuffle: bool
    own: int | None = None  # The part without which the worker cannot work.
    _shards: dict[tuple[int, int], _ShardReader] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def size(self, shard: int, shards: int) -> int:
        """Return the number of rows of a shard in an epoch."""
        return self._part(shard, shards).n_rows

    def chunk(self, shard: int, shards: int, epoch: int, place: int, most: int) -> Chunk:
        """Return at most ``most`` rows of a shard from a place in an epoch on."""
        with self._lock:
            reader = self._shards.get((shard, shards))
            if reader is None:
                reader = _ShardReader(self._part(shard, shards), self.seed, self.shuffle)
                self._shards[shard, shards] = reader
        return reader.chunk(epoch, place, most)

    def _part(self, shard: int, shards: int) -> PackedDataset:
        part = self.data.shard(shard, shards)
        lacks = any(not is_packed(folder) for folder in part.folders())
        return part if self.own in (None, shard) or not lacks else self.data.shard(self.own, shards)


class _ShardReader:
    """Reader of the epochs of one shard, chunk after chunk; it releases the chunks that it has left."""

    def __init__(self, data: PackedDataset, seed: int, shuffle: bool) -> None:
        self._data, self._seed, self._shuffle = data, seed, shuffle
        self._lock = threading.Lock()  # A shard may pass to another worker while the first one reads.
        self._number = -1  # number of the epoch
        self._epoch: Epoch = data.in_order()
        self._at = self._start = 0  # number of the chunk, and its first place in the epoch
        self._chunk: Chunk | None = None
        self._left: list[tuple[Epoch, int]] = []  # chunks whose rows the caller may still use

    def chunk(self, epoch: int, place: int, most: int) -> Chunk:
        """Return rows from a place on. The rows of the last two calls stay in memory."""
        with self._lock:
            while len(self._left) > 1:
                left, number = self._left.pop(0)
                left.done(number)
            if epoch != self._number or place < self._start or self._chunk is None:
                self._leave()
                self._number, self._at, self._start = epoch, 0, 0
                self._epoch = self._data.epoch(self._seed, epoch) if self._shuffle else self._data.in_order()
                self._chunk = self._epoch[0]
            while place >= self._start + len(self._chunk.order):
                self._start += len(self._chunk.order)
                self._leave()
                self._at += 1
                self._chunk = self._epoch[self._at]
            first = place - self._start
            return Chunk(self._chunk.rows, self._chunk.order[first : first + most])

    def _leave(self) -> None:
        if self._chunk is not None:
            self._left.append((self._epoch, self._at))
