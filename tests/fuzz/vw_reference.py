"""A slow and plain reading of Vowpal Wabbit text, written apart from the real one, to compare with."""

from __future__ import annotations

import math
import re
import struct

from sklearn.utils import murmurhash3_32

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
Row = tuple[float, float, dict[int, float]]  # label, weight, entries


class NotVWError(Exception):
    """The text is not acceptable."""


def parse(text: bytes, bits: int = 18, unlabelled: bool = False) -> list[Row]:
    rows = [row for line in text.split(b"\n") if (row := _row(line, bits, unlabelled)) is not None]
    if not rows:
        raise NotVWError("nothing")
    return rows


def single(number: float) -> float:
    """Rounded to single precision."""
    try:
        if math.isinf(number):
            raise OverflowError
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        raise NotVWError("overflow") from None


def number(token: bytes) -> float:
    if not NUMBER.fullmatch(token):
        raise NotVWError(token)
    value = float(token)
    single(value)
    return value


def hashed(name: bytes, seed: int) -> int:
    if re.fullmatch(rb"[0-9]+", name):
        return (int(name) + seed) % 2**32
    return int(murmurhash3_32(name, seed=seed, positive=True))


def _row(line: bytes, bits: int, unlabelled: bool) -> Row | None:
    if not line.strip(b" \t\r"):
        return None
    if re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]", line):
        raise NotVWError("control")
    head, bar, body = line.partition(b"|")
    if not bar:
        raise NotVWError("no bar")
    label, weight = _head(head, unlabelled)
    entries: dict[int, float] = {}
    for part in body.split(b"|"):
        _namespace(part, bits, entries)
    return label, weight, {index: single(value) for index, value in entries.items()}


def _head(head: bytes, unlabelled: bool) -> tuple[float, float]:
    words = re.split(rb"[ \t\r]+", head)
    touches = words[-1] != b""
    words = [word for word in words if word]
    if words and (touches or words[-1].startswith(b"'")):
        words.pop()
    if len(words) > 3 or (not words and not unlabelled):
        raise NotVWError("head")
    label, weight, base = [number(word) for word in words] + [0.0, 1.0, 0.0][len(words) :]
    if weight < 0 or single(base) != 0:
        raise NotVWError("head")
    return label, single(weight)


def _namespace(part: bytes, bits: int, entries: dict[int, float]) -> None:
    seed, scale = 0, 1.0
    if part and part[:1] not in b" \t\r":
        first, *rest = re.split(rb"[ \t\r]+", part)
        name, scale = _named(first)
        seed = hashed(name, 0)
    else:
        rest = re.split(rb"[ \t\r]+", part)
    for word in rest:
        if word:
            name, value = _named(word)
            index = hashed(name, seed) % 2**bits
            entries[index] = entries.get(index, 0.0) + single(scale * value)


def _named(word: bytes) -> tuple[bytes, float]:
    name, colon, value = word.partition(b":")
    if not name:
        raise NotVWError("no name")
    return name, single(number(value)) if colon else 1.0
