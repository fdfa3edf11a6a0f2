"""Dialects of text files with ratings: the separator, and the columns of user, item and rating."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hogwild.errors import DataError
from hogwild.registry import quoted_list

SEPARATORS = ("::", "\t", ",", ";")
NAMES = {
    "user": ("user", "userid", "user_id", "uid", "reviewerid", "reviewer_id", "customer_id"),
    "item": ("item", "itemid", "item_id", "iid", "movie", "movieid", "movie_id", "asin", "isbn", "product_id",
             "book_id", "bookid", "song_id", "artist_id", "business_id"),
    "rating": ("rating", "ratings", "score", "stars", "overall", "value", "book_rating"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns. None means a common name, or the first three columns if the file has no names."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """Dialect of a file: its separator, its columns, and whether it has a header."""

    separator: str
    # Positions of user, item and rating. A position of -1 means that there are no ratings.
    places: tuple[int, int, int]
    header: bool  # Whether the first line contains names of columns.

    def fields(self, line: str) -> list[str]:
        """Split a line into the texts of its columns."""
        if '"' in line and len(self.separator) == 1:
            return next(csv.reader([line], delimiter=self.separator))
        return line.split(self.separator)


def dialect_of(first: str, columns: Columns, path: Path, unlabelled: bool = False) -> Dialect:
    r"""Determine the dialect of a file from its first line.

    >>> dialect_of("userId,movieId,rating,timestamp", Columns(), Path("ratings.csv"))
    Dialect(separator=',', places=(0, 1, 2), header=True)
    >>> dialect_of("196\t242\t3\t881250949", Columns(), Path("u.data"))
    Dialect(separator='\t', places=(0, 1, 2), header=False)
    """
    separator = next((each for each in SEPARATORS if each in first), ",")
    fields = [field.strip() for field in Dialect(separator, (0, 1, 2), False).fields(first)]
    named = columns != Columns()
    if not named and len(fields) >= 3 and _is_number(fields[2]):
        return Dialect(separator, (0, 1, 2), False)
    if not named and len(fields) == 2 and unlabelled and _place(fields, "user", None) is None:
        return Dialect(separator, (0, 1, -1), False)
    places = []
    for role in NAMES:
        place = _place(fields, role, getattr(columns, role))
        if place is None and role == "rating" and unlabelled and columns.rating is None:
            place = -1
        if place is None:
            what = (
                f"no column is called {getattr(columns, role)!r}" if getattr(columns, role) else f"no {role} is found"
            )
            raise DataError(
                f"{what} among {quoted_list(fields)}", path=path, line=1,
                remedy=f"Say which column it is: --{role} NAME, or {role}=NAME. Without names a line has a user, an "
                "item and a rating, separated by tabs, commas or '::'.",
            )  # fmt: skip
        places.append(place)
    return Dialect(separator, (places[0], places[1], places[2]), True)


def _place(fields: Sequence[str], role: str, name: str | None) -> int | None:
    # A column name may carry the type of its values after a colon, as in "user_id:token".
    plain = [field.lower().split(":")[0] for field in fields]
    if name is not None:
        return next((at for at, field in enumerate(fields) if name in (field, plain[at])), None)
    return next(
        (at for at, field in enumerate(plain) if field.replace("-", "_").replace(" ", "_") in NAMES[role]), None
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
