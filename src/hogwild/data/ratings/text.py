"""Ratings from text files, with the separator and the columns detected."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.readers.line_segments import NEWLINE, Segment, newlines, segments
from hogwild.data.readers.long_number import to_float
from hogwild.errors import DataError
from hogwild.jit import compiled
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
            try:
                return next(csv.reader([line], delimiter=self.separator))
            except csv.Error:  # A quoted text is longer than the module reads.
                pass
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


SEGMENT = 1 << 25  # Bytes that are read at a time.
Parts = tuple[Any, Any, Array]  # Users, items and ratings of one segment of lines.


def read_text(path: Path, columns: Columns, unlabelled: bool = False) -> tuple[Any, Any, Array | None]:
    """Read users, items and ratings of a file; ratings are None if ``unlabelled`` is true and the file has none."""
    dialect: Dialect | None = None
    parts: list[Parts] = []
    for segment in segments(path, SEGMENT):
        if dialect is None:
            dialect = dialect_of(_first_line(segment, path), columns, path, unlabelled)
            segment = _rest(segment) if dialect.header else segment
        found = _parse_compiled(segment, dialect)
        parts.append(_parse_in_python(segment, dialect, path) if found is None else found)
    assert dialect is not None
    users, items = (_concatenated([part[place] for part in parts]) for place in (0, 1))
    ratings = None if dialect.places[2] < 0 else np.concatenate([part[2] for part in parts])
    if len(users) == 0:
        raise DataError("there is no rating", path=path, remedy="Check that it was written completely.")
    return users, items, ratings


def _first_line(segment: Segment, path: Path) -> str:
    end = int(np.argmax(segment.bytes == NEWLINE))
    line = segment.bytes[:end].tobytes().removeprefix(b"\xef\xbb\xbf")
    try:
        return line.decode().rstrip("\r")
    except UnicodeDecodeError:
        raise DataError("this is no text in UTF-8", path=path, line=1, remedy="Save it as UTF-8.") from None


def _rest(segment: Segment) -> Segment:
    end = int(np.argmax(segment.bytes == NEWLINE)) + 1
    return Segment(segment.bytes[end:], segment.first_line + 1)


def _concatenated(parts: list[Any]) -> Any:
    """Concatenate the names of all parts; whole numbers become strings if any part has other names."""
    if any(isinstance(part, list) for part in parts):
        names: list[str] = []
        for part in parts:
            names += part if isinstance(part, list) else [str(name) for name in part.tolist()]
        return np.array(names, dtype=np.str_)
    return np.concatenate(parts)


def _parse_compiled(segment: Segment, dialect: Dialect) -> Parts | None:
    """Parse lines whose names are whole numbers; return None if any name is not."""
    lines = newlines(segment.bytes)
    users, items, ratings = np.empty(lines, np.int64), np.empty(lines, np.int64), np.zeros(lines)
    separator = np.frombuffer(dialect.separator.encode(), np.uint8)
    count = parse_numbers(segment.bytes, separator, np.array(dialect.places), users, items, ratings)
    return None if count < 0 else (users[:count], items[:count], ratings[:count])


def _parse_in_python(segment: Segment, dialect: Dialect, path: Path) -> Parts:
    """Parse lines with any names, one by one; slower than ``_parse_compiled``, but errors give the line."""
    users: list[str] = []
    items: list[str] = []
    ratings: list[float] = []
    user, item, rating = dialect.places
    for number, raw in enumerate(segment.bytes.tobytes().split(b"\n")[:-1], segment.first_line):
        try:
            line = raw.decode().rstrip("\r")
        except UnicodeDecodeError:
            raise DataError("this is no text in UTF-8", path=path, line=number, remedy="Save it as UTF-8.") from None
        if not line.strip():
            continue
        fields = dialect.fields(line)
        if len(fields) <= max(dialect.places):
            what = f"here are {len(fields)} columns, and at least {max(dialect.places) + 1} are expected"
            raise DataError(
                what, path=path, line=number, remedy=f"Columns are separated by {dialect.separator!r} here."
            )
        user_name, item_name = fields[user].strip(), fields[item].strip()
        if not user_name or not item_name:
            column = item + 1 if user_name else user + 1
            raise DataError("a name is missing", path=path, line=number, column=column)
        users.append(user_name)
        items.append(item_name)
        ratings.append(_number(fields[rating], path, number, rating) if rating >= 0 else 0.0)
    return _numbers_if_all(users), _numbers_if_all(items), np.array(ratings, np.float64)


def _numbers_if_all(names: list[str]) -> Array | list[str]:
    if all(name.isdecimal() and (name == "0" or name[0] != "0") and len(name) < 19 for name in names):
        return np.array([int(name) for name in names], np.int64)
    return names


def _number(text: str, path: Path, line: int, place: int) -> float:
    try:
        number = to_float(text.strip().encode())
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise DataError(f"{text.strip()!r} is no rating", path=path, line=line, column=place + 1,
                        remedy="A rating is a finite number.")  # fmt: skip
    return number


@compiled
def parse_numbers(text: Array, separator: Array, places: Array, users: Array, items: Array, ratings: Array) -> int:
    """Parse lines whose names are whole numbers, and return the number of lines; -1 if any line has another form."""
    count, at, size = 0, 0, text.size
    user, item, rating = places[0], places[1], places[2]
    while at < size:
        # An empty line ends with a newline, or with a carriage return and a newline.
        if text[at] == 10 or (text[at] == 13 and text[at + 1] == 10):
            at += 1 if text[at] == 10 else 2
            continue
        column, seen = 0, 0
        while True:
            if column in (user, item, rating):
                start, whole, scale, point = at, 0, 1.0, False
                while 48 <= text[at] <= 57 or (column == rating and text[at] == 46 and not point):
                    if text[at] == 46:
                        point = True
                    else:
                        whole = 10 * whole + (text[at] - 48)
                        scale = scale * 10.0 if point else scale
                    at += 1
                digits = at - start
                if digits == 0 or digits > 17 or (digits == 1 and point):
                    return -1
                if column == rating:
                    ratings[count] = whole / scale
                else:
                    if digits > 1 and text[start] == 48:  # A name with a leading zero is another name: 007 is not 7.
                        return -1
                    if column == user:
                        users[count] = whole
                    else:
                        items[count] = whole
                seen += 1
            else:
                while text[at] != separator[0] and text[at] != 10 and text[at] != 34:
                    at += 1
            if text[at] == 13:
                at += 1
            if text[at] == 10:
                at += 1
                break
            for k in range(separator.size):
                if text[at] != separator[k]:
                    return -1
                at += 1
            column += 1
        if seen < (3 if rating >= 0 else 2):
            return -1
        count += 1
    return count
