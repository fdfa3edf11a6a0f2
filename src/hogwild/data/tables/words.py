"""Hashed words and pairs of words of texts, by a compiled tokeniser.

A word is a run of letters and digits of ASCII and of characters beyond ASCII. Texts are lower-cased before. The feature
of a word is ``column=word``, that of a pair of neighbours ``column=first second``. Each has the value
``1 / sqrt(features of the cell)``, so that long and short texts weigh about the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.hashing import murmur3
from hogwild.data.tables.column_entries import Column, Entries
from hogwild.jit import compiled

if TYPE_CHECKING:
    import pyarrow


@compiled
def _is_of_word(byte: int) -> bool:
    return (48 <= byte <= 57) or (97 <= byte <= 122) or byte >= 128 or (65 <= byte <= 90)


@compiled
def count_words(text: Array, offsets: Array, counts: Array) -> int:
    """Count the words of each text, and return the length of the longest word."""
    longest = 0
    for row in range(counts.size):
        count, length = 0, 0
        for at in range(offsets[row], offsets[row + 1]):
            if _is_of_word(text[at]):
                if length == 0:
                    count += 1
                length += 1
                longest = max(longest, length)
            else:
                length = 0
        counts[row] = count
    return longest


@compiled
def hash_words(
    prefix: Array, text: Array, offsets: Array, longest: int, bigrams: bool, mask: Any, indices: Array
) -> None:
    """Hash the words of each text, and the pairs of neighbours, into ``indices``, in the order of their ends."""
    name = np.empty(prefix.size + 2 * longest + 1, np.uint8)
    name[: prefix.size] = prefix
    to = 0
    for row in range(offsets.size - 1):
        at, stop = offsets[row], offsets[row + 1]
        before, before_length = 0, 0
        while at < stop:
            if not _is_of_word(text[at]):
                at += 1
                continue
            start = at
            while at < stop and _is_of_word(text[at]):
                at += 1
            length = at - start
            if bigrams and before_length:
                size = prefix.size
                name[size : size + before_length] = text[before : before + before_length]
                size += before_length
                name[size] = 32
                name[size + 1 : size + 1 + length] = text[start:at]
                indices[to] = murmur3(name, 0, size + 1 + length, np.uint64(0)) & mask
                to += 1
            name[prefix.size : prefix.size + length] = text[start:at]
            indices[to] = murmur3(name, 0, prefix.size + length, np.uint64(0)) & mask
            to += 1
            before, before_length = start, length


def word_entries(column: Column, texts: pyarrow.Array, bigrams: bool) -> Entries:
    """Return the entries of lower-cased texts of the type ``large_string`` without nulls.

    >>> import pyarrow
    >>> made = word_entries(Column(None, "t", 1023), pyarrow.array(["red fox, red", ""], pyarrow.large_string()), True)
    >>> made.counts, made.values[:2].round(2)
    (array([5, 0]), array([0.45, 0.45], dtype=float32))
    """
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    text = np.frombuffer(data if data is not None and len(data) else bytes(1), np.uint8)
    counts = np.empty(len(texts), np.int64)
    longest = int(count_words(text, offsets, counts))
    if bigrams:
        counts = counts + np.maximum(counts - 1, 0)
    indices = np.empty(int(counts.sum()), np.uint32)
    prefix = np.frombuffer(f"{column.name}=".encode(), np.uint8)
    hash_words(prefix, text, offsets, longest, bigrams, np.uint64(column.mask), indices)
    values = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts).astype(np.float32)
    return Entries(counts, indices, values)
