"""Reader of Vowpal Wabbit text: ``label importance base 'tag|namespace:scale feature:value |other feature ...``.

The reader follows the defaults of Vowpal Wabbit, and hashes names as in :mod:`hogwild.data.hashing`:

- Label, importance and base may be omitted from the right. A missing importance is 1. A row without a label is an error
  unless unlabelled rows are accepted. A base (an initial prediction) other than 0 is an error.
- The tag is the last word before the first bar if it touches the bar or starts with ``'``. The reader ignores it.
- The name of a namespace touches its bar. The scale of the namespace, by default 1, multiplies the values of its
  features. The names of its features are hashed in the hash of the namespace. After a bar that is followed by a blank,
  that hash is 0.
- The value of a feature is 1 by default. Values of features in the same column of a row are added, whether the names
  are equal or collide.

Where Vowpal Wabbit guesses and warns, this reader raises an error: for text in the place of a number, a number that is
not finite, a missing number, and a value without a name. Text values (``city:paris``) are errors as well. The
equivalent ``city=paris`` is accepted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from hogwild.data.csr import NO_WEIGHTS, Array, CSRRows
from hogwild.data.hashing import columns, merge_duplicates
from hogwild.data.reader import Divided, Reader, ReadOptions
from hogwild.data.readers.line_segments import (
    Segment,
    divisible_bytes,
    excerpt,
    lines_of_whole_file,
    place,
    segments,
    split,
)
from hogwild.data.readers.long_number import to_float
from hogwild.data.readers.vw_parser import ASIDE_COLUMNS, Aside, Problem, parse
from hogwild.errors import DataError
from hogwild.machine import usable_cores

# Largest number of bytes of memory that a byte of text takes when it is parsed, which short rows reach.
_MEMORY_PER_BYTE = 6
_MIN_BYTES_PER_THREAD = 1 << 16  # Bytes of text that make a further thread worthwhile.
_BLOCK = 1 << 18  # Bytes that are counted at a time, so that they stay in the cache.
_TOO_LARGE = 2.0**128 - 2.0**103  # Smallest number that is infinite when it is rounded to 32 bits.
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)

_MESSAGES = {
    Problem.NO_BAR: ("there is no '|' in this line", "A row is: label |namespace feature:value ..."),
    Problem.NO_LABEL: (
        "there is no label before the '|'",
        "Give every row a label and a blank behind it (what touches the '|' is a tag), or read it as unlabelled.",
    ),
    Problem.TAG_NOT_LAST: ("a tag is not the last word before the '|'", "Write: label importance 'tag|..."),
    Problem.TOO_MANY_WORDS: ("there are too many words before the '|'", "Write: label importance 'tag|..."),
    Problem.NO_NAMESPACE: ("a scale without a namespace", "Write the namespace's name between '|' and ':'."),
    Problem.NO_NAME: ("a value without a feature name", "Write name:value, with no blank around the ':'."),
    Problem.NO_NUMBER: ("there is no number behind the ':'", "Write name:value, with no blank around the ':'."),
    Problem.TOO_LARGE: ("the value is too large for 32 bits", "Scale the feature down."),
    Problem.CONTROL_BYTE: ("a control byte in the text", "Check that the file is text, and not damaged."),
}


def read(
    path: Path, reading: ReadOptions, piece_bytes: int, extent: tuple[int, int] | None = None
) -> Iterator[CSRRows]:
    r"""Yield the rows of a Vowpal Wabbit file, in order and checked, with ``2**reading.bits`` columns.

    With an extent, these are the rows whose lines start in these bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.vw").write_bytes(b"1 2.0 'first| 3:0.5 1\n-1 | 2:4\n")
    ...     (rows,) = read(Path(folder, "a.vw"), ReadOptions(bits=4), 1 << 20)
    >>> rows.labels, rows.weights, rows.indices, rows.values
    (array([ 1., -1.]), array([2., 1.], dtype=float32), array([1, 3, 2], dtype=uint32),
     array([1. , 0.5, 4. ], dtype=float32))
    """
    features, workers, empty = columns(reading.bits), usable_cores(), True
    with ThreadPoolExecutor(workers) as pool, lines_of_whole_file(path, extent):
        for segment in segments(path, piece_bytes // _MEMORY_PER_BYTE, extent, reading.limits):
            stretches = [
                _Stretch(path, segment, start, stop) for start, stop in split(segment, _parts(segment, workers))
            ]
            # Results are taken in file order, so that the first error in the file is raised.
            for rows in pool.map(partial(_parsed, features=features, unlabelled=reading.unlabelled), stretches):
                if len(rows):
                    empty = False
                    yield rows
    if empty and extent is None:
        raise DataError("there are only blank lines", path=path, remedy="Check that it was written completely.")


def parse_lines(path: Path, reading: ReadOptions, segment: Segment) -> CSRRows:
    """Return the rows of whole lines; errors name ``path``."""
    whole = _Stretch(path, segment, 0, len(segment.bytes))
    return _parsed(whole, features=columns(reading.bits), unlabelled=reading.unlabelled)


VW = Reader(
    "vw", (".vw",), read, compressible=True, streams=True, lines=parse_lines, divided=Divided(divisible_bytes, read)
)


@dataclass(frozen=True, slots=True, eq=False)
class _Stretch:
    """Whole lines of a segment, and the file that they come from."""

    path: Path
    segment: Segment
    start: int
    stop: int

    def error(self, what: str, at: int, remedy: str) -> DataError:
        line, column = place(self.segment, at)
        return DataError(what, path=self.path, line=line, column=column, remedy=remedy)

    def word(self, at: int) -> str:
        """Return the word at an offset, for a message."""
        line = self.segment.bytes[at : at + 80].tobytes()
        return excerpt(self.segment, at, at + len(re.split(rb"[\s|]", line, maxsplit=1)[0]))


def _parts(segment: Segment, workers: int) -> int:
    return max(1, min(workers, len(segment.bytes) // _MIN_BYTES_PER_THREAD))


def _parsed(stretch: _Stretch, features: int, unlabelled: bool) -> CSRRows:
    text = stretch.segment.bytes
    lines, blanks, marks = _most(text[stretch.start : stretch.stop])
    indptr, labels, weights = np.empty(lines + 1, np.int64), np.empty(lines), np.empty(lines, np.float32)
    indices, values = np.empty(blanks, np.uint32), np.empty(blanks, np.float32)
    asides = np.empty((marks + 3 * lines, ASIDE_COLUMNS), np.int64)  # Memory that is not touched costs nothing.
    found = (indptr, indices, values, labels, weights, asides)
    n_rows, n_asides, problem, at = map(int, parse(text, stretch.start, stretch.stop, features - 1, unlabelled, *found))
    asides = asides[:n_asides]
    # Numbers before the first structural problem are converted first, so that the first error in the text is raised.
    _convert(stretch, asides[asides[:, 1] < at], labels, weights, values)
    if problem:
        what, remedy = _MESSAGES[Problem(problem)]
        shown = "" if problem in (Problem.NO_BAR, Problem.NO_LABEL, Problem.NO_NUMBER) else f": {stretch.word(at)}"
        raise stretch.error(what + shown, at, remedy)
    indptr, labels, weights = indptr[: n_rows + 1], labels[:n_rows], weights[:n_rows]
    merge_duplicates(indptr, indices, values)
    nonzeros = int(indptr[-1])
    rows = CSRRows(indptr, indices[:nonzeros], values[:nonzeros], labels, NO_WEIGHTS, features, "sparse")
    _check_sums(stretch, rows)
    return rows if (weights == 1).all() else _weighted(rows, weights)


def _most(text: Array) -> tuple[int, int, int]:
    """Return upper bounds of the numbers of lines, of entries, and of numbers after colons."""
    lines, blanks, marks = 1, 1, 0
    for start in range(0, len(text), _BLOCK):
        block = text[start : start + _BLOCK]
        lines += int(np.count_nonzero(block == ord("\n")))
        blanks += int(np.count_nonzero(block <= ord(" ")))
        marks += int(np.count_nonzero(block == ord(":")))
    return lines, blanks, marks


def _weighted(rows: CSRRows, weights: Array) -> CSRRows:
    return CSRRows(rows.indptr, rows.indices, rows.values, rows.labels, weights, rows.features, rows.layout)


def _convert(stretch: _Stretch, asides: Array, labels: Array, weights: Array, values: Array) -> None:
    """Convert the numbers that were set aside, or raise ``DataError`` for the first that is invalid."""
    scales = []
    for what, start, stop, first, last in asides.tolist():
        number = _number(stretch, Aside(what), start, stop)
        if what == Aside.LABEL:
            labels[first] = number
        elif what == Aside.IMPORTANCE:
            weights[first] = number
        elif what == Aside.VALUE:
            values[first] *= np.float32(number)  # The value already contains the scale of its namespace.
        elif what == Aside.SCALE:
            scales.append((start, first, last, np.float32(number)))
    for start, first, last, scale in scales:
        with np.errstate(over="ignore"):
            values[first:last] *= scale
        if not np.isfinite(values[first:last]).all():
            raise stretch.error("this scale makes a value too large for 32 bits", start, "Scale the features down.")


_NAMES = {Aside.LABEL: "label", Aside.IMPORTANCE: "importance", Aside.BASE: "base", Aside.SCALE: "namespace's scale"}


def _number(stretch: _Stretch, what: Aside, start: int, stop: int) -> float:
    token = stretch.segment.bytes[start:stop].tobytes()
    shown, name = excerpt(stretch.segment, start, stop), _NAMES.get(what, "value")
    if _NOT_FINITE.fullmatch(token):
        raise stretch.error(f"the {name} {shown} is not finite", start, "Remove it, or give a finite number.")
    if not _NUMBER.fullmatch(token):
        remedy = "Write name=text for a text value." if what == Aside.VALUE else "Write a decimal number."
        raise stretch.error(f"the {name} {shown} is not a number", start, remedy)
    number = to_float(token)
    if math.isinf(number) or abs(number) >= _TOO_LARGE:
        raise stretch.error(f"the {name} {shown} is too large for 32 bits", start, "Scale it down.")
    if what == Aside.IMPORTANCE and number < 0:
        raise stretch.error(f"the importance {shown} is negative", start, "An importance is 0 or more.")
    if what == Aside.BASE and number != 0:
        raise stretch.error(f"a base ({shown}) is not supported", start, "Remove the third number, or make it 0.")
    return number


def _check_sums(stretch: _Stretch, rows: CSRRows) -> None:
    finite = np.isfinite(rows.values)
    if finite.all():
        return
    row = int(np.searchsorted(rows.indptr, int(np.argmin(finite)), side="right")) - 1
    line = _line_of_row(stretch, row)
    raise DataError(
        "features of one column add up to more than 32 bits hold",
        path=stretch.path,
        line=line,
        remedy="Scale the features down, or hash to more bits.",
    )


def _line_of_row(stretch: _Stretch, row: int) -> int:
    lines = stretch.segment.bytes[stretch.start : stretch.stop].tobytes().split(b"\n")
    filled = [number for number, line in enumerate(lines) if line.strip(b" \t\r")]
    return place(stretch.segment, stretch.start)[0] + filled[row]
