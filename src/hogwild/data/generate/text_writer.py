"""Text formats of generated rows, written by compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.data.csr import CSRRows, compact
from hogwild.data.generate.linear_model import GRID
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
def _digits(out: Any, at: Any, number: Any, least: Any) -> Any:
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
    indptr: Any, indices: Any, millionths: Any, first_index: Any, heads: Any, head_sizes: Any, unit: Any, out: Any
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
