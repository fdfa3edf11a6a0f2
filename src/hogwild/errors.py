"""Every error this package raises on purpose.

    HogwildError
    ├── DataError          the input is damaged or not what it should be
    ├── ParameterError     a parameter, a name or a combination cannot work
    ├── DivergedError      the loss exploded, five times, at ever smaller steps
    ├── CheckpointError    a checkpoint cannot be read or belongs to another run
    ├── ModelError         a model file cannot be read
    ├── WorkerError        a worker process failed, was killed or went silent
    ├── MessageError       a message that cannot be what its sender meant
    └── MissingExtraError  an optional dependency is not installed

Each says what was wrong, where, and what to do about it.
"""

from __future__ import annotations

from pathlib import Path


class HogwildError(Exception):
    """The root of the tree: catch this to catch everything."""


class DataError(HogwildError, ValueError):
    """The input is damaged or not what it should be.

    >>> print(DataError("index -3 is negative", path="ads.svm", line=12, column=4,
    ...                 remedy="Indices count from 0 or from 1."))
    ads.svm, line 12, column 4: index -3 is negative. Indices count from 0 or from 1.
    """

    def __init__(
        self,
        what: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        row: int | None = None,
        column: int | str | None = None,
        remedy: str = "",
    ) -> None:
        self.what, self.path, self.line, self.row, self.column, self.remedy = (
            what, path, line, row, column, remedy,
        )  # fmt: skip
        places = [
            "" if path is None else str(path),
            "" if line is None else f"line {line:,}",
            "" if row is None else f"row {row:,}",
            "" if column is None else f"column {column:,}" if isinstance(column, int) else f"column {column!r}",
        ]
        where = ", ".join(place for place in places if place)
        super().__init__((f"{where}: " if where else "") + what.rstrip(".") + "." + (f" {remedy}" if remedy else ""))


class ParameterError(HogwildError, ValueError):
    """A parameter, a name or a combination of them cannot work."""


class DivergedError(HogwildError, ArithmeticError):
    """The loss exploded again and again, at ever smaller steps."""


class CheckpointError(HogwildError):
    """A checkpoint cannot be read, or belongs to another run."""


class ModelError(HogwildError):
    """A model file cannot be read."""


class WorkerError(HogwildError, RuntimeError):
    """A worker process failed, was killed or went silent."""


class MessageError(HogwildError, ValueError):
    """A message that cannot be what its sender meant."""


class MissingExtraError(HogwildError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs the package '{package}'. Install it with: pip install 'hogwild[{extra}]'")
