"""SciPy's .npz files: every format SciPy saves, dense arrays, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from hogwild.data.csr import concatenate
from hogwild.data.reader import ReadOptions
from hogwild.data.readers.npz import NPZ, read
from hogwild.errors import DataError

DENSE = np.random.default_rng(0).random((40, 12)) * (np.random.default_rng(1).random((40, 12)) < 0.4)
LABELS = np.arange(40) % 3


def save(path: Path, X, **more) -> Path:
    """A file as save_npz writes it, with more arrays in it."""
    sp.save_npz(path, X)
    with np.load(path) as saved:
        arrays = {name: saved[name] for name in saved.files}
    np.savez_compressed(path, **arrays, **more)
    return path


def refused(path: Path, reading: ReadOptions | None = None) -> str:
    with pytest.raises(DataError) as caught:
        list(read(path, reading or ReadOptions(), 1 << 20))
    assert str(path) in str(caught.value)
    assert caught.value.remedy
    return str(caught.value)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_format_scipy_saves(tmp_path: Path, form: str, kind: str) -> None:
    path = save(tmp_path / "a.npz", getattr(sp, f"{form}_{kind}")(DENSE), y=LABELS, weights=LABELS / 2)
    (rows,) = read(path, ReadOptions(), 1 << 20)
    found = sp.csr_array((rows.values, rows.indices, rows.indptr), (len(rows), rows.features)).toarray()
    np.testing.assert_array_equal(found, DENSE)
    np.testing.assert_array_equal(rows.labels, LABELS)
    np.testing.assert_array_equal(rows.weights, LABELS / 2)


@pytest.mark.parametrize("piece_bytes", [1, 300, 1 << 20])
def test_pieces_are_slices(tmp_path: Path, piece_bytes: int) -> None:
    path = save(tmp_path / "a.npz", sp.csr_array(DENSE), labels=LABELS)
    pieces = list(read(path, ReadOptions(), piece_bytes))
    assert len(pieces) == {1: 40, 1 << 20: 1}.get(piece_bytes, len(pieces))
    assert all(piece.nonzeros * 12 <= max(piece_bytes, 12 * 12) for piece in pieces)
    rows = concatenate(pieces)
    np.testing.assert_array_equal(rows.values, sp.csr_array(DENSE).data)
    np.testing.assert_array_equal(rows.labels, LABELS)


def test_a_dense_array(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, X=DENSE, y=LABELS)
    rows = concatenate(list(read(path, ReadOptions(), 500)))
    assert rows.layout == "dense"
    np.testing.assert_array_equal(rows.values.reshape(DENSE.shape), DENSE)


def test_rows_without_entries(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", sp.csr_array((10_000, 5)), y=np.zeros(10_000))
    pieces = list(read(path, ReadOptions(), 100_000))
    assert sum(map(len, pieces)) == 10_000
    assert len(pieces) > 1


def test_labels_may_be_missing_for_prediction(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", sp.csr_array(DENSE))
    message = refused(path)
    assert "no labels" in message
    assert "hogwild.data.open" in message
    (rows,) = read(path, ReadOptions(unlabelled=True), 1 << 20)
    assert not rows.labels.any()


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    assert "no such file" in refused(path)
    assert "cannot be read" in refused(tmp_path)
    for bad in (b"", b"PK\x03\x04 not a zip", b"1 1:1\n"):
        path.write_bytes(bad)
        assert "cannot be read as .npz" in refused(path)
    np.savez(path, Z=DENSE, y=LABELS)
    assert "no matrix" in refused(path)
    np.savez(path, X=np.array([[1, "a"]], object), y=[1])
    assert "cannot be read" in refused(path)
    np.savez(path, X=np.array([["a"]]), y=[1])
    assert "not numbers" in refused(path)
    np.savez(path, X=DENSE, y=LABELS[:-1])
    assert "40 rows" in refused(path)
    np.savez(path, X=DENSE, y=LABELS, weights=-np.ones(40))
    assert "negative" in refused(path)
    np.savez(path, format="xyz", y=LABELS)
    assert "cannot be read" in refused(path)
    with path.open("wb") as file:
        np.save(file, DENSE)
    assert "one array" in refused(path)


def test_a_truncated_file(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", sp.csr_array(DENSE), y=LABELS)
    whole = path.read_bytes()
    for cut in range(0, len(whole), 97):
        path.write_bytes(whole[:cut])
        assert "cannot be read" in refused(path)


def test_indices_outside_the_shape_never_reach_scipy(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    for form in ("csr", "csc"):
        matrix = getattr(sp, f"{form}_array")(DENSE)
        indices = matrix.indices.copy()
        indices[3] = 10**6
        np.savez(
            path, format=form, shape=matrix.shape, data=matrix.data, indices=indices, indptr=matrix.indptr, y=LABELS
        )
        assert "1000000" in refused(path)


def test_the_reader_says_what_it_reads() -> None:
    assert (NPZ.name, NPZ.endings, NPZ.counts_from_one) == ("npz", (".npz",), False)
