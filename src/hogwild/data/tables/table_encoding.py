"""Fitted encoding of a table: what each column becomes, and the statistics that this needs. Models keep it as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Literal, get_args

from hogwild.data.tables.column_roles import DEFAULTS, ColumnRoles

Role = Literal["numeric", "categorical", "text", "typed"]
MOST_COLUMNS = 100_000
MOST_BITS = 30  # As in :mod:`hogwild.data.hashing`, which needs the compiler. Models load without it.
MOST_VALUES = 2**20  # Largest number of values of all dictionaries together, which the model keeps.


@dataclass(frozen=True, slots=True)
class ColumnEncoding:
    """Encoding of one column as features.

    A column with the role ``typed`` is converted by its Arrow type alone: numbers, categories, lists and maps.

    >>> ColumnEncoding("age", "numeric", "standard", statistics=(40.0, 12.5)).is_fitted
    True
    """

    name: str
    role: Role
    transformation: str
    # Mean and standard deviation of ``standard``, or the inner edges of the bins of ``quantile``.
    statistics: tuple[float, ...] | None = None
    values: tuple[str, ...] | None = None  # Values of a dictionary, in the order of their columns.

    @property
    def is_fitted(self) -> bool:
        """Whether all statistics are there."""
        if self.transformation == "dictionary":
            return self.values is not None
        return self.statistics is not None or not self.needs_statistics

    @property
    def needs_statistics(self) -> bool:
        """Whether the transformation needs numbers of the training data."""
        return self.transformation == "standard" or self.transformation.startswith("quantile:")

    @property
    def several(self) -> bool:
        """Whether a cell may make several features."""
        return self.role in ("text", "typed") or self.transformation.startswith("list:")

    @property
    def bins(self) -> int:
        """The number of bins of ``quantile``."""
        return int(self.transformation.removeprefix("quantile:"))


@dataclass(frozen=True, slots=True)
class TableEncoding:
    """Encoding of a table: its columns, its label, and the number of columns that features are hashed to.

    Hashed features have the columns from 0 to ``2**bits``. Values of dictionaries have the columns after these.

    >>> TableEncoding((ColumnEncoding("city", "categorical", "dictionary", values=("Bonn", "Ulm")),), bits=4).features
    18
    """

    columns: tuple[ColumnEncoding, ...]
    label: str | None = None  # Name of the label column. None: labels are given apart.
    weight: str | None = None
    classes: tuple[str, ...] | None = None  # Texts that are labels; their positions are the numbers of the classes.
    bits: int = 18
    names: tuple[str, ...] | None = None  # All columns of a text file without a header, in order.
    binary: bool = False  # Whether every value is one, also where several features of a row have the same column.
    # Field of each column. Columns of the rows are then numbered by a vocabulary of pairs (field, feature).
    fields: tuple[int, ...] | None = None
    left_out: tuple[str, ...] | None = None  # Columns that a guess has left out, because all their values differ.

    @property
    def features(self) -> int:
        """The number of columns of the rows."""
        return int(2**self.bits) + sum(len(column.values or ()) for column in self.columns)

    def first_columns(self) -> list[int]:
        """Return the first column of the dictionary of each column of the table."""
        sizes = (len(column.values or ()) for column in self.columns)
        return list(accumulate(sizes, initial=int(2**self.bits)))[:-1]

    def record(self) -> dict[str, Any]:
        """Return the encoding as plain values, for JSON."""
        columns = [{name: value for name, value in asdict(each).items() if value is not None} for each in self.columns]
        return {**{name: value for name, value in asdict(self).items() if value is not None}, "columns": columns}

    def without_label(self) -> TableEncoding:
        """Return the encoding for rows whose labels are given apart."""
        return replace(self, label=None, weight=None, classes=None)


def from_record(record: object) -> TableEncoding:
    """Return the encoding of a record.

    Raises
    ------
    ValueError
        For an entry that no encoding has.

    Examples
    --------
    >>> encoding = TableEncoding((ColumnEncoding("city", "categorical", "hash"),), "label", bits=10)
    >>> from_record(encoding.record()) == encoding
    True
    """
    found = _mapping(record, TableEncoding)
    columns = found.get("columns")
    if not isinstance(columns, list | tuple) or not 0 < len(columns) <= MOST_COLUMNS:
        raise ValueError(f"'columns' cannot be {columns!r:.80}")
    bits = found.get("bits")
    if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= MOST_BITS:
        raise ValueError(f"'bits' cannot be {bits!r:.80}")
    encoding = TableEncoding(
        tuple(_column(column) for column in columns), _optional_text(found, "label"), _optional_text(found, "weight"),
        _texts(found, "classes"), bits, _texts(found, "names"), found.get("binary", False),
        _fields(found.get("fields"), len(columns)), _texts(found, "left_out"),
    )  # fmt: skip
    if not isinstance(encoding.binary, bool):
        raise ValueError(f"'binary' cannot be {encoding.binary!r:.80}")
    if encoding.features > 2**31 - 1:
        raise ValueError(f"{encoding.features:,} columns are too many")
    return encoding


def _fields(fields: object, columns: int) -> tuple[int, ...] | None:
    if fields is None:
        return None
    whole = isinstance(fields, list | tuple) and all(type(field) is int and 0 <= field < columns for field in fields)
    if not isinstance(fields, list | tuple) or not whole or len(fields) != columns:
        raise ValueError(f"'fields' cannot be {fields!r:.80}")
    return tuple(fields)


def _column(record: object) -> ColumnEncoding:
    found = _mapping(record, ColumnEncoding)
    name, role, transformation = (found.get(key) for key in ("name", "role", "transformation"))
    known = isinstance(name, str) and isinstance(transformation, str) and role in get_args(Role)
    if not known or not isinstance(transformation, str) or not _is_known(str(role), transformation):
        raise ValueError(f"a column cannot be {record!r:.80}")
    statistics = found.get("statistics")
    if statistics is not None:
        if not isinstance(statistics, list | tuple) or not all(map(_is_number, statistics)):
            raise ValueError(f"'statistics' cannot be {statistics!r:.80}")
        statistics = tuple(float(number) for number in statistics)
    column = ColumnEncoding(str(name), role, transformation, statistics, _texts(found, "values"))  # type: ignore[arg-type]
    _check_statistics(column)
    return column


def _is_known(role: str, transformation: str) -> bool:
    if role == "typed":
        return transformation == "none"
    of_role = ColumnRoles(**{role: (f"x:{transformation}",)}).of("x", 1)
    return of_role == (role, transformation) and (transformation != "" or DEFAULTS[role] == "")


def _check_statistics(column: ColumnEncoding) -> None:
    statistics, sound = column.statistics, column.is_fitted
    if statistics is not None:
        if column.transformation == "standard":
            sound = len(statistics) == 2 and statistics[1] > 0
        elif column.transformation.startswith("quantile:"):
            sound = len(statistics) < column.bins and all(a < b for a, b in pairwise(statistics))
        else:
            sound = False
    if not sound or (column.values is not None and column.transformation != "dictionary"):
        raise ValueError(f"the statistics of column {column.name!r:.80} do not fit its transformation")


def _mapping(record: object, kind: type[Any]) -> Mapping[str, Any]:
    if not isinstance(record, Mapping) or not set(record) <= set(kind.__dataclass_fields__):
        raise ValueError(f"the encoding of a table cannot be {record!r:.80}")
    return record


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300


def _optional_text(found: Mapping[str, Any], name: str) -> str | None:
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"'{name}' cannot be {value!r:.80}")
    return value


def _texts(found: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    value = found.get(name)
    if value is None:
        return None
    sound = isinstance(value, list | tuple) and len(value) <= MOST_VALUES and all(isinstance(v, str) for v in value)
    if not sound or len(set(value)) != len(value):
        raise ValueError(f"'{name}' cannot be {value!r:.80}")
    return tuple(value)
