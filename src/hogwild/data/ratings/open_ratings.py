"""Opening of all ratings: files, matrices and columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hogwild.data.csr import Array
from hogwild.data.ratings.csv_dialect import Columns
from hogwild.data.ratings.id_index import Ids
from hogwild.data.ratings.parquet import read_parquet
from hogwild.data.ratings.ratings import Ratings
from hogwild.data.ratings.text import read_text
from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter

FORMATS = ("auto", "text", "parquet")


def open_ratings(
    source: Any,
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
    if isinstance(source, (str, Path)):
        users, items, ratings = read_columns(Path(source), columns or Columns(), format, unlabelled)
        return Ratings.of(users, items, ratings, known=known, grow=grow, name=str(source))
    if hasattr(source, "tocoo"):
        entries = source.tocoo()
        if known is None:
            return Ratings.of_matrix(source)
        return Ratings.of(entries.row, entries.col, entries.data, known=known, grow=grow, name="matrix")
    if isinstance(source, (tuple, list)) and len(source) in (2, 3):
        return Ratings.of(*source, known=known, grow=grow)
    raise invalid_parameter(
        "source", "a file, a sparse matrix, or columns (users, items, ratings)", type(source).__name__
    )


def read_columns(
    path: Path, columns: Columns, format: str = "auto", unlabelled: bool = False
) -> tuple[Any, Any, Array | None]:
    """Read users, items and ratings of a file, in its order."""
    if format not in FORMATS:
        raise ParameterError(f"Ratings are read as {', '.join(FORMATS)}. Got {format!r} instead.")
    table = format == "parquet" or (format == "auto" and path.suffix.lower() in (".parquet", ".pq"))
    return (read_parquet if table else read_text)(path, columns, unlabelled)
