# mypy: disable-error-code="assignment"
# ruff: noqa: SIM109
"""The compiled half of the Vowpal Wabbit reader: bytes in, unsorted entries out.

A number that cannot be converted exactly here, or is none, is *set aside*: a neutral value takes its place and its
whereabouts go into a list, for Python's own ``float`` to convert or refuse. So is where the first thing wrong with
the structure was. The messages are the caller's business.

(The type checker's idea of a variable is narrower than Numba's, and the linter's tuples take longer to compile.)
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from hogwild.data.hashing import murmur3
from hogwild.data.readers.parse_float import BAD, CLOSE, EXACT, SLACK, number
from hogwild.jit import compiled


class Problem(IntEnum):
    """What can be wrong with the structure of a line."""

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
    """What a number that was set aside stands for."""

    LABEL = 0
    IMPORTANCE = 1
    BASE = 2
    SCALE = 3
    VALUE = 4


ASIDE_COLUMNS = 5  # what it is, where it starts and stops in the text, and what it applies to: from, until

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
    text: Any, start: Any, stop: Any, mask: Any, unlabelled: Any,
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, asides: Any,
) -> tuple[Any, Any, int, Any]:  # fmt: skip
    """Parse whole lines. Returns the rows, the numbers set aside, and the first problem and where it is.

    Each line ends with a newline, which is what stops a number. The loop over words is flat: a helper that is called
    from two places is compiled three times.
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
            if scaled >= 0:  # a scale that was set aside: it applies up to here
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

        first = at  # of the word, then of its number
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
            if end != base + at:  # the word goes on, so it was none
                known = BAD
        single = np.float32(value)  # surely, if the number's error cannot change how it is rounded
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
