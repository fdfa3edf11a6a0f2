"""Sparse perceptrons through ``minimise``, loaders and files."""

import json

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import hogwild
import references
from hogwild.cli import app
from hogwild.data.generate.sparse_records import SparseRecords
from hogwild.data.tfrecord_writer import RecordWriter
from hogwild.errors import DataError, ModelError, ParameterError
from hogwild.models import load
from hogwild.models.sparse_mlp import SparseMLPModel

MADE = {"rows": 3_000, "dense_size": 60, "min_nnz": 2, "max_nnz": 6, "classes": 3, "noise": 0.0}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "a.tfrecord"
    SparseRecords(**MADE).write(path)
    return path


@pytest.fixture(scope="module")
def samples(records):
    data = hogwild.data.open(records)
    training, held_out = data.split(0.2, 0)
    rows = hogwild.CSRDataset(training)
    return rows, hogwild.CSRDataset(held_out, rows.labels)


def problem_of(rows, update="adagrad"):
    torch.manual_seed(0)
    net = hogwild.SparseMLP(rows.width, [16, 16], 3, rows.binary, update=update)
    return hogwild.Module(net, nn.functional.cross_entropy, rows, batch=32)


def adagrad(parameters):
    return torch.optim.Adagrad(parameters, lr=0.05)


# Every strategy that shares one memory comes to what one worker comes to.


def learnt(samples, strategy):
    """A run, and the share of all samples that it gets right in the end."""
    rows, held_out = samples
    problem = problem_of(rows)
    run = hogwild.minimise(problem, adagrad, strategy=strategy, budget=12, test=held_out)
    right = [problem.measure(problem.feed(some))["accuracy"] * len(some) for some in samples]
    return problem, run, sum(right) / (len(rows) + len(held_out))


@pytest.fixture(scope="module")
def serial(samples):
    return learnt(samples, hogwild.Serial())


@pytest.mark.parametrize(
    "strategy",
    [
        hogwild.Hogwild(2),
        *([hogwild.Averaging(2), hogwild.Locked(2), hogwild.RoundRobin(2)] if references.ALL else []),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
def test_every_strategy_in_one_memory_learns_as_much_as_serial(samples, strategy, serial):
    problem, run, right = learnt(samples, strategy)
    assert right > 0.99 * serial[2]
    assert run.result["test_accuracy"] > 0.85
    assert problem.net.table.weight.grad is None
    assert len(run.state[1]["param_groups"][0]["params"]) == len(list(problem.net.parameters())) - 1


def test_every_feature_occurs_and_every_row_of_the_table_moves(samples):
    problem = problem_of(samples[0])
    before = problem.net.table.weight.detach().clone()
    hogwild.minimise(problem, adagrad, strategy=hogwild.Serial(), budget=1)
    assert (problem.net.table.weight.detach() != before).any(1).all()


def test_one_worker_gives_the_same_bits(samples):
    nets = [problem_of(samples[0]) for _ in range(2)]
    for problem in nets:
        runtime = hogwild.Processes(threads=1)
        hogwild.minimise(problem, adagrad, strategy=hogwild.Serial(), runtime=runtime, budget=1, seed=3)
    for one, other in zip(nets[0].net.state_dict().values(), nets[1].net.state_dict().values(), strict=True):
        assert (one == other).all()


def test_the_table_follows_the_schedule(samples):
    problem = problem_of(samples[0], update="sgd")
    before = problem.net.table.weight.detach().clone()
    schedule = hogwild.Constant(1e-30)
    hogwild.minimise(problem, torch.optim.SGD, schedule, hogwild.Hogwild(2), budget=1)
    assert (problem.net.table.weight.detach() - before).abs().max() < 1e-6
    hogwild.minimise(problem, torch.optim.SGD, hogwild.Constant(0.1), hogwild.Hogwild(2), budget=1)
    assert (problem.net.table.weight.detach() - before).abs().max() > 1e-2


@pytest.mark.parametrize("strategy", [hogwild.Synchronous(2), hogwild.ParameterServer(2)], ids=["sync", "server"])
def test_strategies_that_exchange_gradients_are_refused(samples, strategy):
    with pytest.raises(ParameterError, match="no gradient to exchange"):
        hogwild.minimise(problem_of(samples[0]), adagrad, strategy=strategy, budget=1)


@pytest.mark.parametrize(
    ("strategy", "runtime"),
    [
        (hogwild.Hogwild(2), hogwild.Threads()),
        (hogwild.Hogwild(2), hogwild.Local()),
        (hogwild.ParameterServer(2), hogwild.Threads()),
        (hogwild.ParameterServer(2), hogwild.Processes()),
        (hogwild.ParameterServer(2), hogwild.Simulator()),
    ],
    ids=repr,
)
def test_what_is_refused_leads_to_what_works(samples, strategy, runtime):
    """Some refusals named Simulator() and ParameterServer(), which are refused as well."""
    with pytest.raises(ParameterError, match=r"use runtime=Processes\(\)|with runtime=Processes\(\)") as caught:
        hogwild.minimise(problem_of(samples[0]), adagrad, strategy=strategy, runtime=runtime, budget=1)
    advice = str(caught.value).split("Got")[0].split("use ")[-1]
    assert not any(name in advice for name in ("Simulator", "Local", "ParameterServer"))


def test_checkpoints_go_on_to_the_same_bits(samples, tmp_path):
    def run(budget, resume, folder):
        problem = problem_of(samples[0])
        hogwild.minimise(
            problem, adagrad, strategy=hogwild.Serial(), runtime=hogwild.Processes(threads=1), budget=budget,
            checkpoint=folder, resume=resume,
        )  # fmt: skip
        return problem.net.state_dict()

    whole = run(2, False, tmp_path / "whole")
    run(1, False, tmp_path / "part")
    resumed = run(2, True, tmp_path / "part")
    for name, tensor in whole.items():
        assert (tensor == resumed[name]).all(), name


# Rows and loaders


def test_rows_are_those_of_the_file(records, samples):
    data = hogwild.data.open(records, shuffle=False)
    rows = hogwild.CSRDataset(data)
    indices, offsets, values, target = rows.batch_of(torch.tensor([7, 0, 2_999]))
    for k, number in enumerate((7, 0, 2_999)):
        entries = slice(data.rows.indptr[number], data.rows.indptr[number + 1])
        assert indices[offsets[k] : offsets[k + 1]].tolist() == data.rows.indices[entries].tolist()
        assert values[offsets[k] : offsets[k + 1]].tolist() == data.rows.values[entries].tolist()
        assert target[k] == data.rows.labels[number]
    parts = samples[0].nonzeros + samples[1].nonzeros
    assert (len(samples[0]) + len(samples[1]), parts) == (3_000, data.nonzeros)


def test_ones_are_made_only_where_they_are_wanted(tmp_path):
    SparseRecords(rows=20, dense_size=30, min_nnz=1, max_nnz=3, binary=True).write(tmp_path / "b.tfrecord")
    rows = hogwild.CSRDataset(tmp_path / "b.tfrecord")
    assert rows.binary
    assert len(rows.batch_of(torch.arange(5))) == 3
    valued = hogwild.CSRDataset(tmp_path / "b.tfrecord", binary=False)
    assert (valued.batch_of(torch.arange(5))[2] == 1).all()
    loaded = [len(batch) for batch in hogwild.RecordLoader(tmp_path / "b.tfrecord", 10, binary=True)]
    assert loaded == [3, 3]


def test_refusals_of_rows(records, samples):
    with pytest.raises(DataError, match="not every value"):
        hogwild.CSRDataset(records, binary=True)
    with pytest.raises(DataError, match="not one of those trained on"):
        hogwild.CSRDataset(records, (0.0, 1.0))
    with pytest.raises(DataError, match="dense"):
        hogwild.CSRDataset((np.eye(3) + 1, [0, 1, 0]))


@pytest.mark.parametrize("shuffle", [0, 500, 10**6])
def test_a_loader_gives_every_row_once_in_each_epoch(records, shuffle):
    loader = hogwild.RecordLoader(records, 128, shuffle=shuffle)

    def seen():
        found = []
        for indices, offsets, values, target in loader:
            for k, label in enumerate(target.tolist()):
                part = slice(offsets[k], offsets[k + 1])
                found.append((label, *indices[part].tolist(), *values[part].tolist()))
        return found

    first, second = seen(), seen()
    assert len(first) == 3_000
    assert sorted(first) == sorted(second)
    assert (first == second) == (shuffle == 0)
    assert seen() != first or shuffle == 0


def test_a_loader_drops_what_is_no_whole_batch(records):
    assert {len(batch[-1]) for batch in hogwild.RecordLoader(records, 128, drop_last=True)} == {128}


def test_a_loader_says_what_is_wrong_with_a_file_and_can_be_left(records, tmp_path):
    content = records.read_bytes()
    (tmp_path / "bad.tfrecord").write_bytes(content[:-3])
    with pytest.raises(DataError, match="byte"):
        list(hogwild.RecordLoader(tmp_path / "bad.tfrecord", 64, shuffle=100))
    for _ in hogwild.RecordLoader(records, 64):
        break
    with RecordWriter(tmp_path / "c.tfrecord") as writer:
        writer.write([1], [1.0], -1)
    with pytest.raises(DataError, match="labels="):
        list(hogwild.RecordLoader(tmp_path / "c.tfrecord", 2))
    (batch,) = hogwild.RecordLoader(tmp_path / "c.tfrecord", 2, labels=(-1.0, 1.0))
    assert batch[-1].tolist() == [0]


def test_a_profile_says_where_the_time_goes(records):
    torch.manual_seed(0)
    net = hogwild.SparseMLP(60, [16, 8], 3)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    net.follow(optimiser)
    profile = hogwild.StepProfile(net)
    for *inputs, target in hogwild.RecordLoader(records, 256, profile=profile):
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(*inputs), target).backward()
        optimiser.step()
    shares = profile.shares()
    assert profile.steps == 12
    assert sum(shares.values()) == pytest.approx(1)
    assert all(share > 0 for share in shares.values())
    assert all(name in str(profile) for name in ("input", "lookup", "dense", "update", "ms a step"))


# Generated records


def test_generated_rows_are_as_asked_for():
    made = SparseRecords(rows=500, dense_size=40, min_nnz=3, max_nnz=40, classes=4, distribution="zipf", seed=2)
    rows = next(made.pieces())
    lengths = np.diff(rows.indptr)
    assert lengths.min() >= 3
    assert lengths.max() <= 40
    assert len(np.unique(lengths)) > 20
    for k in range(500):
        part = rows.indices[rows.indptr[k] : rows.indptr[k + 1]].astype(np.int64)
        assert (np.diff(part) > 0).all()
    assert set(rows.labels) == {0.0, 1.0, 2.0, 3.0}
    counts = np.bincount(rows.indices)
    assert counts[0] > 2 * counts[-1]


def test_rows_are_the_same_however_many_there_are():
    few, many = (next(SparseRecords(rows=rows, dense_size=10**6, seed=5).pieces()) for rows in (10, 40))
    end = few.indptr[-1]
    assert (many.indices[:end] == few.indices).all()
    assert (many.labels[:10] == few.labels).all()
    other = next(SparseRecords(rows=10, dense_size=10**6, seed=6).pieces())
    assert len(other.indices) != len(few.indices) or (other.indices != few.indices).any()


@pytest.mark.parametrize("wrong", [{"max_nnz": 11}, {"min_nnz": 7}, {"distribution": "normal"}, {"classes": 1}])
def test_what_cannot_be_generated_is_refused(wrong):
    with pytest.raises(ParameterError):
        SparseRecords(**{"dense_size": 10, "min_nnz": 1, "max_nnz": 5, **wrong})


# The command line


def command(*arguments):
    done = CliRunner().invoke(app, [str(part) for part in (*arguments, "--json")])
    return done, json.loads(done.stdout.splitlines()[-1]) if done.stdout else None


def test_from_generated_records_to_predictions(tmp_path):
    data, model = tmp_path / "a.tfrecord.gz", tmp_path / "a.model"
    options = {"--dense-size": 60, "--rows": 2000, "--min-nnz": 2, "--max-nnz": 6, "--classes": 3, "--noise": 0}
    done, made = command("generate", "sparse-records", data, *(part for pair in options.items() for part in pair))
    assert done.exit_code == 0, done.output
    assert made["rows"] == 2000
    done, record = command(
        "train", data, "--problem", "sparse-mlp", "--holdout", 0.2, "--epochs", 12, "--patience", 11, "--batch", 32,
        "--hidden", "16,16", "--workers", 2, "--out", model, "--checkpoint", tmp_path / "kept", "--profile",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    shares = {name: record["profile"][name] for name in ("input", "lookup", "dense", "update")}
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) > 0
    assert record["problem"] == "module"
    assert record["accuracy"] == record["test_accuracy"] > 0.8
    assert (tmp_path / "kept" / "latest.pt").exists()
    done, answers = command("predict", model, data)
    assert answers["accuracy"] > 0.85
    assert len(answers["predictions"]) == 2000
    loaded = load(model)
    assert isinstance(loaded, SparseMLPModel)
    probabilities = loaded.answer(data, proba=True).values
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    assert (np.asarray(loaded.labels)[probabilities.argmax(1)] == answers["predictions"]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--hidden", "64,x"], "widths of layers"),
        (["--update", "adam"], "sgd or adagrad"),
        (["--l2", "0.1"], "goes with --problem"),
        (["--rule", "ftrl"], "rule"),
    ],
)
def test_options_that_cannot_be_meant(records, options, message):
    done = CliRunner().invoke(app, ["train", str(records), "--problem", "sparse-mlp", *options])
    assert done.exit_code != 0
    assert message in f"{done.output}{done.exception}"


def test_a_model_file_that_is_not_whole(tmp_path):
    from hogwild import array_file

    path = tmp_path / "a.model"
    SparseMLPModel(hogwild.SparseMLP(5, [4], 2), (0.0, 1.0)).save(path)
    arrays, record = array_file.load(path, ModelError)
    array_file.save(path, {name: array for name, array in arrays.items() if name != "bias"}, record)
    with pytest.raises(ModelError, match="inconsistent"):
        load(path)
    array_file.save(path, arrays, {**record, "labels": [0.0, 1.0, 2.0]})
    with pytest.raises(ModelError, match="inconsistent"):
        load(path)
