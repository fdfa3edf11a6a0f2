"""Runs by messages on a packed folder that is larger than memory: each worker reads its own part of it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from hogwild import Gossip, Linear, Local, LocalSGD, ParameterServer, minimise
from hogwild.data.generate import kind
from hogwild.data.packing.pack import pack
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.errors import ParameterError
from hogwild.training.row_order import StreamedOrder, order_of

ROWS = 5_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A packed folder."""
    parent = tmp_path_factory.mktemp("packed")
    rows = kind("rcv1", rows=ROWS, seed=3).rows
    with (parent / "rows.svm").open("w") as out:
        for number in range(ROWS):
            first, last = rows.indptr[number], rows.indptr[number + 1]
            pairs = zip(rows.indices[first:last], rows.values[first:last], strict=True)
            out.write(f"{rows.labels[number]:g} " + " ".join(f"{i + 1}:{v:.6g}" for i, v in pairs) + "\n")
    pack([parent / "rows.svm"], parent / "rows.packed")
    return parent / "rows.packed"


@pytest.fixture
def streamed(folder):
    """The folder as if it were larger than memory."""
    data = PackedDataset(folder)
    data._stored.bounded = True
    return data


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("shuffle", [True, False])
def test_the_shards_of_an_epoch_have_each_row_once(streamed, shards, shuffle):
    order = order_of(streamed, 5, shuffle, draws=False)
    assert isinstance(order, StreamedOrder)
    sizes = [order.size(shard, shards) for shard in range(shards)]
    assert sum(sizes) == ROWS
    for epoch in (0, 1):
        found = []
        for shard, size in enumerate(sizes):
            place = 0
            while place < size:
                chunk = order.chunk(shard, shards, epoch, place, 77)
                assert 1 <= len(chunk.order) <= 77
                starts = chunk.rows.indptr[chunk.order]
                found += [float(chunk.rows.values[start]) for start in starts]
                place += len(chunk.order)
        whole = streamed.in_order()
        all_of_them = [whole[number] for number in range(len(whole))]
        usual = [float(chunk.rows.values[start]) for chunk in all_of_them for start in chunk.rows.indptr[:-1]]
        assert sorted(found) == sorted(usual)


def test_a_shard_can_be_read_from_any_place(streamed):
    once, again = (order_of(streamed, 5, True, draws=False) for _ in range(2))
    for place in (0, 900, 2_000):
        once.chunk(0, 2, 1, place, 10)
    for epoch, place in ((1, 2_000), (1, 3), (0, 2_400), (2, 1)):
        ours, theirs = once.chunk(0, 2, epoch, place, 5), again.chunk(0, 2, epoch, place, 5)
        np.testing.assert_array_equal(ours.order, theirs.order)
        np.testing.assert_array_equal(ours.rows.indices, theirs.rows.indices)


@pytest.mark.parametrize("strategy", [ParameterServer(2), LocalSGD(2), Gossip(workers=2)], ids=repr)
def test_runs_come_as_far_as_those_with_all_rows_in_memory(folder, streamed, strategy):
    def objective(data):
        problem = Linear(data, l2=1e-4)
        return minimise(problem, "adagrad", 0.5, strategy=strategy, runtime=Local(), budget=4).objective

    assert objective(streamed) == pytest.approx(objective(PackedDataset(folder)), rel=0.05)


def test_another_process_reads_the_rows_in_the_same_way(streamed):
    assert pickle.loads(pickle.dumps(streamed)).bounded


def test_drawing_rows_from_all_of_them_needs_memory(streamed):
    problem = Linear(streamed, l2=1e-4, sampling="replacement")
    with pytest.raises(ParameterError, match="is larger than memory, and every worker draws from all of it"):
        minimise(problem, "adagrad", 0.5, strategy=ParameterServer(2), runtime=Local(), budget=1)
