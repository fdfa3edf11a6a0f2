"""Batches of files that may exceed memory; other threads read, shuffle and assemble them ahead of use."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hogwild.data.csr import Array, CSRRows, concatenate
from hogwild.data.loader import map_in_order
from hogwild.data.opened_files import single_reader
from hogwild.data.reader import ReadOptions
from hogwild.data.sampling import Blocks
from hogwild.data.sources import stored_files
from hogwild.data.unchanged_file import unchanged
from hogwild.errors import DataError
from hogwild.lazy import cached_property
from hogwild.nn.csr_dataset import batch_from, collected, numbered
from hogwild.nn.row_chunks import SHUFFLE, ChunkCache, SparseSamples, check_shuffle
from hogwild.nn.step_profile import StepProfile
from hogwild.registry import invalid_parameter

Batch = tuple[Tensor, ...]

# Bytes of a file that are held in memory at a time.
PIECE = 2**25
# Largest number of rows of a file that are read at a time for a :class:`Module`.
CHUNK = 8192
_END = object()


class RecordLoader:
    """Batches ``(indices, offsets[, values], target)`` of TFRecord files, or of other files with sparse rows.

    One thread reads the files. Other threads check the rows, shuffle ``shuffle`` of them at a time, and assemble
    batches before the consumer needs them. Each iteration is an epoch with its own order of rows.

    ``Module(net, loss, loader)`` trains on the files as well, and uses the loader's ``batch``, ``labels``, ``binary``,
    ``shuffle`` and ``drop_last``. The rows are counted first, in one pass over the files. In each epoch the files, in
    random order, are divided among the workers. A file can be read only from its beginning: a worker whose part begins
    within a file reads the rows before it too. Many files of similar size, or a packed folder, suit many workers. Files
    that differ, such as one for each day, are better packed: an epoch goes through them one after the other.

    Parameters
    ----------
    paths : path or sequence of paths
        Files to read.
    batch : int
        Number of rows of a batch.
    labels : tuple of float, optional
        Labels of the classes in the files; by default labels are class numbers.
    binary : bool, default False
        Whether batches omit the values, all of which must be 1.
    shuffle : int, default 65536
        Number of rows that are shuffled together; 0 keeps the order of the files.
    ahead : int, default 4
        Number of batches that wait in the queue; a few more are in preparation.
    drop_last : bool, default False
        Whether an epoch omits a last batch that is smaller than the others.
    device : str or torch.device, default "cpu"
        Device of the batches. For a GPU, batches are assembled in pinned memory and copied asynchronously.
    seed : int, default 0
        Seed of the shuffles.
    profile : StepProfile, optional
        Profile that counts the wait for the next batch as input, and the time between two batches as a step.

    Raises
    ------
    ParameterError
        If a parameter is invalid.
    DataError
        If the rows are dense, if a value of a binary file is not 1, or if a label is unknown.

    See Also
    --------
    CSRDataset : rows in memory, or in a packed folder.

    Examples
    --------
    >>> import tempfile
    >>> from hogwild.data.generate.sparse_records import SparseRecords
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     SparseRecords(rows=100, dense_size=50, min_nnz=1, max_nnz=5).write(Path(folder, "a.tfrecord"))
    ...     loader = RecordLoader(Path(folder, "a.tfrecord"), batch=32)
    ...     [len(batch[-1]) for batch in loader]
    [32, 32, 32, 4]
    """

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        batch: int,
        *,
        labels: tuple[float, ...] | None = None,
        binary: bool = False,
        shuffle: int = SHUFFLE,
        ahead: int = 4,
        drop_last: bool = False,
        device: str | torch.device = "cpu",
        seed: int = 0,
        profile: StepProfile | None = None,
    ) -> None:
        for name, value in (("batch", batch), ("ahead", ahead)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise invalid_parameter(name, "a positive integer", value)
        check_shuffle(shuffle)
        given = [paths] if isinstance(paths, (str, Path)) else list(paths)
        self.paths = stored_files(given)
        self.batch, self.labels, self.binary, self.shuffle, self.ahead = batch, labels, binary, shuffle, ahead
        self.drop_last, self.device, self.seed, self.profile = drop_last, torch.device(device), seed, profile
        self._reader = single_reader(self.paths, ReadOptions())
        self._epoch = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the profile, which belongs to this process."""
        return {**self.__dict__, "profile": None}

    @property
    def batch_size(self) -> int:
        """The number of rows of a batch, by the name that it has in PyTorch."""
        return self.batch

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The number of rows of each file; the first use reads all files."""
        return tuple(sum(map(len, self.pieces_of(path))) for path in self.paths)

    @property
    def samples(self) -> RecordSamples:
        """The rows of all files, by their numbers."""
        return RecordSamples(self)

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches of an epoch."""
        rng = np.random.default_rng([self.seed, self._epoch])
        self._epoch += 1
        stop = threading.Event()
        pieces = _ahead(self._pieces, 2, stop)
        batches = _ahead(lambda: self._batches(pieces, rng), self.ahead, stop)
        try:
            yield from self._moved(batches)
        finally:
            stop.set()

    def _pieces(self) -> Iterator[CSRRows]:
        return itertools.chain.from_iterable(map(self.pieces_of, self.paths))

    def pieces_of(self, path: Path) -> Iterator[CSRRows]:
        """Yield the checked rows of a file in pieces."""
        with unchanged(path):
            for rows in self._reader.read(path, ReadOptions(), PIECE):
                if rows.layout == "dense":
                    raise DataError("the rows are dense", path=path, remedy="Give a file with sparse rows.")
                if self.binary and rows.values.size and not (rows.values == 1).all():
                    raise DataError("not every value is 1", path=path, remedy="Use binary=False.")
                yield rows

    def _batches(self, pieces: Iterable[CSRRows], rng: np.random.Generator) -> Iterator[Batch]:
        return (batch for _, batch in map_in_order(self._made, self._parts(pieces, rng)))

    def _parts(self, pieces: Iterable[CSRRows], rng: np.random.Generator) -> Iterator[tuple[CSRRows, Any]]:
        """Yield batches of a shuffled buffer of rows; rows beyond the last whole batch wait for the next buffer."""
        held: list[CSRRows] = []
        for rows in pieces:
            held.append(rows)
            if sum(map(len, held)) >= max(self.shuffle, self.batch):
                *whole, rest = self._cut(concatenate(held), rng)
                yield from whole
                held = [_chosen(*rest)]
        for part in self._cut(concatenate(held), rng) if held else ():
            if len(part[1]) == self.batch or (len(part[1]) and not self.drop_last):
                yield part

    def _cut(self, rows: CSRRows, rng: np.random.Generator) -> list[tuple[CSRRows, Any]]:
        """Return the shuffled rows in parts of one batch each; the last part has the remaining rows, possibly none."""
        order = rng.permutation(len(rows)) if self.shuffle else np.arange(len(rows))
        return [(rows, order[at : at + self.batch]) for at in range(0, len(rows) + 1, self.batch)]

    def _made(self, part: tuple[CSRRows, Any]) -> Batch:
        rows, chosen = part
        targets = _targets(rows.labels[chosen], self.labels)
        indices = rows.indices.astype(np.uint32, copy=False).view(np.int32)
        stored = None if rows.layout == "binary" else rows.values
        made = collected(rows.indptr, indices, stored, chosen, targets, binary=self.binary)
        return tuple(part.pin_memory() for part in made) if self.device.type == "cuda" else made

    def _moved(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        while True:
            begun = time.perf_counter()
            batch = next(batches, None)
            waited = time.perf_counter() - begun
            if batch is None:
                return
            yield tuple(part.to(self.device, non_blocking=True) for part in batch)
            if self.profile is not None:
                if self.device.type == "cuda":
                    torch.cuda.synchronize(self.device)
                self.profile.step(time.perf_counter() - begun, waited)


class RecordSamples(SparseSamples):
    """Rows of a loader's files by their numbers, for data that is visited file by file."""

    in_sequence = True

    def __init__(self, loader: RecordLoader) -> None:
        self._labels, self._binary = loader.labels, loader.binary
        self._files = [path.name for path in loader.paths]
        chunks = FileChunks(loader, min(loader.shuffle or CHUNK, CHUNK))
        self._cache = ChunkCache(chunks, loader.shuffle)
        self.blocks = Blocks(tuple(chunks.files[:-1].tolist()), loader.shuffle)

    def __len__(self) -> int:
        return len(self._cache)

    def describe(self) -> dict[str, Any]:
        """Return the names of the files in their order, on which the order of the rows depends."""
        return {"files": self._files}

    @property
    def held(self) -> int:
        """The number of rows in memory."""
        return self._cache.held

    def batch_of(self, numbers: Tensor) -> Batch:
        """Return a batch of these samples."""
        rows = self._cache.gather(numbers.numpy())
        return batch_from(rows, _targets(rows.labels, self._labels), binary=self._binary)


# Number of files that are open at the same time. The rows that are shuffled together are from two files or more.
OPEN = 4


class FileChunks:
    """Chunks of files that can be read only from their beginning.

    Chunks that are read in ascending order take one pass over a file. A chunk before the last one takes another.
    """

    def __init__(self, loader: RecordLoader, size: int) -> None:
        self._loader, self._size = loader, size
        self.files = np.cumsum([0, *loader.counts])  # First row of each file, and the number of all rows.
        firsts = [np.arange(start, stop, size) for start, stop in itertools.pairwise(self.files)]
        self.starts = np.concatenate([*firsts, self.files[-1:]])
        self._open: OrderedDict[int, _OpenFile] = OrderedDict()

    def __reduce__(self) -> tuple[Callable[..., FileChunks], tuple[Any, ...]]:
        """Pickle the chunks without the open files."""
        return FileChunks, (self._loader, self._size)

    def read(self, number: int) -> Iterator[tuple[int, CSRRows]]:
        """Yield the chunk of this number, after the chunks of its file that were not read yet."""
        file = int(np.searchsorted(self.files, self.starts[number], side="right")) - 1
        if file not in self._open or number < self._open[file].next:
            path = self._loader.paths[file]
            first = int(np.searchsorted(self.starts, self.files[file]))
            self._open[file] = _OpenFile(path, self._loader.pieces_of(path), first)
        self._open.move_to_end(file)
        if len(self._open) > OPEN:
            self._open.popitem(last=False)
        opened = self._open[file]
        for chunk in range(opened.next, number + 1):
            yield chunk, opened.take(int(self.starts[chunk + 1] - self.starts[chunk]))

    def release(self, number: int) -> None:
        """Do nothing: nothing else refers to the rows."""


@dataclass(eq=False)
class _OpenFile:
    """File that is read from its beginning, chunk by chunk."""

    path: Path
    pieces: Iterator[CSRRows]
    next: int  # Number of the next chunk.
    rest: list[CSRRows] = field(default_factory=list)  # Rows that were read and belong to the next chunk.

    def take(self, count: int) -> CSRRows:
        """Return the next rows."""
        while sum(map(len, self.rest)) < count:
            piece = next(self.pieces, None)
            if piece is None:
                raise DataError("the file has fewer rows than when it was counted", path=self.path,
                                remedy="Do not change files while they are read.")  # fmt: skip
            self.rest.append(piece)
        rows = concatenate(self.rest)
        self.rest = [rows[count:]] if len(rows) > count else []
        self.next += 1
        return rows[:count]


def _targets(labels: Array, known: tuple[float, ...] | None) -> Array:
    """Return the class of each row.

    Raises
    ------
    DataError
        If a label is not one of the known labels or, if none are known, not the number of a class.
    """
    if known is not None:
        return numbered(labels, known)
    targets = labels.astype(np.int64)
    if (targets != labels).any() or (targets < 0).any():
        raise DataError("a label is not the number of a class", remedy="Say what labels there are: labels=...")
    return targets


def _chosen(rows: CSRRows, numbers: Array) -> CSRRows:
    """Return the rows of these numbers, in this order."""
    return concatenate([rows[number : number + 1] for number in numbers.tolist()] or [rows[:0]])


def _ahead(make: Callable[[], Iterator[Any]], most: int, stop: threading.Event) -> Iterator[Any]:
    """Yield the items that a thread produces up to ``most`` items ahead, and raise its errors in the consumer."""
    ready: queue.Queue[Any] = queue.Queue(most)

    def put(item: object) -> None:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for one in make():
                put(one)
                if stop.is_set():
                    return
            put(_END)
        except BaseException as error:  # The consumer raises the error.
            put(error)

    threading.Thread(target=work, daemon=True, name="hogwild-loader").start()
    while not stop.is_set():
        try:
            found = ready.get(timeout=0.1)
        except queue.Empty:
            continue
        if found is _END:
            return
        if isinstance(found, BaseException):
            raise found
        yield found
