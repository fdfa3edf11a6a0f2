"""Reader of ratings in text files, such as those of MovieLens: ``ratings.csv``, ``u.data`` and ``ratings.dat``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.ratings.csv_dialect import Columns, Dialect, dialect_of
from hogwild.data.readers.line_segments import NEWLINE, Segment, newlines, segments
from hogwild.errors import DataError
from hogwild.jit import compiled

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
        found = _fast(segment, dialect)
        parts.append(_careful(segment, dialect, path) if found is None else found)
    assert dialect is not None
    users, items = (_together([part[place] for part in parts]) for place in (0, 1))
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


def _together(parts: list[Any]) -> Any:
    """Concatenate the names of all parts; whole numbers become strings if any part has other names."""
    if any(isinstance(part, list) for part in parts):
        names: list[str] = []
        for part in parts:
            names += part if isinstance(part, list) else [str(name) for name in part.tolist()]
        return np.array(names, dtype=np.str_)
    return np.concatenate(parts)


def _fast(segment: Segment, dialect: Dialect) -> Parts | None:
    """Parse lines whose names are whole numbers; return None if any name is not."""
    lines = newlines(segment.bytes)
    users, items, ratings = np.empty(lines, np.int64), np.empty(lines, np.int64), np.zeros(lines)
    separator = np.frombuffer(dialect.separator.encode(), np.uint8)
    count = parse_numbers(segment.bytes, separator, np.array(dialect.places), users, items, ratings)
    return None if count < 0 else (users[:count], items[:count], ratings[:count])


def _careful(segment: Segment, dialect: Dialect, path: Path) -> Parts:
    """Parse lines with any names, one by one; slower than ``_fast``, but errors give the line."""
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
        who, what_ = fields[user].strip(), fields[item].strip()
        if not who or not what_:
            raise DataError("a name is missing", path=path, line=number, column=user + 1 if not who else item + 1)
        users.append(who)
        items.append(what_)
        ratings.append(_number(fields[rating], path, number, rating) if rating >= 0 else 0.0)
    return _numbers_if_all(users), _numbers_if_all(items), np.array(ratings, np.float64)


def _numbers_if_all(names: list[str]) -> Any:
    if all(name.isdecimal() and (name == "0" or name[0] != "0") and len(name) < 19 for name in names):
        return np.array([int(name) for name in names], np.int64)
    return names


def _number(text: str, path: Path, line: int, place: int) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise DataError(f"{text.strip()!r} is no rating", path=path, line=line, column=place + 1,
                        remedy="A rating is a finite number.")  # fmt: skip
    return number


@compiled
def parse_numbers(text: Any, separator: Any, places: Any, users: Any, items: Any, ratings: Any) -> int:
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
