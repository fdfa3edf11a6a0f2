"""Packed folders in shards: the rows are those of one folder, and a machine needs only what it reads."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from making import fake_file, random_rows, reader_of, visited, walked

from hogwild import Hogwild, Linear, Local, LocalSGD, ParameterServer, minimise
from hogwild.data import open as open_data
from hogwild.data.packing.format import write_description
from hogwild.data.packing.pack import pack
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.data.packing.sharded_rows import SHARDS, shard_name
from hogwild.data.subsample import subsample
from hogwild.errors import DataError, ParameterError
from hogwild.rules import SGD
from hogwild.schedules import Constant
from hogwild.training.row_order import local_shard, needed_folders, order_of
from hogwild.training.row_trainer import RowSource, RowTrainer, pack_state

ROWS, FEATURES = 5_003, 40


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[PackedDataset, Path]:
    """The same rows in one folder, and in four shards."""
    folder = tmp_path_factory.mktemp("packed")
    rows = random_rows(3, ROWS, FEATURES, weighted=True)
    whole = pack([fake_file(folder)], folder / "whole", readers=[reader_of(rows)], seed=5)
    pack([fake_file(folder)], folder / "parts", readers=[reader_of(rows)], seed=5, shards=4)
    return whole, folder / "parts"


@pytest.fixture
def parts(packed: tuple[PackedDataset, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(packed[1], tmp_path / "parts"))


def test_shards_have_the_rows_of_one_folder_in_the_same_order(packed: Any) -> None:
    whole, parts = packed[0], PackedDataset(packed[1])
    assert (parts.n_rows, parts.n_features, parts.nonzeros) == (whole.n_rows, whole.n_features, whole.nonzeros)
    assert walked(parts.in_order()) == walked(whole.in_order())
    np.testing.assert_array_equal(parts.frequencies(), whole.frequencies())
    np.testing.assert_array_equal(parts.labels(), whole.labels())
    for mine, other in zip(parts.label_counts(), whole.label_counts(), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert parts.sharded
    assert not whole.sharded
    assert sorted(visited(parts.epoch(1, 2))) == sorted(visited(whole.epoch(1, 2)))


def test_a_part_of_the_rows_is_a_shard(packed: Any) -> None:
    parts = PackedDataset(packed[1])
    for workers in (1, 2, 4):
        for worker in range(workers):
            part = parts.shard(worker, workers)
            _ = walked(part.in_order())
            opened = sorted(part._stored._open)
            assert set(opened) >= set(range(worker * 4 // workers, (worker + 1) * 4 // workers))
    fresh = PackedDataset(packed[1])
    _ = walked(fresh.shard(2, 4).in_order())
    assert sorted(fresh._stored._open) == [2]
    alone = PackedDataset(packed[1] / shard_name(2))
    assert walked(fresh.shard(2, 4).in_order()) == walked(alone.in_order())


def test_a_worker_needs_its_own_shard_alone(parts: Path) -> None:
    for number in (0, 1, 3):
        shutil.rmtree(parts / shard_name(number))
    data = pickle.loads(pickle.dumps(open_data(parts)))
    problem = Linear(data, "squared", l2=1e-3)
    order = order_of(problem.training, seed=0, shuffle=True, draws=False)
    chunk = order.chunk(2, 4, 0, 0, 10_000)
    assert len(chunk.order) == order.size(2, 4) == len(data.shard(2, 4).labels())
    assert problem.kernel is not None
    assert problem._layout == "sparse"
    assert local_shard(problem.training, 4) == (2, 4)
    rows = RowSource(problem, SGD(), Constant(0.1), 1, 0, 4)
    RowTrainer(rows).warm_up(pack_state(problem.start(SGD())))
    with pytest.raises(ParameterError, match="is in shards"):
        order_of(problem.training, seed=0, shuffle=True, draws=True)
    with pytest.raises(DataError, match=r"shard-0001: this shard is not on the machine .* Copy it here"):
        order.chunk(1, 4, 0, 0, 10)
    assert subsample(data, 100).n_rows == 100
    assert data.here().n_rows == data.shard(2, 4).n_rows


def test_a_worker_that_goes_on_for_another_one_reads_its_own_rows_where_it_lacks_theirs(parts: Path) -> None:
    for number in (0, 3):
        shutil.rmtree(parts / shard_name(number))
    problem = Linear(open_data(parts), "squared", l2=1e-3)
    rows = RowSource(problem, SGD(), Constant(0.1), 1, 0, 4)
    assert [rows.of(worker).own for worker in range(4)] == [0, 1, 2, 3]
    order = pickle.loads(pickle.dumps(rows.of(2))).order

    def read(shard: int, epoch: int) -> list[float]:
        found, size = list[float](), order.size(shard, 4)
        while len(found) < size:
            chunk = order.chunk(shard, 4, epoch, len(found), 400)
            found += chunk.rows.labels[chunk.order].tolist()
        return found

    own = sorted(open_data(parts).shard(2, 4).labels())
    for shard in (0, 2, 3):
        assert sorted(read(shard, 0)) == own
        assert sorted(read(shard, 1)) == own
    assert sorted(read(1, 0)) == sorted(open_data(parts).shard(1, 4).labels())
    with pytest.raises(DataError, match=r"shard-0003: this shard is not on the machine"):
        rows.of(3).order.chunk(3, 4, 0, 0, 10)


def test_the_machine_of_a_worker_must_have_its_folders(packed: Any) -> None:
    data = PackedDataset(packed[1])

    def names(worker: int, workers: int) -> list[str]:
        return [folder.name for folder in needed_folders(data, worker, workers)]

    assert [names(worker, 4) for worker in range(4)] == [[shard_name(number)] for number in range(4)]
    assert [names(worker, 2) for worker in range(2)] == [["shard-0000", "shard-0001"], ["shard-0002", "shard-0003"]]
    assert [names(worker, 3) for worker in (0, 2)] == [["shard-0000", "shard-0001"], ["shard-0002", "shard-0003"]]
    assert needed_folders(packed[0], 0, 2) == [packed[1].with_name("whole")]
    assert needed_folders(open_data([[1.0]], [1]), 0, 1) == []


def test_without_any_shard_that_is_said(parts: Path) -> None:
    for number in range(4):
        shutil.rmtree(parts / shard_name(number))
    with pytest.raises(DataError, match="not on the machine"):
        subsample(open_data(parts), 10)


@pytest.mark.parametrize("missing", [None, 3])
@pytest.mark.parametrize("strategy", [ParameterServer(2), LocalSGD(2)], ids=["parameter server", "local sgd"])
def test_runs_by_messages_train_on_shards(parts: Path, strategy: Any, missing: int | None) -> None:
    """The last shard has no rows of the first two thirds, so those train without it."""
    data = open_data(parts).split(1 / 3, 0)[0]
    alone = minimise(Linear(data, "squared", l2=1e-2), strategy=Hogwild(1), budget=5).objective
    if missing is not None:
        shutil.rmtree(parts / shard_name(missing))
    run = minimise(Linear(data, "squared", l2=1e-2), strategy=strategy, budget=5, runtime=Local())
    assert run.objective < 1.05 * alone


@pytest.mark.parametrize("change", ["digest", "rows", "version", "format", "shard", "frequencies"])
def test_damage_is_told(parts: Path, change: str) -> None:
    said = json.loads((parts / SHARDS).read_text())
    if change == "digest":
        said["rows"][0] += 1
    elif change == "frequencies":
        (parts / "frequencies.i64").write_bytes(b"12345678" * FEATURES)
    else:
        del said["digest"]
        if change == "rows":
            said["rows"][0] += 1
        elif change == "shard":
            said["checksums"][0] += 1
        else:
            said[change] = 7
        named = said.pop("format"), said.pop("version")
        write_description(parts / SHARDS, *named, said)
        said = json.loads((parts / SHARDS).read_text())
    (parts / SHARDS).write_text(json.dumps(said))

    def read() -> None:
        data = open_data(parts)
        data.frequencies()
        walked(data.in_order())

    with pytest.raises(DataError, match=r"parts"):
        read()


def test_what_cannot_be_divided_is_refused(tmp_path: Path) -> None:
    rows = random_rows(3, 5, FEATURES)
    for shards, told in ((6, "no more than 5 shards"), (0, "'shards' parameter must be")):
        with pytest.raises(ParameterError, match=told):
            pack([fake_file(tmp_path)], tmp_path / "out", readers=[reader_of(rows)], shards=shards)
    assert not (tmp_path / "out").exists()
    pack([fake_file(tmp_path)], tmp_path / "out", readers=[reader_of(rows)], shards=5)
    pack([fake_file(tmp_path)], tmp_path / "out", readers=[reader_of(rows)], overwrite=True)
    assert not (tmp_path / "out" / SHARDS).exists()
