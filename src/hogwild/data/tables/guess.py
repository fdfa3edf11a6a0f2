"""Guess of the roles of columns from a sample of rows, where the user has given none, and words about the result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hogwild.data.hashing import columns as check_bits
from hogwild.data.tables.column_entries import Column, converter, is_number, is_text
from hogwild.data.tables.column_roles import ColumnRoles, fields_of, no_column, position
from hogwild.data.tables.encode import as_texts
from hogwild.data.tables.table_encoding import ColumnEncoding, Role, TableEncoding
from hogwild.errors import DataError

if TYPE_CHECKING:
    import pyarrow

    from hogwild.data.reader import ReadOptions

# Names of label columns, of which the first that a table has is taken.
LABELS = ("label", "target", "y", "class", "click", "clicked", "is_click", "clk", "outcome", "response", "survived")
_IDENTIFIER = re.compile(r"(.*[a-z0-9_ .-])?(id|Id|ID)|ID|.*_ids?", re.DOTALL)
_LOOKED_AT = 1000  # Rows of a column of text in which words are counted.
_WORDS = 4  # Mean number of words from which on a column is text instead of a category.
_COMPARED = 100_000  # Values that are compared, to find out whether all of them differ,
_FEWEST = 100  # and the smallest number of values with which that means anything.
_NAMED = 6  # Columns that a description names for each role.


def guess_encoding(
    sample: pyarrow.RecordBatch, reading: ReadOptions, path: Path | None, *, label_named: bool, apart: bool = False
) -> TableEncoding:
    """Return the encoding of a table, still without statistics.

    Parameters
    ----------
    sample : pyarrow.RecordBatch
        The first rows of the table, with all its columns.
    reading : ReadOptions
        Options with the roles, the label and the weight that the user has given.
    path : Path or None
        File of the table, for errors.
    label_named : bool
        Whether the label has to be named ``label`` unless it is given, instead of guessed.
    apart : bool, default False
        Whether labels are given apart from the table.

    Raises
    ------
    DataError
        If there is no label, no column for a role, or no column besides the label.

    Examples
    --------
    >>> import pyarrow
    >>> from hogwild.data.reader import ReadOptions
    >>> sample = pyarrow.RecordBatch.from_pydict({"click": [0, 1], "age": [30, 31], "user_id": [7, 8]})
    >>> print(describe(guess_encoding(sample, ReadOptions(), None, label_named=False)))
    label 'click'; numbers (standard): age; categories (hash): user_id
    """
    names, roles = list(sample.schema.names), reading.roles or ColumnRoles()
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError("several columns have this name", path=path, column=name, remedy="Rename them.")
    roles.check(names, path)
    label = None if apart else _label(names, reading, path, label_named)
    weight = None if reading.weight is None else _named(names, reading.weight, path, "weight")
    if label is not None and label == weight:
        raise DataError("this column is the label and the weight", path=path, column=label, remedy="Name two columns.")
    for role, name in (("label", label), ("weight", weight)):
        if name is not None:
            other = roles.names(name, names.index(name) + 1)
            if other is not None:
                what = f"this column is the {role}, and is named by the option '{other}' as well"
                raise DataError(what, path=path, column=name, remedy="Name it once.")
            _check_number(sample.schema.field(name).type, name, role, path)
    made: list[ColumnEncoding] = []
    identifiers: list[ColumnEncoding] = []  # Columns whose values differ in all rows, of which nothing can be learnt.
    for number, name in enumerate(names, 1):
        if name in (label, weight):
            continue
        given = roles.of(name, number)
        if given is None:
            array = sample.column(name)
            guessed = _guessed(array, name, path)
            (identifiers if guessed.role == "categorical" and _all_differ(array) else made).append(guessed)
        elif given[0] != "drop":
            made.append(ColumnEncoding(name, _role(given[0]), given[1]))
    made, identifiers = (made, identifiers) if made else (identifiers, [])
    if not made:
        raise DataError("there are no columns besides the label", path=path, remedy="Add columns to learn from.")
    check_bits(reading.bits)
    kept = [column.name for column in made]
    fields = None if reading.fields is None else fields_of(reading.fields, kept, names, path)
    numbered = names == [str(number) for number in range(1, len(names) + 1)]
    return TableEncoding(tuple(made), label, weight, bits=reading.bits, names=tuple(names) if numbered else None,
                         fields=fields, left_out=tuple(each.name for each in identifiers) or None)  # fmt: skip


def describe(encoding: TableEncoding) -> str:
    """Return a line about the roles of the columns."""
    words: dict[Role, str] = {"numeric": "numbers", "categorical": "categories", "text": "text", "typed": "lists"}
    groups: dict[str, list[str]] = {}
    for column in encoding.columns:
        transformed = "" if column.role == "typed" else f" ({column.transformation})"
        groups.setdefault(words[column.role] + transformed, []).append(column.name)
    parts = [f"{group}: {_shortened(names)}" for group, names in groups.items()]
    if encoding.label is not None:
        classes = f" with {len(encoding.classes)} classes" if encoding.classes else ""
        parts.insert(0, f"label {encoding.label!r}{classes}")
    if encoding.left_out:
        parts.append(f"left out, because every value differs: {_shortened(encoding.left_out)}")
    if encoding.fields is not None:
        parts.append(f"{len(set(encoding.fields))} fields")
    return "; ".join(parts)


def _shortened(names: Sequence[str]) -> str:
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _NAMED - 2])}, ..., {names[-1]} ({len(names)} columns)"


def _label(names: list[str], reading: ReadOptions, path: Path | None, label_named: bool) -> str | None:
    if not names:
        raise DataError("the rows have no columns", path=path, remedy="Check the file, or name its format.")
    given = "label" if label_named and reading.label is None else reading.label
    if given is not None:
        absent = reading.unlabelled and position(given, names) is None
        return None if absent else _named(names, given, path, "label")
    lowered = [name.lower() for name in names]
    found = next((names[lowered.index(name)] for name in LABELS if name in lowered), None)
    return found if found is not None or reading.unlabelled else names[0]


def _named(names: list[str], given: str, path: Path | None, role: str) -> str:
    at = position(given, names)
    if at is None:
        raise no_column(given, names, path, role)
    return names[at]


def _check_number(kind: pyarrow.DataType, name: str, role: str, path: Path | None) -> None:
    from pyarrow import types

    value = kind.value_type if types.is_dictionary(kind) else kind
    if not (is_number(value) or types.is_null(value) or (role == "label" and is_text(value))):
        Column(path, name, 0).check_numeric(kind, role)


def _role(name: str) -> Role:
    return "numeric" if name == "numeric" else "categorical" if name == "categorical" else "text"


def _guessed(array: pyarrow.Array, name: str, path: Path | None) -> ColumnEncoding:
    from pyarrow import types

    kind = array.type
    text = is_text(kind.value_type if types.is_dictionary(kind) else kind)
    if types.is_boolean(kind):
        return ColumnEncoding(name, "numeric", "none")
    if is_number(kind):
        whole = types.is_integer(kind) and _IDENTIFIER.fullmatch(name)
        return ColumnEncoding(name, "categorical", "hash") if whole else ColumnEncoding(name, "numeric", "standard")
    if types.is_null(kind):
        return ColumnEncoding(name, "categorical", "hash")
    if text:
        return (
            ColumnEncoding(name, "text", "words") if _is_prose(array) else ColumnEncoding(name, "categorical", "hash")
        )
    converter(Column(path, name, 0), kind)
    return ColumnEncoding(name, "typed", "none")


def _all_differ(array: pyarrow.Array) -> bool:
    """Return whether all values of a column differ, in a sample that is large enough to tell."""
    import pyarrow.compute as pc
    from pyarrow import types

    found = as_texts(array[:_COMPARED])
    found = found.dictionary_decode() if types.is_dictionary(found.type) else found
    present = len(found) - found.null_count
    return bool(present >= _FEWEST and pc.count_distinct(found, mode="only_valid").as_py() == present)


def _is_prose(array: pyarrow.Array) -> bool:
    """Return whether the texts of a column have several words each."""
    texts = [text for text in as_texts(array[:_LOOKED_AT]).to_pylist() if text]
    spaces = sum(text.count(b" " if isinstance(text, bytes) else " ") for text in texts)
    return bool(texts) and spaces >= (_WORDS - 1) * len(texts)
