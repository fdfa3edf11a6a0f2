"""Rows on disk, or that cannot be mapped: some chunks at a time, and the next are copied during training.

Chunks are copied into pinned memory by several threads, and from there to the GPU at the rate of the bus.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from hogwild.data.csr import NO_WEIGHTS, Array, CSRRows, bytes_of
from hogwild.data.dataset import Chunk, Epoch
from hogwild.data.random_order import RandomOrder
from hogwild.data.shuffle import gather
from hogwild.kernels.copy_pieces import copy_pieces
from hogwild.kernels.cuda_device import device_array
from hogwild.kernels.cuda_jit import cuda, simulated
from hogwild.machine import usable_cores
from hogwild.problems.on_gpu import ProblemOnGPU

THREADS = 16  # most threads that copy chunks into pinned memory
AHEAD = 3  # batches: one is trained on, one copied to the GPU, and one into pinned memory
SPARE = 8  # part of an array that is reserved besides, so that a longer one finds room


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows of a launch in the memory of the GPU, and the part of an order that it trains on."""

    rows: Any
    order: Array | RandomOrder
    first: int  # place in ``order``
    count: int
    end: int  # number of the chunk after the last


class BatchMemory:
    """Memory for one batch: pinned memory of the host, and memory of the GPU."""

    def __init__(self) -> None:
        self._pinned: dict[str, Any] = {}
        self._there: dict[int, Any] = {}  # by the address of the pinned memory

    def pinned(self, name: str, size: int, kind: Any) -> Array:
        """Return pinned memory for an array."""
        found = self._pinned.get(name)
        if found is None or len(found) < size or found.dtype != kind:
            if found is not None:
                self._there.pop(found.ctypes.data, None)
            found = self._pinned[name] = cuda.pinned_array(size + size // SPARE, kind)
        part: Array = found[:size]
        return part

    def __call__(self, array: Any, make: Callable[[], Any]) -> Any:
        """Copy an array to the GPU."""
        made, key = make(), array.ctypes.data
        if simulated():
            return cuda.to_device(made)
        there = self._there.get(key)
        if there is None or len(there) < len(made) or there.dtype != made.dtype:
            there = self._there[key] = device_array(len(made) + len(made) // SPARE, made.dtype)
        part = there[: len(made)]
        part.copy_to_device(made)
        return part


_KEPT: list[list[BatchMemory]] = []  # memory of the last stream


class RowStream:
    """Chunks of epochs on their way to a GPU. ``most`` is the number of bytes of a batch, of which three are there."""

    def __init__(self, gpu: ProblemOnGPU, most: int) -> None:
        self._gpu, self._most = gpu, most
        self._threads = min(THREADS, usable_cores())
        self._copying = ThreadPoolExecutor(self._threads, "hogwild-stream")
        # Memory for batches, in turn: that of an earlier stream, because to pin memory takes as long as to copy it.
        self._memory = _KEPT.pop() if _KEPT else [BatchMemory() for _ in range(AHEAD)]

    def close(self) -> None:
        """End the threads."""
        self._copying.shutdown()
        _KEPT[:] = [self._memory]

    def batches(self, epoch: Epoch, chunk: int) -> Iterator[Batch]:
        """Yield batches from a chunk on; a batch is done when the next one is asked for."""
        with ThreadPoolExecutor(AHEAD, "hogwild-ahead") as threads:
            ends, ahead = self._ends(epoch, chunk), deque[Future[Batch]]()
            for turn, (first, end) in enumerate(pairwise([chunk, *ends])):
                ahead.append(threads.submit(self._batch, epoch, first, end, turn % AHEAD))
                if turn + 1 >= AHEAD:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

    def _ends(self, epoch: Epoch, chunk: int) -> list[int]:
        """Return the number of the chunk after each batch."""
        if chunk >= len(epoch):
            return []
        chunks = max(1, self._most // max(1, bytes_of(_compact(epoch[chunk]).rows)))
        return [*range(chunk + chunks, len(epoch), chunks), len(epoch)]

    def _batch(self, epoch: Epoch, first: int, end: int, turn: int) -> Batch:
        chunks = [_compact(epoch[number]) for number in range(first, end)]
        lengths = [len(chunk.rows) for chunk in chunks]
        starts = np.cumsum([0, *lengths])
        order = np.concatenate([chunk.order.astype(np.uint32) + np.uint32(start)
                                for chunk, start in zip(chunks, starts[:-1], strict=True)])  # fmt: skip
        memory = self._memory[turn]
        rows = self._gpu.rows(self._joined([chunk.rows for chunk in chunks], memory), memory)
        for number in range(first, end):
            epoch.done(number)
        return Batch(rows, order, 0, len(order), end)

    def _joined(self, pieces: list[CSRRows], memory: BatchMemory) -> CSRRows:
        """Copy rows of several chunks into pinned memory."""
        one, offsets = pieces[0], np.cumsum([0, *(piece.nonzeros for piece in pieces)])
        indptr = [piece.indptr[:-1] + (start - piece.indptr[0])
                  for piece, start in zip(pieces, offsets, strict=False)]  # fmt: skip
        parts = {"indptr": [*indptr, offsets[-1:]], "labels": [piece.labels for piece in pieces]}
        if any(piece.weights.size for piece in pieces):
            parts["weights"] = [
                piece.weights if piece.weights.size else np.ones(len(piece), np.float32) for piece in pieces
            ]
        entries = [slice(int(piece.indptr[0]), int(piece.indptr[-1])) for piece in pieces]
        if one.indices.size:
            parts["indices"] = [piece.indices[part] for piece, part in zip(pieces, entries, strict=True)]
        if one.values.size:
            parts["values"] = [piece.values[part] for piece, part in zip(pieces, entries, strict=True)]
        joined, pairs = {"weights": NO_WEIGHTS, "indices": one.indices, "values": one.values}, []
        for name, arrays in parts.items():
            places = np.cumsum([0, *(len(array) for array in arrays)])
            joined[name] = memory.pinned(name, int(places[-1]), arrays[0].dtype)
            pairs += [(joined[name][start : start + len(array)], np.ascontiguousarray(array))
                      for array, start in zip(arrays, places, strict=False)]  # fmt: skip
        copy_pieces(pairs, self._copying, self._threads)
        return CSRRows(
            joined["indptr"], joined["indices"], joined["values"], joined["labels"], joined["weights"], one.features,
            one.layout,
        )  # fmt: skip


def _compact(chunk: Chunk) -> Chunk:
    """Return a chunk that has no other rows than those of its order, as far as that saves a copy of them."""
    if len(chunk.rows) <= 2 * len(chunk.order):
        return chunk
    rows = gather(chunk.rows, np.asarray(chunk.order, np.int64))
    return Chunk(rows, np.arange(len(rows), dtype=np.uint32))
