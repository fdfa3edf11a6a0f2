"""Rows that do not fit into a GPU's memory: some chunks at a time, and the next are copied during training.

Chunks are copied into pinned memory by several threads, and from there to the GPU at the rate of the bus.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from hogwild.data.csr import NO_WEIGHTS, Array, CSRRows, bytes_of
from hogwild.data.dataset import Chunk, Epoch
from hogwild.data.random_order import RandomOrder
from hogwild.data.shuffle import gather
from hogwild.kernels.cuda_device import copy_pinned
from hogwild.kernels.cuda_jit import cuda
from hogwild.problems.on_gpu import ProblemOnGPU

THREADS = 16  # most threads that copy chunks into pinned memory
AHEAD = 2  # batches on their way: one is copied to the GPU, one into pinned memory


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows of a launch in the memory of the GPU, and the part of an order that it trains on."""

    rows: Any
    order: Array | RandomOrder
    first: int  # place in ``order``
    count: int
    end: int  # number of the chunk after the last


class RowStream:
    """Chunks of epochs on their way to a GPU. ``most`` is the number of bytes of a batch, of which three are there."""

    def __init__(self, gpu: ProblemOnGPU, most: int) -> None:
        self._gpu, self._most = gpu, most
        self._copying = ThreadPoolExecutor(min(THREADS, len(os.sched_getaffinity(0))), "hogwild-stream")
        self._pinned: list[dict[str, Any]] = [{} for _ in range(AHEAD)]  # memory for batches, in turn

    def close(self) -> None:
        """End the threads, and release the memory."""
        self._copying.shutdown()
        self._pinned = [{} for _ in range(AHEAD)]

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
        rows = self._gpu.rows(self._joined([chunk.rows for chunk in chunks], turn), copy_pinned)
        for number in range(first, end):
            epoch.done(number)
        return Batch(rows, order, 0, len(order), end)

    def _joined(self, pieces: list[CSRRows], turn: int) -> CSRRows:
        """Copy rows of several chunks into pinned memory."""
        one, offsets = pieces[0], np.cumsum([0, *(piece.nonzeros for piece in pieces)])
        entries = [slice(int(piece.indptr[0]), int(piece.indptr[-1])) for piece in pieces]
        indptr = [piece.indptr[:-1] + (start - piece.indptr[0])
                  for piece, start in zip(pieces, offsets, strict=False)]  # fmt: skip
        weighted = any(piece.weights.size for piece in pieces)
        weights = [piece.weights if piece.weights.size else np.ones(len(piece), np.float32) for piece in pieces]
        copied = {
            "indptr": self._copied("indptr", [*indptr, offsets[-1:]], turn),
            "labels": self._copied("labels", [piece.labels for piece in pieces], turn),
            "weights": self._copied("weights", weights, turn) if weighted else NO_WEIGHTS,
        }
        for name in ("indices", "values"):
            arrays = [getattr(piece, name) for piece in pieces]
            parts = [array[part] for array, part in zip(arrays, entries, strict=True)]
            copied[name] = self._copied(name, parts, turn) if arrays[0].size else arrays[0]
        return CSRRows(
            copied["indptr"], copied["indices"], copied["values"], copied["labels"], copied["weights"], one.features,
            one.layout,
        )  # fmt: skip

    def _copied(self, name: str, parts: list[Array], turn: int) -> Array:
        """Copy arrays one after the other into pinned memory, which the batch after the next uses again."""
        places, kept = np.cumsum([0, *(len(part) for part in parts)]), self._pinned[turn]
        size = int(places[-1])
        if name not in kept or len(kept[name]) < size:
            kept[name] = cuda.pinned_array(size, parts[0].dtype)
        target: Array = kept[name][:size]
        copies = [self._copying.submit(np.copyto, target[start : start + len(part)], part)
                  for part, start in zip(parts, places, strict=False)]  # fmt: skip
        for copy in copies:
            copy.result()
        return target


def _compact(chunk: Chunk) -> Chunk:
    """Return a chunk that has no other rows than those of its order, as far as that saves a copy of them."""
    if len(chunk.rows) <= 2 * len(chunk.order):
        return chunk
    rows = gather(chunk.rows, np.asarray(chunk.order, np.int64))
    return Chunk(rows, np.arange(len(rows), dtype=np.uint32))
