"""Predictions: the latency of one row, and the throughput of a matrix and of ``hogwild predict``, beside others.

Run ``python -m benchmarks prediction``. scikit-learn and onnxruntime have the same weights: onnxruntime runs the graph
of ``to_onnx``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from scipy.sparse import csr_array
from sklearn.linear_model import SGDClassifier

from benchmarks import results
from benchmarks.parser import rcv1_like
from hogwild.data.ids import Ids
from hogwild.models.factorisation_machine import FactorisationModel
from hogwild.models.linear import LinearModel
from hogwild.models.ratings import RatingsModel

TEXT, NARROW, CLICKS, FIELDS = 47_236, 100, 40_000, 39
IN_A_ROW = 75  # features of a row of text
CALLS, BLOCKS = 40, 200  # of a latency: median and least of so many short blocks of calls
PEER = """
import sys, numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
model = SGDClassifier()
model.coef_, model.intercept_, model.classes_ = np.load(sys.argv[1]), np.zeros(1), np.array([-1.0, 1.0])
X, y = load_svmlight_file(sys.argv[2], n_features=model.coef_.shape[1])
model.n_features_in_ = X.shape[1]
np.savetxt(sys.argv[3], model.predict(X), fmt="%.9g")
"""


def some(*shape: int) -> Any:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32) / 4


def linear(features: int) -> LinearModel:
    return LinearModel(some(features, 1), np.zeros(1, np.float32), "logistic", (-1.0, 1.0), "sigmoid")


def theirs(model: LinearModel) -> SGDClassifier:
    """scikit-learn's classifier with our weights."""
    peer = SGDClassifier()
    peer.coef_, peer.intercept_, peer.classes_ = model.weights.T.astype(float), np.zeros(1), np.array([-1.0, 1.0])
    peer.n_features_in_ = len(model.weights)
    return peer


def machine(kind: str) -> FactorisationModel:
    fields = (np.arange(CLICKS) % FIELDS).astype(np.uint32) if kind == "ffm" else None
    factors = some(CLICKS, 1, 8) if fields is None else some(CLICKS, FIELDS, 4)
    return FactorisationModel(some(CLICKS), some(1), factors, "logistic", (-1.0, 1.0), "sigmoid", fields=fields)


def sparse_rows(rows: int, features: int, in_a_row: int, ones: bool = False) -> csr_array:
    random = np.random.default_rng(1)
    columns = np.sort(random.integers(0, features // in_a_row, (rows, in_a_row)) * in_a_row + np.arange(in_a_row))
    values = np.ones(columns.size, np.float32) if ones else random.random(columns.size, np.float32)
    indptr = np.arange(0, columns.size + 1, in_a_row, dtype=np.int32)
    return csr_array((values, columns.ravel().astype(np.int32), indptr), shape=(rows, features))


class Served:
    """A graph under onnxruntime, with rows as it takes them."""

    def __init__(self, proto: Any, threads: int = 0) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])

    def predict(self, X: csr_array, in_a_row: int) -> Any:
        columns = X.indices.reshape(-1, in_a_row).astype(np.int64)
        return self.session.run(["label"], {"columns": columns, "values": X.data.reshape(-1, in_a_row)})


def microseconds(call: Callable[[], object]) -> str:
    """Median (least) of the blocks: what others do on the machine lengthens the median, and hardly the least."""
    call()
    found = []
    for _ in range(BLOCKS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append((time.perf_counter() - start) / CALLS * 1e6)
    return f"{statistics.median(found):.1f} ({min(found):.1f})"


def latencies() -> list[list[str]]:
    text, narrow, fm, ffm = linear(TEXT), linear(NARROW), machine("fm"), machine("ffm")
    row, click = sparse_rows(1, TEXT, IN_A_ROW), sparse_rows(1, CLICKS, FIELDS, ones=True)
    dense = some(1, NARROW).astype(float)
    mapping = dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
    text_peer, narrow_peer = theirs(text), theirs(narrow)
    ratings = RatingsModel(
        some(100_000, 32), some(20_000, 32), some(100_000), some(20_000), 3.0, (1.0, 5.0), Ids(np.arange(100_000)),
        Ids.of([f"item {number}" for number in range(20_000)]),
    )  # fmt: skip
    graphs = {
        name: Served(model.to_onnx(inputs="sparse"), 1) for name, model in (("t", text), ("fm", fm), ("ffm", ffm))
    }
    graph, pairs = Served(narrow.to_onnx(), 1).session, Served(ratings.to_onnx(), 1).session
    single, pair = dense.astype(np.float32), {"user": np.array([777]), "item": np.array(["item 77"], object)}
    clicks = {name: (lambda name=name: graphs[name].predict(click, FIELDS)) for name in ("fm", "ffm")}
    cases: list[tuple[str, list[Callable[[], object] | None]]] = [
        (
            f"linear, 1 x {TEXT:,} CSR, {IN_A_ROW} values",
            [lambda: text.predict(row), lambda: text_peer.predict(row), lambda: graphs["t"].predict(row, IN_A_ROW)],
        ),
        (f"linear, a mapping of {IN_A_ROW} values", [lambda: text.predict(mapping), None, None]),
        (
            f"linear, 1 x {NARROW} array",
            [
                lambda: narrow.predict(dense), lambda: narrow_peer.predict(dense),
                lambda: graph.run(["label"], {"X": single}),
            ],
        ),
        (f"FM, {FIELDS} values, rank 8", [lambda: fm.predict(click), None, clicks["fm"]]),
        (f"FFM, {FIELDS} fields, rank 4", [lambda: ffm.predict(click), None, clicks["ffm"]]),
        ("ratings, a pair, rank 32", [lambda: ratings.predict(777, "item 77"), None, lambda: pairs.run(None, pair)]),
    ]  # fmt: skip
    return [[name, *("" if call is None else microseconds(call) for call in calls)] for name, calls in cases]


def rows_per_second(call: Callable[[], object], rows: int, turns: int = 5) -> str:
    call()
    found = []
    for _ in range(turns):
        start = time.perf_counter()
        call()
        found.append(rows / (time.perf_counter() - start) / 1e3)
    return f"{statistics.median(found):,.0f}"


def matrices(rows: int) -> list[list[str]]:
    text, fm, ffm = linear(TEXT), machine("fm"), machine("ffm")
    X, clicks = sparse_rows(rows, TEXT, IN_A_ROW), sparse_rows(rows, CLICKS, FIELDS, ones=True)
    peer = theirs(text)
    found = []
    for name, model, matrix, in_a_row in (
        (f"linear, {IN_A_ROW} values a row", text, X, IN_A_ROW), (f"FM, {FIELDS} values, rank 8", fm, clicks, FIELDS),
        (f"FFM, {FIELDS} fields, rank 4", ffm, clicks[: rows // 4], FIELDS),
    ):  # fmt: skip
        graph, count = Served(model.to_onnx(inputs="sparse")), matrix.shape[0]
        few = matrix[: min(count, 8192)]  # A graph makes tables of all values, and is fed in batches.
        found.append(
            [
                name,
                rows_per_second(lambda model=model, matrix=matrix: model.predict(matrix), count),
                rows_per_second(lambda matrix=matrix: peer.predict(matrix), count) if model is text else "",
                rows_per_second(lambda graph=graph, few=few, n=in_a_row: graph.predict(few, n), few.shape[0]),
            ]
        )
    return found


def commands(megabytes: int) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = rcv1_like(megabytes)
        rows = text.count(b"\n")
        (folder / "rows.svm").write_bytes(text)
        model = linear(TEXT)
        model.save(folder / "a.model")
        np.save(folder / "coef.npy", model.weights.T.astype(float))
        ours = [sys.executable, "-m", "hogwild", "predict", "a.model", "rows.svm", "--out"]
        tasks = {
            "`hogwild predict`, classes": [*ours, "a.txt"],
            "`hogwild predict --proba`": [*ours, "p.txt", "--proba"],
            "`hogwild predict --out a.npy`": [*ours, "a.npy"],
            "scikit-learn: `load_svmlight_file`, `predict`, `savetxt`": [
                sys.executable, "-c", PEER, "coef.npy", "rows.svm", "b.txt",
            ],
        }  # fmt: skip
        found = []
        for what, command in tasks.items():
            seconds = []
            for _ in range(3):
                start = time.perf_counter()
                subprocess.run(command, cwd=folder, check=True, capture_output=True)
                seconds.append(time.perf_counter() - start)
            best = statistics.median(seconds[1:])  # The first turn may compile.
            found.append([what, f"{best:.2f}", f"{len(text) / best / 1e6:.0f}", f"{rows / best / 1e3:,.0f}"])
        assert (folder / "a.txt").read_text() == (folder / "b.txt").read_text()
    return found


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    global CALLS, BLOCKS
    if quick:
        CALLS, BLOCKS = 2, 2
    one = latencies()
    many = matrices(1_000 if quick else 100_000)
    files = commands(1 if quick else 100)
    results.write(
        "prediction",
        "Predictions: latency and throughput",
        [
            "One row, microseconds a call, median (least): `model.predict` in this process, and onnxruntime with one",
            "thread, on the graph of `to_onnx`:",
            "",
            *results.table(["row", "hogwild", "scikit-learn", "onnxruntime"], one),
            "",
            "A matrix, thousand rows a second, on all cores:",
            "",
            *results.table(["rows", "hogwild", "scikit-learn", "onnxruntime, 8,192 rows a call"], many),
            "",
            "A file of svmlight text, from the start of the process to its end, on all cores:",
            "",
            *results.table(["command", "seconds", "MB/s of text", "thousand rows/s"], files),
        ],
        out,
    )
