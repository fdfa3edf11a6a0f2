"""Rows that epochs draw with replacement, all alike or by weight."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from making import fake_file, random_rows, reader_of, visited

import hogwild.data
from hogwild.data import in_memory
from hogwild.data.chunks import ChunkExtents, DrawnBlocks, RowDraws
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.packing.pack import pack
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.data.sampling import (
    LabelSkew,
    Replacement,
    Split,
    Weighted,
    batch_sampling,
    feature_visits,
    row_sampling,
    row_weights,
)
from hogwild.data.subsample import narrowed, subsample
from hogwild.errors import DataError, ParameterError

ROWS, EPOCHS = 600, 60
CHANCES = np.random.default_rng(1).uniform(0.2, 3.0, ROWS)
WEIGHTS = {"all alike": None, "by weight": CHANCES}


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A folder of several chunks, whose labels are the numbers of the rows."""
    folder = tmp_path_factory.mktemp("drawn")
    rows = random_rows(3, 9_000, 40)
    return pack([fake_file(folder)], folder / "out", readers=[reader_of(rows)])._stored.folder


def chi_square(labels, expected):
    """The distance of counts from those expected, in its own standard deviations: about 0 for independent draws."""
    counts = np.bincount(labels.astype(int), minlength=len(expected))
    assert counts.sum() == round(expected.sum())
    freedom = len(expected) - 1
    return (((counts - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom)


@pytest.mark.parametrize("chances", WEIGHTS.values(), ids=WEIGHTS)
def test_the_counts_of_rows_are_those_of_independent_draws(chances):
    data = InMemoryDataset(random_rows(3, ROWS), shuffled=False).drawn(RowDraws(chances))
    epochs = [visited(data.epoch(7, number)) for number in range(EPOCHS)]
    assert {len(epoch) for epoch in epochs} == {ROWS}
    expected = np.full(ROWS, 1.0) if chances is None else chances / chances.mean()
    assert abs(chi_square(np.concatenate(epochs), EPOCHS * expected)) < 3
    # Rows that were visited once in every epoch would come too near to what is expected.
    once = np.concatenate([visited(InMemoryDataset(random_rows(3, ROWS), shuffled=False).epoch(7, 0))] * EPOCHS)
    assert chi_square(once, np.full(ROWS, float(EPOCHS))) < -15


@pytest.mark.parametrize("chances", WEIGHTS.values(), ids=WEIGHTS)
def test_an_epoch_depends_on_its_seed_and_number_alone(chances):
    data = InMemoryDataset(random_rows(3, ROWS), shuffled=False).drawn(RowDraws(chances))
    other = InMemoryDataset(random_rows(3, ROWS), shuffled=False).drawn(RowDraws(chances))
    assert np.array_equal(visited(data.epoch(1, 2)), visited(other.epoch(1, 2)))
    streams = {tuple(visited(data.epoch(*which))) for which in ((1, 2), (1, 3), (2, 2))}
    assert len(streams) == 3
    plain = InMemoryDataset(random_rows(3, ROWS), shuffled=False)
    assert data.epoch(0, 0)[0].order.dtype == plain.epoch(0, 0)[0].order.dtype  # kernels are compiled for this type
    whole = data.epoch(1, 2).whole()
    assert np.array_equal(whole.rows.labels[whole.order], visited(data.epoch(1, 2)))


def test_draws_from_a_part_are_rows_of_the_part(monkeypatch):
    monkeypatch.setattr(in_memory, "_NEAR", 0)
    data = InMemoryDataset(random_rows(3, 9_000, 8, weighted=True), shuffled=False)
    part = data.split(0.5, seed=1)[0]
    assert part.laid_out(0, 9) is not None
    chances = np.arange(1.0, part.n_rows + 1)
    for draws in (RowDraws(), RowDraws(chances)):
        drawn = part.drawn(draws)
        assert drawn.n_rows == part.n_rows
        assert set(visited(drawn.epoch(0, 0))) < set(part.labels())
        assert drawn.laid_out(0, 9) is None  # a copy in the order of one permutation would not help
    own = part.rows.weights[part.ids]
    np.testing.assert_allclose(drawn.rows.weights[part.ids], own * chances.mean() / chances, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_make_up_for_how_often_a_row_is_drawn(weighted):
    data = InMemoryDataset(random_rows(3, ROWS, weighted=weighted), shuffled=False)
    drawn = Weighted(CHANCES).rows(data)
    own = data.rows.weights if weighted else np.ones(ROWS)
    np.testing.assert_allclose(CHANCES / CHANCES.sum() * drawn.rows.weights, own / ROWS, rtol=1e-5)
    assert data.rows.weights.size == (ROWS if weighted else 0)  # the data itself stays as it is


def test_rows_drawn_by_their_own_weights_weigh_alike():
    data = InMemoryDataset(random_rows(3, ROWS, weighted=True), shuffled=False)
    drawn = Weighted().rows(data)
    np.testing.assert_allclose(drawn.rows.weights, np.full(ROWS, data.rows.weights.mean()), rtol=1e-5)
    weightless = InMemoryDataset(random_rows(3, ROWS), shuffled=False)
    assert row_weights(weightless) is None
    with pytest.raises(ParameterError, match="have no weights of their own"):
        Weighted().rows(weightless)


def test_a_row_of_weight_zero_is_never_drawn_and_may_be_only_where_it_does_not_count():
    rows = random_rows(3, 50, weighted=True)
    rows.weights[[0, 20, 49]] = 0
    data = InMemoryDataset(rows, shuffled=False)
    labels = np.concatenate([visited(Weighted().rows(data).epoch(0, number)) for number in range(40)])
    assert set(labels) == {*range(50)} - {0, 20, 49}
    chances = np.ones(50)
    chances[20] = 0
    assert 20.0 not in visited(Weighted(chances).rows(data).epoch(0, 0))
    chances[21] = 0
    with pytest.raises(ParameterError, match="would never draw row 21"):
        Weighted(chances).rows(data)


@pytest.mark.parametrize("chances", WEIGHTS.values(), ids=WEIGHTS)
def test_chunks_on_disk_are_drawn_from_as_if_at_once(chances):
    extents, labels = ChunkExtents(100, 100 + ROWS, 64), []
    for number in range(EPOCHS):
        blocks = DrawnBlocks(extents, RowDraws(chances), 5, number)
        assert sorted(blocks.extent(chunk) for chunk in range(len(blocks))) == [extents[k] for k in range(len(extents))]
        order, starts = blocks.whole()
        for chunk in range(len(blocks)):
            some = blocks.chunk(chunk) + np.int64(blocks.extent(chunk)[0])
            assert np.array_equal(order[starts[chunk] : starts[chunk + 1]], some)
        assert len(order) == ROWS
        labels.append(order - np.int64(100))
    expected = np.full(ROWS, 1.0) if chances is None else chances / chances.mean()
    assert abs(chi_square(np.concatenate(labels), EPOCHS * expected)) < 3


def test_a_packed_folder(packed):
    """Each chunk is read once, in memory and larger than that, here and where it is sent."""
    chances = np.random.default_rng(0).uniform(0.5, 2.0, 9_000)
    for memory in (None, 1):
        data = PackedDataset(packed, memory=memory)
        drawn = Weighted(chances).rows(data)
        assert drawn.bounded == (memory == 1)
        epoch = drawn.epoch(3, 1)
        assert len(epoch) == len(data.epoch(3, 1)) > 1
        found = visited(epoch)
        assert len(found) == 9_000 != len(set(found))
        stored = dict(zip(data.labels(), chances.mean() / chances, strict=True))
        chunk = epoch[1]
        wanted = [stored[label] for label in chunk.rows.labels]
        np.testing.assert_allclose(chunk.rows.weights, wanted, rtol=1e-6)
        again = pickle.loads(pickle.dumps(drawn))
        assert np.array_equal(visited(again.epoch(3, 1)), found)
        assert not data.epoch(3, 1)[0].rows.weights.size
    in_memory_rows = Weighted(chances).rows(PackedDataset(packed)).at_once()
    whole = in_memory_rows.epoch(3, 1).whole()
    assert len(whole.order) == 9_000 != len(np.unique(whole.order))
    uniform = Replacement().rows(PackedDataset(packed))
    assert len(set(visited(uniform.epoch(0, 0)))) == pytest.approx(9_000 * (1 - np.exp(-1)), rel=0.03)


def test_the_expected_visits_of_features():
    rows = random_rows(3, ROWS, 20)
    for data in (InMemoryDataset(rows, shuffled=False), InMemoryDataset(rows, shuffled=False).split(0.3, 0)[0]):
        chances = CHANCES[: data.n_rows]
        expected = np.zeros(20)
        numbers = np.arange(ROWS) if data.ids is None else data.ids
        for chance, row in zip(chances / chances.mean(), numbers.astype(int), strict=True):
            expected[rows.indices[rows.indptr[row] : rows.indptr[row + 1]]] += chance
        np.testing.assert_allclose(feature_visits(data, chances), expected)
        np.testing.assert_allclose(feature_visits(data, np.full(data.n_rows, 7.0)), data.frequencies())
    dense = InMemoryDataset(random_rows(3, 30, 4, "dense"), shuffled=False)
    np.testing.assert_allclose(feature_visits(dense, CHANCES[:30]), [30.0] * 4)


def test_a_sample_of_rows_drawn_by_weight_has_their_weights():
    data = InMemoryDataset(random_rows(3, ROWS), shuffled=False)
    assert Replacement().for_trials(data) is Split().for_trials(data) is data
    few = subsample(Weighted(CHANCES).for_trials(data), 50)
    factors = CHANCES.mean() / CHANCES
    np.testing.assert_allclose(few.rows.weights, factors[few.labels().astype(int)], rtol=1e-6)


@pytest.mark.parametrize("weights", ["abc", [[1.0]], [1.0, -1.0], [1.0, np.nan], [np.inf, 1.0], [0.0, 0.0], []])
def test_weights_that_cannot_be(weights):
    with pytest.raises(ParameterError, match="'weights' parameter"):
        Weighted(weights)


def test_who_draws_how():
    assert row_sampling("replacement") == Replacement()
    assert repr(row_sampling("weighted")) == "Weighted()"
    assert batch_sampling("label-skew") == LabelSkew()
    assert repr(Weighted([1, 2])) == repr(Weighted([1.0, 2.0])) != repr(Weighted([2, 1]))
    with pytest.raises(ParameterError, match=r"LabelSkew\(skew=1.0\) is for a Module.*'replacement' or Weighted"):
        row_sampling(LabelSkew())
    with pytest.raises(ParameterError, match=r"samples of a batch cannot be weighed\. WeightedRandom"):
        batch_sampling(Weighted([1, 2]))
    data = InMemoryDataset(random_rows(3, 30), shuffled=False)
    with pytest.raises(ParameterError, match=r"for each of the 30 rows of arrays\. Got 2"):
        Weighted([1, 2]).rows(data)


def test_fields_stay_with_copies_of_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(in_memory, "_NEAR", 0)
    path = tmp_path / "some.ffm"
    path.write_text("".join(f"{i % 2} 3:{i % 7}:1 8:{5 + i % 2}:1\n" for i in range(4_200)) + "1 3:99:1 8:5:1\n")
    data = hogwild.data.open(path, shuffle=False)
    assert data.table is not None
    assert len(data.table) == data.n_features == 10
    copies = {"sample": subsample(data, 4_200), "layout": data.laid_out(0, 9), "draws": data.drawn(RowDraws())}
    for copy in copies.values():
        assert copy is not None
        assert copy.table is data.table
    few = narrowed(subsample(data, 100))
    kept = sorted({*subsample(data, 100).rows.indices.tolist()})
    assert few.table is not None
    assert few.n_features == len(few.table) == len(kept) < 10
    assert few.table.keys.tolist() == data.table.keys[kept].tolist()


def test_encoded_labels_of_a_packed_folder_are_counted_as_encoded(tmp_path):
    path = tmp_path / "some.svm"
    path.write_text("".join(f"{i % 3} 1:1\n" for i in range(12)))
    data = pack([path], tmp_path / "out")
    values, counts = data.label_counts()
    assert (values.tolist(), counts.tolist()) == ([0, 1, 2], [4, 4, 4])
    values, counts = data.with_labels(lambda labels: np.where(labels > 0, 1.0, -1.0)).label_counts()
    assert (values.tolist(), counts.tolist()) == ([-1, 1], [4, 8])


class Elsewhere:
    """A path that is no ``pathlib.Path``."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return str(self.path)


def test_any_path_is_a_path(tmp_path):
    from hogwild import GraphCut
    from hogwild.data.ratings import open_ratings

    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n")
    (tmp_path / "a.tsv").write_text("1\t2\t3\n")
    (tmp_path / "a.edges").write_text("a b\nb c\n")
    assert hogwild.data.open(Elsewhere(tmp_path / "a.svm")).n_rows == 2
    assert hogwild.data.open([Elsewhere(tmp_path / "a.svm")] * 2).n_rows == 4
    assert open_ratings(Elsewhere(tmp_path / "a.tsv")).n_rows == 1
    assert GraphCut(Elsewhere(tmp_path / "a.edges"), {"a": 0, "c": 1}).graph.nodes == 3
    with pytest.raises(DataError, match="no such file"):
        hogwild.data.open(Elsewhere(tmp_path / "none.svm"))
