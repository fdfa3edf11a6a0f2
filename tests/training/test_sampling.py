"""Runs that draw rows with replacement: what they expect, what they repeat, how they go on, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from runs import arrays, problem, same_bits

from hogwild import (
    SGD,
    Constant,
    FactorisationMachine,
    FieldAwareFactorisationMachine,
    GraphCut,
    LabelSkew,
    Linear,
    LocalSGD,
    MatrixCompletion,
    Run,
    Weighted,
    minimise,
)
from hogwild.cli import main
from hogwild.data import open as open_data
from hogwild.data.dataset import Chunk
from hogwild.data.packing.pack import pack
from hogwild.errors import CheckpointError, ParameterError
from hogwild.messaging.protocol import Train
from hogwild.training.row_trainer import RowSource

RNG = np.random.default_rng(4)
X = scipy.sparse.csr_array(np.array([[1.0, 2, 0, 0], [0, 1, -1, 0], [2, 0, 0, 1], [0, 0, 3, 1], [1, 1, 1, 0]]))
Y = np.array([1.0, -2.0, 0.5, 3.0, -1.0])
CHANCES = np.array([1.0, 4.0, 2.0, 0.5, 3.0])
RATINGS = [0, 0, 1, 2, 2], [0, 1, 1, 0, 2], [5.0, 3.0, 4.0, 1.0, 2.0]
EDGES = [0, 1, 2, 0, 1], [1, 2, 3, 2, 3], [1.0, 4.0, 2.0, 0.5, 3.0]
MADE: dict[str, Any] = {
    "linear": lambda sampling: Linear((X, Y), "squared", l2=0.1, sampling=sampling),
    "fm": lambda sampling: FactorisationMachine((X, Y), "squared", rank=2, l2=0.1, l2_factors=0.0, sampling=sampling),
    "ffm": lambda sampling: FieldAwareFactorisationMachine(
        (X, Y), "squared", fields=[0, 1, 0, 1], rank=2, l2=0.1, l2_factors=0.0, sampling=sampling
    ),
    "ratings": lambda sampling: MatrixCompletion(RATINGS, rank=3, l2=0.2, sampling=sampling),
    "cut": lambda sampling: GraphCut(EDGES, {0: 0, 3: 1}, sampling=sampling),
}


def expected_change(made: Any, rate: float) -> Any:
    """The mean change of all parameters by one draw, over the rate, from a point that is the same for all samplings."""
    start = made.start(SGD())
    random = np.random.default_rng(0)
    for part in start:
        moved = random.uniform(-0.2, 0.2, len(part)).astype(np.float32)
        part[:, 0] += np.where(part[:, 0] == 0, 0, moved) if isinstance(made, (MatrixCompletion, GraphCut)) else moved
    if isinstance(made, GraphCut):  # within the simplex, so that projections are linear
        start[0][:, 0] = np.array([[1, 0], [0.3, 0.7], [0.6, 0.4], [0, 1]], np.float32).ravel()
    descend, chances = made.kernel(SGD(), "free", 1, False), made.sampling.chances(made.data)
    chances = np.ones(made.data.n_rows) if chances is None else chances
    rows, total = made.training.rows, [np.zeros(len(part)) for part in start]
    for row, chance in enumerate(chances / chances.sum()):
        state = tuple(part.copy("K") for part in start)
        descend(Chunk(rows, np.array([row], np.uint32)), np.full(1, rate, np.float32), state, made.sync_buffer("free"))
        for part, before, after in zip(total, start, state, strict=True):
            part += chance * (after[:, 0].astype(float) - before[:, 0]) / rate
    return np.concatenate(total)


@pytest.mark.parametrize("kind", MADE)
def test_the_expected_step_is_that_of_uniform_draws(kind: str) -> None:
    weighted = Weighted() if kind == "cut" else Weighted(CHANCES)
    plain, drawn, by_weight = (expected_change(MADE[kind](how), 2e-3) for how in ("split", "replacement", weighted))
    assert np.abs(plain).max() > 0.05
    assert np.array_equal(plain, drawn)
    np.testing.assert_allclose(by_weight, plain, atol=2e-3)


def test_the_expected_step_of_a_linear_model_is_the_gradient() -> None:
    made = Linear((X, Y), "squared", l2=0.1, sampling=Weighted(CHANCES))
    random = np.random.default_rng(0)
    weights = random.uniform(-0.2, 0.2, 4)
    intercept = random.uniform(-0.2, 0.2, 1)
    residuals = X @ weights + intercept - Y
    gradient = np.append(X.T @ residuals / 5 + 0.1 * weights, residuals.mean())
    np.testing.assert_allclose(expected_change(made, 2e-3), -gradient, atol=2e-3)


def test_factors_are_penalised_as_often_as_they_are_drawn() -> None:
    uniform, by_weight = (
        FactorisationMachine((X, Y), "squared", rank=2, sampling=how) for how in ("replacement", Weighted(CHANCES))
    )
    present = (X != 0).toarray()
    np.testing.assert_allclose(uniform._visited, present.mean(axis=0))
    np.testing.assert_allclose(by_weight._visited, CHANCES / CHANCES.sum() @ present)
    fields = [0, 1, 0, 1]
    pairs = [
        sum(chance * row[u] * row[t] for chance, row in zip(CHANCES / CHANCES.sum(), present, strict=True)
            for t in range(4) if t != u and fields[t] == field)
        for u in range(4) for field in range(2)
    ]  # fmt: skip
    made = FieldAwareFactorisationMachine((X, Y), "squared", fields=fields, rank=2, sampling=Weighted(CHANCES))
    np.testing.assert_allclose(made._visited, pairs)


HOW: dict[str, Any] = {"rule": "adagrad", "schedule": Constant(0.1), "strategy": "serial", "budget": 3}


def run(sampling: Any, seed: int = 0, **more: Any) -> Run:
    return minimise(problem(sampling=sampling), seed=seed, **{**HOW, **more})


def test_one_worker_comes_to_the_same_bits_with_the_same_seed() -> None:
    by_weight = Weighted(np.random.default_rng(1).uniform(0.5, 2.0, 4_000))
    for how in ("replacement", by_weight):
        assert same_bits(run(how), run(how))
        assert not same_bits(run(how), run(how, seed=1))
        assert not same_bits(run(how), run("split"))
        assert run(how).result["updates"] == 3 * 4_000
        assert run(how).loss == pytest.approx(run("split").loss, rel=0.1)


def test_a_run_says_how_it_draws_and_goes_on_with_no_other() -> None:
    assert run("replacement", budget=1).config["sampling"] == "Replacement()"
    assert "sampling" not in run("split", budget=1).config


def test_a_checkpoint_of_other_draws(tmp_path: Path) -> None:
    run("replacement", budget=1, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match=r"sampling was 'Replacement\(\)', now None"):
        run("split", checkpoint=tmp_path, resume=True)


@pytest.mark.parametrize("strategy", ["hogwild", "locked", "round-robin", "averaging"])
def test_every_strategy_draws_as_many(strategy: str) -> None:
    done = run("replacement", strategy=strategy)
    assert done.result["updates"] == 3 * 4_000
    assert done.loss < 0.3


def test_a_step_is_found_for_rows_drawn_by_weight() -> None:
    by_weight = Weighted(np.random.default_rng(1).uniform(0.5, 2.0, 4_000))
    assert run(by_weight, schedule="cosine").loss < 0.25


def test_trained_from_a_packed_folder(tmp_path: Path) -> None:
    rows, labels = arrays()
    with (tmp_path / "some.svm").open("w") as file:
        for row, label in zip(rows.round(3), labels, strict=True):
            file.write(f"{label:g} " + " ".join(f"{k + 1}:{value:g}" for k, value in enumerate(row)) + "\n")
    folder = pack([tmp_path / "some.svm"], tmp_path / "packed")._stored.folder
    made = [Linear(open_data(folder), sampling=how) for how in ("replacement", "split")]
    first, again, split = (minimise(made[k], **HOW) for k in (0, 0, 1))
    assert same_bits(first, again)
    assert not same_bits(first, split)
    assert first.result["updates"] == 3 * 4_000
    assert first.loss == pytest.approx(split.loss, rel=0.1)


def drawn(rows: RowSource, shard: int, shards: int, epoch: int) -> list[int]:
    size = len(range(shard, 4_000, shards))
    chunks = rows.chunks(Train(np.zeros(1), (shard, shards), epoch * size, size, 0, 1))
    return [int(row) for chunk in chunks for row in chunk.order]


def test_shards_of_workers_by_messages_are_draws_from_all_rows() -> None:
    rows = RowSource(problem(sampling="replacement"), SGD(), Constant(0.1), 5, 0, 3)
    epochs = [[drawn(rows, shard, 3, epoch) for shard in range(3)] for epoch in range(30)]
    assert {sum(map(len, shards)) for shards in epochs} == {4_000}
    assert epochs[0] == [drawn(rows, shard, 3, 0) for shard in range(3)]
    for shard in range(3):
        counts = np.bincount([row for epoch in epochs for row in epoch[shard]], minlength=4_000)
        expected = counts.sum() / 4_000
        assert abs(((counts - expected) ** 2 / expected).sum() - 3_999) < 4 * np.sqrt(2 * 3_999)


def test_runs_by_messages_repeat_and_differ() -> None:
    asked = {"strategy": LocalSGD(2), "runtime": "simulator", "rule": "sgd", "schedule": Constant(0.01), "budget": 1}
    runs = [run(how, **asked) for how in ("replacement", "replacement", "split")]
    assert np.array_equal(runs[0].model.weights, runs[1].model.weights)
    assert not np.array_equal(runs[0].model.weights, runs[2].model.weights)
    assert runs[0].config["sampling"] == "Replacement()"


def test_a_shard_without_rows_is_an_error_and_no_endless_loop() -> None:
    rows = RowSource(Linear((X, Y), "squared"), SGD(), Constant(0.1), 5, 0, 2)
    with pytest.raises(ParameterError, match="There are 7 shards and 5 rows"):
        rows.chunks(Train(np.zeros(1), (6, 7), 0, 1, 0, 1))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Linear((X, Y), sampling="whole"), r"Whole\(\) is for a Module"),
        (lambda: Linear((X, Y), sampling="replacment"), "Did you mean 'replacement'"),
        (lambda: FactorisationMachine((X, Y), "squared", sampling=LabelSkew()), "is for a Module"),
        (lambda: Linear((X, Y), "squared", sampling=Weighted([1, 2])), "for each of the 5 rows"),
        (lambda: Linear((X, Y), "squared", sampling="weighted"), "have no weights of their own"),
        (lambda: Linear((X, Y), "squared", sampling=Weighted([1, 1, 0, 1, 1])), "never draw row 2"),
        (lambda: MatrixCompletion(RATINGS, sampling="weighted"), "have no weights of their own"),
        (lambda: MatrixCompletion(RATINGS, sampling=Weighted([1.0])), "for each of the 5 rows"),
        (lambda: GraphCut(EDGES, {0: 0, 3: 1}, sampling=Weighted(CHANCES)), "without weights"),
        (lambda: run("replacement", shuffle=False), "leave out one of the two"),
    ],
)
def test_what_cannot_work_is_told(make: Any, told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        make()


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "some.svm"
    path.write_text("".join(f"{1 if i % 3 else -1} {1 + i % 3}:1 {4 + i % 2}:1\n" for i in range(60)))
    asked = ["train", str(path), "--epochs", "2", "--step", "0.1", "--strategy", "serial", "--json"]
    losses = []
    for sampling in ("split", "replacement"):
        assert main([*asked, "--sampling", sampling]) == 0
        losses.append(json.loads(capsys.readouterr().out)["loss"])
    assert losses[0] != losses[1]
    for sampling, told in (("whole", "is for a Module"), ("weighted", "have no weights of their own")):
        assert main([*asked, "--sampling", sampling]) == 2
        assert told in "".join(capsys.readouterr())
    assert main([*asked, "--problem", "sparse-mlp", "--sampling", "weighted"]) == 2
    assert "samples of a batch cannot be weighed" in "".join(capsys.readouterr())
