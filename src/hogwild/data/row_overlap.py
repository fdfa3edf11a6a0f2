"""Row overlap rho: the largest share of rows that have a coordinate in common with one row.

The definition is that of Niu et al. 2011 (arXiv 1106.5730). The share of a row ``e`` is the part of all rows, itself
included, that have a coordinate in common with ``e``. ``rho`` is the largest share. The mean share is the probability
that two random rows have a coordinate in common.

The kernel compares sixty-four rows with all other rows in one pass. A table holds for each feature one bit per row of
the sixty-four. The bitwise or over the features of another row gives the rows that share a coordinate with that row. If
a comparison of all pairs is too expensive, the module compares a sample: the rows that are most likely extreme, and
random rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue
from statistics import NormalDist

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.dataset import Chunk, Dataset, Epoch
from hogwild.jit import compiled
from hogwild.machine import usable_cores

EXACT_WORK = 8 * 10**9  # Largest number of table look-ups for a comparison of all pairs, which takes seconds.
SCANNED_NONZEROS = 2**25  # Number of non-zeros of the data that a sample of rows is compared with.
EXTREME_ROWS = 128  # Number of sampled rows that have the most, and the most frequent, features.
RANDOM_ROWS = 384  # Number of sampled rows that are random. The estimate of the mean share uses only these.
TABLE_BYTES = 2**30  # Bytes of the bit tables of all threads.

Progress = Callable[[int, int], None]  # Callback with (chunks done, chunks in total).


@dataclass(frozen=True, slots=True, eq=False)
class RowOverlap:
    """Shares of rows, exact or estimated.

    ``rho`` lies between ``low`` and ``high``. If ``exact`` is true, all three are equal. Otherwise ``low`` is the share
    of the most extreme row found. This bound is certain if the row was compared with all rows. If the row was compared
    with a sample only, the bound has 95% confidence (Wilson's bound). ``high`` is certain: it is the largest sum, over
    the features of one row, of their frequencies, and no row can overlap with more rows than that.
    """

    rho: float
    low: float
    high: float
    exact: bool
    mean: float
    mean_error: float  # Half the width of the 95% confidence interval of the mean, or zero if exact.
    shares: Array = field(repr=False)  # Shares of the rows that enter ``mean``, float64.
    compared: int  # Number of rows that were compared.
    scanned: int  # Number of rows that each of them was compared with.


def row_overlap(
    dataset: Dataset, *, seed: int = 0, work: int = EXACT_WORK, progress: Progress | None = None
) -> RowOverlap:
    """Compute rho and the mean share, exactly if that takes at most ``work`` table look-ups, else from a sample.

    >>> import numpy as np
    >>> from hogwild.data.in_memory import InMemoryDataset
    >>> from hogwild.data.csr import CSRRows, NO_VALUES, NO_WEIGHTS
    >>> rows = CSRRows(np.array([0, 2, 3, 4, 5]), np.array([0, 1, 1, 0, 2], np.uint32), NO_VALUES,
    ...             np.array([1.0, 1.0, -1.0, 1.0]), NO_WEIGHTS, features=3, layout="binary")
    >>> found = row_overlap(InMemoryDataset(rows, shuffled=False, name="example"))
    >>> found.rho, found.exact, found.shares
    (0.75, True, array([0.75, 0.5 , 0.5 , 0.25]))
    """
    first = dataset.in_order()[0].rows
    if first.layout == "dense":
        return _certain(np.ones(1), dataset.n_rows)
    everything = -(-dataset.n_rows // 64) * (dataset.nonzeros + 16 * dataset.n_rows)
    if everything <= work:
        return _exact(dataset, progress)
    return _estimate(dataset, seed, progress)


def _certain(shares: Array, rows: int) -> RowOverlap:
    rho = float(shares.max())
    return RowOverlap(rho, rho, rho, True, float(shares.mean()), 0.0, shares, rows, rows)


def _exact(dataset: Dataset, progress: Progress | None) -> RowOverlap:
    every = [row for chunk in _chunks(dataset) for row in _indices_of(chunk, np.arange(len(chunk.order)))]
    epoch = dataset.in_order()
    counts, _ = _overlap_counts(dataset, every, epoch, range(len(epoch)), progress)
    return _certain(counts / dataset.n_rows, dataset.n_rows)


def _estimate(dataset: Dataset, seed: int, progress: Progress | None) -> RowOverlap:
    extreme, random, high = _choose(dataset, np.random.default_rng(seed))
    # Chunks of a random epoch are a random sample of the rows, in whatever order the rows are stored.
    epoch = dataset.epoch(seed, 0)
    part = range(max(1, round(len(epoch) * min(1.0, SCANNED_NONZEROS / max(1, dataset.nonzeros)))))
    counts, scanned = _overlap_counts(dataset, extreme + random, epoch, part, progress)
    complete = scanned == dataset.n_rows
    delta = float(dataset.frequencies().max(initial=0)) / dataset.n_rows
    largest = int(counts.max())
    rho = min(max(largest / scanned, delta), high)
    # The largest of many shares is selected, so their confidence bounds must hold simultaneously (Bonferroni).
    z = NormalDist().inv_cdf(1 - 0.025 / len(counts))
    low = rho if complete else min(rho, max(delta, wilson(largest, scanned, z)[0]))
    shares = counts[len(extreme) :] / scanned
    spread = float(shares.std(ddof=1)) if len(shares) > 1 else 1.0
    # A share varies from compared row to compared row. By symmetry it varies as much with the rows that were scanned.
    error = 1.96 * spread * (1 / len(shares) + (0 if complete else 1 / scanned)) ** 0.5
    return RowOverlap(rho, low, high, low == high, float(shares.mean()), error, shares, len(counts), scanned)


def _choose(dataset: Dataset, rng: np.random.Generator) -> tuple[list[Array], list[Array], float]:
    """Choose the rows most likely to overlap with many rows, and random rows; also compute the upper bound of rho."""
    frequencies = dataset.frequencies()
    rarities = np.log1p(-np.minimum(frequencies / dataset.n_rows, 1 - 1e-9)).astype(np.float32)
    wanted = np.sort(rng.choice(dataset.n_rows, min(RANDOM_ROWS, dataset.n_rows), replace=False))
    best: list[tuple[float, int, Array]] = []
    random: list[Array] = []
    high, at = 0, 0
    for chunk in _chunks(dataset):
        bounds, misses = np.empty(len(chunk.order), np.int64), np.empty(len(chunk.order), np.float32)
        score_rows(chunk.rows.indptr, chunk.rows.indices, chunk.order, frequencies, rarities, bounds, misses)
        high = max(high, int(bounds.max(initial=0)))
        top = np.argsort(misses, kind="stable")[:EXTREME_ROWS]
        for place, row in zip(top, _indices_of(chunk, top), strict=True):
            entry = (-float(misses[place]), -(at + int(place)), row)
            if len(best) < EXTREME_ROWS:
                heapq.heappush(best, entry)
            elif entry > best[0]:
                heapq.heapreplace(best, entry)
        here = wanted[(wanted >= at) & (wanted < at + len(chunk.order))] - at
        random += _indices_of(chunk, here)
        at += len(chunk.order)
    return [row for _, _, row in best], random, min(high, dataset.n_rows) / dataset.n_rows


def _overlap_counts(
    dataset: Dataset, chosen: list[Array], epoch: Epoch, numbers: range, progress: Progress | None
) -> tuple[Array, int]:
    """Count the rows in the given chunks that overlap with each chosen row; also return the number of rows scanned."""
    bounds = np.cumsum([0, *map(len, chosen)])
    indices = np.concatenate(chosen)
    threads = max(1, min(usable_cores(), TABLE_BYTES // (8 * dataset.n_features)))
    tables: SimpleQueue[Array] = SimpleQueue()
    for _ in range(threads):
        tables.put(np.zeros(dataset.n_features, np.uint64))

    def count(number: int) -> tuple[Array, int]:
        chunk, table = epoch[number], tables.get()
        counts = np.zeros(len(chosen), np.int64)
        count_overlaps(bounds, indices, chunk.rows.indptr, chunk.rows.indices, chunk.order, table, counts)
        tables.put(table)
        epoch.done(number)
        return counts, len(chunk.order)

    total, scanned = np.zeros(len(chosen), np.int64), 0
    with ThreadPoolExecutor(threads) as pool:
        for done, (counts, rows) in enumerate(pool.map(count, numbers), 1):
            total += counts
            scanned += rows
            if progress is not None:
                progress(done, len(numbers))
    return total, scanned


def _chunks(dataset: Dataset) -> Iterator[Chunk]:
    epoch = dataset.in_order()
    for number in range(len(epoch)):
        yield epoch[number]
        epoch.done(number)


def _indices_of(chunk: Chunk, places: Array) -> list[Array]:
    """Copy the feature numbers of rows of a chunk, because the memory of the chunk may be released."""
    starts, stops = chunk.rows.indptr[chunk.order[places]], chunk.rows.indptr[chunk.order[places] + 1]
    return [chunk.rows.indices[start:stop].copy() for start, stop in zip(starts, stops, strict=True)]


def wilson(hits: int, tries: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's confidence interval of a share of which ``hits`` in ``tries`` were observed; 95% for z = 1.96.

    >>> wilson(0, 100)
    (0.0, 0.037)
    >>> wilson(50, 100)
    (0.404, 0.596)
    """
    share, z2 = hits / tries, z * z
    middle = (share + z2 / (2 * tries)) / (1 + z2 / tries)
    half = z / (1 + z2 / tries) * (share * (1 - share) / tries + z2 / (4 * tries * tries)) ** 0.5
    return (0.0 if hits == 0 else middle - half), (1.0 if hits == tries else middle + half)


@compiled
def score_rows(
    indptr: Array, indices: Array, order: Array, frequencies: Array, rarities: Array, bounds: Array, misses: Array
) -> None:
    """Compute two scores of each row, into ``bounds`` and ``misses``.

    ``bounds`` is the sum of the frequencies of the features of a row. ``misses`` is the logarithm of the probability
    that a random row has none of these features, if features were independent.
    """
    for place in range(order.size):
        bound, miss = np.int64(0), np.float32(0)
        for k in range(indptr[order[place]], indptr[order[place] + 1]):
            bound += frequencies[indices[np.uint64(k)]]
            miss += rarities[indices[np.uint64(k)]]
        bounds[place], misses[place] = bound, miss


@compiled
def count_overlaps(
    bounds: Array, chosen: Array, indptr: Array, indices: Array, order: Array, table: Array, counts: Array
) -> None:
    """Add to ``counts`` the number of rows in ``order`` that share an index with each chosen row.

    ``table`` has one cell for each feature. All cells are zero before and after the call.
    """
    for start in range(0, counts.size, 64):
        stop = min(start + 64, counts.size)
        all_bits = np.uint64(0)
        for e in range(start, stop):
            bit = np.uint64(1) << np.uint64(e - start)
            for k in range(bounds[e], bounds[e + 1]):
                table[chosen[k]] |= bit
                all_bits |= bit
        overlap_all = 0
        overlaps = np.zeros(64, np.int64)
        for place in range(order.size):
            overlap_bits = np.uint64(0)
            for k in range(indptr[order[place]], indptr[order[place] + 1]):
                overlap_bits |= table[indices[np.uint64(k)]]
                if overlap_bits == all_bits:
                    break
            if overlap_bits == all_bits:
                overlap_all += 1
            else:
                for b in range(64):
                    overlaps[b] += np.int64((overlap_bits >> np.uint64(b)) & np.uint64(1))
        for e in range(start, stop):
            bit = np.uint64(1) << np.uint64(e - start)
            counts[e] += overlaps[e - start] + (overlap_all if all_bits & bit else 0)
            for k in range(bounds[e], bounds[e + 1]):
                table[chosen[k]] = 0
