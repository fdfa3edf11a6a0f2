"""Batches of files that may exceed memory; other threads read, shuffle and assemble them ahead of use."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hogwild.data.csr import Array, CSRRows, concatenate
from hogwild.data.loader import map_in_order
from hogwild.data.open_dataset import single_reader
from hogwild.data.reader import ReadOptions
from hogwild.errors import DataError
from hogwild.nn.csr_dataset import collected, numbered
from hogwild.nn.step_profile import StepProfile
from hogwild.registry import invalid_parameter

Batch = tuple[Tensor, ...]

# Bytes of a file that are held in memory at a time.
PIECE = 2**25
_END = object()


class RecordLoader:
    """Batches ``(indices, offsets[, values], target)`` of TFRecord files, or of other files with sparse rows.

    One thread reads the files. Other threads check the rows, shuffle ``shuffle`` of them at a time, and assemble
    batches before the consumer needs them. Each iteration is an epoch with its own order of rows.

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
        shuffle: int = 65_536,
        ahead: int = 4,
        drop_last: bool = False,
        device: str | torch.device = "cpu",
        seed: int = 0,
        profile: StepProfile | None = None,
    ) -> None:
        for name, value in (("batch", batch), ("ahead", ahead), ("shuffle", shuffle + 1)):
            if not isinstance(value, int) or value < 1:
                raise invalid_parameter(name, "a positive integer" if name != "shuffle" else "a number of rows", value)
        given = [paths] if isinstance(paths, (str, Path)) else list(paths)
        self.paths = [Path(path) for path in given]
        self.batch, self.labels, self.binary, self.shuffle, self.ahead = batch, labels, binary, shuffle, ahead
        self.drop_last, self.device, self.seed, self.profile = drop_last, torch.device(device), seed, profile
        self._reader = single_reader(self.paths, ReadOptions())
        self._epoch = 0

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
        for path in self.paths:
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
        labels = rows.labels[chosen]
        if self.labels is not None:
            targets = numbered(labels, self.labels)
        else:
            targets = labels.astype(np.int64)
            if (targets != labels).any() or (targets < 0).any():
                raise DataError("a label is not the number of a class", remedy="Say what labels there are: labels=...")
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
