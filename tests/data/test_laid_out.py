"""Rows of arrays that are copied into the order in which epochs visit them."""

import numpy as np
import pytest
from making import as_dicts, random_rows, visited, walked

from hogwild.data import in_memory
from hogwild.data.chunks import ChunkExtents, RowBlocks
from hogwild.data.dataset import BLOCK_ROWS
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.shuffle import gather, gather_most, mixed

ROWS = 9_000


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    """A machine on which the order of a few rows matters already."""
    monkeypatch.setattr(in_memory, "_NEAR", 0)


def entries(rows, order):
    """The rows of an order as they are, one after the other."""
    return list(as_dicts(rows, order).items())


@pytest.mark.parametrize("layout", ["sparse", "binary", "dense"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("part", [False, True])
def test_a_copy_has_the_same_epochs(layout, weighted, part):
    data = InMemoryDataset(random_rows(3, ROWS, 8, layout, weighted), shuffled=False)
    data = data.split(0.2, seed=1)[0] if part else data
    copy = data.laid_out(seed=5, epochs=2)
    assert (copy.n_rows, copy.n_features, copy.nonzeros) == (data.n_rows, data.n_features, data.nonzeros)
    for number in (0, 7):
        ours, theirs = data.epoch(5, number), copy.epoch(5, number)
        assert len(ours) == len(theirs) > 1
        for chunk in range(len(ours)):
            one, other = ours[chunk], theirs[chunk]
            assert one.order.dtype == other.order.dtype
            assert entries(one.rows, one.order) == entries(other.rows, other.order)
        one, other = ours.whole(), theirs.whole()
        assert np.array_equal(one.starts, other.starts)
        assert one.order.dtype == other.order.dtype
        assert np.array_equal(one.rows.labels[one.order], other.rows.labels[other.order])


def test_its_rows_lie_in_the_order_in_which_they_are_visited():
    data = InMemoryDataset(random_rows(3, ROWS, 8), shuffled=False)
    walk = data.laid_out(seed=0, epochs=2).epoch(0, 0)
    order = walk[0].order.astype(np.int64)
    assert (np.diff(order.reshape(-1, BLOCK_ROWS), axis=1) == 1).all()
    assert not (np.diff(walk[0].rows.labels) > 0).all()


def test_the_data_itself_stays_as_it_is():
    data = InMemoryDataset(random_rows(3, ROWS, 8), shuffled=False)
    before = data.fingerprint
    data.laid_out(seed=0, epochs=2)
    assert InMemoryDataset(data.rows, shuffled=False).fingerprint == before
    assert visited(data.in_order()).tolist() == data.labels().tolist() == list(range(ROWS))


def test_every_epoch_visits_each_row_once_in_an_order_of_its_own():
    rows = random_rows(2, ROWS, 8)
    data = InMemoryDataset(rows, shuffled=False)
    assert walked(data.epoch(1, 2)) == as_dicts(rows)
    orders = [visited(data.epoch(*which)) for which in ((1, 2), (1, 3), (2, 2), (1, 2))]
    assert np.array_equal(orders[0], orders[3])
    assert not np.array_equal(orders[0], orders[1])
    # Blocks stay together from epoch to epoch, but not from seed to seed.
    together = [{frozenset(order[at : at + BLOCK_ROWS]) for at in range(0, 640, BLOCK_ROWS)} for order in orders]
    everywhere = {frozenset(b) for b in _blocks(data, 1)}
    assert together[0] | together[1] <= everywhere
    assert not together[2] & everywhere


def _blocks(data, seed):
    labels = data.laid_out(seed, 2).labels()
    size = data.chunk
    chunks = [labels[at : at + size] for at in range(0, len(labels), size)]
    return [chunk[at : at + BLOCK_ROWS] for chunk in chunks for at in range(0, len(chunk), BLOCK_ROWS)]


def test_where_nothing_is_copied(monkeypatch):
    rows = random_rows(3, ROWS, 8)
    data = InMemoryDataset(rows, shuffled=False)
    assert data.laid_out(0, 2) is not None
    assert data.laid_out(0, 1) is None
    assert InMemoryDataset(rows, shuffled=True).laid_out(0, 9) is None
    assert InMemoryDataset(rows, shuffled=False, order=lambda ids, seed, number: ids).laid_out(0, 9) is None
    assert InMemoryDataset(rows[:4_000], shuffled=False).laid_out(0, 9) is None
    size = sum(a.nbytes for a in (rows.indptr, rows.indices, rows.values, rows.labels))
    monkeypatch.setattr(in_memory, "available_bytes", lambda: 4 * size)
    assert data.laid_out(0, 9) is not None
    monkeypatch.setattr(in_memory, "available_bytes", lambda: 4 * size - 1)
    assert data.laid_out(0, 9) is None
    monkeypatch.undo()
    assert data.laid_out(0, 9) is None  # as few rows as these are in the cache


def test_rows_are_gathered_alike_on_one_core_and_on_all():
    rows = random_rows(1, 500, 20, weighted=True)[100:400]
    order = np.random.default_rng(0).permutation(300)
    one, all_cores = gather(rows, order), gather_most(rows, order.astype(np.uint32))
    for name in ("indptr", "indices", "values", "labels", "weights"):
        assert np.array_equal(getattr(one, name), getattr(all_cores, name))
    assert len(gather_most(rows, order[:0])) == 0


def splitmix(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        bits = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) % 2**64
        bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) % 2**64
        yield bits ^ bits >> 31


@pytest.mark.parametrize(("rows", "size"), [(1_000, 192), (64, 64), (70, 128), (1, 64)])
@pytest.mark.parametrize("seed", [0, 2**63 + 7])
def test_the_order_of_blocks_is_that_of_fisher_and_yates(rows, size, seed):
    blocks = RowBlocks(ChunkExtents(0, rows, size), seed, 4)
    order, starts = blocks.whole()
    for chunk in range(len(blocks)):
        start, stop = blocks.extent(chunk)
        left, expected = [list(range(at, min(at + 64, stop))) for at in range(start, stop, 64)], []
        for random in splitmix(mixed(seed, 4, chunk)):
            other = random % len(left)
            expected += left[other]
            left[other] = left[-1]
            left.pop()
            if not left:
                break
        assert order[starts[chunk] : starts[chunk + 1]].tolist() == expected
        assert (blocks.chunk(chunk) + start).tolist() == expected
