"""Wire format of messages: a table of all fields in msgpack, followed by the raw bytes of arrays.

The decoder checks all input: kinds of messages by name, types of fields, and sizes of arrays against those of the run.
It never unpickles or executes received data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, get_args

import msgpack
import numpy as np

from hogwild.errors import MessageError
from hogwild.messaging.deltas import INDEX, Floats, SparseDelta, Vector, checked, frozen
from hogwild.messaging.messages import Ack, Body, Envelope

BODIES: dict[str, type] = {kind.__name__: kind for kind in (*get_args(Body), Ack)}
FLOATS = ("float16", "float32", "float64")
PLAIN = 16 << 20  # maximal bytes of the table in one call, which has everything but the arrays
ALIGNED = 8  # bytes to which the table and each array are padded
# Maximal bytes of a piece, and of an array inside a piece. Ray sends an argument of up to 100 KiB with the call, and a
# larger one through its object store.
INLINE = 96 << 10
_HEAD = [field.name for field in fields(Envelope) if field.name != "body"]  # fields of an envelope except the body
_TEXT = {"sender", "to"}  # fields of an envelope that are strings; all others are integers

Parts = tuple[Any, ...]
"""Arguments of a call: pieces of bytes, the first with the table, then large arrays as arrays of bytes."""


def encode_envelopes(envelopes: Iterable[Envelope]) -> Parts:
    """Encode messages as bytes: small arrays in as few pieces as possible, large arrays separately and uncopied.

    >>> from hogwild.messaging.messages import Pull
    >>> data = encode_envelopes([Envelope("worker-0", 0, "server-0", 0, 7, 1, 3, Pull(3))])
    >>> decode_envelopes(data, size=10)[0].body
    Pull(clock=3)
    """
    writer = _Writer([])
    table = [
        [
            *(getattr(envelope, name) for name in _HEAD), type(envelope.body).__name__,
            [encode(writer, getattr(envelope.body, name)) for name, encode, _ in _codes(type(envelope.body).__name__)],
        ]
        for envelope in envelopes
    ]  # fmt: skip
    head = msgpack.packb(table, default=_plain)
    start = len(head).to_bytes(ALIGNED, "little") + head + bytes(-len(head) % ALIGNED)
    return *_pieces(start, writer.arrays), *(array.view(np.uint8) for array in writer.arrays if _is_large(array.nbytes))


def _pieces(start: bytes, arrays: list[Floats]) -> list[bytes]:
    """Return the table and all small arrays in pieces, each of at most ``INLINE`` bytes behind the table."""
    pieces, size = [[start]], len(start)
    for array in arrays:
        if _is_large(array.nbytes):
            continue
        if size + array.nbytes > INLINE:
            pieces.append([])
            size = 0
        pieces[-1] += [array.tobytes(), bytes(-array.nbytes % ALIGNED)]
        size += array.nbytes + -array.nbytes % ALIGNED
    return [b"".join(piece) for piece in pieces]


def _is_large(size: int) -> bool:
    return size > INLINE


def decode_envelopes(parts: Parts, size: int) -> list[Envelope]:
    """Decode the messages of a call; raise ``MessageError`` if the bytes are not valid messages.

    ``size`` is the number of parameters that the run exchanges, and the maximal length of an array.
    """
    try:
        pieces = [part for part in parts if type(part) is bytes]
        large_arrays = [part for part in parts if _is_array(part)]
        if type(parts[0]) is not bytes or len(pieces) + len(large_arrays) != len(parts):
            raise MessageError("a message is not made of bytes.")
        data = pieces[0]
        length = int.from_bytes(data[:ALIGNED], "little")
        if length > min(len(data) - ALIGNED, PLAIN):
            raise MessageError("a message is cut off, or too large.")
        table = msgpack.unpackb(memoryview(data)[ALIGNED : ALIGNED + length], strict_map_key=False)
        start = ALIGNED + length + -length % ALIGNED
        reader = _Reader(pieces, start, size, large_arrays)
        envelopes = [_envelope(reader, row) for row in _list(table)]
    except MessageError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, msgpack.UnpackException) as error:
        raise MessageError(f"a message cannot be read ({type(error).__name__}: {error}).") from error
    if not reader.is_done:
        raise MessageError("a message has more bytes than its table describes.")
    return envelopes


def _envelope(reader: _Reader, row: object) -> Envelope:
    *head, kind, content = _list(row)
    if kind not in BODIES or len(head) != len(_HEAD):
        raise MessageError(f"there is no message of the kind {kind!r}.")
    known = _codes(kind)
    if len(_list(content)) != len(known):
        raise MessageError(f"a {kind} has {len(known)} parts, not {len(content)}.")
    for name, value in zip(_HEAD, head, strict=True):
        (_str if name in _TEXT else _int)(reader, value)
    body = BODIES[kind](*(decode(reader, value) for (_, _, decode), value in zip(known, content, strict=True)))
    return Envelope(**dict(zip(_HEAD, head, strict=True)), body=body)


@dataclass(slots=True, eq=False)
class _Writer:
    """Collects the arrays of messages during encoding."""

    arrays: list[Floats]

    def array(self, array: Floats) -> list[Any]:
        """Append an array; return its entry in the table, which is its type and its length."""
        self.arrays.append(np.ascontiguousarray(array))
        return [array.dtype.name, len(array)]


@dataclass(slots=True, eq=False)
class _Reader:
    """Reads the arrays of messages during decoding, in the order in which they were written."""

    pieces: list[bytes]  # unread pieces; the first of them is read next
    at: int  # offset of the next array in the first piece, in bytes
    size: int  # maximal length of an array
    large_arrays: list[Any]  # unread large arrays, which are not in the pieces

    @property
    def is_done(self) -> bool:
        """Whether all bytes and all large arrays were read."""
        return len(self.pieces) == 1 and self.at == len(self.pieces[0]) and not self.large_arrays

    def array(self, found: object, kinds: tuple[str, ...] = FLOATS) -> Floats:
        """Return the next array, as a read-only view of the received bytes."""
        kind, length = _list(found)
        if kind not in kinds or type(length) is not int or not 0 <= length <= self.size:
            raise MessageError(f"an array of {length!r} {kind!r} is none of a run of {self.size:,} numbers.")
        if not length:
            return frozen(np.zeros(0, kind))
        size = np.dtype(kind).itemsize * length
        if _is_large(size):
            array: Floats = self.large_arrays.pop(0).view(kind)
            if array.shape != (length,):
                raise MessageError(f"an array has the shape {array.shape}, not {length:,} numbers.")
            return frozen(array)
        if self.at == len(self.pieces[0]):
            del self.pieces[0]
            self.at = 0
        array = np.frombuffer(self.pieces[0], kind, length, self.at)
        self.at += size + -size % ALIGNED
        return frozen(array)


Encode = Callable[[_Writer, Any], Any]
Decode = Callable[[_Reader, Any], Any]


def _vector_out(writer: _Writer, vector: Vector | None) -> list[Any] | None:
    if vector is None:
        return None
    if isinstance(vector, SparseDelta):
        return [vector.size, vector.width, writer.array(vector.indices), writer.array(vector.values)]
    return writer.array(vector)


def _vector_in(reader: _Reader, found: object) -> Vector:
    entry = _list(found)
    if len(entry) == 2:
        return reader.array(entry)
    size, width, indices, values = entry
    if _int(reader, size) > reader.size:
        raise MessageError(f"a vector of {size:,} is none of a run of {reader.size:,} numbers.")
    groups = reader.array(indices, (np.dtype(INDEX).name,))
    sparse = SparseDelta(groups, reader.array(values), size, _int(reader, width))
    return checked(sparse, size)


def _floats_in(reader: _Reader, found: object) -> Floats:
    return reader.array(found)


def _maybe(read: Decode) -> Decode:
    return lambda reader, found: None if found is None else read(reader, found)


def _is(kind: type) -> Decode:
    def read(reader: _Reader, found: object) -> object:
        if type(found) is not kind:
            raise MessageError(f"{found!r} is no {kind.__name__}.")
        return found

    return read


_int, _str, _float, _bool, _dict = _is(int), _is(str), _is(float), _is(bool), _is(dict)


def _is_array(part: object) -> bool:
    return type(part) is np.ndarray and part.dtype == np.uint8


def _list(found: object) -> list[Any]:
    if not isinstance(found, list):
        raise MessageError(f"{found!r} is no list.")
    return found


def _pairs(reader: _Reader, found: object) -> tuple[tuple[int, int], ...]:
    return tuple((_int(reader, first), _int(reader, second)) for first, second in _list(found))


def _names(reader: _Reader, found: object) -> tuple[str, ...]:
    return tuple(_str(reader, name) for name in _list(found))


def _number(reader: _Reader, found: object) -> float:
    return float(found) if type(found) is int else _float(reader, found)


def _as_is(writer: _Writer, value: object) -> object:
    return value


def _plain(value: object) -> object:
    """Convert a number of NumPy to one of Python, for msgpack."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"A {type(value).__name__} cannot be sent.")


@cache
def _codes(kind: str) -> tuple[tuple[str, Encode, Decode], ...]:
    """Return the name, the encoder and the decoder of each field of a kind of message."""
    return tuple((field.name, *_CODES[str(field.type).replace(" ", "")]) for field in fields(BODIES[kind]))


# Encoder and decoder of each field of a message, by the field's type annotation without spaces.
_CODES: dict[str, tuple[Encode, Decode]] = {
    "int": (_as_is, _int),
    "bool": (_as_is, _bool),
    "float": (_as_is, _number),
    "str": (_as_is, _str),
    "tuple[tuple[int,int],...]": (_as_is, _pairs),
    "tuple[str,...]": (_as_is, _names),
    "dict[str,Any]": (_as_is, _dict),
    "Floats": (_vector_out, _floats_in),
    "Floats|None": (_vector_out, _maybe(_floats_in)),
    "Vector": (_vector_out, _vector_in),
    "Vector|None": (_vector_out, _maybe(_vector_in)),
}
