import bz2
import gzip

import numpy as np
import pytest
import scipy.sparse
from backports import zstd
from making import as_dicts, fake_file, random_rows, reader_of, walked

import hogwild.data
from hogwild.data import InMemoryDataset, PackedDataset, ReadOptions, loader
from hogwild.data.packing.pack import pack
from hogwild.errors import DataError, ParameterError

SVM = "1 1:0.5 3:2\n-1 2:1\n"
VW = "1 |a b:2 c\n-1 |a c\n"


def test_a_file_is_read_and_shuffled_or_left_in_order(tmp_path):
    rows, path = random_rows(0, 300, weighted=True), fake_file(tmp_path)
    shuffled = hogwild.data.open(path, readers=[reader_of(rows)])
    kept = hogwild.data.open(str(path), shuffle=False, readers=[reader_of(rows)])
    assert np.array_equal(kept.labels(), np.arange(300))
    assert not np.array_equal(shuffled.labels(), np.arange(300))
    assert walked(shuffled.epoch(0, 0)) == walked(kept.in_order()) == as_dicts(rows)
    assert shuffled.shuffled
    assert not kept.shuffled
    assert shuffled.name == "a.fake"
    again = hogwild.data.open(path, readers=[reader_of(rows, pieces=7)])
    assert again.fingerprint == shuffled.fingerprint


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.svm", SVM.encode()),
        ("a.svm.gz", gzip.compress(SVM.encode(), mtime=0)),
        ("a.libsvm.bz2", bz2.compress(SVM.encode())),
        ("a.vw", VW.encode()),
        ("noending", SVM.encode()),
        ("noending2", VW.encode()),
        ("odd.name", gzip.compress(VW.encode(), mtime=0)),
        ("odd.txt", b"\n" + VW.encode()),
        ("a.svm.zst", zstd.compress(SVM.encode())),
        ("odd.data", zstd.compress(VW.encode())),
        ("odd.gz", gzip.compress(SVM.encode(), mtime=0)),
    ],
)
def test_the_format_is_known_by_name_or_by_the_first_bytes(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    data = hogwild.data.open(path)
    is_vw = b"|" in content or name == "odd.name"
    assert data.n_features == (2**18 if is_vw else 3)
    assert sorted(data.labels()) == [-1.0, 1.0]


def test_npz_without_its_ending(tmp_path):
    with (tmp_path / "matrix").open("wb") as file:
        np.savez(file, X=np.eye(3), y=[1, 2, 3])
    data = hogwild.data.open(tmp_path / "matrix")
    assert (data.n_rows, data.layout) == (3, "dense")
    assert data.rows.values.dtype == np.float32


def test_the_format_can_be_given(tmp_path):
    (tmp_path / "a.vw").write_text(SVM)
    assert hogwild.data.open(tmp_path / "a.vw", reading=ReadOptions(format="svmlight")).n_features == 3
    with pytest.raises(ParameterError, match="Did you mean 'svmlight'"):
        hogwild.data.open(tmp_path / "a.vw", reading=ReadOptions(format="svmlite"))


def test_several_files_are_one_data_set_with_one_base(tmp_path):
    (tmp_path / "a.svm").write_text(SVM)
    (tmp_path / "b.svm").write_text("2 0:1 4:1\n")
    data = hogwild.data.open([tmp_path / "a.svm", str(tmp_path / "b.svm")], shuffle=False)
    assert (data.n_rows, data.n_features, data.base) == (3, 5, 0)
    assert walked(data.in_order())[1.0][0] == (1, 3)


def test_ones_are_dropped(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1 3:1\n2 2:1\n")
    data = hogwild.data.open(tmp_path / "a.svm")
    assert data.layout == "binary"
    assert data.rows.values.size == 0
    assert walked(data.in_order()) == {1.0: ((0, 2), (1.0, 1.0), 1.0), 2.0: ((1,), (1.0,), 1.0)}


def test_the_base_can_be_given(tmp_path):
    (tmp_path / "a.svm").write_text(SVM)
    assert hogwild.data.open(tmp_path / "a.svm", reading=ReadOptions(base=0)).n_features == 4
    fake = fake_file(tmp_path)
    rows = random_rows(0)
    with pytest.raises(DataError, match=r"a\.fake, row \d+: index 0 in a file that counts from 1"):
        hogwild.data.open(fake, reading=ReadOptions(base=1), readers=[reader_of(rows, counts_from_one=True)])


def test_features_beyond_the_last_are_refused_or_ignored(tmp_path):
    rows, path = random_rows(0, 60, 30), fake_file(tmp_path)
    first = next(row for row, (columns, _, _) in as_dicts(rows).items() if columns and columns[-1] >= 20)
    with pytest.raises(DataError, match=rf"a\.fake, row {int(first) + 1}: index .* beyond the last of 20 features"):
        hogwild.data.open(path, reading=ReadOptions(features=20), readers=[reader_of(rows)])
    data = hogwild.data.open(path, reading=ReadOptions(features=20, extra="ignore"), readers=[reader_of(rows)])
    expected = {
        label: (kept, values[: len(kept)], weight)
        for label, (columns, values, weight) in as_dicts(rows).items()
        for kept in [tuple(column for column in columns if column < 20)]
    }
    assert walked(data.in_order()) == expected
    assert data.n_features == 20
    wide = hogwild.data.open(path, reading=ReadOptions(features=99), readers=[reader_of(rows)])
    assert wide.n_features == len(wide.frequencies()) == 99


def test_an_index_too_large_for_the_memory(tmp_path, monkeypatch):
    (tmp_path / "a.svm").write_text("1 1:1 2000000000:1\n")
    monkeypatch.setattr(loader, "available_bytes", lambda: 2**30)
    monkeypatch.setattr(loader, "mostly_absent", lambda features, nonzeros: False)  # as if most features occurred
    with pytest.raises(DataError, match=r"largest index is 2,000,000,000.*7\.5 GiB.*number the features"):
        hogwild.data.open(tmp_path / "a.svm")


def test_a_file_too_large_for_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(loader, "available_bytes", lambda: 2_000)
    with pytest.raises(DataError, match=r"a\.fake: 2\.0 KiB of memory are left, .*160\.0 MiB or more"):
        hogwild.data.open(fake_file(tmp_path), readers=[reader_of(random_rows(0))])
    monkeypatch.setattr(loader, "_LEAST_ROOM", 0)
    with pytest.raises(DataError, match=r"a\.fake: the rows do not fit.*hogwild pack"):
        hogwild.data.open(fake_file(tmp_path), readers=[reader_of(random_rows(0))])
    monkeypatch.undo()
    with pytest.raises(DataError, match="do not fit"):
        hogwild.data.open(fake_file(tmp_path), memory="1KB", readers=[reader_of(random_rows(0))])


def test_values_that_are_too_large_for_single_precision(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.array([[1.0, 2.0], [3.0, 1e300]]), y=[0, 1])
    with pytest.raises(DataError, match=r"a\.npz, row 1, column 1: the value 1e\+300 is too large"):
        hogwild.data.open(tmp_path / "a.npz")


def test_a_missing_path_proposes_what_is_there(tmp_path):
    (tmp_path / "adverts.svm").write_text(SVM)
    with pytest.raises(DataError, match=r"advert\.svm: there is no such file.*Did you mean '.*adverts\.svm'"):
        hogwild.data.open(tmp_path / "advert.svm")
    with pytest.raises(DataError, match="Check the path"):
        hogwild.data.open(tmp_path / "no" / "such" / "folder")


def test_a_folder_must_be_a_packed_one(tmp_path):
    with pytest.raises(DataError, match="not a packed one"):
        hogwild.data.open(tmp_path)
    (tmp_path / "a.svm").write_text(SVM)
    pack([tmp_path / "a.svm"], tmp_path / "out")
    data = hogwild.data.open(tmp_path / "out", memory="1TiB")
    assert isinstance(data, PackedDataset)
    assert data.n_rows == 2
    with pytest.raises(DataError, match="opened alone"):
        hogwild.data.open([tmp_path / "out", tmp_path / "a.svm"])
    with pytest.raises(DataError, match="3 features, and 5 are expected"):
        hogwild.data.open(tmp_path / "out", reading=ReadOptions(features=5))
    with pytest.raises(DataError, match="packed folder already"):
        pack([tmp_path / "out"], tmp_path / "again")


def test_arrays_are_not_copied_and_keep_their_order():
    X = scipy.sparse.random_array((50, 20), density=0.3, format="csr", dtype=np.float32, random_state=0)
    data = hogwild.data.open(X, np.arange(50), np.ones(50))
    assert isinstance(data, InMemoryDataset)
    assert np.shares_memory(data.rows.values, X.data)
    assert np.array_equal(data.labels(), np.arange(50))
    assert np.array_equal(data.frequencies(), (X != 0).sum(axis=0))
    assert hogwild.data.open(data) is data
    with pytest.raises(ParameterError, match="given with arrays"):
        hogwild.data.open(data, np.arange(50))
    with pytest.raises(DataError, match="20 columns, and 3 are expected"):
        hogwild.data.open(X, np.arange(50), reading=ReadOptions(features=3))


def test_dense_arrays():
    data = hogwild.data.open(np.eye(3), [1, 2, 3])
    assert (data.layout, data.nonzeros) == ("dense", 9)
    assert np.array_equal(data.frequencies(), [3, 3, 3])
    assert walked(data.epoch(0, 0)).keys() == {1.0, 2.0, 3.0}


def test_nothing_at_all(tmp_path):
    with pytest.raises(DataError, match="no rows"):
        hogwild.data.open(fake_file(tmp_path), readers=[reader_of(random_rows(0)[:0])])
    with pytest.raises(DataError, match="at least one row"):
        hogwild.data.open(np.empty((0, 3)), np.empty(0))
    (tmp_path / "a.svm").write_text("1\n2\n")
    with pytest.raises(DataError, match="no row has any feature"):
        hogwild.data.open(tmp_path / "a.svm")


def test_compressed_formats_that_are_not_text(tmp_path):
    (tmp_path / "a.npz.gz").write_bytes(gzip.compress(b"x"))
    with pytest.raises(DataError, match="Unpack the file first"):
        hogwild.data.open(tmp_path / "a.npz.gz")


def test_pieces_of_different_kinds(tmp_path):
    pieces = iter([random_rows(0, 10, 5), random_rows(0, 10, 5, "dense")])
    reader = reader_of(random_rows(0))
    mixed = type(reader)("fake", (".fake",), lambda *_: pieces)
    with pytest.raises(DataError, match="the rows are dense with 5 columns, those before them are sparse with 5"):
        hogwild.data.open(fake_file(tmp_path), readers=[mixed])


def test_a_limit_below_what_the_program_takes_is_refused_for_packed_data(tmp_path):
    (tmp_path / "a.svm").write_text(SVM)
    hogwild.data.pack([tmp_path / "a.svm"], tmp_path / "a.packed", memory=2**40)
    with pytest.raises(ParameterError, match=r"must be at least .*, the program included\. Got 1\.0 MiB instead"):
        hogwild.data.open(tmp_path / "a.packed", memory="1MiB")
