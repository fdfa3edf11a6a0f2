from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hogwild.data.csr import CSRRows, concatenate
from hogwild.data.generate import KINDS, Generated, classification, kind, multiclass, pieces, regression, write
from hogwild.data.generate.linear_model import predictions
from hogwild.data.reader import ReadOptions
from hogwild.data.readers.svmlight import read as read_svmlight
from hogwild.data.readers.vw import read as read_vw
from hogwild.errors import ParameterError

SMALL: dict[str, dict[str, Any]] = {
    "classification": {"features": 200, "nonzeros": 20},
    "regression": {"features": 200, "nonzeros": 20},
    "multiclass": {"features": 200, "nonzeros": 20, "classes": 4},
    "rcv1": {},
    "clicks": {"features": 100_000},
    "dense": {"features": 12},
    "interactions": {"features": 60, "fields": 6},
}


def matrix(rows: CSRRows) -> Any:
    shape = (len(rows), rows.features)
    if rows.layout == "dense":
        return rows.values.reshape(shape)
    values = np.ones(rows.nonzeros, np.float32) if rows.layout == "binary" else rows.values
    return sp.csr_array((values, rows.indices.astype(np.int64), rows.indptr), shape=shape)


def assert_same(one: CSRRows, other: CSRRows) -> None:
    assert (one.features, one.layout) == (other.features, other.layout)
    for name in ("indptr", "indices", "values", "labels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_every_kind_is_tried_here() -> None:
    assert set(SMALL) == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_rows_are_well_formed(name: str) -> None:
    rows = kind(name, rows=700, **SMALL[name]).rows
    assert len(rows) == len(rows.labels) == 700
    assert np.isfinite(rows.labels).all()
    if rows.layout != "dense":
        assert rows.indices.dtype == np.uint32
        for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            found = rows.indices[start:stop].astype(np.int64)
            assert (np.diff(found) > 0).all()
            assert 0 < len(found) <= kind(name, **SMALL[name]).nonzeros  # type: ignore[operator]
            assert found[-1] < rows.features
    if rows.layout != "binary":
        norms = np.sqrt(np.asarray((matrix(rows) ** 2).sum(axis=1)).ravel())
        np.testing.assert_allclose(norms, 1, atol=1e-4)
        assert rows.values.dtype == np.float32


@pytest.mark.parametrize("name", KINDS)
def test_one_seed_gives_the_same_rows_and_another_gives_others(name: str) -> None:
    one, same, other = (kind(name, rows=300, seed=seed, **SMALL[name]) for seed in (5, 5, 6))
    assert_same(one.rows, same.rows)
    np.testing.assert_array_equal(one.weights, same.weights)
    assert not np.array_equal(one.weights, other.weights)
    if one.nonzeros is not None:
        assert one.rows.indices[:50].tolist() != other.rows.indices[:50].tolist()


def test_rows_do_not_depend_on_how_many_are_asked_for() -> None:
    few, many = (Generated("regression", n, 500, 300, noise=0.1) for n in (100, 5_000))
    assert many.block_rows < 5_000
    head = many.rows[:100]
    np.testing.assert_array_equal(few.rows.labels, head.labels)
    np.testing.assert_array_equal(few.rows.indices, head.indices[: few.rows.nonzeros])


def test_pieces_are_the_rows() -> None:
    found = list(pieces("classification", rows=60_000, features=50, nonzeros=20))
    assert len(found) > 1
    assert_same(concatenate(found), classification(60_000, 50, nonzeros=20).rows)


def test_without_noise_planted_weights_solve_a_regression_exactly() -> None:
    made = regression(400, 60, nonzeros=10, noise=0.0, seed=2)
    X = matrix(made.rows).toarray().astype(np.float64)
    residual = X @ made.weights + made.intercept - made.rows.labels
    assert np.abs(residual).max() < 1e-12
    solved = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), made.rows.labels, rcond=None)[0]
    np.testing.assert_allclose(solved, [*made.weights, made.intercept], atol=1e-4)


def test_regression_noise_has_the_size_asked_for() -> None:
    made = regression(20_000, 60, noise=0.5)
    residual = made.rows.labels - predictions(made.rows, made.weights, float(made.intercept))
    assert residual.std() == pytest.approx(0.5, rel=0.05)


def test_without_noise_planted_weights_separate_the_classes() -> None:
    made = classification(2_000, 100, noise=0.0)
    assert set(made.rows.labels) == {-1.0, 1.0}
    assert (made.rows.labels * predictions(made.rows, made.weights, float(made.intercept)) > 0).all()


def test_without_noise_planted_weights_tell_all_classes_apart() -> None:
    made = multiclass(2_000, 100, classes=4, noise=0.0)
    z = matrix(made.rows) @ made.weights.T.astype(np.float64) + made.intercept
    np.testing.assert_array_equal(made.rows.labels, np.argmax(z, axis=1))
    assert len(set(made.rows.labels)) == 4


def test_planted_weights_over_the_noise_minimise_the_logistic_loss() -> None:
    made = classification(40_000, 20, nonzeros=5, noise=1.5, seed=1)
    rows = made.rows

    def loss(factor: float) -> float:
        z = predictions(rows, made.weights * np.float32(factor), float(made.intercept) * factor)
        return float(np.logaddexp(0, -z * rows.labels).mean())

    assert loss(1 / 1.5) < min(loss(0.8 / 1.5), loss(1.25 / 1.5))


def test_frequencies_fall_like_words() -> None:
    made = classification(20_000, 1_000, nonzeros=10, exponent=1.0)
    frequencies = np.sort(np.bincount(made.rows.indices, minlength=1_000))[::-1]
    expected = 1 / (np.arange(1_000) + 10.5)
    ranks = [5, 20, 100, 400]
    np.testing.assert_allclose(
        frequencies[ranks] / frequencies[ranks[0]], expected[ranks] / expected[ranks[0]], rtol=0.2
    )
    uniform = np.bincount(classification(20_000, 100, nonzeros=10, exponent=0.0).rows.indices, minlength=100)
    assert uniform.max() < 1.2 * uniform.min()


@pytest.mark.parametrize("ending", [".svm", ".svm.gz", ".vw", ".vw.gz"])
@pytest.mark.parametrize("name", KINDS)
def test_text_reads_back_as_the_same_rows(tmp_path: Path, name: str, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    made = write(name, path, rows=300, **SMALL[name])
    if ".vw" in ending:
        rows = concatenate(list(read_vw(path, ReadOptions(bits=17), 1 << 24)))
    else:
        rows = concatenate(list(read_svmlight(path, ReadOptions(), 1 << 24)))
    first = 0 if ".vw" in ending else 1
    X, found = matrix(made.rows), rows.indices.astype(np.int64) - first
    back = sp.csr_array((rows.values, found, rows.indptr), shape=X.shape).toarray()
    np.testing.assert_array_equal(back, X if made.rows.layout == "dense" else X.toarray())
    np.testing.assert_array_equal(rows.labels, made.rows.labels)


@pytest.mark.parametrize("name", KINDS)
def test_arrays_read_back_as_the_same_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.npz"
    made = write(name, path, rows=300, weights=tmp_path / "w.npz", **SMALL[name])
    with np.load(path) as file, np.load(tmp_path / "w.npz") as planted:
        np.testing.assert_array_equal(file["y"], made.rows.labels)
        np.testing.assert_array_equal(planted["weights"], made.weights)
        np.testing.assert_array_equal(planted["intercept"], made.intercept)
        if made.rows.layout == "dense":
            np.testing.assert_array_equal(file["X"], matrix(made.rows))
            return
    assert abs(sp.load_npz(path) - matrix(made.rows)).nnz == 0


def test_one_seed_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write("classification", tmp_path / f"{name}.svm.gz", rows=50, features=40)
    assert (tmp_path / "a.svm.gz").read_bytes() == (tmp_path / "b.svm.gz").read_bytes()
    assert len(gzip.decompress((tmp_path / "a.svm.gz").read_bytes()).splitlines()) == 50


def test_progress_counts_rows(tmp_path: Path) -> None:
    seen: list[int] = []
    write("clicks", tmp_path / "a.vw", rows=40_000, features=1_000, progress=seen.append)
    assert seen == sorted(set(seen))
    assert (len(seen) > 1, seen[-1]) == (True, 40_000)


def test_a_file_is_not_overwritten_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("precious")
    with pytest.raises(ParameterError, match="exists already"):
        write("dense", path, rows=5)
    assert path.read_text() == "precious"
    with pytest.raises(ParameterError, match="exists already"):
        write("dense", tmp_path / "b.svm", rows=5, weights=path)
    assert not (tmp_path / "b.svm").exists()
    write("dense", path, rows=5, overwrite=True)
    assert path.read_text() != "precious"


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write("dense", tmp_path / "a.svm", rows=5, progress=fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "file", "options", "what"),
    [
        ("nonsense", "a.svm", {}, "must be one of classification"),
        ("rcv1", "a.csv", {}, "must end in one of .svm"),
        ("rcv1", "a.npz.gz", {}, "must end in one of"),
        ("rcv1", "none/a.svm", {}, "there is no folder"),
        ("rcv1", "a.svm", {"classes": 3}, "no 'classes' for the kind 'rcv1'"),
        ("rcv1", "a.svm", {"rows": 0}, "'rows'"),
        ("rcv1", "a.svm", {"features": 0}, "'features'"),
        ("rcv1", "a.svm", {"features": 2**40}, "'features'"),
        ("rcv1", "a.svm", {"nonzeros": 99, "features": 50}, "'nonzeros'"),
        ("rcv1", "a.svm", {"noise": -1.0}, "'noise'"),
        ("rcv1", "a.svm", {"noise": float("nan")}, "'noise'"),
        ("rcv1", "a.svm", {"exponent": -1.0}, "'exponent'"),
        ("rcv1", "a.svm", {"seed": -1}, "'seed'"),
        ("multiclass", "a.svm", {"classes": 1}, "'classes'"),
    ],
)
def test_wrong_parameters_are_named(tmp_path: Path, name: str, file: str, options: dict[str, Any], what: str) -> None:
    with pytest.raises(ParameterError, match=what.replace(".", r"\.")):
        write(name, tmp_path / file, **options)
    assert list(tmp_path.iterdir()) == []
