"""Fitting of an encoding to training data: means, quantiles, dictionaries and classes.

Means and quantiles come from a sample of rows from all parts of the data, or the first part where it is a stream.
Dictionaries and classes need every value, so the whole data is read once more for them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.data.tables.column_entries import Column, is_text, numbers
from hogwild.data.tables.encode import as_numbers, as_texts, one_batch, utf8_texts
from hogwild.data.tables.sample import Sample
from hogwild.data.tables.table_encoding import MOST_VALUES, ColumnEncoding, TableEncoding
from hogwild.errors import DataError

if TYPE_CHECKING:
    import pyarrow

_MOST_CLASSES = 1000


def fit(
    encoding: TableEncoding,
    sample: Sample,
    everything: Callable[[], Iterator[pyarrow.RecordBatch]],
    path: Path | None,
) -> TableEncoding:
    """Return the encoding with all statistics.

    ``everything`` is called if the sample does not suffice; it yields all batches of the training data.

    >>> import pyarrow
    >>> from hogwild.data.tables.sample import Sample
    >>> sample = pyarrow.RecordBatch.from_pydict({"y": [0, 1], "age": [30.0, 40.0], "city": ["Ulm", "Bonn"]})
    >>> columns = ColumnEncoding("age", "numeric", "standard"), ColumnEncoding("city", "categorical", "dictionary")
    >>> made = fit(TableEncoding(columns, "y"), Sample(sample.schema, [sample]), lambda: iter([sample]), None)
    >>> [column.statistics or column.values for column in made.columns]
    [(35.0, 5.0), ('Bonn', 'Ulm')]
    """
    # A schema finds a column by its name in a time that grows with the number of columns.
    batches = [dict(zip(batch.schema.names, batch.columns, strict=True)) for batch in sample.batches]
    columns = [
        _fit_numbers(column, batches, path) if column.needs_statistics else column for column in encoding.columns
    ]
    named = {column.name: None for column in columns if column.transformation == "dictionary"}  # in their order
    label = (
        encoding.label if encoding.label is not None and _is_text(sample.schema.field(encoding.label).type) else None
    )
    if named or label is not None:
        found = _distinct([*named, *([label] if label is not None else [])], everything(), path)
        columns = [replace(column, values=found[column.name]) if column.name in named else column for column in columns]
        if label is not None:
            encoding = replace(encoding, classes=_checked_classes(found[label], label, path))
    return replace(encoding, columns=tuple(columns))


def _is_text(kind: pyarrow.DataType) -> bool:
    from pyarrow import types

    return is_text(kind.value_type if types.is_dictionary(kind) else kind)


def _checked_classes(classes: tuple[str, ...], label: str, path: Path | None) -> tuple[str, ...]:
    if not 2 <= len(classes) <= _MOST_CLASSES:
        count = f"more than {_MOST_CLASSES:,}" if len(classes) > _MOST_CLASSES else str(len(classes))
        raise DataError(
            f"the label is text with {count} different values", path=path, column=label,
            remedy="Name another column as label, or encode the label as numbers.",
        )  # fmt: skip
    return classes


def _fit_numbers(column: ColumnEncoding, sample: list[dict[str, Any]], path: Path | None) -> ColumnEncoding:
    where, parts = Column(path, column.name, 0), [np.empty(0)]
    for batch in sample:
        if column.name in batch:
            with contextlib.suppress(DataError):  # It is told, with its place, when the file is read.
                found, present = numbers(where, as_numbers(where, batch[column.name], 0), 0)
                parts.append(found[present])
    known = np.concatenate(parts)
    if column.transformation == "standard":
        mean, deviation = (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
        return replace(column, statistics=(mean, deviation if deviation > 0 else 1.0))
    inner = np.linspace(0, 1, column.bins + 1)[1:-1]
    edges = np.unique(np.quantile(known, inner)) if len(known) else np.empty(0)
    return replace(column, statistics=tuple(edges.tolist()))


def _distinct(
    names: list[str], batches: Iterator[pyarrow.RecordBatch], path: Path | None
) -> dict[str, tuple[str, ...]]:
    """Return the distinct texts of columns, sorted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found: dict[str, set[str]] = {name: set() for name in names}
    for batch in batches:
        table = one_batch(batch) if isinstance(batch, pa.Table) else batch
        for name in names:
            if name in table.schema.names:
                texts = as_texts(table.column(name))
                texts = texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts
                texts = utf8_texts(Column(path, name, 0), texts, None)
                found[name].update(text for text in pc.unique(texts).to_pylist() if text is not None)
        if sum(map(len, found.values())) > MOST_VALUES:
            largest = max(found, key=lambda name: len(found[name]))
            raise DataError(
                f"the column has more than {MOST_VALUES:,} values, too many for a dictionary", path=path,
                column=largest, remedy="Hash its values instead: 'hash' in place of 'dictionary'.",
            )  # fmt: skip
    return {name: tuple(sorted(values)) for name, values in found.items()}
