"""Reader of ``.npz`` files: a matrix as ``scipy.sparse.save_npz`` writes it, or a dense array ``X``, with labels.

The labels are the array ``y`` (or ``labels``) of the same file, and the weights of the rows are the array ``weights``.
The reader never loads pickled objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile, is_zipfile

import numpy as np

from hogwild.data.arrays import rows_from_arrays
from hogwild.data.csr import Array, CSRRows
from hogwild.data.reader import Reader, ReadOptions
from hogwild.errors import DataError


def read(path: Path, reading: ReadOptions, piece_bytes: int) -> Iterator[CSRRows]:
    """Yield the rows of a file in pieces, which are views of the arrays in the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "a.npz"), X=np.eye(3), y=[1, 0, 1])
    ...     (rows,) = read(Path(folder, "a.npz"), ReadOptions(), 1 << 20)
    >>> len(rows), rows.features, rows.labels
    (3, 3, array([1., 0., 1.]))
    """
    X, y, weights = _arrays(path, reading)
    rows = rows_from_arrays(X, y, weights, unlabelled=reading.unlabelled, path=path)
    entry_bytes = rows.values.itemsize + (rows.indices.itemsize if rows.layout == "sparse" else 0)
    room = max(1, piece_bytes // entry_bytes)
    start = 0
    while start < len(rows):
        end = int(np.searchsorted(rows.indptr, rows.indptr[start] + room, side="right")) - 1
        stop = min(max(start + 1, end), start + room, len(rows))
        yield rows[start:stop]
        start = stop


NPZ = Reader("npz", (".npz",), read)

_SAVE = "Write it with scipy.sparse.save_npz, or numpy.savez(path, X=..., y=...)."
_WHOLE = {"shape", "indptr", "indices", "row", "col", "coords", "offsets"}
_NAMES = {"X", "y", "labels", "weights", "format"} | _WHOLE


def matrix_in(path: Path) -> object:
    """Return the matrix of a file without its labels, as an object of SciPy or NumPy."""
    return _arrays(path, ReadOptions(unlabelled=True))[0]


def _arrays(path: Path, reading: ReadOptions) -> tuple[Any, Any, Any]:
    """Return (the matrix, its labels or None, its weights or None)."""
    try:
        with path.open("rb") as file:
            _check_size(path, file, reading)
            arrays = _unpacked(file)
            X = _sparse(file, arrays) if "format" in arrays else arrays.get("X")
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError("there is no such file", path=path, remedy="Check the path.") from None
    # Damaged archives and headers raise a dozen types of exceptions in zipfile, zlib, numpy and scipy.
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"the file cannot be read as .npz ({reason})", path=path, remedy=_SAVE) from None
    if X is None:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise DataError(f"there is no matrix in the file, only: {found}", path=path, remedy=_SAVE)
    y = arrays.get("y", arrays.get("labels"))
    if y is None and not reading.unlabelled:
        remedy = "Add an array 'y' to the file, or in Python pass the labels to hogwild.data.open."
        raise DataError("there are no labels in the file", path=path, remedy=remedy)
    return X, y, arrays.get("weights")


def _check_size(path: Path, file: BinaryIO, reading: ReadOptions) -> None:
    """Raise ``DataError`` if the arrays would be larger than allowed. An archive says how large, and holds no more."""
    if is_zipfile(file):
        with ZipFile(file) as archive:
            reading.limits.check_unpacked(path, path.stat().st_size, sum(each.file_size for each in archive.infolist()))
    file.seek(0)


def _unpacked(file: BinaryIO) -> dict[str, Array]:
    if not is_zipfile(file):
        file.seek(0)
        raise ValueError("this is one array, as in .npy" if file.read(6) == b"\x93NUMPY" else "this is no archive")
    file.seek(0)
    unpacked = np.load(file, allow_pickle=False)
    assert isinstance(unpacked, np.lib.npyio.NpzFile)
    with unpacked:
        return {name: unpacked[name] for name in unpacked.files if name in _NAMES}


def _sparse(file: BinaryIO, arrays: dict[str, Array]) -> object:
    from scipy.sparse import load_npz

    for name in _WHOLE & arrays.keys():  # SciPy would round numbers that are not whole.
        if arrays[name].dtype.kind not in "iu":
            raise ValueError(f"'{name}' is of type {arrays[name].dtype}, not of whole numbers")
    file.seek(0)
    return load_npz(file)
