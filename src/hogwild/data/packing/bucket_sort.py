"""Sorting of rows in buckets by their keys, in bounded memory. A bucket that is too large is divided again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hogwild.data.csr import NO_INDICES, NO_VALUES, Array, CSRRows, Layout
from hogwild.data.packing.writer import Bucket, Buckets, records
from hogwild.data.reader import Schema
from hogwild.data.shuffle import copy_rows, gather

FAN_OUT_BITS = 6  # Bits of the key that one division uses, which makes 2**6 buckets.
_WRITTEN = 2**19  # Entries that are sorted and written at a time.


def sorted_rows(buckets: list[Bucket], shape: Schema, room: int, folder: Path) -> Iterator[CSRRows]:
    """Yield the rows of all buckets in the order of their keys, in small parts; delete the files of each bucket.

    Sorting takes ``room`` bytes of memory. Buckets that are too large are divided again, into files in ``folder``.
    """
    for bucket in buckets:
        if bucket.rows > 1 and bucket.bytes_in_memory(shape.layout) > room and bucket.bits < 48:
            yield from sorted_rows(_divided(bucket, shape, folder), shape, room, folder)
        elif bucket.rows:
            yield from _sorted(bucket, shape)
            bucket.delete()


def _divided(bucket: Bucket, shape: Schema, folder: Path) -> list[Bucket]:
    with Buckets(folder, bucket.paths[0].name, bucket.bits, FAN_OUT_BITS) as buckets:
        for rows, keys in records(bucket, spilled_layout(shape.layout)):
            buckets.add(rows, keys)
    bucket.delete()
    return buckets.all


def _sorted(bucket: Bucket, shape: Schema) -> Iterator[CSRRows]:
    rows, keys = _loaded(bucket, shape)
    order = np.argsort(keys)
    ends = np.cumsum(rows.indptr[order + 1] - rows.indptr[order])
    cuts = np.flatnonzero(np.diff((ends - 1) // _WRITTEN)) + 1
    for part in np.split(order, cuts):
        yield gather(rows, part)


def _loaded(bucket: Bucket, shape: Schema) -> tuple[CSRRows, Array]:
    indptr, keys = np.zeros(bucket.rows + 1, np.int64), np.empty(bucket.rows, np.uint64)
    indices = NO_INDICES if shape.layout == "dense" else np.empty(bucket.entries, np.uint32)
    values = NO_VALUES if shape.layout == "binary" else np.empty(bucket.entries, np.float32)
    labels, weights = np.empty(bucket.rows), np.empty(bucket.rows if shape.weighted else 0, np.float32)
    row = entry = features = 0
    for rows, some_keys in records(bucket, spilled_layout(shape.layout)):
        to = slice(row, row + len(rows))
        keys[to], labels[to] = some_keys, rows.labels
        indptr[row + 1 : row + 1 + len(rows)] = rows.indptr[1:] + entry
        starts = indptr[to]
        copy_rows(*rows.arrays[:3], np.arange(len(rows)), starts, indices, values, 0)
        if shape.weighted:
            weights[to] = rows.weights
        row, entry, features = row + len(rows), entry + rows.nonzeros, max(features, rows.features)
    return CSRRows(indptr, indices, values, labels, weights, features, shape.layout), keys


def spilled_layout(layout: Layout | None) -> Layout:
    """Return the layout of rows in buckets, which have values as long as not all rows are known."""
    return "dense" if layout == "dense" else "sparse"
