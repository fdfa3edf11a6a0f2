from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import as_dicts, random_rows, visited, walked

from hogwild.data import statistics
from hogwild.data.chunks import rows_per_chunk
from hogwild.data.dataset import BLOCK_ROWS
from hogwild.data.in_memory import InMemoryDataset
from hogwild.errors import DataError, ParameterError

LAYOUTS = ["sparse", "binary", "dense"]
BOTH = pytest.mark.parametrize("shuffled", [True, False])


def long_data(shuffled, seed=0):
    """Enough rows for several chunks."""
    return InMemoryDataset(random_rows(seed, 9_000, 40), shuffled=shuffled)


@BOTH
@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=15, deadline=None)
@given(n_rows=st.integers(1, 400), seed=st.integers(0, 2**31))
def test_an_epoch_visits_each_row_once(shuffled, layout, n_rows, seed):
    rows = random_rows(seed, n_rows, 6, layout, weighted=bool(seed % 2))
    data = InMemoryDataset(rows, shuffled=shuffled)
    assert walked(data.epoch(seed, 3)) == as_dicts(rows) == walked(data.in_order())


@BOTH
def test_epochs_differ_by_seed_and_number_and_are_repeatable(shuffled):
    data = long_data(shuffled)
    orders = [visited(data.epoch(*which)) for which in [(0, 0), (0, 1), (1, 0), (0, 0)]]
    assert np.array_equal(orders[0], orders[3])
    for other in orders[1:3]:
        assert not np.array_equal(orders[0], other)
    assert len(data.epoch(0, 0)) > 1


def test_a_chunk_can_be_had_alone_and_from_many_threads():
    data = long_data(shuffled=True)
    walk = data.epoch(5, 2)
    expected = [walk[number].order for number in range(len(walk))]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: data.epoch(5, 2)[number].order, range(len(walk))))
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def test_shuffled_rows_are_walked_in_whole_blocks():
    data = long_data(shuffled=True)
    walk = data.epoch(0, 0)
    order = max((walk[number].order for number in range(len(walk))), key=len)
    assert order.dtype == np.uint32
    assert len(order) == rows_per_chunk(data.n_rows, data.nonzeros)
    blocks = order.astype(np.int64).reshape(-1, BLOCK_ROWS)
    assert (np.diff(blocks, axis=1) == 1).all()
    assert not (np.diff(blocks[:, 0]) > 0).all()


@given(st.integers(1, 10**9), st.floats(0, 5_000))
def test_chunks_are_whole_blocks_of_bounded_size(n_rows, per_row):
    nonzeros = int(n_rows * per_row)
    size = rows_per_chunk(n_rows, nonzeros)
    assert size % BLOCK_ROWS == 0
    assert size == BLOCK_ROWS or size * nonzeros / n_rows <= 2**21 + 1


def test_chunks_beyond_the_end_are_refused():
    for walk in (long_data(True).epoch(0, 0), long_data(False).epoch(0, 0), long_data(True).in_order()):
        with pytest.raises(IndexError):
            walk[len(walk)]


@BOTH
def test_a_split_has_every_row_on_one_side(shuffled):
    data = InMemoryDataset(random_rows(1, 500, weighted=True), shuffled=shuffled)
    rest, aside = data.split(0.2, seed=3)
    assert (rest.n_rows, aside.n_rows) == (400, 100)
    assert rest.nonzeros + aside.nonzeros == data.nonzeros
    sides = walked(rest.epoch(0, 0)), walked(aside.in_order())
    assert {**sides[0], **sides[1]} == as_dicts(data.rows)
    assert np.array_equal(rest.frequencies() + aside.frequencies(), data.frequencies())
    assert set(rest.labels()) == set(sides[0])
    third, _ = rest.split(0.5, seed=4)
    assert walked(third.epoch(0, 0)).keys() <= sides[0].keys()


def test_rows_that_were_not_shuffled_are_split_at_random():
    data = InMemoryDataset(random_rows(1, 500), shuffled=False)
    _, aside = data.split(0.2, seed=3)
    _, other = data.split(0.2, seed=4)
    assert not np.array_equal(aside.labels(), other.labels())
    assert aside.labels().min() < 250 < aside.labels().max()


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, float("nan")])
def test_a_fraction_that_is_none_is_refused(fraction):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        long_data(True).split(fraction, 0)


def test_one_row_cannot_be_split():
    with pytest.raises(DataError, match="one row"):
        InMemoryDataset(random_rows(0, 1), shuffled=True).split(0.5, 0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("threads", [1, 3])
def test_frequencies_count_rows(layout, threads, monkeypatch):
    monkeypatch.setattr(statistics, "usable_cores", lambda: threads)
    rows = random_rows(2, 3_000, 30, layout)
    data = InMemoryDataset(rows, shuffled=True)
    expected = np.full(30, 3_000) if layout == "dense" else np.bincount(rows.indices, minlength=30)
    assert np.array_equal(data.frequencies(), expected)
    assert data.frequencies().dtype == np.int64
    threaded = statistics.feature_counts(data.in_order(), 30, 10**9)
    assert np.array_equal(threaded, expected)


@BOTH
def test_labels_are_encoded_for_these_rows_only(shuffled):
    rest, aside = InMemoryDataset(random_rows(1, 100), shuffled=shuffled).split(0.3, seed=0)
    known = set(rest.labels())

    def encode(labels):
        assert set(labels) <= known
        return (labels * 2 + 1).astype(np.float32)

    encoded = rest.with_labels(encode)
    assert np.array_equal(encoded.labels(), rest.labels() * 2 + 1)
    assert encoded.epoch(0, 0)[0].rows.labels.dtype == np.float32
    assert encoded.labels().dtype == np.float64
    assert set(rest.labels()) == known
    assert aside.n_rows == 30


def test_fingerprints_tell_data_apart():
    same = [InMemoryDataset(random_rows(1), shuffled=True).fingerprint for _ in range(2)]
    assert same[0] == same[1]
    others = {
        InMemoryDataset(random_rows(2), shuffled=True).fingerprint,
        InMemoryDataset(random_rows(1)[:100], shuffled=True).fingerprint,
    }
    relabelled = InMemoryDataset(random_rows(1), shuffled=True).with_labels(lambda labels: -labels)
    assert len({same[0], relabelled.fingerprint, *others}) == 4


def test_a_slice_that_does_not_start_at_the_first_entry_counts_right():
    rows = random_rows(3, 300)[100:200]
    data = InMemoryDataset(rows, shuffled=True)
    start, stop = rows.indptr[0], rows.indptr[-1]
    assert np.array_equal(data.frequencies(), np.bincount(rows.indices[start:stop], minlength=50))
    assert walked(data.epoch(0, 0)) == as_dicts(rows)


@BOTH
def test_a_whole_epoch_is_its_chunks_one_after_the_other(shuffled):
    data = long_data(shuffled)
    for walk in (data.epoch(1, 2), data.in_order(), data.split(0.3, seed=0)[0].epoch(3, 4)):
        whole = walk.whole()
        assert len(whole.starts) == len(walk) + 1 > 2
        for number in range(len(walk)):
            chunk, part = walk[number], whole.order[whole.starts[number] : whole.starts[number + 1]]
            assert np.array_equal(chunk.rows.labels[chunk.order], whole.rows.labels[part])
            lengths = [np.diff(rows.indptr)[order] for rows, order in ((chunk.rows, chunk.order), (whole.rows, part))]
            assert np.array_equal(*lengths)
