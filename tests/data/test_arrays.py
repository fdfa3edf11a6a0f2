"""Arrays become rows: no copy where none is needed, and nothing damaged passes."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hogwild.data.arrays import rows_from_arrays
from hogwild.data.csr import CSRRows
from hogwild.errors import DataError


def csr(index_type: type = np.int32, value_type: type = np.float32, kind: type = sp.csr_array):
    X = kind((np.array([1, 2, 3, 4], value_type), np.array([0, 3, 1, 4]), np.array([0, 2, 2, 4])), shape=(3, 5))
    X.indices, X.indptr = X.indices.astype(index_type), X.indptr.astype(index_type)
    return X


def to_dense(rows: CSRRows) -> np.ndarray:
    dense = np.zeros((len(rows), rows.features))
    for row, (start, stop) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        columns = slice(None) if rows.layout == "dense" else rows.indices[start:stop]
        dense[row, columns] = rows.values[start:stop]
    return dense


def refused(X, y=(0, 1, 0), weights=None) -> DataError:
    with pytest.raises(DataError) as caught:
        rows_from_arrays(X, y, weights)
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize(("index_type", "unsigned"), [(np.int32, np.uint32), (np.int64, np.uint64)])
@pytest.mark.parametrize("value_type", [np.float32, np.float64])
def test_csr_is_not_copied(kind: type, index_type: type, unsigned: type, value_type: type) -> None:
    X = csr(index_type, value_type, kind)
    rows = rows_from_arrays(X, [1, 0, 1])
    assert np.shares_memory(rows.indices, X.indices)
    assert np.shares_memory(rows.values, X.data)
    assert (rows.indices.dtype, rows.values.dtype, rows.indptr.dtype) == (unsigned, value_type, np.int64)
    assert rows.layout == "sparse"
    np.testing.assert_array_equal(to_dense(rows), X.toarray())


@pytest.mark.parametrize("value_type", [np.float32, np.float64])
def test_a_dense_array_is_not_copied(value_type: type) -> None:
    X = np.arange(6, dtype=value_type).reshape(3, 2)
    rows = rows_from_arrays(X, [1, 0, 1])
    assert np.shares_memory(rows.values, X)
    assert (rows.layout, rows.features, rows.values.dtype) == ("dense", 2, value_type)
    np.testing.assert_array_equal(to_dense(rows), X)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_every_sparse_format(form: str) -> None:
    dense = np.random.default_rng(0).random((6, 8)) * (np.random.default_rng(1).random((6, 8)) < 0.4)
    for kind in ("array", "matrix"):
        rows = rows_from_arrays(getattr(sp, f"{form}_{kind}")(dense), np.zeros(6))
        np.testing.assert_array_equal(to_dense(rows), dense)


@pytest.mark.parametrize(
    ("dtype", "floats"),
    [(bool, "f4"), ("i1", "f4"), ("u2", "f4"), ("f2", "f4"), (">f4", "f4"), ("i4", "f8"), ("u8", "f8"), (">f8", "f8")],
)
def test_other_numbers_are_converted(dtype: str, floats: str) -> None:
    dense = np.array([[0, 1, 0], [1, 0, 1]], dtype)
    for X in (dense, np.asfortranarray(dense), dense[:, ::-1]):
        rows = rows_from_arrays(X, [0, 1])
        assert rows.values.dtype == floats
        np.testing.assert_array_equal(to_dense(rows), X)
    if np.dtype(dtype).isnative and dtype != "f2":
        np.testing.assert_array_equal(to_dense(rows_from_arrays(sp.csr_array(dense), [0, 1])), dense)


def test_disorder_is_put_right_in_a_copy() -> None:
    X = sp.csr_array((np.array([1.0, 2.0, 3.0, 4.0]), np.array([3, 1, 1, 0]), np.array([0, 3, 4])), shape=(2, 5))
    before = X.indices.copy(), X.data.copy()
    X.has_sorted_indices = X.has_canonical_format = True  # flags are not believed
    rows = rows_from_arrays(X, [0, 1])
    np.testing.assert_array_equal(rows.indices, [1, 3, 0])
    np.testing.assert_array_equal(rows.values, [5, 1, 4])
    np.testing.assert_array_equal(X.indices, before[0])
    np.testing.assert_array_equal(X.data, before[1])


@settings(deadline=None)
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(-9, 9)))
def test_sparse_and_dense_say_the_same(dense: np.ndarray) -> None:
    y = np.arange(len(dense))
    for X in (dense, dense.tolist(), sp.csr_array(dense), sp.csc_matrix(dense)):
        rows = rows_from_arrays(X, y)
        np.testing.assert_array_equal(to_dense(rows), dense)
        np.testing.assert_array_equal(rows.labels, y)


def test_data_frames() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    rows = rows_from_arrays(frame, pd.Series([True, False], name="y"), pd.Series([1, 2]))
    np.testing.assert_array_equal(to_dense(rows), frame.to_numpy())
    assert (rows.labels.tolist(), rows.weights.tolist()) == ([1, 0], [1, 2])
    assert "not numbers" in str(refused(pd.DataFrame({"a": ["x", "y"]}), [0, 1]))


def damaged(**changes: object):
    X = csr(np.int64)
    for name, value in changes.items():
        setattr(X, name, np.asarray(value))
    return X


@pytest.mark.parametrize(
    ("X", "row", "column", "words"),
    [
        (damaged(indices=[0, 3, 1, 5]), 2, 5, "index 5 is not within 0 and 4"),
        (damaged(indices=[0, -1, 1, 4]), 0, -1, "index -1"),
        (damaged(data=[1.0, 2.0, np.nan, 4.0]), 2, 1, "nan is not finite"),
        (damaged(data=[1.0, np.inf, 3.0, 4.0]), 0, 3, "inf is not finite"),
        (damaged(indptr=[0, 3, 2, 4]), None, None, "row 1 starts at entry 3 and ends at 2"),
        (damaged(indptr=[0, 2, 2, 400]), None, None, "ends at 400 of 4"),
        (damaged(indptr=[-5, 2, 2, 4]), None, None, "row 0 starts at entry -5"),
        (damaged(indptr=[0, 2, 4]), None, None, "do not fit"),
        (damaged(indices=[0, 3, 1]), None, None, "do not fit"),
        (np.array([[1.0, 2.0], [3.0, np.nan], [0.0, 0.0]]), 1, 1, "nan is not finite"),
        (np.array([[1.0, -np.inf], [3.0, 0.0], [0.0, 0.0]]), 0, 1, "-inf is not finite"),
        (np.array([["a"], ["b"], ["c"]]), None, None, "not numbers"),
        (np.array([[1], [None], ["c"]], object), None, None, "not numbers"),
        (np.ones((3, 2), complex), None, None, "not numbers"),
        ([[1, 2], [3], [4]], None, None, "cannot be made into an array"),
        (np.ones(3), None, None, "shape is (3,)"),
        (np.ones((3, 2, 1)), None, None, "shape is (3, 2, 1)"),
        (np.ones((0, 2)), None, None, "shape is (0, 2)"),
        (sp.csr_array((3, 0)), None, None, "shape is (3, 0)"),
        (np.ma.masked_invalid([[1.0], [np.nan], [2.0]]), None, None, "masked"),
    ],
)
def test_damaged_matrices(X, row: int | None, column: int | None, words: str) -> None:
    error = refused(X)
    assert (error.row, error.column) == (row, column)
    assert words in str(error)


def test_other_formats_are_checked_before_scipy_converts_them() -> None:
    for form in ("csc", "bsr"):
        X = getattr(sp, f"{form}_array")(np.eye(3))
        X.indices = X.indices + 10**8
        assert "not within" in str(refused(X))
    X = sp.coo_array(np.eye(3))
    X.row[0] = 10**8
    assert "outside its shape" in str(refused(X))


def test_sums_of_duplicates_that_overflow() -> None:
    huge = np.finfo(np.float32).max
    X = sp.csr_array((np.array([huge, huge], np.float32), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    assert "not finite" in str(refused(X, [1]))


@pytest.mark.parametrize("y", [[1, 0, 1], (True, False, True), np.array([1, 0, 1], np.uint8), np.array([1.0, 0, 1])])
def test_labels_of_any_number_type(y) -> None:
    rows = rows_from_arrays(csr(), y)
    assert rows.labels.dtype == np.float64
    assert rows.labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("y", "row", "words"),
    [
        (None, None, "no labels"),
        (["a", "b", "a"], None, "not numbers"),
        (np.array([1, None, 2], object), None, "not numbers"),
        ([1, 2], None, "shape (2,), but there are 3 rows"),
        ([[1], [2], [3]], None, "shape (3, 1)"),
        ([0, np.nan, 1], 1, "the label nan is not finite"),
        ([0, 1, np.inf], 2, "the label inf is not finite"),
    ],
)
def test_labels_that_are_refused(y, row: int | None, words: str) -> None:
    error = refused(csr(), y)
    assert error.row == row
    assert words in str(error)


def test_labels_may_be_missing_for_prediction() -> None:
    assert rows_from_arrays(csr(), unlabelled=True).labels.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("weights", "row", "words"),
    [
        ([1, -1, 1], 1, "weight -1.0 is negative"),
        ([1, 1, np.nan], 2, "not finite"),
        ([1, 1e39, 1], 1, "too large"),
        ([1, 1], None, "shape (2,)"),
        (["a", "b", "c"], None, "not numbers"),
    ],
)
def test_weights_that_are_refused(weights, row: int | None, words: str) -> None:
    error = refused(csr(), weights=weights)
    assert error.row == row
    assert words in str(error)


def test_weights_are_float32_and_may_be_absent() -> None:
    assert rows_from_arrays(csr(), [1, 0, 1], [0, 1, 2]).weights.dtype == np.float32
    assert rows_from_arrays(csr(), [1, 0, 1]).weights.size == 0
