"""Division of rows into chunks, and epochs over chunks, for data in memory and on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.data.dataset import BLOCK_ROWS, Chunk, EpochPlan
from hogwild.data.random_order import RandomOrder
from hogwild.data.shuffle import mixed
from hogwild.data.slices import in_slices
from hogwild.jit import compiled
from hogwild.lazy import cached_property

# A worker claims one chunk at a time. A chunk is large enough that claiming costs nothing, and small enough that there
# are many. ``_FEWEST`` and ``_MOST`` are non-zeros of a chunk; ``_CHUNKS`` is the number of chunks wanted.
_FEWEST, _MOST, _CHUNKS = 2**14, 2**19, 64
FILLED_ROWS = 2**16  # row numbers that take longer to write than waking a thread


def rows_per_chunk(n_rows: int, nonzeros: int) -> int:
    """Return the number of rows per chunk: whole blocks with about 2**14 to 2**19 non-zeros.

    The result depends on the size of the data alone.

    >>> rows_per_chunk(32_561, 451_592), rows_per_chunk(800_000, 58_400_000), rows_per_chunk(10, 990)
    (1152, 7168, 128)
    """
    per_row = max(1.0, nonzeros / max(1, n_rows))
    wanted = max(_FEWEST, min(_MOST, nonzeros // _CHUNKS))
    return max(1, int(wanted / per_row) // BLOCK_ROWS) * BLOCK_ROWS


def row_numbers(start: int, stop: int) -> Array:
    """Return consecutive row numbers in the smaller of the two integer types that kernels accept."""
    return np.arange(start, stop, dtype=number_type(stop))


def number_type(n_rows: int) -> type[np.uint32] | type[np.int64]:
    """Return the integer type for the row numbers of ``n_rows`` rows."""
    return np.uint32 if n_rows <= 2**32 else np.int64


class StoredRows(Protocol):
    """Consecutive rows in memory or in files."""

    def read(self, start: int, stop: int) -> CSRRows:
        """Return the rows from ``start`` up to ``stop``, checked."""

    def ahead(self, start: int, stop: int) -> None:
        """Announce that the caller reads these rows soon."""

    def release(self, start: int, stop: int) -> None:
        """Announce that the caller does not read these rows again soon."""

    def everything(self) -> CSRRows | None:
        """Return all rows if they are in memory, else None."""


@dataclass(frozen=True, slots=True)
class ChunkExtents:
    """Division of the rows from ``first`` up to ``last`` into chunks of ``size`` rows.

    >>> extents = ChunkExtents(0, 100, 64)
    >>> len(extents), extents[1]
    (2, (64, 100))
    """

    first: int
    last: int
    size: int

    def __len__(self) -> int:
        return -(-(self.last - self.first) // self.size)

    def __getitem__(self, number: int) -> tuple[int, int]:
        start = self.first + number * self.size
        if not self.first <= start < self.last:
            raise IndexError(f"there are {len(self)} chunks, no chunk {number}")
        return start, min(start + self.size, self.last)


class RowBlocks:
    """Order in which an epoch visits shuffled rows: chunks in random order, and blocks in random order within a chunk.

    >>> blocks = RowBlocks(ChunkExtents(0, 100, 64), seed=0, number=0)
    >>> sorted(blocks.extent(chunk) for chunk in range(len(blocks)))
    [(0, 64), (64, 100)]
    """

    def __init__(self, extents: ChunkExtents, seed: int, number: int) -> None:
        self._extents, self._seed = extents, np.uint64(mixed(seed, number))
        self._order = np.random.default_rng([seed, number]).permutation(len(extents))

    def __len__(self) -> int:
        return len(self._order)

    def extent(self, number: int) -> tuple[int, int]:
        """Return the first row of a chunk and the row after its last."""
        return self._extents[int(self._order[number])]

    def chunk(self, number: int) -> Array:
        """Return the row numbers of a chunk, counted from its first row, in the order of the visit."""
        start, stop = self.extent(number)
        order = np.empty(stop - start, number_type(stop - start))
        _fill_in_blocks(order, np.array([0, stop - start]), np.zeros(1, np.int64), self._seed, number)
        return order

    def whole(self) -> tuple[Array, Array]:
        """Return the row numbers of the whole epoch in order, and the position at which each chunk starts."""
        extents = self._extents
        firsts = extents.first + extents.size * self._order
        starts = np.zeros(len(firsts) + 1, np.int64)
        np.cumsum(np.minimum(extents.size, extents.last - firsts), out=starts[1:])
        order = np.empty(int(starts[-1]), number_type(extents.last))

        def fill(part: slice) -> None:
            rows, among = slice(starts[part.start], starts[part.stop]), slice(part.start, part.stop + 1)
            _fill_in_blocks(order[rows], starts[among], firsts[part], self._seed, part.start)

        in_slices(len(firsts), fill, max(1, FILLED_ROWS // extents.size))
        return order, starts


@dataclass(frozen=True, eq=False)
class RowDraws:
    """Independent draws of rows with replacement, as many in an epoch as there are rows.

    The draws of an epoch depend on the seed and on the number of the epoch alone. Called with row numbers, a seed and
    the number of an epoch, the object returns the drawn row numbers.

    >>> RowDraws()(np.arange(3), 0, 0).shape, set(RowDraws(np.array([0.0, 1.0, 0.0]))(np.arange(3), 0, 0).tolist())
    ((3,), {1})
    """

    chances: Array | None = None  # Relative probability of each row, in stored order. None: all rows alike.

    def __call__(self, ids: Array, seed: int, number: int) -> Array:
        """Return the row numbers of one epoch."""
        places = _drawn(len(ids), len(ids), self.chances, np.random.default_rng([seed, number, _DRAWN]))
        return ids[places]

    @cached_property
    def factors(self) -> Array:
        """The factor of each row's weight with which the expected gradient is that of uniform draws: 1/(n p)."""
        assert self.chances is not None
        factors = np.zeros(len(self.chances))
        np.divide(self.chances.mean(), self.chances, out=factors, where=self.chances > 0)
        return factors

    def weighed(self, weights: Array, ids: Array | slice, n_rows: int) -> Array:
        """Return the weights of ``n_rows`` rows, of which those with the numbers ``ids`` are multiplied by factors."""
        if self.chances is None:
            return weights
        found = weights.copy() if weights.size else np.ones(n_rows, weights.dtype)
        found[ids] *= self.factors.astype(weights.dtype)
        return found


class DrawnBlocks:
    """Draws with replacement from chunks of stored rows, for an epoch that reads each chunk once.

    The number of draws from each chunk is drawn first, and then the rows within each chunk. So the numbers of visits of
    all rows have the distribution of draws from all rows at once. But the draws from one chunk follow each other.

    >>> blocks = DrawnBlocks(ChunkExtents(0, 100, 64), RowDraws(), seed=0, number=0)
    >>> sum(len(blocks.chunk(chunk)) for chunk in range(len(blocks)))
    100
    """

    def __init__(self, extents: ChunkExtents, draws: RowDraws, seed: int, number: int) -> None:
        self._extents, self._chances, self._seed = extents, draws.chances, (seed, number, _DRAWN)
        generator = np.random.default_rng(self._seed)
        self._order = generator.permutation(len(extents))
        sizes = np.array([self._size(*extents[chunk]) for chunk in range(len(extents))])
        self._counts = generator.multinomial(extents.last - extents.first, sizes / sizes.sum())

    def __len__(self) -> int:
        return len(self._order)

    def extent(self, number: int) -> tuple[int, int]:
        """Return the first row of a chunk and the row after its last."""
        return self._extents[int(self._order[number])]

    def chunk(self, number: int) -> Array:
        """Return the drawn row numbers of a chunk, counted from its first row."""
        (start, stop), which = self.extent(number), int(self._order[number])
        # A number that is zero at the end of a seed changes nothing, so chunks count from one.
        generator = np.random.default_rng([*self._seed, which + 1])
        places = _drawn(int(self._counts[which]), stop - start, self._of(start, stop), generator)
        return places.astype(number_type(stop - start))

    def whole(self) -> tuple[Array, Array]:
        """Return the row numbers of the whole epoch in order, and the position at which each chunk starts."""
        chunks = [self.chunk(number) + np.int64(self.extent(number)[0]) for number in range(len(self))]
        starts = np.cumsum([0, *(len(chunk) for chunk in chunks)])
        return np.concatenate(chunks).astype(number_type(self._extents.last)), starts

    def _size(self, start: int, stop: int) -> float:
        """Return the relative probability of all rows of a chunk together."""
        chances = self._of(start, stop)
        return float(stop - start if chances is None else chances.sum())

    def _of(self, start: int, stop: int) -> Array | None:
        """Return the relative probabilities of some rows; None if all rows are drawn alike."""
        first = self._extents.first
        return None if self._chances is None else self._chances[start - first : stop - first]


# Last number of the seeds of draws. Permutations of rows have seeds with other numbers, or with fewer.
_DRAWN = 3


def _drawn(count: int, rows: int, chances: Array | None, generator: np.random.Generator) -> Array:
    """Return ``count`` independent row numbers from 0 up to ``rows``."""
    if chances is None:
        return generator.integers(0, rows, count)
    ends = np.cumsum(chances)
    # On the right side, a row whose probability is zero is never found.
    found: Array = np.searchsorted(ends, generator.random(count) * ends[-1], side="right")
    return found


class ShuffledEpoch:
    """Epoch over rows that are stored in shuffled order."""

    _AHEAD = 3  # Number of chunks that are announced before the caller needs them.

    def __init__(self, stored: StoredRows, blocks: RowBlocks | DrawnBlocks) -> None:
        self._stored, self._blocks = stored, blocks

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, number: int) -> Chunk:
        # Calls for earlier chunks have announced the chunks before ``first``.
        first = number + 1 if number == 0 else number + self._AHEAD
        for later in range(first, min(number + 1 + self._AHEAD, len(self))):
            self._stored.ahead(*self._blocks.extent(later))
        return Chunk(self._stored.read(*self._blocks.extent(number)), self._blocks.chunk(number))

    def done(self, number: int) -> None:
        """Release the memory of this chunk."""
        self._stored.release(*self._blocks.extent(number))

    def whole(self) -> EpochPlan | None:
        """Return all chunks if the rows are in memory, else None."""
        rows = self._stored.everything()
        return None if rows is None else EpochPlan(rows, *self._blocks.whole())


class ScatteredEpoch:
    """Epoch over rows that are not stored in shuffled order; visits them in the order of ``ShuffledEpoch``.

    ``places[i]`` is the number of the row that a shuffled copy would store at position ``i``.
    """

    def __init__(self, rows: CSRRows, places: Array, blocks: RowBlocks) -> None:
        self._rows, self._places, self._blocks = rows, places, blocks

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, number: int) -> Chunk:
        start, stop = self._blocks.extent(number)
        return Chunk(self._rows, self._places[start:stop][self._blocks.chunk(number)])

    def done(self, number: int) -> None:
        """Do nothing, because the arrays belong to the user."""

    def whole(self) -> EpochPlan:
        """Return all chunks."""
        order, starts = self._blocks.whole()
        return EpochPlan(self._rows, self._places[order], starts)


class OrderedEpoch:
    """Epoch over all rows in stored order."""

    def __init__(self, stored: StoredRows, extents: ChunkExtents) -> None:
        self._stored, self._extents = stored, extents

    def __len__(self) -> int:
        return len(self._extents)

    def __getitem__(self, number: int) -> Chunk:
        start, stop = self._extents[number]
        if number + 1 < len(self):
            self._stored.ahead(*self._extents[number + 1])
        return Chunk(self._stored.read(start, stop), row_numbers(0, stop - start))

    def done(self, number: int) -> None:
        """Release the memory of this chunk."""
        self._stored.release(*self._extents[number])

    def whole(self) -> EpochPlan | None:
        """Return all chunks if the rows are in memory, else None."""
        rows, extents = self._stored.everything(), self._extents
        if rows is None:
            return None
        bounds = np.minimum(extents.first + extents.size * np.arange(len(extents) + 1), extents.last)
        return EpochPlan(rows, row_numbers(extents.first, extents.last), bounds - extents.first)


class ListedEpoch:
    """Epoch over rows in memory in the order of a list of row numbers."""

    def __init__(self, rows: CSRRows, order: Array | RandomOrder, size: int) -> None:
        self._rows, self._order, self._extents = rows, order, ChunkExtents(0, len(order), size)

    def __len__(self) -> int:
        return len(self._extents)

    def __getitem__(self, number: int) -> Chunk:
        start, stop = self._extents[number]
        return Chunk(self._rows, self._order[start:stop])

    def done(self, number: int) -> None:
        """Do nothing, because the arrays belong to the user."""

    def whole(self) -> EpochPlan:
        """Return all chunks."""
        bounds = np.minimum(self._extents.size * np.arange(len(self) + 1), len(self._order))
        return EpochPlan(self._rows, self._order, bounds)


@compiled
def _fill_in_blocks(order: Array, starts: Array, firsts: Array, seed: np.uint64, number: int) -> None:
    """Write the row numbers of chunks to ``order``, with the blocks of each chunk in random order.

    Chunk ``c`` of ``starts`` has the rows from ``firsts[c]`` on, and its number in the epoch is ``number + c``. The
    random numbers of a chunk depend on the seed and on its number alone. Its order is therefore the same whether the
    function writes one chunk or all chunks.
    """
    longest = 0
    for chunk in range(firsts.size):
        longest = max(longest, starts[chunk + 1] - starts[chunk])
    blocks, at = np.empty((longest + BLOCK_ROWS - 1) // BLOCK_ROWS, np.int64), np.uint64(0)
    for chunk in range(firsts.size):
        rows = starts[chunk + 1] - starts[chunk]
        count = (rows + BLOCK_ROWS - 1) // BLOCK_ROWS
        for k in range(count):
            blocks[k] = k
        # The next four lines compute the same as ``hogwild.data.shuffle.mixed``.
        state = seed + np.uint64(0x9E3779B97F4A7C15) + np.uint64(number + chunk)
        state = (state ^ (state >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        state = (state ^ (state >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        state = state ^ (state >> np.uint64(33))
        for k in range(count - 1, -1, -1):
            state += np.uint64(0x9E3779B97F4A7C15)  # Step of SplitMix64 (Steele et al. 2014).
            bits = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            other = np.int64((bits ^ (bits >> np.uint64(31))) % np.uint64(k + 1))
            chosen, blocks[other] = blocks[other] * BLOCK_ROWS, blocks[k]
            for row in range(chosen, min(chosen + BLOCK_ROWS, rows)):
                order[at] = firsts[chunk] + row
                at += np.uint64(1)
