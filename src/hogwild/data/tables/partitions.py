"""Folders of Parquet files, whose subfolders ``column=value`` are columns too, as Hive and Spark write them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hogwild.errors import DataError

if TYPE_CHECKING:
    import pyarrow

_ENDINGS = (".parquet", ".pq")
_NULL = "__HIVE_DEFAULT_PARTITION__"  # Name of the folder of rows without a value.


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files in a folder and its subfolders, sorted, without those that start with "_" or ".".

    >>> parquet_files(Path("/nowhere"))
    []
    """
    found = (path for path in folder.rglob("*") if path.suffix.lower() in _ENDINGS and path.is_file())
    return sorted(path for path in found if not any(part[0] in "._" for part in path.relative_to(folder).parts))


def partition_of(path: Path, folder: Path) -> dict[str, str | None]:
    """Return the columns of a file that the names of its folders give.

    >>> partition_of(Path("clicks/day=3/shop=a%20b/0.parquet"), Path("clicks"))
    {'day': '3', 'shop': 'a b'}
    """
    parts = (part.partition("=") for part in path.relative_to(folder).parts[:-1])
    values = {unquote(name): unquote(value) for name, equals, value in parts if equals}
    return {name: None if value == _NULL else value for name, value in values.items()}


def with_partition(batch: pyarrow.RecordBatch, path: Path, folder: Path | None) -> pyarrow.RecordBatch:
    """Return a batch with the columns that the folders of its file give, as text."""
    import pyarrow as pa

    for name, value in ({} if folder is None else partition_of(path, folder)).items():
        if name in batch.schema.names:
            raise DataError(
                "the file has this column, and its folder too", path=path, column=name, remedy="Rename one of them."
            )
        batch = batch.append_column(name, pa.array([value] * batch.num_rows, pa.string()))
    return batch
