# mypy: disable-error-code="assignment"
# ruff: noqa: SIM109
"""Compiled parser of the Vowpal Wabbit reader, from bytes to unsorted entries.

The parser *sets aside* a number that it cannot convert exactly, or that is invalid. A neutral value takes its place,
and a list gets its position. Python's ``float`` then converts or refuses the number. The parser also returns the
position of the first error in the structure. The caller makes the messages.

The file disables a check of the type checker, whose rules for variables are narrower than those of Numba. It disables a
rule of the linter, because the tuples that the rule asks for take longer to compile.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.hashing import murmur3
from hogwild.data.readers.parse_number import BAD, CLOSE, EXACT, SLACK, number
from hogwild.jit import compiled


class Problem(IntEnum):
    """Errors in the structure of a line."""

    NONE = 0
    NO_BAR = 1
    NO_LABEL = 2
    TAG_NOT_LAST = 3
    TOO_MANY_WORDS = 4
    NO_NAMESPACE = 5
    NO_NAME = 6
    NO_NUMBER = 7
    TOO_LARGE = 8
    CONTROL_BYTE = 9


class Aside(IntEnum):
    """Meaning of a number that was set aside."""

    LABEL = 0
    IMPORTANCE = 1
    BASE = 2
    SCALE = 3
    VALUE = 4


# Columns of the list of numbers that are set aside: the meaning, the start and the end in the text, the first slot that
# the number applies to, and the end of these slots.
ASIDE_COLUMNS = 5

_NOTHING, _ONE = np.uint64(0), np.uint64(1)
_TEN, _48, _WORD = np.uint64(10), np.uint64(48), np.uint64(0xFFFFFFFF)
_UNIT = np.float32(1)
_TAB, _NEWLINE, _RETURN, _SPACE = np.uint8(9), np.uint8(10), np.uint8(13), np.uint8(32)
_BAR, _COLON, _QUOTE = np.uint8(124), np.uint8(58), np.uint8(39)
_LARGEST = float(np.finfo(np.float32).max)

_NO_BAR, _NO_LABEL = int(Problem.NO_BAR), int(Problem.NO_LABEL)
_TAG_NOT_LAST, _TOO_MANY_WORDS = int(Problem.TAG_NOT_LAST), int(Problem.TOO_MANY_WORDS)
_NO_NAMESPACE, _NO_NAME = int(Problem.NO_NAMESPACE), int(Problem.NO_NAME)
_NO_NUMBER, _TOO_LARGE, _CONTROL_BYTE = int(Problem.NO_NUMBER), int(Problem.TOO_LARGE), int(Problem.CONTROL_BYTE)
_SCALE, _VALUE = int(Aside.SCALE), int(Aside.VALUE)


@compiled
def parse(
    text: Array, start: int, stop: int, mask: int, unlabelled: bool,
    indptr: Array, indices: Array, values: Array, labels: Array, weights: Array, asides: Array,
) -> tuple[Any, Any, int, Any]:  # fmt: skip
    """Parse whole lines, and return the rows, the numbers set aside, the first problem, and its position.

    Each line ends with a newline, which also ends its last number. The loop over words has no helper functions, because
    a helper that is called from two places is compiled three times.
    """
    at, stop, mask = np.uint64(start), np.uint64(stop), np.uint64(mask)
    base = np.uint64(text.ctypes.data)
    row, entry, aside = _NOTHING, _NOTHING, _NOTHING
    scaled = -1
    words, tagged = 0, False
    barred, opening = False, False
    namespace, scale, line = _NOTHING, _UNIT, at
    indptr[0], labels[0], weights[0] = 0, 0.0, 1.0
    while True:
        byte = text[at] if at < stop else _NEWLINE
        if byte == _SPACE or byte == _TAB or byte == _RETURN:
            at += _ONE
            continue
        if byte == _NEWLINE or byte == _BAR:
            if scaled >= 0:  # A scale that was set aside applies to the entries up to this one.
                asides[scaled, 4], scaled = entry, -1
            if byte == _BAR:
                if words == 0 and not unlabelled:
                    return row, aside, _NO_LABEL, at
                barred, namespace, scale = True, _NOTHING, _UNIT
                at += _ONE
                opening = at < stop and text[at] > _SPACE and text[at] != _BAR
                continue
            if barred:
                row += _ONE
                indptr[row] = entry
            elif words > 0 or tagged:
                return row, aside, _NO_BAR, line
            if at >= stop:
                return row, aside, 0, at
            at += _ONE
            words, line = 0, at
            tagged, barred = False, False
            labels[row], weights[row] = 0.0, 1.0
            continue
        if byte < _SPACE:
            return row, aside, _CONTROL_BYTE, at

        first = at  # Start of the word, and later start of its number.
        value, known, has_number = 1.0, EXACT, True
        if barred:
            hashed, plain = _NOTHING, True
            while at < stop and text[at] > _SPACE and text[at] != _BAR and text[at] != _COLON:
                digit = np.uint64(text[at]) - _48
                plain = plain and digit < _TEN
                hashed = hashed * _TEN + digit
                at += _ONE
            hashed = (hashed + namespace) & _WORD if plain else murmur3(text, first, at, namespace)
            has_number = at < stop and text[at] == _COLON
            if has_number and at == first:
                return row, aside, _NO_NAMESPACE if opening else _NO_NAME, at
            first = at + _ONE
        if has_number:
            at = first
            while at < stop and text[at] > _SPACE and text[at] != _BAR:
                at += _ONE
        if not barred:
            if tagged:
                return row, aside, _TAG_NOT_LAST, first
            if byte == _QUOTE or (at < stop and text[at] == _BAR):
                tagged = True
                continue
            if words == 3:
                return row, aside, _TOO_MANY_WORDS, first
        if has_number:
            if at == first:
                return row, aside, _NO_NUMBER, first
            value, end, known = number(base + first, base + stop)
            if end != base + at:  # The word continues after the number, so it is not a number.
                known = BAD
        single = np.float32(value)  # This value is certain if the error of the number cannot change its rounding.
        sure = known == EXACT
        if known == CLOSE:
            sure = np.float32(value * (1 - SLACK)) == np.float32(value * (1 + SLACK))
        slot, what = row, words
        if not barred:
            if words == 0:
                labels[row], sure = value, known == EXACT and abs(value) <= _LARGEST
            elif words == 1:
                weights[row], sure = single, sure and single >= 0 and abs(value) <= _LARGEST
            else:
                sure = sure and single == 0
            words += 1
        elif opening:
            slot, what = entry, _SCALE
            opening, namespace = False, hashed
            if sure:
                scale = single
                if abs(scale) > _LARGEST:
                    return row, aside, _TOO_LARGE, first
            else:
                scaled = np.int64(aside)
        else:
            slot, what = entry, _VALUE
            indices[entry] = np.uint32(hashed & mask)
            values[entry] = scale * single if sure else scale
            if abs(values[entry]) > _LARGEST:
                return row, aside, _TOO_LARGE, first
            entry += _ONE
        if not sure:
            record = asides[aside]
            record[0], record[1], record[2] = what, first, at
            record[3], record[4] = slot, slot
            aside += _ONE
