"""The numbers behind a figure: formatted values, tables, and downloads as CSV and Parquet."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from hogwild.files import format_size, to_jsonable
from hogwild.lab.report_model import Chart, Map, Table

NOTHING = "\N{EN DASH}"


def written(value: object, digits: int = 4) -> str:
    """Return a value as text, with ``digits`` significant digits where it has more.

    >>> [written(value) for value in (0.123456, 0.000012345, 1234567, 2048, 31415.9265, 3.0, None, True)]
    ['0.1235', '1.234e-5', '1,234,567', '2048', '31,416', '3', '–', 'yes']
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return (
            str(value) if abs(value) < 10_000 else f"{value:,}" if abs(value) < 10**15 else _short(float(value), digits)
        )
    if isinstance(value, float):
        return _short(value, digits)
    return value if isinstance(value, str) else json.dumps(to_jsonable(value), ensure_ascii=False)


def shortened(text: str, longest: int) -> str:
    """Return a text on one line, cut to ``longest`` characters.

    >>> shortened("a very long name", 10), shortened("short", 10)
    ('a very lo…', 'short')
    """
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def slug(text: str, longest: int = 60) -> str:
    """Return a text as a part of file names and URLs.

    >>> slug("Loss, over time (µs)"), slug("</script>"), slug("???")
    ('loss-over-time-us', 'script', 'untitled')
    """
    letters = unicodedata.normalize("NFKD", text.lower().replace("µ", "u")).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:longest].strip("-") or "untitled"


class Names:
    """Generator of unique names: the second ``loss`` becomes ``loss-2``.

    >>> names = Names()
    >>> names("loss"), names("loss"), names("Loss!")
    ('loss', 'loss-2', 'loss-3')
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, text: str) -> str:
        first = name = slug(text)
        count = 1
        while name in self._taken:
            count += 1
            name = f"{first}-{count}"
        self._taken.add(name)
        return name


def _short(value: float, digits: int) -> str:
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if 1e4 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    if value != 0 and not 1e-3 <= abs(value) < 1e4:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:.{digits}g}"


def column(values: Iterable[Any]) -> list[Any]:
    """Return values as a list of plain values; numbers that are not finite become None.

    >>> column(range(2)), column((0.5, float("nan")))
    ([0, 1], [0.5, None])
    """
    return [to_jsonable(value) for value in values]


def matrix(rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    """Return rows of values as lists of plain values; numbers that are not finite become None."""
    return [column(row) for row in rows]


def tidy(part: Chart | Map | Table) -> Table:
    """Return a table with one row per point, for programs.

    >>> from hogwild.lab.report_model import Series
    >>> tidy(Chart("Loss", "epoch", "loss", (Series("sgd", [1, 2], [0.5, 0.25], spread=[0.1, 0.0]),))).rows
    (('sgd', 1, 0.5, 0.1), ('sgd', 2, 0.25, 0.0))
    """
    if isinstance(part, Table):
        return part
    rows: list[tuple[Any, ...]] = []
    if isinstance(part, Map):
        for y, row in zip(column(part.ys), matrix(part.values), strict=False):
            rows += [(x, y, value) for x, value in zip(column(part.xs), row, strict=False)]
        return Table(part.title, (part.x, part.y, part.unit or "value"), tuple(rows))
    for one in part.series:
        xs, ys = column(one.x), column(one.y)
        spread = [None] * len(xs) if one.spread is None else column(one.spread)
        rows += [(one.name, x, y, more) for x, y, more in zip(xs, ys, spread, strict=False)]
    return Table(part.title, ("series", part.x, part.y, "spread"), tuple(rows))


def side_by_side(part: Chart | Map) -> Table:
    """Return a table for people: curves over the same x in columns, a map as a matrix.

    >>> from hogwild.lab.report_model import Series
    >>> curves = (Series("sgd", [1], [0.5]), Series("adam", [1], [0.3], [0.1]))
    >>> table = side_by_side(Chart("Loss", "epoch", "loss", curves))
    >>> table.columns, table.rows
    (('epoch', 'sgd', 'adam', '± adam'), ((1, 0.5, 0.3, 0.1),))
    """
    if isinstance(part, Map):
        xs, ys, values = column(part.xs), column(part.ys), matrix(part.values)
        rows = tuple((y, *row) for y, row in zip(ys, values, strict=False))
        return Table(part.title, (f"{part.y} \\ {part.x}", *map(written, xs)), rows)
    places = [column(one.x) for one in part.series]
    if not places or any(place != places[0] for place in places):
        return tidy(part)
    names, columns = [part.x], [places[0]]
    for one in part.series:
        names.append(one.name)
        columns.append(column(one.y))
        if one.spread is not None:
            names.append(f"± {one.name}")
            columns.append(column(one.spread))
    return Table(part.title, tuple(names), tuple(zip(*columns, strict=False)))


def path_of(part: Map) -> Table:
    """Return the points along the path of a map."""
    xs, ys = part.path or ((), ())
    return Table(f"{part.title}, path", (part.x, part.y), tuple(zip(column(xs), column(ys), strict=False)))


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


def _array(pyarrow: ModuleType, values: list[Any]) -> object:
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        return pyarrow.array([None if value is None else _cell(value) for value in values], pyarrow.string())


def _value(value: object) -> object:
    """Return a value that Parquet can store with its type, else its text. Floats that are not finite are kept."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value if value is None or isinstance(value, (bool, int, float)) else _cell(value)


def _cell(value: object) -> str:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None:
        return ""
    if isinstance(value, (bool, int, float)):
        return repr(value)
    text = value if isinstance(value, str) else json.dumps(to_jsonable(value), ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()
