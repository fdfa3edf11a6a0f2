"""Numbers behind a figure as tables: one for people, one for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hogwild.jsonable import to_jsonable
from hogwild.lab.report.formatting import written
from hogwild.lab.report_model import Chart, Map, Table


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
