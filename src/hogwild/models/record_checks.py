"""Checks of a model's file: types of its record, and finite numbers in its arrays.

A file with a right checksum can be made by hand. A wrong type would be an error at the first prediction, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.data.tables.table_encoding import from_record

# Links of :mod:`hogwild.losses`, which is not imported: losses need the compiler, and models load without it.
LINKS = ("identity", "sigmoid", "huber", "exp", "none")

Check = Callable[[Any], bool]


def _text(value: object) -> bool:
    return isinstance(value, str)


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e300 < value < 1e300


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53


def _mapping(value: object) -> bool:
    return isinstance(value, dict)


def _labels(value: object) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(map(_number, value)) and len(set(value)) == len(value)


def _classes(value: object) -> bool:
    return value is None or _labels(value)


def _widths(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_whole, value))


def _bounds(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(each is None or _number(each) for each in value)


def _link(value: object) -> bool:
    return value in LINKS


_SUPERVISED: dict[str, Check] = {"loss": _text, "link": _link, "classes": _classes}
FIELDS: Mapping[str, Mapping[str, Check]] = {
    "linear": _SUPERVISED,
    "fm": {**_SUPERVISED, "normalise": _flag},
    "ffm": {**_SUPERVISED, "normalise": _flag},
    "ratings": {"loss": _text, "mean": _number, "bounds": _bounds},
    "sparse-mlp": {
        "dense_size": _whole, "hidden": _widths, "labels": _labels, "binary": _flag, "update": _text, "factor": _number,
    },
    "graph-cut": {"cut": _number},
}  # fmt: skip
READING: Mapping[str, Check] = {
    "format": _text,
    "base": lambda value: value in ("auto", 0, 1) and not isinstance(value, (bool, float)),
    "bits": lambda value: _whole(value) and value < 32,
    "label": lambda value: value is None or _text(value),
    "encoding": lambda value: value is None or from_record(value) is not None,  # which raises ValueError
    "weight": lambda value: value is None or _text(value),
    "user": lambda value: value is None or _text(value),
    "item": lambda value: value is None or _text(value),
    "rating": lambda value: value is None or _text(value),
}


def check_record(record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ``ValueError`` for the first entry of a record, or array, that no model has.

    >>> check_record({"kind": "graph-cut", "cut": "much", "reading": {}, "training": {}}, {})
    Traceback (most recent call last):
        ...
    ValueError: 'cut' cannot be 'much'
    """
    checks = {**FIELDS[record["kind"]], "reading": _mapping, "training": _mapping}
    _check(record, checks, required=True)
    _check(record["reading"], READING, required=False)
    if "features" in record and not _whole(record["features"]):
        raise ValueError(f"'features' cannot be {record['features']!r:.80}")
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu":
            raise ValueError(f"'{name}' is of type {array.dtype}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"'{name}' has numbers that are not finite")


def _check(record: Mapping[str, Any], checks: Mapping[str, Check], *, required: bool) -> None:
    for name, check in checks.items():
        if name not in record and required:
            raise ValueError(f"'{name}' is missing")
        if name in record and not check(record[name]):
            raise ValueError(f"'{name}' cannot be {record[name]!r:.80}")
