"""Mutations that keep the structure of a file: tokens of text, arrays of an archive, entries of a record.

A mutant that only has other bytes is found by a checksum or at its first line. These reach what lies behind.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np

from fuzz.damage import TOKENS
from hogwild.cli.console import explain
from hogwild.errors import HogwildError

MUTANTS = int(os.environ.get("HOGWILD_MUTANTS", "1000"))  # mutated files per reader and per kind of model

NUMBERS = (
    0, -1, 1, 2, 2.5, -0.0, 2**31 - 2, 2**31 - 1, 2**31, 2**32, 2**63 - 1, -(2**63), 2**64 - 1, float("nan"),
    float("inf"), -float("inf"), 1e39, -1e39, 1e-320, 3.4028236e38, 1e308,
)  # fmt: skip
TYPES = ("?", "i1", "u1", "i2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">f8", ">i4", "c8", "S4", "U4", "M8[s]")
VALUES: tuple[Any, ...] = (
    None, True, False, "", "x", "auto", "\x1b[2J", "1", -1, 0, 1, 2.5, 1e400, 2**31, 2**63, 10**30, [], [0], [1, 2], {},
    {"a": 1}, [[]], [None], "nan", ["a", "a"], "/etc/passwd", "../../x", "hogwild.cli:main", "é" * 300,
)  # fmt: skip


def check_error(error: Exception, mutant: object) -> None:
    """Check that an error is one that this package explains."""
    assert isinstance(error, (HogwildError, OSError)), f"mutant {mutant}: {type(error).__name__}: {error}"
    assert "should not happen" not in explain(error)
    assert len(str(error)) < 5000


def mutate_text(text: bytes, rng: random.Random) -> bytes:
    """Change some tokens of some lines."""
    lines = [line.split(b" ") for line in text.split(b"\n")]
    for _ in range(rng.randint(1, 4)):
        line = rng.choice(lines)
        at = rng.randrange(len(line))
        change = rng.randrange(9)
        if change == 0:
            line[at] = rng.choice(TOKENS)
        elif change == 1:
            line.insert(at, rng.choice(line))
        elif change == 2 and len(line) > 1:
            del line[at]
        elif change == 3:  # one part of a token, such as an index or a value
            for mark in (b":", b"|", b",", b"\t"):
                if mark in line[at]:
                    parts = line[at].split(mark)
                    parts[rng.randrange(len(parts))] = rng.choice([*TOKENS, str(rng.choice(NUMBERS)).encode()])
                    line[at] = mark.join(parts)
        elif change == 4:
            rng.shuffle(line)
        elif change == 5:
            lines.insert(rng.randrange(len(lines)), list(rng.choice(lines)))
        elif change == 6:
            line[at] = line[at] * rng.choice([2, 50, 5000])
        elif change == 7:
            line[at] = line[at].replace(
                rng.choice([b":", b",", b"|", b"."]), rng.choice([b"", b"::", b";", b" ", b"\0"])
            )
        else:
            line[at] = line[at].decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-8-sig", "utf-8"]))
    return b"\n".join(b" ".join(line) for line in lines)


def mutate_array(array: np.ndarray[Any, Any], rng: random.Random) -> np.ndarray[Any, Any]:
    """Change a value, the type or the shape of an array."""
    array = np.array(array)
    change = rng.randrange(8)
    with np.errstate(all="ignore"):
        try:
            if change <= 1 and array.size:
                array.flat[rng.randrange(array.size)] = rng.choice(NUMBERS)
            elif change == 2:
                array = array.astype(rng.choice(TYPES))
            elif change == 3:
                array = array[: rng.randrange(len(array) + 1)] if array.ndim else array.reshape(1)
            elif change == 4:
                array = array.reshape(rng.choice([(-1,), (-1, 1), (1, -1), (1, 1, -1)]))
            elif change == 5:
                array = np.concatenate([array, array]) if array.ndim else array.reshape(1, 1)
            elif change == 6:
                array = array[::-1].copy() if array.ndim else array
            else:
                array = np.full_like(array, rng.choice(NUMBERS))
        except (ValueError, OverflowError, TypeError):
            return array
    return array


def mutate_entries(entries: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Change an entry of a record, or of a record in it; or remove, rename or add one."""
    entries = dict(entries)
    if not entries:
        return {"x": rng.choice(VALUES)}
    name = rng.choice(sorted(entries))
    change = rng.randrange(5)
    if change == 0:
        del entries[name]
    elif change == 1:
        entries[name + rng.choice(["", "_", "é"])] = entries.pop(name)
    elif change == 2:
        entries[rng.choice(["x", "features", "columns", "names"])] = rng.choice(VALUES)
    elif isinstance(entries[name], dict) and rng.random() < 0.7:
        entries[name] = mutate_entries(entries[name], rng)
    elif isinstance(entries[name], list) and entries[name] and rng.random() < 0.5:
        changed = list(entries[name])
        changed[rng.randrange(len(changed))] = rng.choice(VALUES)
        entries[name] = changed
    else:
        entries[name] = rng.choice(VALUES)
    return entries


def mutate_arrays(arrays: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Change, remove, rename or exchange arrays."""
    arrays = dict(arrays)
    name = rng.choice(sorted(arrays))
    change = rng.randrange(6)
    if change == 0:
        del arrays[name]
    elif change == 1:
        arrays[rng.choice(["X", "y", "data", "weights", "columns", "indices"])] = arrays.pop(name)
    elif change == 2:
        other = rng.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    else:
        arrays[name] = mutate_array(arrays[name], rng)
    return arrays
