"""Writing of generated data to files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.compression import ENDINGS, packing, without_compression
from hogwild.data.csr import Array, CSRRows, compact
from hogwild.data.generate.catalogue import kind
from hogwild.data.generate.factorisation_machine import Interactions
from hogwild.data.generate.linear_model import GRID, Generated
from hogwild.errors import ParameterError
from hogwild.files import check_free, replacing
from hogwild.jit import compiled

_MOST_PER_ENTRY = 24  # Largest number of bytes of an entry: blank, index, colon, sign and value.
_SPACE, _NEWLINE, _COLON, _DOT, _MINUS, _ZERO = (np.uint8(ord(c)) for c in " \n:.-0")
_ONE = np.uint64(1)
_TEN = np.uint64(10)
_DECIMALS = 6


def svmlight_text(rows: CSRRows) -> bytes:
    r"""Return lines ``label index:value ...``, with indices counted from one.

    >>> from hogwild.data.generate.linear_model import Generated
    >>> svmlight_text(Generated("classification", 1, 9, 2, seed=4).rows)
    b'1 1:0.369844 8:0.929094\n'
    """
    return _text(rows, first_index=1, behind_label=b"", unit=b":1")


def vw_text(rows: CSRRows) -> bytes:
    r"""Return lines ``label | index:value ...``; a reader that hashes to enough bits gets the same columns.

    >>> from hogwild.data.generate.linear_model import Generated
    >>> vw_text(Generated("classification", 1, 9, 2, seed=4).rows)
    b'1 | 0:0.369844 7:0.929094\n'
    """
    return _text(rows, first_index=0, behind_label=b" |", unit=b"")


def _text(rows: CSRRows, first_index: int, behind_label: bytes, unit: bytes) -> bytes:
    rows = compact(rows)
    whole = (rows.labels == np.rint(rows.labels)).all()
    labels = rows.labels.astype(np.int64).tolist() if whole else rows.labels.tolist()
    heads = [repr(label).encode() + behind_label for label in labels]
    out = np.empty(sum(map(len, heads)) + len(rows) + rows.nonzeros * _MOST_PER_ENTRY, np.uint8)
    size = _write(
        rows.indptr,
        np.tile(np.arange(rows.features, dtype=np.uint32), len(rows)) if rows.layout == "dense" else rows.indices,
        np.rint(rows.values.astype(np.float64) * GRID).astype(np.int64),
        np.uint64(first_index),
        np.frombuffer(b"".join(heads), np.uint8),
        np.array([len(head) for head in heads]),
        np.frombuffer(unit, np.uint8),
        out,
    )
    return out[:size].tobytes()


@compiled
def _digits(out: Array, at: np.uint64, number: np.uint64, least: int) -> np.uint64:
    """Write a number in decimal, with at least ``least`` digits, and return its end."""
    size, rest = least, number
    for _ in range(least):
        rest //= _TEN
    while rest > np.uint64(0):
        rest //= _TEN
        size += 1
    for digit in range(size):
        out[at + np.uint64(size - 1 - digit)] = _ZERO + np.uint8(number % _TEN)
        number //= _TEN
    return at + np.uint64(size)


@compiled
def _write(
    indptr: Array,
    indices: Array,
    millionths: Array,
    first_index: np.uint64,
    heads: Array,
    head_sizes: Array,
    unit: Array,
    out: Array,
) -> Any:
    at, head, binary = np.uint64(0), np.uint64(0), millionths.size == 0
    scale = np.uint64(10**_DECIMALS)
    for row in range(indptr.size - 1):
        for _ in range(head_sizes[row]):
            out[at] = heads[head]
            at += _ONE
            head += _ONE
        for k in range(indptr[row], indptr[row + 1]):
            out[at] = _SPACE
            at = _digits(out, at + _ONE, np.uint64(indices[k]) + first_index, 1)
            if binary:
                for byte in unit:
                    out[at] = byte
                    at += _ONE
                continue
            out[at] = _COLON
            at += _ONE
            amount = millionths[k]
            if amount < 0:
                out[at] = _MINUS
                at += _ONE
            size = np.uint64(abs(amount))
            at = _digits(out, at, size // scale, 1)
            out[at] = _DOT
            at = _digits(out, at + _ONE, size % scale, _DECIMALS)
        out[at] = _NEWLINE
        at += _ONE
    return at


Made = Generated | Interactions

_TEXTS: dict[str, Callable[[CSRRows], bytes]] = {
    ".svm": svmlight_text,
    ".svmlight": svmlight_text,
    ".libsvm": svmlight_text,
    ".vw": vw_text,
}


def write(
    name: str,
    path: str | Path,
    *,
    weights: str | Path | None = None,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
    **options: object,
) -> Made:
    """Write a kind of data in the format that the ending of the file determines.

    The formats are ``.svm`` and ``.vw`` text, also compressed (``.svm.gz``, ``.svm.zst``), and ``.npz``. Interactions,
    whose features have fields, can also be ``.ffm`` text. The function writes a temporary file beside ``path`` and
    renames it, so that the file is complete or absent. ``weights`` is the name of an ``.npz`` file for the planted
    model (``weights``, ``intercept``). ``progress`` is called with the number of rows written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = write("regression", Path(folder, "a.svm"), rows=3, features=5)
    ...     len(Path(folder, "a.svm").read_text().splitlines())
    3
    """
    path = Path(path)
    ending = without_compression(path).suffix
    made = kind(name, **options)
    texts = {**_TEXTS, ".ffm": made.libffm_text} if isinstance(made, Interactions) else _TEXTS
    format = texts.get(ending.lower())
    if format is None and path.suffix.lower() != ".npz":
        endings = ", ".join([*texts, ".npz"])
        raise ParameterError(
            f"The file to write must end in one of {endings}; text may be compressed ({', '.join(ENDINGS)} behind it). "
            f"Got '{path.name}' instead."
        )
    beside = None if weights is None else Path(weights)
    for output in (path, beside):
        if output is not None:
            check_free(output, overwrite)
    report = progress or (lambda _: None)
    if format is None:
        _write_arrays(made, path)
        report(made.n_rows)
    else:
        _write_text(made, path, format, report)
    if beside is not None:
        with replacing(beside) as file:
            factors = {"factors": made.factors, "fields": made.fields} if isinstance(made, Interactions) else {}
            np.savez(file, allow_pickle=False, weights=made.weights, intercept=made.intercept, **factors)
    return made


def _write_text(made: Made, path: Path, format: Callable[[CSRRows], bytes], report: Callable[[int], None]) -> None:
    done = 0
    with replacing(path) as plain, packing(path, plain) as file:
        for rows in made.pieces():
            file.write(format(rows))
            done += len(rows)
            report(done)


def _write_arrays(made: Made, path: Path) -> None:
    """Write the matrix as ``scipy.sparse.save_npz`` does, with the labels as ``y``."""
    rows = made.rows
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, y=rows.labels, **_matrix(rows))


def _matrix(rows: CSRRows) -> dict[str, Array]:
    if rows.layout == "dense":
        return {"X": rows.values.reshape(len(rows), rows.features)}
    numbers = np.int32 if rows.nonzeros < 2**31 else np.int64
    return {
        "format": np.array(b"csr"),
        "shape": np.array([len(rows), rows.features]),
        "data": rows.values if rows.values.size else np.ones(rows.nonzeros, np.float32),
        "indices": rows.indices.astype(numbers),
        "indptr": rows.indptr.astype(numbers),
    }
