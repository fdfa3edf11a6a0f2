"""Options with which a model reads a file, so that its columns mean the same as those of the training data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hogwild.data.tables.table_encoding import TableEncoding, from_record

if TYPE_CHECKING:
    from hogwild.data.field_vocabulary import FieldVocabulary
    from hogwild.data.reader import ReadOptions

_KEPT = ("base", "bits", "label", "weight")


def read_options(
    reading: Mapping[str, Any], features: int, given: Mapping[str, Any], table: FieldVocabulary | None = None
) -> ReadOptions:
    """Return the options for a file to predict. Options that are not given are those of the training file.

    >>> read_options({"base": 1}, 2**10, {}).bits
    10
    """
    from hogwild.data.reader import ReadOptions  # Models load, and score one row, without readers.

    known = {name: reading[name] for name in _KEPT if name in reading}
    if features.bit_count() == 1 and features > 1:
        # Hashed features are hashed into the same number of columns.
        known["bits"] = features.bit_length() - 1
    encoding = encoding_of(reading)
    if encoding is not None and given.get("label") is not None:
        encoding = replace(encoding, label=given["label"])
    chosen: dict[str, Any] = {"unlabelled": True, "fits": False, **known, "encoding": encoding, **given}
    return ReadOptions(**chosen, features=features, extra="ignore", table=table)


def encoding_of(reading: Mapping[str, Any]) -> TableEncoding | None:
    """Return the encoding of tables that the record of a model has, or None."""
    return None if reading.get("encoding") is None else from_record(reading["encoding"])
