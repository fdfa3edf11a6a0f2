"""Compiled parser of TFRecord files: the framing of records with its checksums, and the ``tf.train.Example`` in each.

A record consists of the length of its content (8 bytes), a checksum of the length (4 bytes), the content, and a
checksum of the content (4 bytes). The content is a protocol buffer, which is a list of fields.
A field is a key, followed by a number or by a length and that number of bytes:

    Example.features (1) -> Features.feature (1), a map: key (1), value (2), which is a Feature:
        bytes_list (1), float_list (2) or int64_list (3), each with its values in field 1, packed or one by one

A position of -1 means that the data cannot be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.jit import compiled, compiled_part

_POLYNOMIAL = 0x82F63B78  # Castagnoli's polynomial with its bits reversed.
# Constant that is added to the stored checksum. Without it the checksum of data with its own checksum is a constant.
_MASK = 0xA282EAD8


def _tables() -> Array:
    """Compute the look-up tables: row ``k`` is the effect of a byte on the checksum ``k`` bytes later."""
    tables = np.zeros((8, 256), np.uint32)
    rest: Any = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        rest = (rest >> 1) ^ np.where(rest & 1, np.uint32(_POLYNOMIAL), np.uint32(0)).astype(np.uint32)
    tables[0] = rest
    for k in range(1, 8):
        tables[k] = (tables[k - 1] >> 8) ^ tables[0][tables[k - 1] & 0xFF]
    return tables


TABLES = _tables()


@compiled
def masked_crc(data: Array, start: int, stop: int) -> np.uint32:
    """Compute the checksum of ``data[start:stop]`` in the form that TFRecord files store.

    >>> hex(masked_crc(np.frombuffer(b"123456789", np.uint8), 0, 9))
    '0xc78ab0e5'
    """
    crc = np.uint32(0xFFFFFFFF)
    at = start
    while at + 8 <= stop:
        low = crc ^ (
            np.uint32(data[at]) | np.uint32(data[at + 1]) << np.uint32(8) | np.uint32(data[at + 2]) << np.uint32(16)
            | np.uint32(data[at + 3]) << np.uint32(24)
        )  # fmt: skip
        crc = np.uint32(
            TABLES[7, low & np.uint32(0xFF)] ^ TABLES[6, (low >> np.uint32(8)) & np.uint32(0xFF)]
            ^ TABLES[5, (low >> np.uint32(16)) & np.uint32(0xFF)] ^ TABLES[4, low >> np.uint32(24)]
            ^ TABLES[3, data[at + 4]] ^ TABLES[2, data[at + 5]] ^ TABLES[1, data[at + 6]] ^ TABLES[0, data[at + 7]]
        )  # fmt: skip
        at += 8
    while at < stop:
        crc = np.uint32(TABLES[0, (crc ^ np.uint32(data[at])) & np.uint32(0xFF)] ^ (crc >> np.uint32(8)))
        at += 1
    crc = np.uint32(~crc)
    return np.uint32(np.uint32(crc >> np.uint32(15) | crc << np.uint32(17)) + np.uint32(_MASK))


# mypy: disable-error-code="no-untyped-call"


FRAME = 16  # Bytes of the framing of a record, besides the content.
FINE, LENGTH, CONTENT, CUT, PROTOCOL, NO_INDICES, NO_LABEL, COUNT, INDEX, VALUE, LABEL = range(11)
BYTES, FLOATS, INTEGERS = 1, 2, 3  # Field numbers of the lists of a Feature.
_FIXED64, _PIECE, _FIXED32 = 1, 2, 5  # Wire types of protocol buffers: 8 bytes, length-delimited, 4 bytes.


@compiled_part
def number_at(data: Array, at: int, size: int) -> np.uint64:
    """Read ``size`` bytes as a little-endian number."""
    number = np.uint64(0)
    for k in range(size):
        number |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return number


@compiled_part
def varint(data: Array, at: int, stop: int) -> tuple[np.uint64, int]:
    """Read a number with seven bits per byte, and return it with its end."""
    number = np.uint64(0)
    for k in range(10):
        if at + k >= stop:
            return number, -1
        number |= np.uint64(data[at + k] & 0x7F) << np.uint64(7 * k)
        if data[at + k] < 0x80:
            return number, at + k + 1
    return number, -1


@compiled_part
def field(data: Array, at: int, stop: int) -> tuple[np.int64, np.int64, int, np.int64]:
    """Read the field at a position, and return its number, its wire type, the start of its content, and its end."""
    key, begin = varint(data, at, stop)
    kind, end = np.int64(key & np.uint64(7)), np.int64(-1)
    if begin >= 0:
        if kind == _PIECE:
            length, begin = varint(data, begin, stop)
            if begin >= 0 and length <= np.uint64(stop - begin):
                end = begin + np.int64(length)
        elif kind == 0:
            _, end = varint(data, begin, stop)
        elif kind == _FIXED64 and begin + 8 <= stop:
            end = begin + 8
        elif kind == _FIXED32 and begin + 4 <= stop:
            end = begin + 4
    return np.int64(key >> np.uint64(3)), kind, begin, end


@compiled_part
def is_named(data: Array, start: int, stop: int, name: Array) -> Any:
    """Return whether the bytes ``data[start:stop]`` are equal to a name."""
    if stop - start != len(name):
        return False
    same = True
    for k in range(len(name)):
        same &= data[start + k] == name[k]
    return same


@compiled_part
def find(data: Array, at: int, stop: int, names: tuple[Array, ...], places: Array) -> bool:
    """Find the features of an Example with these names; return whether the Example is readable.

    ``places`` gets the start and the end of each feature. The last feature of a name counts.
    """
    places[:] = -1
    while at < stop:
        outer, kind, inside, end = field(data, at, stop)
        if end < 0:
            return False
        at = end
        while outer == 1 and kind == _PIECE and inside < end:
            number, kind_of_entry, entry, entry_end = field(data, inside, end)
            if entry_end < 0:
                return False
            inside = entry_end
            if number != 1 or kind_of_entry != _PIECE:
                continue
            key_start, key_stop, value_start, value_stop = entry, entry, entry, entry
            while entry < entry_end:
                part, kind_of_part, begin, entry = field(data, entry, entry_end)
                if entry < 0:
                    return False
                if kind_of_part == _PIECE and part == 1:
                    key_start, key_stop = begin, entry
                elif kind_of_part == _PIECE and part == 2:
                    value_start, value_stop = begin, entry
            for k in range(len(names)):
                if is_named(data, key_start, key_stop, names[k]):
                    places[k, 0], places[k, 1] = value_start, value_stop
    return True


@compiled_part
def numbers(data: Array, at: int, stop: int, out: Array, first: int) -> tuple[np.int64, np.int64]:
    """Read the numbers of a Feature into ``out``; return the kind of its list and their count, or -1 if damaged."""
    what, count = np.int64(0), np.int64(0)
    while at < stop:
        listed, kind, inside, end = field(data, at, stop)
        if end < 0 or kind != _PIECE:
            return what, np.int64(-1)
        at = end
        if listed not in (BYTES, FLOATS, INTEGERS):
            continue
        if what != listed:
            what, count = listed, np.int64(0)  # A Feature has only one list, so the last list counts.
        if listed == BYTES:
            continue
        while inside < end:
            number, kind, begin, next_one = field(data, inside, end)
            if next_one < 0:
                return what, np.int64(-1)
            inside = next_one
            if number != 1:
                continue
            single = 0 if listed == INTEGERS else _FIXED32
            if kind not in (single, _PIECE) or (listed == FLOATS and (next_one - begin) % 4):
                return what, np.int64(-1)
            while begin < next_one:
                if listed == INTEGERS:
                    found, begin = varint(data, begin, next_one)
                    if begin < 0:
                        return what, np.int64(-1)
                    out[first + count] = np.int64(found)
                else:
                    out[first + count] = np.int64(number_at(data, begin, 4))
                    begin += 4
                count += 1
    return what, count


@compiled
def whole(data: Array) -> tuple[np.int64, bool]:
    """Return the end of the last complete record, and whether the checksums of all record lengths match.

    The end follows from the lengths alone. The function does not verify the contents.
    """
    at = np.int64(0)
    while at + 12 <= len(data):
        if np.uint32(number_at(data, at + 8, 4)) != masked_crc(data, at, at + 8):
            return at, False
        length = number_at(data, at, 8)
        if length > np.uint64(len(data) - at - 12) or np.int64(length) + FRAME > len(data) - at:
            break
        at += np.int64(length) + FRAME
    return at, True


@compiled
def parse(
    data: Array,
    names: tuple[Array, ...],
    unlabelled: bool,
    limit: int,
    indptr: Array,
    indices: Array,
    values: Array,
    labels: Array,
    room: Array,
) -> tuple[np.int64, np.int64, int, np.int64]:
    """Parse complete records from the start of ``data``, and return (rows, bytes used, the fault, its position).

    ``names`` are the names of the features with indices, values and label. ``room`` is a buffer for the numbers of one
    record, as bits.
    """
    at, row, places = np.int64(0), np.int64(0), np.empty((3, 2), np.int64)
    bits = np.empty(1, np.uint32)
    floats = bits.view(np.float32)
    while at + 12 <= len(data) and row < len(labels):
        if np.uint32(number_at(data, at + 8, 4)) != masked_crc(data, at, at + 8):
            return row, at, LENGTH, at
        length = number_at(data, at, 8)
        if length > np.uint64(len(data) - at - 12) or np.int64(length) + FRAME > len(data) - at:
            return row, at, CUT, at
        start, stop = at + 12, at + 12 + np.int64(length)
        if np.uint32(number_at(data, stop, 4)) != masked_crc(data, start, stop):
            return row, at, CONTENT, at
        if not find(data, start, stop, names, places):
            return row, at, PROTOCOL, at
        first = indptr[row]
        kind, count = numbers(data, places[0, 0], places[0, 1], room, 0)
        if count < 0 or (kind != INTEGERS and kind != 0):
            return row, at, PROTOCOL, at
        if places[0, 0] < 0:
            return row, at, NO_INDICES, at
        for k in range(count):
            if not 0 <= room[k] < limit:
                return row, at, INDEX, at
            indices[first + k] = room[k]
            values[first + k] = 1
        if places[1, 0] >= 0:
            kind, other = numbers(data, places[1, 0], places[1, 1], room, 0)
            if other < 0 or (kind != FLOATS and kind != 0):
                return row, at, PROTOCOL, at
            if other != count:
                return row, at, COUNT, at
            for k in range(count):
                bits[0] = np.uint32(room[k])
                if not np.isfinite(floats[0]):
                    return row, at, VALUE, at
                values[first + k] = floats[0]
        kind, other = numbers(data, places[2, 0], places[2, 1], room, 0)
        if other < 0:
            return row, at, PROTOCOL, at
        if other != 1 and not (unlabelled and other == 0 and kind != BYTES):
            return row, at, NO_LABEL, at
        labels[row] = 0
        if other == 1 and kind == INTEGERS:
            labels[row] = room[0]
        elif other == 1:
            bits[0] = np.uint32(room[0])
            if not np.isfinite(floats[0]):
                return row, at, LABEL, at
            labels[row] = floats[0]
        indptr[row + 1] = first + count
        row += 1
        at = stop + 4
    return row, at, FINE, at
