"""Errors that this package raises.

    HogwildError
    ├── DataError          the input is damaged or has the wrong form
    ├── ParameterError     a parameter, a name or a combination cannot work
    ├── DivergedError      the loss diverged again after five halvings of the step size
    ├── CheckpointError    a checkpoint cannot be read or belongs to another run
    ├── ModelError         a model file cannot be read
    ├── WorkerError        a worker process failed, was killed or timed out
    ├── MessageError       a message is malformed
    └── MissingExtraError  an optional dependency is not installed

A log of events that ends before its run is a ``LogWarning``, and a damaged checkpoint that gives way to the one before
it is a ``CheckpointWarning``.

Each message says what is wrong, where, and what to do about it.
"""

from __future__ import annotations

from pathlib import Path


class HogwildError(Exception):
    """Base class of all errors that this package raises."""


LONGEST_MESSAGE = 2000  # Characters of a description: input may be quoted in it.


def shortened(text: str) -> str:
    """Return a text, without its middle if it is long.

    >>> shortened("a" * 3000)[995:1010]
    'aaaaa ... aaaaa'
    """
    half = LONGEST_MESSAGE // 2
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:half]} ... {text[-half:]}"


class DataError(HogwildError, ValueError):
    """Error of damaged input, or of input in the wrong form.

    Parameters
    ----------
    what : str
        Description of the problem.
    path : path, optional
        File of the input.
    line : int, optional
        Line of the file.
    row : int, optional
        Row of the data.
    column : int or str, optional
        Number or name of the column.
    remedy : str, default ""
        Advice to the user, as a sentence.

    Examples
    --------
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
        what = shortened(what)
        super().__init__((f"{where}: " if where else "") + what.rstrip(".") + "." + (f" {remedy}" if remedy else ""))


class ParameterError(HogwildError, ValueError):
    """Error of a parameter, a name or a combination of them that cannot work."""


class DivergedError(HogwildError, ArithmeticError):
    """Error of a loss that diverges repeatedly, at ever smaller step sizes."""


class CheckpointError(HogwildError):
    """Error of a checkpoint that cannot be read, or belongs to another run."""


class ModelError(HogwildError):
    """Error of a model file that cannot be read."""


class WorkerError(HogwildError, RuntimeError):
    """Error of a worker process that failed, was killed or timed out."""


class MessageError(HogwildError, ValueError):
    """Error of a malformed message."""


class MissingExtraError(HogwildError, ImportError):
    """Error of an optional dependency that is not installed.

    Parameters
    ----------
    what : str
        Feature that needs the dependency.
    package : str
        Name of the missing package.
    extra : str
        Extra of hogwild that installs the package.
    """

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs the package '{package}'. Install it with: pip install 'hogwild[{extra}]'")


class LogWarning(RuntimeWarning):
    """Warning of a log of events that ends before its run does."""


class CheckpointWarning(RuntimeWarning):
    """Warning of a damaged checkpoint, in whose place the one before it is used."""
