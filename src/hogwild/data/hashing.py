"""Feature hashing: 32-bit MurmurHash3 from names to column numbers, as Vowpal Wabbit uses it by default.

A name is hashed *in a namespace*, which is itself a 32-bit number (0 when there is none):

- a name of digits only is not hashed: the result is that number plus the namespace, modulo 2**32;
- any other name gives ``murmur3(name, seed=namespace)``.

The name of a namespace is hashed by the same rule in namespace 0. The lowest ``bits`` bits of the result are the
column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.memory_words import byte, eight_bytes
from hogwild.errors import ParameterError
from hogwild.jit import compiled, compiled_part

MOST_BITS = 30  # Largest number of hash bits, because 2**31 columns exceed LARGEST_INDEX.

# Mask of 32 bits. Arithmetic is in 64 bits, where Numba keeps unsigned numbers unsigned, and is cut to 32 bits.
_WORD = np.uint64(0xFFFFFFFF)
_MIX_1 = np.uint64(0xCC9E2D51)
_MIX_2 = np.uint64(0x1B873593)
_FINAL_1 = np.uint64(0x85EBCA6B)
_FINAL_2 = np.uint64(0xC2B2AE35)
_ADDEND = np.uint64(0xE6546B64)
_0, _1, _3, _5, _8, _10, _13 = (np.uint64(n) for n in (0, 1, 3, 5, 8, 10, 13))
_15, _16, _17, _19, _32 = (np.uint64(n) for n in (15, 16, 17, 19, 32))
_ZERO, _NINE = np.uint8(48), np.uint8(57)


@compiled
def _scrambled(word: np.uint64) -> np.uint64:
    word = (word * _MIX_1) & _WORD
    return (word << _15 | word >> _17) * _MIX_2 & _WORD


@compiled_part
def mixed(state: np.uint64, word: np.uint64) -> Any:
    """Mix a word of 32 bits into the state of MurmurHash3."""
    state ^= _scrambled(word)
    return ((state << _13 | state >> _19) * _5 + _ADDEND) & _WORD


@compiled_part
def _finished(state: np.uint64, length: np.uint64) -> Any:
    state ^= length & _WORD
    state = (state ^ state >> _16) * _FINAL_1 & _WORD
    state = (state ^ state >> _13) * _FINAL_2 & _WORD
    return state ^ state >> _16


@compiled
def murmur3(text: Array, start: int, stop: int, seed: int) -> Any:
    """Return the MurmurHash3 (x86, 32 bits) of the bytes ``text[start:stop]`` as an unsigned 64-bit number.

    >>> int(murmur3(np.frombuffer(b"hello", np.uint8), 0, 5, 0))
    613153351
    """
    state, word, shift = np.uint64(seed) & _WORD, _0, _0
    for at in range(start, stop):
        word |= np.uint64(text[at]) << shift
        shift += _8
        if shift == _32:
            state, word, shift = mixed(state, word), _0, _0
    # Mix in the bytes of an incomplete last word. If there are none, the word is 0, which scrambles to 0.
    return _finished(state ^ _scrambled(word), np.uint64(stop - start))


@compiled_part
def hash_after(
    state: np.uint64, waiting: np.uint64, size: np.uint64, at: np.uint64, end: np.uint64, stop: np.uint64
) -> Any:
    """Return the MurmurHash3 of a prefix and of the text between two addresses, eight bytes at a time.

    The prefix has ``size`` bytes. ``state`` is what its whole words have made, and ``waiting`` has its other bytes.
    Memory can be read up to ``stop``.
    """
    shift, length = (size & _3) * _8, size + end - at
    while at + _8 <= end:
        word = eight_bytes(at)
        joined = waiting | (word & _WORD) << shift
        state = mixed(state, joined & _WORD)
        joined = joined >> _32 | (word >> _32) << shift
        state, waiting = mixed(state, joined & _WORD), joined >> _32
        at += _8
    if at < end:
        rest, word = (end - at) * _8, _0
        if at + _8 <= stop:
            word = eight_bytes(at) & ((_1 << rest) - _1)
        else:
            for k in range(end - at):
                word |= np.uint64(byte(at + np.uint64(k))) << (np.uint64(k) * _8)
        if rest >= _32:
            joined = waiting | (word & _WORD) << shift
            state, waiting = mixed(state, joined & _WORD), joined >> _32
            word, rest = word >> _32, rest - _32
        waiting |= word << shift
        if rest + shift >= _32:
            state, waiting = mixed(state, waiting & _WORD), waiting >> _32
    return _finished(state ^ _scrambled(waiting), length)


@compiled
def hash_name(text: Array, start: int, stop: int, namespace: int) -> Any:
    """Return the position of a name before it is cut to ``bits`` bits: its number if it is all digits, else its hash.

    >>> int(hash_name(np.frombuffer(b"17", np.uint8), 0, 2, 3))
    20
    """
    number = _0
    for at in range(start, stop):
        byte = text[at]
        if byte < _ZERO or byte > _NINE:
            return murmur3(text, start, stop, namespace)
        number = number * _10 + np.uint64(byte - _ZERO)
    return (number + np.uint64(namespace)) & _WORD


@compiled
def hash_joined(prefix: Array, text: Array, offsets: Array, out: Array) -> None:
    """Hash ``prefix + text[offsets[k]:offsets[k + 1]]``, in no namespace, into ``out[k]`` for every k.

    >>> out = np.empty(1, np.uint32)
    >>> hash_joined(np.frombuffer(b"he", np.uint8), np.frombuffer(b"llo", np.uint8), np.array([0, 3]), out)
    >>> int(out[0])
    613153351
    """
    if _is_number(prefix):
        _hash_numbers(prefix, text, offsets, out)
        return
    state, waiting, size = _0, _0, np.uint64(prefix.size)
    for at in range(prefix.size):
        waiting |= np.uint64(prefix[at]) << (np.uint64(at & 3) * _8)
        if at & 3 == 3:
            state, waiting = mixed(state, waiting), _0
    first = np.uint64(text.ctypes.data)
    stop = first + np.uint64(text.size)
    for k in range(out.size):
        start, end = first + np.uint64(offsets[k]), first + np.uint64(offsets[k + 1])
        out[k] = np.uint32(hash_after(state, waiting, size, start, end, stop))


@compiled
def _is_number(name: Array) -> bool:
    others = 0
    for at in range(name.size):
        others += name[at] < _ZERO or name[at] > _NINE
    return others == 0


@compiled
def _hash_numbers(prefix: Array, text: Array, offsets: Array, out: Array) -> None:
    """Hash names that may be of digits only, because their beginning is."""
    longest = 0
    for k in range(out.size):
        longest = max(longest, offsets[k + 1] - offsets[k])
    name = np.empty(prefix.size + longest, np.uint8)
    for at in range(prefix.size):
        name[at] = prefix[at]
    for k in range(out.size):
        stop = prefix.size
        for at in range(offsets[k], offsets[k + 1]):
            name[stop] = text[at]
            stop += 1
        out[k] = np.uint32(hash_name(name, 0, stop, np.uint64(0)))


def column_of(name: str, bits: int = 18, namespace: str = "") -> int:
    """Return the column of the feature with this name.

    >>> column_of("price"), column_of("17"), column_of("price", namespace="product")
    (229902, 17, 252652)
    """
    seed = _hashed(namespace, 0) if namespace else 0
    return _hashed(name, seed) & (columns(bits) - 1)


def columns(bits: int) -> int:
    """Return the number of columns for names that are hashed to ``bits`` bits.

    >>> columns(18)
    262144
    """
    if not 1 <= bits <= MOST_BITS:
        raise ParameterError(f"The 'bits' parameter must be between 1 and {MOST_BITS}. Got {bits!r} instead.")
    return int(2**bits)


def _hashed(name: str, seed: int) -> int:
    text: Array = np.frombuffer(name.encode() or b"\0", np.uint8)
    return int(hash_name(text, 0, len(name.encode()), np.uint64(seed)))


@compiled
def merge_duplicates(indptr: Array, indices: Array, values: Array) -> None:
    """Sort the entries of each row by index and add up the values of equal indices, in place.

    The function rewrites ``indptr``. Entries after ``indptr[-1]`` have no meaning any more. Sums are in double
    precision, so that they hardly depend on the order of equal indices.

    >>> indptr, indices = np.array([0, 3, 4]), np.array([7, 2, 7, 1], np.uint32)
    >>> values = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    >>> merge_duplicates(indptr, indices, values)
    >>> indptr, indices[:3], values[:3]
    (array([0, 2, 3]), array([2, 7, 1], dtype=uint32), array([2., 4., 4.], dtype=float32))
    """
    out, start = np.uint64(indptr[0]), np.uint64(indptr[0])
    for row in range(indptr.size - 1):
        stop = np.uint64(indptr[row + 1])
        sort_entries(indices, values, start, stop)
        at = start
        while at < stop:
            index, total = indices[at], 0.0
            while at < stop and indices[at] == index:
                total += values[at]
                at += np.uint64(1)
            indices[out], values[out] = index, total
            out += np.uint64(1)
        indptr[row + 1], start = out, stop


@compiled
def sort_entries(indices: Array, values: Array, start: np.uint64, stop: np.uint64) -> None:
    """Sort the entries of a row by index, in place, with Shell's sort.

    A sorted row takes one pass, and a long row never takes quadratic time.
    """
    one, gap = np.uint64(1), np.uint64(1)
    at = start + one
    while at < stop and indices[at - one] <= indices[at]:
        at += one
    if at >= stop:
        return
    while gap < (stop - start) // np.uint64(4):
        gap = gap * np.uint64(3) + one
    while gap > np.uint64(0):
        for entry in range(start + gap, stop):
            index, value, to = indices[entry], values[entry], np.uint64(entry)
            while to >= start + gap and indices[to - gap] > index:
                indices[to], values[to] = indices[to - gap], values[to - gap]
                to -= gap
            indices[to], values[to] = index, value
        gap //= np.uint64(3)
