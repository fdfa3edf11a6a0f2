"""Networks whose data is larger than memory: packed folders and files of a loader, read chunk by chunk."""

from __future__ import annotations

import json
import pickle
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import hogwild
from hogwild.cli import app
from hogwild.data.csr import NO_WEIGHTS, CSRRows, compact, concatenate
from hogwild.data.generate.sparse_records import SparseRecords
from hogwild.data.packing.pack import pack
from hogwild.data.sampling import Blocks, WorkerShare
from hogwild.data.tfrecord_writer import RecordWriter
from hogwild.errors import CheckpointError, DataError, ParameterError
from hogwild.nn.record_loader import RecordLoader
from hogwild.nn.row_chunks import ChunkCache, PackedChunks
from hogwild.runtimes.processes import shared_counters

ROWS, SHUFFLE = 12_000, 1024
MADE = {"dense_size": 60, "min_nnz": 10, "max_nnz": 30, "classes": 3, "noise": 0.0}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files of different sizes, with rows of one kind."""
    folder, rows = tmp_path_factory.mktemp("files"), concatenate(list(SparseRecords(rows=ROWS, **MADE).pieces()))
    paths = [folder / f"{k}.tfrecord" for k in range(3)]
    for path, (start, stop) in zip(paths, ((0, 5_000), (5_000, 9_000), (9_000, ROWS)), strict=True):
        with RecordWriter(path) as writer:
            writer.write_rows(compact(rows[start:stop]))
    return paths


@pytest.fixture(scope="module")
def packed(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed") / "all"
    pack(files, folder)
    return folder


def net_for(rows, width=60):
    torch.manual_seed(0)
    return hogwild.SparseMLP(width, [16], 3, rows.binary, update="adagrad")


def problem_of(data, **options):
    return hogwild.Module(net_for(data), nn.functional.cross_entropy, data, batch=64, **options)


def adagrad(parameters):
    return torch.optim.Adagrad(parameters, lr=0.05)


def drawn(blocks, workers, epoch=0, seed=0, samples=ROWS):
    """The batches of each worker."""
    shares = [WorkerShare(samples, worker, workers, epoch, seed, 64) for worker in range(workers)]
    return [list(blocks.batches(share)) for share in shares]


# Order


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("buffer", [0, 64, 1000, 10**6])
def test_blocks_give_every_row_once_to_one_worker(workers, buffer):
    blocks = Blocks((0, 700, 700, 5_000), buffer)
    epochs = [drawn(blocks, workers, epoch) for epoch in range(2)]
    for shares in epochs:
        rows = np.concatenate([batch for batches in shares for batch in batches])
        assert sorted(rows.tolist()) == list(range(ROWS))
        assert {len(batch) for batches in shares for batch in batches[:-1]} == {64}
    # Workers that send messages, and those that take turns, need as many batches in every epoch.
    assert [list(map(len, one)) for one in epochs[0]] == [list(map(len, other)) for other in epochs[1]]
    first, second = (np.concatenate([batch for batches in shares for batch in batches]) for shares in epochs)
    assert (first == second).all() == (buffer == 0)
    again = np.concatenate([batch for batches in drawn(blocks, workers) for batch in batches])
    assert (again == first).all()


def test_a_buffer_mixes_the_rows_of_some_blocks():
    (batches,) = drawn(Blocks(tuple(range(0, ROWS, 500)), 2_000), 1)
    for start in range(0, len(batches), 31):
        rows = np.concatenate(batches[start : start + 31])
        assert len(np.unique(rows // 500)) <= 6
        assert (np.diff(rows) < 0).any()


# Chunks


class TenRows:
    """Chunks of ten rows of 95; the row of number n has the label n."""

    def __init__(self):
        numbers = np.arange(95)
        ones, labels = np.ones(95, np.float32), numbers.astype(np.float64)
        self.rows = CSRRows(np.arange(96), numbers.astype(np.uint32), ones, labels, NO_WEIGHTS, 95, "sparse")
        self.starts = np.array([*range(0, 95, 10), 95])
        self.loaded, self.most = {}, 0

    def read(self, number):
        start, stop = self.starts[number : number + 2].tolist()
        yield number, self.rows[start:stop]
        self.loaded[number] = stop - start
        self.most = max(self.most, sum(self.loaded.values()))

    def release(self, number):
        del self.loaded[number]


def test_the_rows_of_a_cache_are_the_asked_ones_and_few_are_held():
    reader = TenRows()
    cache = ChunkCache(reader, 25)
    rng = np.random.default_rng(0)
    for _ in range(50):
        numbers = rng.integers(0, 95, 7)
        found = cache.gather(numbers)
        assert (found.labels == numbers).all()
        assert (found.indices == numbers).all()
        assert cache.held == sum(reader.loaded.values())
    assert 25 <= reader.most <= cache.most == 25 + 2 * 10
    assert len(cache) == 95


@pytest.fixture
def chunks(monkeypatch):
    """How often each chunk of a folder was read, and the most rows that were loaded at any time."""
    loaded, seen = {}, {"reads": Counter(), "most": 0}
    read, release = PackedChunks.read, PackedChunks.release

    def reading(self, number):
        for at, rows in read(self, number):
            seen["reads"][at] += 1
            loaded[at] = len(rows)
            yield at, rows
            seen["most"] = max(seen["most"], sum(loaded.values()))

    def releasing(self, number):
        loaded.pop(number, None)
        release(self, number)

    monkeypatch.setattr(PackedChunks, "read", reading)
    monkeypatch.setattr(PackedChunks, "release", releasing)
    return seen


def test_an_epoch_over_a_folder_goes_once_through_it_and_holds_few_rows(packed, chunks):
    rows = hogwild.CSRDataset(packed, shuffle=SHUFFLE)
    problem = problem_of(rows)
    assert isinstance(problem.sampling, Blocks)
    for feed in (problem.training.batches(problem.batches(problem.share(0, 1, 0, 0))), problem.training.in_order(256)):
        chunks["reads"].clear()
        assert sum(len(batch[-1]) for batch in feed) == ROWS
        # A chunk of which only a few rows belong to a buffer may have been released when they are drawn.
        assert sum(chunks["reads"].values()) <= len(chunks["reads"]) + 2
        assert len(chunks["reads"]) > 10
    largest = -(-ROWS // len(chunks["reads"])) + 64
    assert chunks["most"] <= SHUFFLE + 2 * largest < ROWS / 3


def test_samples_of_a_folder_are_its_rows(packed):
    rows = hogwild.CSRDataset(packed, shuffle=SHUFFLE)
    stored = hogwild.data.open(packed).in_order()
    whole = concatenate([stored[number].rows for number in range(len(stored))])
    numbers = torch.tensor([11_999, 0, 5_000, 1, 11_999])
    for some in (rows, pickle.loads(pickle.dumps(rows))):
        indices, offsets, values, target = some.batch_of(numbers)
        for k, number in enumerate(numbers.tolist()):
            entries = slice(whole.indptr[number], whole.indptr[number + 1])
            assert indices[offsets[k] : offsets[k + 1]].tolist() == whole.indices[entries].tolist()
            assert values[offsets[k] : offsets[k + 1]].tolist() == whole.values[entries].tolist()
            assert rows.labels[target[k]] == whole.labels[number]
    assert (len(rows), rows.width, rows.nonzeros, rows.binary) == (ROWS, 60, whole.nonzeros, False)
    with pytest.raises(DataError, match="not every value"):
        hogwild.CSRDataset(packed, binary=True)
    with pytest.raises(DataError, match="label 2 is not one of those trained on"):
        hogwild.CSRDataset(packed, (0.0, 1.0))
    with pytest.raises(ParameterError, match="shuffle"):
        hogwild.CSRDataset(packed, shuffle=-1)


def test_other_samplings_of_a_folder_stay_what_they_are(packed):
    rows = hogwild.CSRDataset(packed, shuffle=SHUFFLE)
    assert problem_of(rows, sampling="replacement").sampling == hogwild.Replacement()
    part = torch.utils.data.Subset(rows, range(100))
    assert problem_of_part(part).sampling == hogwild.Split()


def problem_of_part(part):
    return hogwild.Module(net_for(part.dataset), nn.functional.cross_entropy, part, batch=64)


# Files of a loader


def test_samples_of_a_loader_are_the_rows_of_its_files(files):
    loader = RecordLoader(files, 64, shuffle=SHUFFLE)
    samples = loader.samples
    whole = hogwild.CSRDataset(hogwild.data.open(files, shuffle=False))
    numbers = torch.tensor([11_999, 0, 5_000, 4_999, 9_000])
    for one, other in zip(samples.batch_of(numbers), whole.batch_of(numbers), strict=True):
        assert (one == other).all()
    assert loader.counts == (5_000, 4_000, 3_000)
    assert len(samples) == ROWS


@pytest.mark.parametrize(("workers", "opened"), [(1, 3), (2, 4)])
def test_an_epoch_reads_every_file_once_and_holds_few_rows(files, monkeypatch, workers, opened):
    loader = RecordLoader(files, 64, shuffle=SHUFFLE)
    problem = hogwild.Module(hogwild.SparseMLP(60, [16], 3), nn.functional.cross_entropy, loader)
    assert problem.batch == 64
    opens, pieces_of = [], RecordLoader.pieces_of

    def reading(self, path):
        opens.append(path)
        return pieces_of(self, path)

    monkeypatch.setattr(RecordLoader, "pieces_of", reading)
    seen = 0
    for worker in range(workers):
        feed = problem.feed()
        for batch in feed.batches(problem.batches(problem.share(worker, workers, 1, 0))):
            seen += len(batch[-1])
            assert feed.dataset.held <= SHUFFLE + 2 * SHUFFLE
    assert seen == ROWS
    # A worker whose part begins within a file opens that file too.
    assert len(set(opens)) == 3
    assert len(opens) <= opened


def test_a_loader_that_drops_last_gives_whole_batches(files):
    loader = RecordLoader(files, 77, shuffle=SHUFFLE, drop_last=True)
    problem = hogwild.Module(hogwild.SparseMLP(60, [16], 3), nn.functional.cross_entropy, loader)
    assert problem.samples_of_epoch(2, None) == 2 * (6_000 // 77) * 77


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(60, 3, mode="sum", include_last_offset=True)

    def forward(self, indices, offsets, values):
        return self.bag(indices, offsets, per_sample_weights=values)


def test_what_files_of_a_loader_cannot_do_is_refused(files):
    loader = RecordLoader(files, 64)
    with pytest.raises(ParameterError, match=r"beginning to end.*'sampling'"):
        hogwild.Module(Bag(), nn.functional.cross_entropy, loader, sampling="replacement")
    with pytest.raises(ParameterError, match="beginning to end: pack the files"):
        hogwild.minimise(
            hogwild.Module(Bag(), nn.functional.cross_entropy, loader), strategy=hogwild.ParameterServer(2),
            runtime=hogwild.Simulator(), budget=1,
        )  # fmt: skip


@pytest.mark.parametrize("shuffle", ["x", -1, 0.5, True, None])
def test_a_number_of_rows_to_shuffle_is_a_number(files, shuffle):
    """A text was a TypeError."""
    with pytest.raises(ParameterError, match="'shuffle'"):
        RecordLoader(files, 64, shuffle=shuffle)


# Training


def test_workers_learn_from_a_folder(packed):
    training, held_out = hogwild.data.open(packed).split(0.1, 0)
    rows = hogwild.CSRDataset(training, shuffle=SHUFFLE)
    test = hogwild.CSRDataset(held_out, rows.labels, shuffle=SHUFFLE)
    problem = problem_of(rows)
    before = problem.measure(problem.feed(test))["loss"]
    run = hogwild.minimise(problem, adagrad, strategy=hogwild.Hogwild(2), budget=3, test=test)
    assert run.result["test_loss"] < 0.9 * before
    assert run.history[-1]["updates"] == 3 * len(rows)


def test_one_worker_learns_the_same_bits_from_files(files):
    def trained():
        loader = RecordLoader(files, 64, shuffle=SHUFFLE)
        torch.manual_seed(0)
        net = hogwild.SparseMLP(60, [16], 3, update="adagrad")
        problem = hogwild.Module(net, nn.functional.cross_entropy, loader)
        runtime = hogwild.Processes(threads=1)
        run = hogwild.minimise(problem, adagrad, strategy=hogwild.Serial(), runtime=runtime, budget=2, test=loader)
        assert run.history[-1]["updates"] == 2 * ROWS
        assert run.result["test_loss"] < run.history[0]["loss"]
        return net.state_dict()

    for one, other in zip(trained().values(), trained().values(), strict=True):
        assert (one == other).all()


def stored(kind, files, packed):
    return (
        RecordLoader(files, 64, shuffle=SHUFFLE)
        if kind == "files"
        else hogwild.CSRDataset(packed, (0.0, 1.0, 2.0), binary=False, shuffle=SHUFFLE)
    )


def trained_on(data, strategy, **options):
    """A run of two epochs, whose net is the problem's."""
    torch.manual_seed(0)
    net = hogwild.SparseMLP(60, [16], 3, update="adagrad")
    problem = hogwild.Module(net, nn.functional.cross_entropy, data, batch=64)
    return hogwild.minimise(problem, adagrad, "cosine", strategy, budget=2, seed=3, **options)


def interrupted(folder, data, strategy):
    """Break a run off at a checkpoint in the middle of its first epoch, before which it has 188 updates to make."""

    def hear(event):
        if event["event"] == "progress" and event["updates"]:
            started.append(event)
        if event["event"] == "checkpoint" and started:
            raise InterruptedError

    started, runtime = [], hogwild.Processes(threads=1, delay=0.05)
    with pytest.raises(InterruptedError):
        trained_on(
            data, strategy, runtime=runtime, callbacks=[hear], checkpoint=hogwild.Checkpoints(folder, seconds=1e-3)
        )


@pytest.mark.parametrize("kind", ["files", "folder"])
def test_one_worker_goes_on_in_the_middle_of_an_epoch_to_the_same_bits(kind, files, packed, tmp_path):
    runtime = hogwild.Processes(threads=1)
    whole = trained_on(stored(kind, files, packed), hogwild.Serial(), runtime=runtime)
    interrupted(tmp_path, stored(kind, files, packed), hogwild.Serial())
    resumed = trained_on(
        stored(kind, files, packed), hogwild.Serial(), runtime=runtime, checkpoint=tmp_path, resume=True
    )
    (event,) = (event for event in resumed.events if event["event"] == "resumed")
    assert 0 < event["updates"] < ROWS
    assert resumed.history[-1]["updates"] == 2 * ROWS
    for one, other in zip(whole.model.net.state_dict().values(), resumed.model.net.state_dict().values(), strict=True):
        assert (one == other).all()


def test_files_in_another_order_are_not_resumed(files, tmp_path):
    """A run went on with rows that it had had, and left out others."""
    interrupted(tmp_path, RecordLoader(files, 64, shuffle=SHUFFLE), hogwild.Serial())
    with pytest.raises(CheckpointError, match=r"files was \['0.tfrecord', '1.tfrecord', '2.tfrecord'\], now \['2"):
        trained_on(RecordLoader(files[::-1], 64, shuffle=SHUFFLE), hogwild.Serial(), checkpoint=tmp_path, resume=True)


def test_several_workers_go_on_with_the_rest_of_the_epoch(files, tmp_path):
    interrupted(tmp_path, RecordLoader(files, 64, shuffle=SHUFFLE), hogwild.Hogwild(2))
    state = torch.load(tmp_path / "latest.pt", weights_only=True)
    batches = [counts[shared_counters.BATCH] for counts in json.loads(state["record"])["counts"]]
    run = trained_on(RecordLoader(files, 64, shuffle=SHUFFLE), hogwild.Hogwild(2), checkpoint=tmp_path, resume=True)
    (event,) = (event for event in run.events if event["event"] == "resumed")
    # A resumed worker skips as many batches of its part as it has made; each but the last has 64 rows.
    assert event["updates"] == 64 * sum(batches)
    assert max(batches) > 0
    assert run.history[-1]["updates"] == 2 * ROWS


def test_the_command_line_trains_and_predicts_on_a_folder(packed, tmp_path):
    model = tmp_path / "a.model"
    options = ["--problem", "sparse-mlp", "--holdout", "0.1", "--epochs", "2", "--hidden", "16", "--workers", "1"]
    done = CliRunner().invoke(app, ["train", str(packed), *options, "--out", str(model), "--json"])
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout.splitlines()[-1])
    assert (record["rows"], record["test_rows"], record["features"]) == (10_800, 1_200, 60)
    done = CliRunner().invoke(app, ["predict", str(model), str(packed), "--json"])
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout.splitlines()[-1])["predictions"]) == ROWS
