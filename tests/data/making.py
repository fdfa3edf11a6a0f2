"""Random rows for tests, and readers that hand them out."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from hogwild.data.csr import NO_INDICES, NO_VALUES, NO_WEIGHTS, CSRRows
from hogwild.data.reader import Reader


def random_rows(seed, n_rows=200, features=50, layout="sparse", weighted=False):
    rng = np.random.default_rng(seed)
    if layout == "dense":
        lengths = np.full(n_rows, features)
        indices = NO_INDICES
    else:
        lengths = rng.integers(0, min(features, 9), n_rows)
        lists = [np.sort(rng.choice(features, length, replace=False)) for length in lengths]
        indices = np.concatenate([*lists, NO_INDICES]).astype(np.uint32)
    values = NO_VALUES if layout == "binary" else rng.normal(size=lengths.sum()).astype(np.float32)
    weights = rng.random(n_rows).astype(np.float32) if weighted else NO_WEIGHTS
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    # Labels are row numbers, so that a row can be recognised wherever it goes.
    return CSRRows(indptr, indices, values, np.arange(n_rows, dtype=np.float64), weights, features, layout)


def reader_of(rows, pieces=3, counts_from_one=False):
    """A format whose files say nothing: reading any of them yields these rows in pieces."""

    def read(path, reading, piece_bytes):
        cuts = np.linspace(0, len(rows), pieces + 1).astype(int)
        for start, stop in pairwise(cuts):
            yield rows[start:stop]

    return Reader("fake", (".fake",), read, counts_from_one=counts_from_one)


def fake_file(folder: Path, name="a.fake") -> Path:
    path = folder / name
    path.write_bytes(b"fake")
    return path


def as_dicts(rows, order=None):
    """Rows by label: (columns, values, weight)."""
    found = {}
    for row in range(len(rows)) if order is None else order:
        start, stop = int(rows.indptr[row]), int(rows.indptr[int(row) + 1])
        columns = tuple(range(rows.features)) if rows.layout == "dense" else tuple(rows.indices[start:stop].tolist())
        values = (1.0,) * len(columns) if rows.layout == "binary" else tuple(rows.values[start:stop].tolist())
        weight = float(rows.weights[row]) if rows.weights.size else 1.0
        found[float(rows.labels[row])] = (columns, values, weight)
    return found


def walked(walk):
    """Everything a walk visits, by label; a row visited twice is an error."""
    found = {}
    for number in range(len(walk)):
        chunk = walk[number]
        some = as_dicts(chunk.rows, chunk.order)
        assert len(some) == len(chunk.order)
        assert not found.keys() & some.keys()
        found.update(some)
        walk.done(number)
    return found


def visited(walk):
    """The labels in the order of the visit."""
    return np.concatenate([walk[number].rows.labels[walk[number].order] for number in range(len(walk))])
