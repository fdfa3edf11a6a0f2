"""Record of a checkpoint of a run on threads: which entries it has, and of which types.

A file with a right checksum can be made by hand, and a wrong type would be an error somewhere in the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from itertools import pairwise
from typing import Any

from hogwild.training.checkpoints import Position

Check = Callable[[Any], bool]
MOST = 2**53  # Larger counts are no counts of a run.


def check_record(record: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` if an entry is missing or of another type.

    >>> check_record({"config": {}})
    Traceback (most recent call last):
        ...
    ValueError: its entry 'halvings' is missing
    """
    for name in ENTRIES:
        if name not in record:
            raise ValueError(f"its entry {name!r} is missing")
    for name, check in (*ENTRIES.items(), *OPTIONAL.items()):
        if name in record and not check(record[name]):
            raise ValueError(f"its entry {name!r} has a wrong value")


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST


def _step(value: object) -> bool:
    return value is None or (_number(value) and 0 < value < float("inf"))  # type: ignore[operator]


def _config(value: object) -> bool:
    return isinstance(value, dict)


def _best(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"loss", "epoch"}
        and _number(value["loss"])
        and _count(value["epoch"])
    )


def _stall(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _number(value[0]) and _count(value[1])


def _history(value: Any) -> bool:
    if not isinstance(value, list) or not all(isinstance(record, dict) for record in value):
        return False
    counted = all(_count(record.get(name)) for record in value for name in ("epoch", "updates"))
    timed = all(_number(record.get("seconds")) for record in value)
    return counted and timed and all(one["updates"] <= other["updates"] for one, other in pairwise(value))


def _workers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_count, value))


def _moment(value: Any) -> bool:
    """Return whether an entry is a position in the run, with the number of iterates in its average."""
    if not isinstance(value, dict) or value.keys() != {*_POSITION, "averaged"} or not _count(value["averaged"]):
        return False
    return all((_count if kind == "int" else _number)(value[name]) for name, kind in _POSITION.items())


_POSITION: dict[str, str] = {entry.name: str(entry.type) for entry in fields(Position)}
ENTRIES: Mapping[str, Check] = {
    "config": _config,
    "halvings": _count,
    "start": _number,
    "best": _best,
    "stall": _stall,
    "history": _history,
    "now": _moment,
}
# Entries that some runs do not have.
OPTIONAL: Mapping[str, Check] = {
    "step": _step,
    "laid_out": lambda value: value is None or isinstance(value, bool),
    "trained": _workers,
    "good": _moment,
}
