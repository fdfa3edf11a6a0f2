"""Downloads of numbers: CSV without types and Parquet with types, each as a link that contains its file."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hogwild.files import format_size
from hogwild.jsonable import to_jsonable
from hogwild.lab.report_model import Table

CSV, PARQUET = "text/csv;charset=utf-8", "application/vnd.apache.parquet"


@dataclass(frozen=True, slots=True)
class Download:
    """File within the page: its name, its label, and its content as a data URL."""

    file: str
    label: str
    what: str
    href: str
    size: str


def download(file: str, label: str, what: str, kind: str, content: bytes) -> Download:
    """Encode a file as a data URL.

    >>> download("a.csv", "CSV", "of a", "text/csv", b"a").href
    'data:text/csv;base64,YQ=='
    """
    return Download(
        file, label, what, f"data:{kind};base64,{base64.b64encode(content).decode()}", format_size(len(content))
    )


def csv_of(table: Table) -> bytes:
    """Return a table as CSV, with all digits of each number; None becomes an empty cell.

    >>> csv_of(Table("", ("a", "b"), ((1, None), ("x, y", 0.1)))).decode().splitlines()
    ['a,b', '1,', '"x, y",0.1']
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(table.columns)
    writer.writerows([_cell(value) for value in row] for row in table.rows)
    return text.getvalue().encode("utf-8", "replace")


def table_of(records: Sequence[Mapping[str, Any]], title: str = "") -> Table:
    """Return records as a table, with a column for each key that occurs.

    >>> table_of([{"a": 1}, {"b": 2}]).rows
    ((1, None), (None, 2))
    """
    columns = tuple(dict.fromkeys(key for record in records for key in record))
    return Table(title, tuple(map(str, columns)), tuple(tuple(map(record.get, columns)) for record in records))


def parquet_of(table: Table) -> bytes | None:
    """Return a table as Parquet, or None if pyarrow is not installed. Columns of mixed types become text."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return None
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    arrays = [_array(pyarrow, [_value(value) for value in column]) for column in columns]
    sink = io.BytesIO()
    names = [name.encode("utf-8", "replace").decode() for name in table.columns]
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, names=names), sink, compression="zstd")
    return sink.getvalue()


def _array(pyarrow: Any, values: list[Any]) -> Any:
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        return pyarrow.array([None if value is None else _cell(value) for value in values], pyarrow.string())


def _value(value: Any) -> Any:
    """Return a value that Parquet can store with its type, else its text. Floats that are not finite are kept."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value if value is None or isinstance(value, (bool, int, float)) else _cell(value)


def _cell(value: Any) -> str:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None:
        return ""
    if isinstance(value, (bool, int, float)):
        return repr(value)
    text = value if isinstance(value, str) else json.dumps(to_jsonable(value), ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()
