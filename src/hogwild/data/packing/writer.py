"""Writer of the arrays of a packed folder, with summaries of labels and features."""

from __future__ import annotations

import zlib
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.data.dataset import MOST_CLASSES
from hogwild.data.feature_counts import count_features
from hogwild.data.packing.format import ARRAYS, CHECKSUMS, BlockWriter, Meta, write_meta
from hogwild.data.reader import ReadOptions
from hogwild.data.schema import Schema, fit_to_schema

_WRITTEN = 2**19  # Elements that are converted at a time.


@dataclass(slots=True)
class _Labels:
    """Summary of the labels: range, mean, and the count of each distinct value unless there are too many."""

    counts: dict[float, int] | None = field(default_factory=dict)
    least: float = np.inf
    greatest: float = -np.inf
    total: float = 0.0

    def add(self, labels: Array) -> None:
        self.least, self.greatest = min(self.least, float(labels.min())), max(self.greatest, float(labels.max()))
        self.total += float(labels.sum())
        if self.counts is not None:
            for value, count in zip(*np.unique(labels, return_counts=True), strict=True):
                self.counts[float(value)] = self.counts.get(float(value), 0) + int(count)
            if len(self.counts) > MOST_CLASSES:
                self.counts = None

    def summary(self, n_rows: int) -> dict[str, Any]:
        known = sorted((self.counts or {}).items())
        return {
            "kind": "few" if self.counts is not None else "many",
            "values": [value for value, _ in known],
            "counts": [count for _, count in known],
            "least": self.least,
            "greatest": self.greatest,
            "mean": self.total / n_rows,
        }


class PackedWriter:
    """Writer that appends rows to the final arrays. As a context manager it closes its files."""

    def __init__(self, folder: Path, shape: Schema, reading: ReadOptions) -> None:
        self._folder, self._shape, self._reading = folder, shape, reading
        self._stack = ExitStack()
        self._files: dict[str, BlockWriter] = {}
        for array in ARRAYS:
            if array.name in _present(shape):
                self._files[array.name] = BlockWriter(folder / array.file, array)
                self._stack.callback(self._files[array.name].close)
        self._counts = np.zeros(shape.features, np.int64)
        self._labels = _Labels()
        self.rows = self.nonzeros = 0

    def __enter__(self) -> PackedWriter:
        self._files["indptr"].write(np.zeros(1, np.int64))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, rows: CSRRows) -> None:
        """Append rows with raw indices."""
        rows = fit_to_schema(rows, self._shape, self._reading)
        if rows.layout == "dense":
            self._counts += len(rows)
        else:
            rows = replace(rows, indices=rows.indices - np.uint32(self._shape.base))
            count_features(rows.indptr, rows.indices, np.arange(len(rows)), self._counts)
            self._files["indices"].write(rows.indices)
        if "values" in self._files:
            self._files["values"].write(rows.values)
        if "weights" in self._files:
            self._files["weights"].write(rows.weights)
        self._files["labels"].write(rows.labels)
        self._files["indptr"].write(rows.indptr[1:] + self.nonzeros)
        self._labels.add(rows.labels)
        self.rows, self.nonzeros = self.rows + len(rows), self.nonzeros + rows.nonzeros

    def finish(self, memory: int, seed: int, sources: list[str]) -> None:
        """Write the frequencies, the checksums and ``meta.json``, which are complete only after the last row."""
        for at in range(0, len(self._counts), _WRITTEN):
            self._files["frequencies"].write(self._counts[at : at + _WRITTEN])
        for file in self._files.values():
            file.finish()
        checksums = np.array([crc for file in self._files.values() for crc in file.checksums], "<u4").tobytes()
        (self._folder / CHECKSUMS).write_bytes(checksums)
        write_meta(self._folder, Meta(
            rows=self.rows, features=self._shape.features, nonzeros=self.nonzeros, layout=self._shape.layout,
            weighted=self._shape.weighted, base=self._shape.base,
            memory=memory, seed=seed, checksums=zlib.crc32(checksums), sources=sources,
            labels=self._labels.summary(self.rows), frequencies=_summary(self._counts),
        ))  # fmt: skip


def _present(shape: Schema) -> set[str]:
    absent = {"dense": {"indices"}, "binary": {"values"}, "sparse": set[str]()}[shape.layout]
    return {array.name for array in ARRAYS} - absent - (set() if shape.weighted else {"weights"})


def _summary(counts: Array) -> dict[str, int]:
    """Return the number of features that occur, the largest frequency, and the feature that has it."""
    return {
        "present": int(np.count_nonzero(counts)),
        "largest": int(counts.max()),
        "most_frequent": int(counts.argmax()),
    }
