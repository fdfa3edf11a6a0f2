"""Roles of columns as a user gives them: by name, by number or by a pattern, with a transformation behind a colon."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path

from hogwild.errors import DataError, ParameterError

NUMERIC = ("none", "log", "log-bins", "standard", "quantile:N")
CATEGORICAL = ("hash", "dictionary", "list:SEPARATOR")
TEXT = ("words", "bigrams")
_FORMS = {
    "numeric": re.compile(r"none|log|log-bins|standard|quantile:\d{1,5}"),
    "categorical": re.compile(r"hash|dictionary|list:.+", re.DOTALL),
    "text": re.compile(r"words|bigrams"),
    "drop": re.compile(r"(?!)"),
}
DEFAULTS = {"numeric": "standard", "categorical": "hash", "text": "words", "drop": "none"}
_CHOICES = {"numeric": NUMERIC, "categorical": CATEGORICAL, "text": TEXT, "drop": ()}


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """Roles of the columns of a table. Columns that are not named here get a role by a guess.

    An entry is the name of a column, its number counted from 1, or a pattern with ``*`` and ``?``. A transformation may
    follow behind a colon: ``"price:log"``, ``"I*:quantile:20"``, ``"shop:dictionary"``, ``"tags:list:;"``,
    ``"title:bigrams"``.

    Parameters
    ----------
    numeric : tuple of str, default ()
        Columns of numbers. Their transformations are ``none``, ``log`` (of ``1 + |x|``, with the sign of x),
        ``standard`` (mean 0 and variance 1, the default), ``quantile:N`` (N bins with about as many rows each, as
        categories) and ``log-bins`` (bins of logarithmic width, as categories).
    categorical : tuple of str, default ()
        Columns of categories: ``hash`` (the default), ``dictionary`` (each value of the training data has a column of
        its own, which the model keeps) or ``list:SEPARATOR`` (several categories in one cell).
    text : tuple of str, default ()
        Columns of text: lower-cased ``words`` (the default), or words and ``bigrams``.
    drop : tuple of str, default ()
        Columns that are left out.

    Raises
    ------
    ParameterError
        If the number of quantiles is not between 2 and 1,000.

    Examples
    --------
    >>> ColumnRoles(numeric=("age", "I*:log")).of("I3", 4)
    ('numeric', 'log')
    >>> ColumnRoles(drop=("4",)).of("id", 4)
    ('drop', 'none')
    """

    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        roles: dict[str, str] = {}
        for role, entry in self._entries():
            pattern, _ = _pattern(role, entry)
            other = roles.setdefault(pattern, role)
            if other != role:
                raise ParameterError(f"The column {pattern!r} has two roles, {other} and {role}. Give it one.")

    def __bool__(self) -> bool:
        return any(True for _ in self._entries())

    def of(self, name: str, number: int) -> tuple[str, str] | None:
        """Return the role and the transformation of a column, whose number counts from 1; None if it has no role.

        A name is more specific than a pattern, and an entry without a pattern than one with it.
        """
        found = None
        for role, entry in self._entries():
            pattern, transformation = _pattern(role, entry)
            if pattern in (name, str(number)):
                return role, transformation
            if found is None and _is_pattern(pattern) and fnmatchcase(name, pattern):
                found = role, transformation
        return found

    def names(self, name: str, number: int) -> str | None:
        """Return the role that a column has by its own name or number, and not by a pattern; None without one."""
        return next((role for role, entry in self._entries() if _pattern(role, entry)[0] in (name, str(number))), None)

    def check(self, names: Sequence[str], path: Path | None) -> None:
        """Raise ``DataError`` for an entry that fits none of the columns; the error proposes the nearest name."""
        for role, entry in self._entries():
            pattern, _ = _pattern(role, entry)
            numbers = map(str, range(1, len(names) + 1))
            if (
                pattern not in names
                and pattern not in numbers
                and not any(fnmatchcase(name, pattern) for name in names)
            ):
                error = no_column(pattern, names, path, role)
                known = (
                    f" Behind a colon may be: {', '.join(_CHOICES[role])}." if ":" in pattern and _CHOICES[role] else ""
                )
                raise DataError(error.what, path=path, remedy=error.remedy + known)

    def _entries(self) -> Iterator[tuple[str, str]]:
        for each in fields(self):
            for entry in getattr(self, each.name):
                yield each.name, entry


def entries_of(options: Sequence[str]) -> tuple[str, ...]:
    """Return the entries of an option that may be repeated and may have several entries between commas.

    >>> entries_of(["age,I*:log", "tags:list:,", "a:list:,,b"])
    ('age', 'I*:log', 'tags:list:,', 'a:list:,', 'b')
    """
    found: list[str] = []
    for option in options:
        marked = re.sub(r":list:,", ":list:\0", option)
        found += [part.replace("\0", ",") for part in marked.split(",") if part.strip()]
    return tuple(found)


def fields_of(
    groups: Sequence[str], columns: Sequence[str], names: Sequence[str], path: Path | None
) -> tuple[int, ...]:
    """Return the field of each column: that of the first group that it fits, else a field of its own.

    ``names`` are the names of all columns of the table, by whose numbers a group may be given.

    >>> fields_of(["C*"], ["I1", "C1", "I2", "C2"], ["label", "I1", "C1", "I2", "C2"], None)
    (0, 1, 2, 1)
    """
    for group in groups:
        if position(group, names) is None and not any(fnmatchcase(name, group) for name in names):
            raise no_column(group, names, path, "field")
    found: dict[str, int] = {}
    keys = []
    for name in columns:
        fits = (group for group in groups if position(group, names) == list(names).index(name) or _fits(name, group))
        fitting = next(fits, None)
        keys.append(f"column {name}" if fitting is None else f"group {fitting}")
    return tuple(found.setdefault(each, len(found)) for each in keys)


def _fits(name: str, pattern: str) -> bool:
    return _is_pattern(pattern) and fnmatchcase(name, pattern)


def no_column(name: str, names: Sequence[str], path: Path | None, role: str = "") -> DataError:
    """Return the error of a column that a table does not have, with the nearest name or all names.

    >>> print(no_column("pirce", ["label", "price"], None, "numeric"))
    there is no numeric column 'pirce'. Did you mean 'price'? There are: 'label', 'price'.
    """
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    there = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
    what = f"there is no {role} column {name!r}" if role else f"there is no column {name!r}"
    return DataError(what, path=path, remedy=f"{hint}There are: {there}.")


def position(name: str, names: Sequence[str]) -> int | None:
    """Return the position of a column, counted from 0, by its name or its number counted from 1.

    >>> position("b", ["a", "b"]), position("2", ["a", "b"]), position("c", ["a", "b"])
    (1, 1, None)
    """
    if name in names:
        return list(names).index(name)
    return int(name) - 1 if name.isdecimal() and 1 <= int(name) <= len(names) else None


def _is_pattern(pattern: str) -> bool:
    return any(mark in pattern for mark in "*?[")


def _pattern(role: str, entry: str) -> tuple[str, str]:
    """Divide an entry into its pattern and its transformation."""
    for at in (at for at, mark in enumerate(entry) if mark == ":"):
        if _FORMS[role].fullmatch(entry[at + 1 :]):
            _check_bins(entry[at + 1 :])
            return entry[:at], entry[at + 1 :]
    return entry, DEFAULTS[role]


def _check_bins(transformation: str) -> None:
    if transformation.startswith("quantile:") and not 2 <= int(transformation.removeprefix("quantile:")) <= 1000:
        raise ParameterError(f"Quantiles are between 2 and 1,000 bins, such as quantile:20. Got {transformation!r}.")
