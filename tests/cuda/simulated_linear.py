"""Run with NUMBA_ENABLE_CUDASIM=1: linear models by the kernels for a GPU, on its simulator, against threads."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numba import config
from sklearn.datasets import dump_svmlight_file

from hogwild import Averaging, Budget, Cuda, Linear, Serial, WarmStart, Weighted, load, minimise
from hogwild.data import open as open_data
from hogwild.data import pack
from hogwild.data.csr import CSRRows, bytes_of
from hogwild.data.in_memory import InMemoryDataset
from hogwild.errors import DivergedError, ParameterError
from hogwild.kernels import cuda_device
from hogwild.kernels.cuda_device import DeviceError, DeviceRows, copy_anew
from hogwild.rules import COORDINATE_RULES
from hogwild.runtimes.cuda import row_pieces
from hogwild.runtimes.cuda.mapped_rows import MappedRows
from hogwild.runtimes.cuda.resident_rows import resident
from hogwild.runtimes.cuda.row_pieces import RowPieces
from hogwild.runtimes.cuda.session import CudaSession
from hogwild.training.checkpoints import Position, snapshot

ROWS, FEATURES, ENTRIES = 120, 20, 5
EPOCHS = 5


def rows_of(layout: str) -> tuple[Any, Any]:
    random = np.random.default_rng(3)
    columns = (FEATURES * random.random((ROWS, ENTRIES)) ** 2).astype(np.int32)
    values = np.ones(columns.size) if layout == "binary" else random.random(columns.size)
    X = sp.csr_matrix((values.astype(np.float32), columns.ravel(), np.arange(0, columns.size + 1, ENTRIES)))
    X.resize((ROWS, FEATURES))
    X.sum_duplicates()
    if layout == "binary":
        X.data[:] = 1
    y = np.sign(X @ random.standard_normal(FEATURES) + 0.5 * random.standard_normal(ROWS))
    return (X.toarray() + 2 if layout == "dense" else X), y


def both(problem: Linear, rule: str, epochs: int = EPOCHS) -> tuple[float, float]:
    alone = minimise(problem, rule, strategy=Serial(), budget=epochs)
    gpu = minimise(problem, rule, runtime=Cuda(), budget=epochs)
    assert gpu.history[-1]["updates"] == epochs * ROWS
    return gpu.objective, alone.objective


def check_rules() -> None:
    for rule in sorted(set(COORDINATE_RULES) - {"sdca"}):
        for penalties in ({"l2": 1e-2}, {"l1": 1e-2, "l2": 1e-3}):
            gpu, alone = both(Linear(rows_of("sparse"), **penalties), rule)
            assert gpu < 1.05 * alone, (rule, penalties, gpu, alone)


def check_layouts() -> None:
    for layout in ("sparse", "binary", "dense"):
        X, y = rows_of(layout)
        problem = Linear((X, y), l2=1e-2)
        gpu, alone = both(problem, "adagrad")
        assert gpu < 1.05 * alone, (layout, gpu, alone)


def check_losses() -> None:
    X, y = rows_of("sparse")
    # With noise, so that no loss ends near zero, where small differences are large ratios.
    noise = np.abs(np.random.default_rng(5).standard_normal(ROWS))
    numbers = X @ np.arange(FEATURES) / FEATURES + 0.5 + noise
    for loss, labels in (
        ("hinge", y), ("squared-hinge", y), ("squared", numbers), ("huber", numbers), ("quantile", numbers),
        ("poisson", np.round(numbers)),
    ):  # fmt: skip
        gpu, alone = both(Linear((X, labels), loss, l2=1e-2), "adagrad", 8)
        assert gpu < 1.1 * alone, (loss, gpu, alone)


def check_classes() -> None:
    """Models with an output for each class."""
    X, _ = rows_of("sparse")
    classes = np.argmax(X @ np.random.default_rng(2).standard_normal((FEATURES, 5)), axis=1)
    for loss, rule in (("logistic", "adagrad"), ("hinge", "sgd"), ("softmax", "adagrad"), ("softmax", "ftrl")):
        problem = Linear((X, classes), loss, l2=1e-2, class_weight={0: 2.0, 3: 0.5})
        gpu, alone = both(problem, rule, 8)
        assert gpu < 1.05 * alone, (loss, rule, gpu, alone)
        run = minimise(problem, rule, runtime=Cuda(), budget=1)
        found = np.mean(run.model.predict(X) == classes)
        assert run.result["accuracy"] == found, (loss, run.result["accuracy"], found)
        measured = problem.metrics(problem.measure(problem.data.in_order()[0], run.state))
        np.testing.assert_allclose(run.result["loss"], measured["loss"], rtol=1e-5)


def check_weights() -> None:
    X, y = rows_of("sparse")
    weights = np.where(np.arange(ROWS) % 2, 3.0, 0.5)
    gpu, alone = both(Linear(open_data(X, y, weights), l2=1e-2, class_weight={-1: 2.0, 1: 0.5}), "adagrad")
    assert gpu < 1.05 * alone
    gpu, alone = both(Linear((X, y), l2=1e-2, intercept=False), "adagrad")
    assert gpu < 1.05 * alone


def check_evaluation() -> None:
    """The figures of a record are those of the model, however they were computed."""
    X, y = rows_of("sparse")
    run = minimise(Linear((X, y), l2=1e-2), runtime=Cuda(), budget=2, test=(X[:50], y[:50]))
    scores = run.model.decide(X)[:, 0]
    assert run.result["accuracy"] == np.mean((scores > 0) == (y > 0))
    np.testing.assert_allclose(run.result["loss"], np.logaddexp(0, -scores * y).mean(), rtol=1e-5)
    np.testing.assert_allclose(run.result["test_loss"], np.logaddexp(0, -scores * y)[:50].mean(), rtol=1e-5)
    for given in ({"l2": 0.1}, {"l1": 0.1}, {"l2": 0.1, "intercept_gradient": 0.5}, {}):
        problem = Linear((X, y), **given)
        run = minimise(problem, "adagrad", runtime=Cuda(), budget=2, schedule=0.3)
        np.testing.assert_allclose(run.objective, run.result["loss"] + problem.penalty(run.state), rtol=1e-6)


def check_checkpoints(folder: Path) -> None:
    problem = Linear(rows_of("sparse"), l2=1e-2)
    minimise(problem, "adagrad", runtime=Cuda(), budget=2, checkpoint=folder / "points", schedule=0.3)
    run = minimise(
        problem, "adagrad", runtime=Cuda(), budget=4, checkpoint=folder / "points", resume=True, schedule=0.3
    )
    assert [record["epoch"] for record in run.history] == [1, 2, 3, 4]
    run.model.save(folder / "model")
    assert load(folder / "model").predict(rows_of("sparse")[0]).shape == (ROWS,)
    averaged = minimise(problem, "sgd", runtime=Cuda(), budget=4, average=0.5, schedule=0.3)
    assert averaged.objective < 0.69


def check_parts() -> None:
    """Parts of the same arrays have labels and weights of their own."""
    X, y = rows_of("sparse")
    training, held_out = open_data(X, y).split(0.3, seed=0)
    run = minimise(Linear(training, l2=1e-2), "adagrad", runtime=Cuda(), budget=8, test=held_out, schedule=0.5)
    alone = minimise(Linear(training, l2=1e-2), "adagrad", strategy=Serial(), budget=8, test=held_out, schedule=0.5)
    assert abs(run.result["test_loss"] - alone.result["test_loss"]) < 0.05
    drawn = Linear((X, y), l2=1e-2, sampling=Weighted(np.arange(1.0, ROWS + 1)))
    run = minimise(drawn, "adagrad", runtime=Cuda(), budget=3, schedule=0.5)
    scores = run.model.decide(X)[:, 0]
    np.testing.assert_allclose(run.result["loss"], np.logaddexp(0, -scores * y).mean(), rtol=1e-4)


def check_penalties_without_gradients() -> None:
    """A penalty moves weights also where the loss has no gradient."""
    X, y = np.eye(8, dtype=np.float32)[np.arange(64) % 8], np.where(np.arange(64) % 2, 1.0, -1.0)
    X = sp.csr_matrix(X * y[:, None])
    for rule in ("sgd", "momentum", "adagrad", "ftrl", "adam"):
        state = np.tile(np.array(COORDINATE_RULES[rule]().initial, np.float32), (8, 1))
        state[:, 0] = 5.0
        given = {"budget": 3, "schedule": 0.5, "init": WarmStart((state[:, :1], np.zeros((1, 1), np.float32)))}
        problem = Linear((X, y), "hinge", l2=0.1, intercept=False)
        run = minimise(problem, rule, runtime=Cuda(), **given)
        assert (np.abs(run.model.weights) < 4.99).all(), (rule, run.model.weights)


def check_time_budgets() -> None:
    """Rows in memory are copied once, also where step sizes depend on time."""
    problem, copies = Linear(rows_of("sparse"), l2=1e-2), []
    original = cuda_device.to_device
    cuda_device.to_device = lambda array: (copies.append(array.size), original(array))[1]
    try:
        minimise(problem, "adagrad", runtime=Cuda(), budget=Budget(epochs=3, seconds=60), schedule="cosine")
    finally:
        cuda_device.to_device = original
    assert copies.count(problem.data.nonzeros) == 2, copies  # indices and values


def _refuse(*given: object) -> None:
    raise DeviceError("no memory can be pinned")


def check_streams(folder: Path) -> None:
    """Rows that are larger than the memory for them are read from the host's; if that fails, and from disk, copied."""
    X, y = rows_of("sparse")
    weights = np.where(np.arange(ROWS) % 2, 2.0, 0.5)
    problem = Linear(open_data(X, y, weights), l2=1e-2)
    alone = minimise(problem, "adagrad", strategy=Serial(), budget=EPOCHS).objective
    for refused in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if refused:
                patch.setattr(MappedRows, "__call__", _refuse)
            run = minimise(problem, "adagrad", runtime=Cuda(memory="4KiB"), budget=EPOCHS, test=(X[:50], y[:50]))
        assert len(resident(problem)) == 2  # curvatures and shares, and no rows
        assert run.objective < 1.05 * alone, (run.objective, alone)
        scores = run.model.decide(X)[:, 0]
        np.testing.assert_allclose(run.result["loss"], np.mean(weights * np.logaddexp(0, -scores * y)), rtol=1e-5)
        np.testing.assert_allclose(run.result["test_loss"], np.logaddexp(0, -scores * y)[:50].mean(), rtol=1e-5)
    dump_svmlight_file(X, y, str(folder / "rows.svm"))
    problem = Linear(pack([folder / "rows.svm"], folder / "packed"), l2=1e-2)
    alone = minimise(problem, "adagrad", strategy=Serial(), budget=EPOCHS).objective
    run = minimise(problem, "adagrad", runtime=Cuda(), budget=EPOCHS)
    assert run.history[-1]["updates"] == EPOCHS * ROWS
    assert run.objective < 1.05 * alone


def check_pieces() -> None:
    """Copies of pieces have every row once in an epoch, whole, from any chunk on, and in stored order on request."""
    for layout in ("sparse", "binary", "dense"):
        X, _ = rows_of(layout)
        data = open_data(X, np.arange(ROWS), 1 + np.arange(ROWS))
        data = InMemoryDataset(data.rows, shuffled=False, chunk=7)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(row_pieces, "PIECE", bytes_of(data.rows) // 11)
            pieces = RowPieces(data.rows, DeviceRows.of(data.rows, copy_anew), bytes_of(data.rows) // 4)
        plan = data.random_epoch(3, 1).whole()
        for chunk in (0, 5):
            seen = []
            for batch in pieces.batches(plan, plan.order, chunk):
                assert sorted(batch.order[:]) == list(range(batch.count))
                seen += _checked(batch.rows, batch.count, data.rows)
            assert len(set(seen)) == len(seen) == ROWS - plan.starts[chunk]
            if chunk == 0:
                assert seen != sorted(seen)
        in_order = [_checked(rows, count, data.rows) for rows, count in pieces.in_order()]
        assert list(chain(*in_order)) == list(range(ROWS))


def _checked(copy: DeviceRows, count: int, rows: CSRRows) -> list[int]:
    """Return the numbers of copied rows, which are their labels, after a comparison with the rows themselves."""
    numbers = [int(copy.labels[k]) for k in range(count)]
    for k, number in enumerate(numbers):
        here, there = (
            slice(int(part[at]), int(part[at + 1])) for part, at in ((copy.indptr, k), (rows.indptr, number))
        )
        assert copy.weights[k] == 1 + number
        for array, like in ((copy.indices, rows.indices), (copy.values, rows.values)):
            if like.size:
                np.testing.assert_array_equal(np.asarray(array[here]), like[there])
    return numbers


def check_snapshots() -> None:
    """A copy on the GPU has what the parameters were, also if the memory of an earlier copy is used."""
    session = CudaSession(Linear(rows_of("sparse"), l2=1e-2), COORDINATE_RULES["adagrad"]())
    earlier = None
    for number in (3.0, 7.0):
        session.state[0][:], session.state[1][:] = number, number + 1
        earlier = before = snapshot(session, Position(), earlier)
        session.state[0][:] = session.state[1][:] = -1
        session.copied_state(None)
        before.put_back(session)
        assert (session.state_to_read[0] == number).all()
        assert (session.state_to_read[1] == number + 1).all()
    with pytest.raises(DivergedError):
        minimise(session.problem, "adagrad", runtime=Cuda(), budget=3, divergence_factor=1e-3)


def check_steps_together() -> None:
    """Rows that take their steps together come as far, and one seed gives the same bits."""
    for rule in ("sgd", "adagrad", "ftrl", "adam"):
        problem = Linear(rows_of("sparse"), l2=1e-2)
        alone = minimise(problem, rule, strategy=Serial(), budget=EPOCHS).objective
        first, second = (
            minimise(problem, rule, strategy="synchronous", runtime=Cuda(), budget=EPOCHS) for _ in range(2)
        )
        assert first.objective < 1.05 * alone, (rule, first.objective, alone)
        assert (first.model.weights == second.model.weights).all()
        assert [record["loss"] for record in first.history] == [record["loss"] for record in second.history]


def check_averaging(rules: tuple[str, ...] = ("sgd", "adagrad", "ftrl")) -> None:
    """Parameters are the mean of those that parts of the rows come to by themselves, and train on from there."""
    X, y = rows_of("sparse")
    given = {"runtime": Cuda(), "schedule": 0.05, "shuffle": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_device, "SIMULATED", (1, 1))  # One row in flight, so that no change counts in part.
        for rule in rules:
            halves = [
                minimise(Linear((X[part], y[part]), l2=0), rule, budget=1, **given)
                for part in (slice(ROWS // 2), slice(ROWS // 2, None))
            ]
            runs = [
                minimise(Linear((X, y), l2=0), rule, strategy=Averaging(2), budget=epochs, **given) for epochs in (1, 2)
            ]
            mean = np.mean([half.model.weights for half in halves], axis=0)
            np.testing.assert_allclose(runs[0].model.weights, mean, rtol=1e-4, atol=1e-6, err_msg=rule)
            assert runs[1].objective < runs[0].objective
            assert runs[1].history[-1]["updates"] == 2 * ROWS


def check_refusals() -> None:
    X, _ = rows_of("sparse")
    with pytest.raises(ParameterError, match=r"in step: use runtime=Threads\(\)"):
        minimise(Linear((X, np.arange(ROWS) % 3)), "sgd", strategy="synchronous", runtime=Cuda(), budget=1)
    with pytest.raises(ParameterError, match=r"runtime=Threads\(\)"):
        minimise(Linear(rows_of("sparse"), l2=0.1), "sdca", runtime=Cuda(), budget=1)


if __name__ == "__main__":
    assert config.ENABLE_CUDASIM
    check_rules()
    check_layouts()
    check_losses()
    check_classes()
    check_weights()
    check_evaluation()
    check_checkpoints(Path(sys.argv[1]))
    check_streams(Path(sys.argv[1]))
    check_pieces()
    check_snapshots()
    check_steps_together()
    check_averaging()
    check_refusals()
    check_parts()
    check_penalties_without_gradients()
    check_time_budgets()
