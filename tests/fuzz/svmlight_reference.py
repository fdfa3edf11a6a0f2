"""A slow and simple reader of svmlight text, to judge the fast one by: regular expressions and Python's float."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np

Row = tuple[float, list[tuple[int, np.float32]]]

NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
LINE = re.compile(
    rb"[ \t]*(?:(?P<label>" + NUMBER + rb")(?=[ \t\r#]|$))?(?P<query>[ \t]*qid:\d+(?=[ \t\r#]|$))?"
    rb"(?P<fields>(?:[ \t]*\d+:" + NUMBER + rb"(?=[ \t\r#]|$))*)[ \t]*(?:#[^\0]*)?\r?",
)


def parse(data: bytes, unlabelled: bool = False) -> list[Row] | None:
    """The rows of a file, or None if anything is wrong with it."""
    lines = data.split(b"\n")
    rows = [_row(line, unlabelled) for line in lines if not re.fullmatch(rb"[ \t]*(?:#[^\0]*)?\r?", line)]
    return None if not rows or any(row is None for row in rows) else [row for row in rows if row is not None]


def _row(line: bytes, unlabelled: bool) -> Row | None:
    match = LINE.fullmatch(line)
    if not match or (match["label"] is None and not unlabelled):
        return None
    label = float(match["label"] or 0)
    pairs = [field.split(b":") for field in match["fields"].split()]
    indices = [int(index) for index, _ in pairs]
    with np.errstate(over="ignore"):
        values = [np.float32(float(value)) for _, value in pairs]
    rising = all(one < other for one, other in pairwise(indices))
    small = all(index <= 2**31 - 2 for index in indices) and all(len(index) <= 18 for index, _ in pairs)
    if not (rising and small and math.isfinite(label) and all(np.isfinite(values))):
        return None
    return label, list(zip(indices, values, strict=True))
