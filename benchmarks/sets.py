"""The data that is trained on: generated kinds and real sets, as the files and the arrays each tool reads best."""

from __future__ import annotations

import gzip
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from hogwild.data import CSRRows
from hogwild.data.generate import kind
from hogwild.data.generate.write import svmlight_text, vw_text

SHARED = Path(__file__).parents[2] / "shared" / "data"
HELD_OUT = 0.2  # of the rows of generated data


@dataclass(frozen=True, eq=False)
class Split:
    """Training and held-out rows of one set: arrays, and the training rows as files as well."""

    name: str
    l2: float  # how strongly it is regularised
    X: Any  #   CSR of float32, or a dense array
    y: Any  #   -1 and 1, float64
    held_out: tuple[Any, Any]  # rows and labels
    svm: Path  # svmlight text, columns counted from one, rows in random order
    vw: Path  #  Vowpal Wabbit text, columns counted from zero
    npz: Path | None  # dense sets only
    reading: float  #    seconds that reading X and y from text (dense: from .npz) took NumPy and scikit-learn

    @property
    def nonzeros(self) -> int:
        return int(self.X.nnz if sp.issparse(self.X) else self.X.size)

    def __str__(self) -> str:
        rows, features = self.X.shape
        return f"{self.name}: {rows:,} rows x {features:,} features, {self.nonzeros / rows:.0f} a row, l2={self.l2:g}"


def generated(name: str, rows: int, l2: float, **options: Any) -> Callable[[Path], Split]:
    """A generated kind, its last rows held out."""

    def make(folder: Path) -> Split:
        made = kind(name, rows=rows, **options).rows
        kept = round(rows * (1 - HELD_OUT))
        return _written(f"{name}-like", l2, made[:kept], made[kept:], folder)

    return make


def real(name: str, train: str, test: str, l2: float) -> Callable[[Path], Split]:
    """A real set from the folder of shared data; its rows are shuffled, because some tools take them as they come."""

    def make(folder: Path) -> Split:
        X, y = _load(io.BytesIO(gzip.decompress((SHARED / train).read_bytes())))
        test_X, test_y = _load(io.BytesIO(gzip.decompress((SHARED / test).read_bytes())), X.shape[1])
        order = np.random.default_rng(0).permutation(len(y))
        return _written(name, l2, _rows(X[order], y[order]), _rows(test_X, test_y), folder, exact=False)

    return make


# The rows of generated sets are counted with the held-out ones.
# The small ones come first: a run that is cut short has most of them.
SETS: dict[str, Callable[[Path], Split]] = {
    "reuters": real("reuters", "reuters.trn.svm.gz", "reuters.tst.svm.gz", 1e-4),
    "a9a": real("a9a", "a9a.svm.gz", "a9a.t.svm.gz", 1e-4),
    "dense": generated("dense", 30_000, 1e-4),
    "rcv1": generated("rcv1", 100_000, 1e-5),
    "clicks": generated("clicks", 200_000, 1e-5, features=1_000_000),
}
QUICK: dict[str, Callable[[Path], Split]] = {
    "rcv1": generated("rcv1", 3_000, 1e-3),
    "clicks": generated("clicks", 3_000, 1e-3, features=20_000),
    "dense": generated("dense", 2_000, 1e-3),
    "reuters": SETS["reuters"],
}


@contextmanager
def opened(make: Callable[[Path], Split]) -> Iterator[Split]:
    """A set with its files, which are gone afterwards."""
    with TemporaryDirectory() as folder:
        yield make(Path(folder))


def _written(name: str, l2: float, train: CSRRows, test: CSRRows, folder: Path, exact: bool = True) -> Split:
    svm, vw, npz = folder / "train.svm", folder / "train.vw", folder / "train.npz"
    vw.write_bytes(vw_text(train) if exact else _vw_text(train))
    dense = train.layout == "dense"
    if exact:
        svm.write_bytes(svmlight_text(train))
    else:
        with svm.open("wb") as file:
            dump_svmlight_file(_matrix(train), train.labels, file, zero_based=False)
    if dense:
        np.savez(npz, X=_matrix(train), y=train.labels)
    started = time.perf_counter()
    X, y = _load_dense(npz) if dense else _load(svm, train.features)
    reading = time.perf_counter() - started
    return Split(name, l2, X, y, (_matrix(test), test.labels), svm, vw, npz if dense else None, reading)


def _matrix(rows: CSRRows) -> Any:
    shape = len(rows), rows.features
    start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
    if rows.layout == "dense":
        return rows.values[start:stop].reshape(shape)
    values = np.ones(stop - start, np.float32) if rows.layout == "binary" else rows.values[start:stop]
    return sp.csr_matrix((values, rows.indices[start:stop].astype(np.int32), rows.indptr - start), shape)


def _rows(X: Any, y: Any) -> CSRRows:
    from hogwild.data.arrays import rows_from_arrays

    return replace(rows_from_arrays(X, y), features=X.shape[1])


def _load(source: Any, features: int | None = None) -> tuple[Any, Any]:
    X, y = load_svmlight_file(source, n_features=features, dtype=np.float32, zero_based=False)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y.astype(np.float64)


def _load_dense(path: Path) -> tuple[Any, Any]:
    with np.load(path) as arrays:
        return arrays["X"], arrays["y"].astype(np.float64)


def _vw_text(rows: CSRRows) -> bytes:
    """Values as they are, where the fast writer would round them to a millionth."""
    X, lines = _matrix(rows), []
    for i, label in enumerate(rows.labels):
        part = slice(X.indptr[i], X.indptr[i + 1])
        pairs = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
        lines.append(f"{int(label)} | " + " ".join(f"{column}:{value:.8g}" for column, value in pairs) + "\n")
    return "".join(lines).encode()
