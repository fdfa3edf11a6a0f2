"""Generated text in the shape of Criteo's display-advertising data, with a planted model.

A line is a label, 13 whole numbers and 26 categories of eight hexadecimal digits, with tabs between them. Values have
frequencies as words have them. Some columns have few values, others many, and some are often empty. The score of a row
is the sum of a planted weight for each value of 12 categories and each magnitude of 4 numbers, and of a planted product
for each of 4 pairs of categories, which a linear model cannot learn. A row is drawn from its own number and the seed,
so it is the same however many rows the caller asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.compression import packing
from hogwild.data.csr import Array
from hogwild.data.generate.sparse_records import mixed, share
from hogwild.errors import ParameterError
from hogwild.files import check_free, replacing
from hogwild.jit import compiled
from hogwild.lazy import cached_property
from hogwild.machine import usable_cores

_LONGEST = 512  # Bytes of a line, at most.
_BLOCK_ROWS = 1 << 14
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HEXADECIMAL = np.frombuffer(b"0123456789abcdef", np.uint8)
# Number of values of each category, and the share of empty cells of each column, much as in the original.
_SIZES = np.array(
    [1_460, 583, 1_000_000, 500_000, 305, 24, 12_517, 633, 3, 93_145, 5_683, 800_000, 3_194, 27, 14_992, 700_000, 10,
     5_652, 2_173, 4, 750_000, 18, 15, 286_181, 105, 142_572]
)  # fmt: skip
_EMPTY = np.array(
    [0.45, 0.0, 0.21, 0.22, 0.03, 0.22, 0.04, 0.0, 0.04, 0.45, 0.04, 0.77, 0.22,
     0.0, 0.0, 0.03, 0.03, 0.0, 0.12, 0.0, 0.0, 0.0, 0.0, 0.0, 0.03, 0.0, 0.0, 0.0, 0.03, 0.0, 0.0, 0.44, 0.44, 0.03,
     0.76, 0.0, 0.03, 0.44, 0.44]
)  # fmt: skip
# Pairs of categories with few values, whose products matter: C6 and C9, C14 and C17, C20 and C22, C23 and C25.
_PAIRS = np.array([[18, 21], [26, 29], [32, 34], [35, 37]])
_SCALES = np.array([3.0, 100.0, 25.0, 7.0, 18_000.0, 110.0, 16.0, 12.0, 100.0, 0.6, 2.7, 1.0, 8.0])


@dataclass(frozen=True)
class Criteo:
    """Rows of the shape of Criteo's data. The text is drawn on demand.

    >>> made = Criteo(rows=3)
    >>> text = b"".join(made.text())
    >>> text.count(b"\\n"), text.split(b"\\n")[0].count(b"\\t")
    (3, 39)
    """

    rows: int = 1_000_000
    noise: float = 1.0  # Scale of the logistic noise that is added to the score.
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, least, most in (("rows", self.rows, 1, 2**62), ("noise", self.noise, 0, 1e6)):
            if not least <= value <= most:
                raise ParameterError(f"The '{name}' parameter must be between {least:,} and {most:,}. Got {value!r}.")

    def text(self) -> Iterator[bytes]:
        """Yield all lines, in blocks; the blocks are drawn on all cores."""
        starts = range(0, self.rows, _BLOCK_ROWS)
        with ThreadPoolExecutor(usable_cores()) as pool:
            for first in range(0, len(starts), 64):
                yield from pool.map(self._block, starts[first : first + 64])

    def write(self, path: Path, progress: Callable[[int], None] | None = None, *, overwrite: bool = False) -> None:
        """Write all lines to a file, which may be compressed by its name."""
        check_free(path, overwrite)
        done = 0
        with replacing(path) as file, packing(path, file) as packed:
            for block in self.text():
                packed.write(block)
                done = min(self.rows, done + _BLOCK_ROWS)
                if progress is not None:
                    progress(done)

    @cached_property
    def _intercept(self) -> float:
        """The number that is added to scores so that about a fourth of the labels are 1."""
        scores = np.empty(4096)
        _draw(
            np.uint64(self.seed),
            0,
            0.0,
            self.noise,
            _SIZES,
            _EMPTY,
            _SCALES,
            np.empty(4096 * _LONGEST, np.uint8),
            scores,
        )
        return -float(np.quantile(scores, 0.75))

    def _block(self, first: int) -> bytes:
        count = min(_BLOCK_ROWS, self.rows - first)
        out = np.empty(count * _LONGEST, np.uint8)
        size = _draw(
            np.uint64(self.seed), first, self._intercept, self.noise, _SIZES, _EMPTY, _SCALES, out, np.empty(count)
        )
        return out[:size].tobytes()


@compiled
def _draw(
    seed: np.uint64, first: int, intercept: float, noise: float, sizes: Array, empty: Array, scales: Array, out: Array,
    scores: Array,
) -> Any:  # fmt: skip
    """Write lines, whose number is that of the scores, and return the number of bytes."""
    key, at = mixed(seed + _GOLDEN), 0
    cells = np.empty(39, np.int64)
    for row in range(scores.size):
        state = mixed(key ^ mixed(np.uint64(first + row) * _GOLDEN + np.uint64(1)))
        for column in range(39):
            state += _GOLDEN
            missing = share(state) < empty[column]
            state += _GOLDEN
            drawn = share(state)
            if missing:
                cells[column] = -1
            elif column < 13:
                cells[column] = np.int64(scales[column] * math.exp(1.5 * math.tan(1.2 * (drawn - 0.5)) - 0.7))
            else:
                cells[column] = min(
                    sizes[column - 13] - 1, np.int64(math.exp(drawn * math.log(sizes[column - 13] + 1.0)) - 1)
                )
        score = intercept + _score(key, cells)
        state += _GOLDEN
        drawn = share(state)
        score += noise * math.log(drawn / (1.0 - drawn))
        scores[row] = score
        out[at] = 49 if score > 0 else 48
        at += 1
        for column in range(39):
            out[at] = 9
            at += 1
            if cells[column] < 0:
                continue
            if column < 13:
                at = _write_number(out, at, cells[column])
            else:
                word = mixed(key ^ (np.uint64(cells[column]) * np.uint64(64) + np.uint64(column)))
                for digit in range(8):
                    out[at + digit] = _HEXADECIMAL[(word >> np.uint64(4 * digit)) & np.uint64(15)]
                at += 8
        out[at] = 10
        at += 1
    return at


@compiled
def _write_number(out: Array, at: int, number: int) -> int:
    size, rest = 1, number // 10
    while rest > 0:
        size, rest = size + 1, rest // 10
    for digit in range(size):
        out[at + size - 1 - digit] = 48 + number % 10
        number //= 10
    return at + size


@compiled
def _score(key: np.uint64, cells: Array) -> float:
    """Return the planted score of a row: single values, then products of pairs of categories."""
    score = 0.0
    for column in range(0, 12, 3):
        if cells[column] >= 0:
            score += 0.3 * (math.log2(1.0 + cells[column]) - 3.0) * (share(key ^ np.uint64(column)) - 0.5)
    for column in range(13, 37, 2):
        if cells[column] >= 0:
            score += 1.5 * (share(key ^ mixed(np.uint64(cells[column]) * np.uint64(128) + np.uint64(column))) - 0.5)
    for pair in range(4):
        one, other = cells[_PAIRS[pair, 0]], cells[_PAIRS[pair, 1]]
        if one >= 0 and other >= 0:
            first = mixed(key ^ (np.uint64(one) * np.uint64(256) + np.uint64(pair)))
            second = mixed(key ^ (np.uint64(other) * np.uint64(256) + np.uint64(pair + 128)))
            score += 9.0 * (share(first) - 0.5) * (share(second) - 0.5)
    return score
