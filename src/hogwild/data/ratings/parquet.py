"""Reader of ratings in Parquet tables with named columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.ratings.csv_dialect import NAMES, Columns
from hogwild.errors import DataError, MissingExtraError
from hogwild.registry import quoted_list


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


def _plain(column: Any) -> Any:
    values = column.to_numpy()
    return values if values.dtype.kind in "iu" else np.array([str(value) for value in values], dtype=np.str_)


def _numbers(column: Any, path: Path, name: Any) -> Array:
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
