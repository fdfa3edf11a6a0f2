"""Ways in which a file gets damaged, for any reader: bytes in, bytes out, all chance from one generator."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

TIMES = int(os.environ.get("HOGWILD_FUZZ", "60"))  # damaged inputs per reader

TOKENS = [
    b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"1e400", b"-1e400", b"1e-400", b"3.5e38", b"1e999999999999",
    b"-1", b"-0", b"+", b"-", b".", b"e5", b"0x1f", b"1_000", b"1,2", b"--1", b"1e", b"99999999999999999999",
    b"2147483647", b"4294967296", b"18446744073709551616", b"0", b"00000000000000000000001", b":", b"::", b" : ",
    b"1:", b":1", b"-3:1", b"1:nan", b"2147483648:1", b"1.5:1", b"qid:", b"qid:7", b"qid:x", b"#", b"|", b"\0", b"\r",
    b"\n", b"\r\n", b"\t", b" ", b"\xff\xfe", b"\xef\xbb\xbf", "\u0661:\u0662".encode(), b"\x1a", b"\x0b", b"\x0c",
    b"0." + b"3" * 60, b"1" * 500, b"[]", b"{}", b'"', b"\\", b"None", b"true",
]  # fmt: skip


def _span(data: bytes, rng: random.Random, longest: int = 40) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.randint(1, longest))


def flip(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def delete(data: bytes, rng: random.Random) -> bytes:
    start, stop = _span(data, rng)
    return data[:start] + data[stop:]


def duplicate(data: bytes, rng: random.Random) -> bytes:
    start, stop = _span(data, rng)
    return data[:stop] + data[start:]


def insert_junk(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.randint(1, 8)) + data[at:]


def insert_token(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TOKENS) + data[at:]


def replace_field(data: bytes, rng: random.Random) -> bytes:
    fields = data.split(b" ")
    fields[rng.randrange(len(fields))] = rng.choice(TOKENS)
    return b" ".join(fields)


def swap_fields(data: bytes, rng: random.Random) -> bytes:
    fields = data.split(b" ")
    one, other = rng.randrange(len(fields)), rng.randrange(len(fields))
    fields[one], fields[other] = fields[other], fields[one]
    return b" ".join(fields)


def splice(data: bytes, rng: random.Random) -> bytes:
    (start, stop), at = _span(data, rng), rng.randrange(len(data) + 1)
    return data[:at] + data[start:stop] + data[at:]


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip, truncate, delete, duplicate, insert_junk, insert_token, replace_field, swap_fields, splice,
)  # fmt: skip


def damage(data: bytes, rng: random.Random) -> bytes:
    """The data after one to three damages; by chance it may still be valid."""
    for _ in range(rng.randint(1, 3)):
        data = rng.choice(DAMAGES)(data, rng)
    return data
