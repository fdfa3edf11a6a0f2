"""Opening of ratings: from arrays, text files or Parquet files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.data.arrays import require_structure
from hogwild.data.csr import Array
from hogwild.data.ids import Ids
from hogwild.data.ratings.ratings import Ratings
from hogwild.data.ratings.text import NAMES, Columns, read_text
from hogwild.data.remote import is_remote, without_secrets
from hogwild.data.sources import FileSource, local_files
from hogwild.data.unchanged_file import unchanged
from hogwild.errors import DataError, MissingExtraError, ParameterError
from hogwild.registry import invalid_parameter, quoted_list

if TYPE_CHECKING:
    import pyarrow


def read_parquet(path: Path, columns: Columns, unlabelled: bool = False) -> tuple[Any, Any, Array | None]:
    """Read users, items and ratings of a table; ratings are None if ``unlabelled`` is true and the table has none."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ModuleNotFoundError:
        raise MissingExtraError("Reading Parquet files", "pyarrow", "parquet") from None
    try:
        names = parquet.read_schema(path).names
        chosen = [_named(names, role, getattr(columns, role), path, unlabelled) for role in NAMES]
        table = parquet.read_table(path, columns=[name for name in chosen if name is not None])
    except FileNotFoundError:
        raise DataError("there is no such file", path=path, remedy="Check the path.") from None
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"the table cannot be read ({error})", path=path, remedy="Make or fetch it again.") from None
    user, item, rating = (None if name is None else table.column(name) for name in chosen)
    for name, column in zip(chosen, (user, item, rating), strict=True):
        if column is not None and column.null_count:
            row = int(np.argmax(column.is_null().to_numpy()))
            raise DataError("there is nothing here", path=path, row=row, column=name, remedy="Leave out such rows.")
    return _plain(user), _plain(item), None if rating is None else _numbers(rating, path, chosen[2])


def _plain(column: pyarrow.ChunkedArray) -> Array:
    values: Array = column.to_numpy()
    return values if values.dtype.kind in "iu" else np.array([str(value) for value in values], dtype=np.str_)


def _numbers(column: pyarrow.ChunkedArray, path: Path, name: str | None) -> Array:
    try:
        values = np.asarray(column.to_numpy(), np.float64)
    except (TypeError, ValueError):
        raise DataError("ratings are numbers", path=path, column=name, remedy="Name another column.") from None
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise DataError("a rating is a finite number", path=path, row=row, column=name)
    return values


def _named(names: list[str], role: str, name: str | None, path: Path, unlabelled: bool) -> str | None:
    found = next((each for each in names if each == name or (name is None and each.lower() in NAMES[role])), None)
    if found is None and not (role == "rating" and unlabelled and name is None):
        what = f"no column is called {name!r}" if name else f"no {role} is found"
        raise DataError(
            f"{what} among {quoted_list(names)}",
            path=path,
            remedy=f"Say which column it is: --{role} NAME, or {role}=NAME.",
        )
    return found


FORMATS = ("auto", "text", "parquet")


def open_ratings(
    source: object,
    *,
    columns: Columns | None = None,
    format: str = "auto",
    known: tuple[Ids, Ids] | None = None,
    grow: bool = False,
    unlabelled: bool = False,
) -> Ratings:
    """Open ratings: a file, a sparse matrix, or columns ``(users, items)`` or ``(users, items, ratings)``.

    Parameters
    ----------
    source : path, sparse matrix, tuple of columns or Ratings
        A file is Parquet, or text with one rating per line. Text is separated by tabs, commas, semicolons or ``::``,
        and its first line may contain the names of the columns.
    columns : Columns, optional
        Names of the columns of a file. By default common names.
    format : {"auto", "text", "parquet"}, default "auto"
        Format of a file. "auto" means Parquet if the name ends in .parquet or .pq, else text.
    known : tuple of Ids, optional
        Names of users and of items that have numbers already. Other names are unknown.
    grow : bool, default False
        Whether other names get new numbers after the ``known`` names.
    unlabelled : bool, default False
        Whether a file without ratings is accepted.

    Returns
    -------
    Ratings
        The ratings in memory.

    Examples
    --------
    >>> open_ratings((["ann", "bob"], [7, 7], [5, 3])).n_users
    2
    """
    if isinstance(source, Ratings):
        return source
    if isinstance(source, (str, os.PathLike)):
        users, items, ratings = read_columns(source, columns or Columns(), format, unlabelled)
        name = without_secrets(str(source)) if is_remote(source) else str(source)
        return Ratings.of(users, items, ratings, known=known, grow=grow, name=name)
    if hasattr(source, "tocoo"):
        matrix = require_structure(source)
        entries = matrix.tocoo()
        if known is None:
            return Ratings.of_matrix(matrix)
        return Ratings.of(entries.row, entries.col, entries.data, known=known, grow=grow, name="matrix")
    if isinstance(source, (tuple, list)) and len(source) in (2, 3):
        return Ratings.of(*source, known=known, grow=grow)
    raise invalid_parameter(
        "source", "a file, a sparse matrix, or columns (users, items, ratings)", type(source).__name__
    )


def read_columns(
    source: FileSource, columns: Columns, format: str = "auto", unlabelled: bool = False
) -> tuple[Any, Any, Array | None]:
    """Read users, items and ratings of a file, in its order."""
    with local_files([source]) as files:
        if len(files) > 1:
            raise ParameterError(f"Ratings are read from one file, and {source} stands for {len(files)}.")
        return _read_columns(files[0], columns, format, unlabelled)


def _read_columns(path: Path, columns: Columns, format: str, unlabelled: bool) -> tuple[Any, Any, Array | None]:
    if format not in FORMATS:
        raise ParameterError(f"Ratings are read as {', '.join(FORMATS)}. Got {format!r} instead.")
    table = format == "parquet" or (format == "auto" and path.suffix.lower() in (".parquet", ".pq"))
    with unchanged(path):
        return (read_parquet if table else read_text)(path, columns, unlabelled)
