"""Damaged .npz files, as bytes and array by array: a clear error, or the same rows that plain Python finds in them."""

import io
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from damage import TIMES, damage

from hogwild.data.csr import CSRRows
from hogwild.data.reader import ReadOptions
from hogwild.data.readers.npz import read
from hogwild.errors import DataError

Arrays = dict[str, Any]
Entries = dict[tuple[int, int], float]


def sample(seed: int, form: str) -> Arrays:
    rng = np.random.default_rng(seed)
    dense = np.round(rng.standard_normal((6, 8)) * (rng.random((6, 8)) < 0.4), 3)
    arrays: Arrays = {"y": rng.integers(0, 2, 6), "weights": rng.random(6)}
    if form == "dense":
        return {**arrays, "X": dense}
    buffer = io.BytesIO()
    sp.save_npz(buffer, getattr(sp, f"{form}_array")(dense), compressed=False)
    buffer.seek(0)
    with np.load(buffer) as saved:
        return {**arrays, **{name: saved[name] for name in saved.files}}


def entries(arrays: Arrays) -> Entries | None:
    """What the arrays of a CSR file stand for, found with loops; None if they stand for no matrix."""
    found: Entries = {}
    try:
        n, d = (int(size) for size in arrays["shape"])
        indptr, indices, data = (np.asarray(arrays[name]) for name in ("indptr", "indices", "data"))
        whole = all(np.asarray(arrays[name]).dtype.kind in "iu" for name in ("indptr", "indices", "shape"))
        fits = indptr.shape == (n + 1,) and indices.shape == data.shape and indices.ndim == 1
        if not (whole and fits and indptr[0] == 0 and n > 0 and d > 0 and data.dtype.kind in "biuf"):
            return None
        for row, (start, stop) in enumerate(pairwise(indptr.tolist())):
            if not start <= stop <= len(indices):
                return None
            for at in range(start, stop):
                if not 0 <= indices[at] < d or not np.isfinite(data[at]):
                    return None
                place = row, int(indices[at])
                found[place] = found.get(place, 0.0) + float(data[at])
    except (KeyError, ValueError, TypeError):
        return None
    return found


def attempt(path: Path) -> list[CSRRows] | DataError:
    try:
        return list(read(path, ReadOptions(), 64))
    except DataError as error:
        return error


def read_entries(pieces: list[CSRRows]) -> Entries:
    found: Entries = {}
    row = 0
    for rows in pieces:
        for start, stop in pairwise(rows.indptr):
            columns = range(rows.features) if rows.layout == "dense" else rows.indices[start:stop].tolist()
            found |= {
                (row, column): value for column, value in zip(columns, rows.values[start:stop].tolist(), strict=True)
            }
            row += 1
    return found


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "dense"])
def test_damaged_bytes_are_refused_or_change_nothing(tmp_path: Path, form: str) -> None:
    path, refused = tmp_path / "damaged.npz", 0
    arrays = sample(1, form)
    np.savez(path, **arrays)
    good, expected = path.read_bytes(), read_entries(list(read(path, ReadOptions(), 64)))
    for seed in range(max(10, TIMES // 6)):
        path.write_bytes(damage(good, random.Random(f"{form} {seed}")))
        outcome = attempt(path)
        if isinstance(outcome, DataError):
            assert str(path) in str(outcome)
            assert outcome.remedy
            refused += 1
        else:
            assert read_entries(outcome) == expected
            labels = np.concatenate([piece.labels for piece in outcome])
            np.testing.assert_array_equal(labels, arrays["y"])
    assert refused


def damage_arrays(arrays: Arrays, rng: random.Random) -> Arrays:
    """One array of a file with an entry changed, cut, grown, retyped, reshaped or gone."""
    name = rng.choice(["indptr", "indices", "data", "shape"])
    array = np.array(arrays[name])
    at = rng.randrange(len(array))
    kind = rng.choice(["set", "set", "set", "cut", "grow", "retype", "reshape", "drop", "shuffle"])
    if kind == "set":
        array[at] = rng.choice([-1, 0, 1, 2, 3, 7, 8, 9, 2**31 - 1, -(2**31)])
    elif kind == "cut":
        array = array[:at]
    elif kind == "grow":
        array = np.append(array, array[at])
    elif kind == "retype":
        array = array.astype(rng.choice(["f4", "f8", "i8", "i4", "u1", "c8", "S3", "?"]))
    elif kind == "reshape":
        array = array.reshape(1, -1)
    elif kind == "shuffle":
        array = array[::-1].copy()
    return {**{key: value for key, value in arrays.items() if key != name}, **({} if kind == "drop" else {name: array})}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_damaged_arrays_are_refused_or_still_a_matrix(tmp_path: Path) -> None:
    path, refused = tmp_path / "damaged.npz", 0
    for seed in range(TIMES):
        arrays = damage_arrays(sample(seed, "csr"), random.Random(seed))
        np.savez(path, **arrays)
        outcome, expected = attempt(path), entries(arrays)
        if isinstance(outcome, DataError):
            assert str(path) in str(outcome)
            assert outcome.remedy
            assert expected is None, f"refused although it is valid: {outcome} {arrays}"
            refused += 1
        else:
            assert expected is not None, f"accepted although it is damaged: {arrays}"
            assert read_entries(outcome) == pytest.approx(expected, rel=1e-6)
    assert refused > TIMES // 4
