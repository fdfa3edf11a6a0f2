"""The shards of an epoch: every row is in one of them, and not in the same one in every epoch."""

import numpy as np
import pytest

from hogwild import SGD, Constant, Linear
from hogwild.data import open as open_data
from hogwild.messaging.protocol import Train
from hogwild.training.row_trainer import RowSource

ROWS = 2000


@pytest.fixture(scope="module", params=["file", "arrays"])
def problem(request, tmp_path_factory):
    X, y = np.random.default_rng(0).standard_normal((ROWS, 3)), np.arange(ROWS) % 2
    if request.param == "arrays":
        return Linear((X, y))
    path = tmp_path_factory.mktemp("shards") / "some.svm"
    path.write_text("".join(f"{y[i]} 1:{i + 1}\n" for i in range(ROWS)))
    return Linear(open_data(path))


def drawn(rows, shard, shards, epoch):
    size = len(range(shard, ROWS, shards))
    chunks = rows.chunks(Train(np.zeros(1), (shard, shards), epoch * size, size, 0, 1))
    return [int(row) for chunk in chunks for row in chunk.order]


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("shards", [1, 3, 4, 16])
def test_every_row_is_in_one_shard(problem, shards, shuffle):
    rows = RowSource(problem, SGD(), Constant(0.1), 5, 0, shards, shuffle=shuffle)
    for epoch in range(2):
        assert sorted(row for shard in range(shards) for row in drawn(rows, shard, shards, epoch)) == list(range(ROWS))


@pytest.mark.parametrize("shards", [3, 4, 16])
def test_no_worker_has_the_same_rows_in_every_epoch(problem, shards):
    """Else the rows of one that is always slow would hardly count."""
    rows = RowSource(problem, SGD(), Constant(0.1), 5, 0, shards)
    first, *later = ([set(drawn(rows, shard, shards, epoch)) for shard in range(shards)] for epoch in range(4))
    shared = np.mean([[len(first[s] & other[s]) / len(first[s]) for s in range(shards)] for other in later])
    assert shared < 0.5 / shards + 0.3
