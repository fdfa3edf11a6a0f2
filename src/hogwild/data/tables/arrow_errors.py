"""Exceptions of Arrow about a file, in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hogwild.errors import DataError, HogwildError


@contextmanager
def arrow_errors(path: Path, kind: str) -> Iterator[None]:
    """Convert any exception of Arrow to a ``DataError`` about a file of this kind, such as "Parquet"."""
    try:
        yield
    except (HogwildError, GeneratorExit):
        raise
    except FileNotFoundError:
        raise DataError("there is no such file", path=path, remedy="Check the path.") from None
    except IsADirectoryError:
        raise DataError(f"this is a folder, not a file of {kind}", path=path, remedy="Name the file in it.") from None
    except PermissionError:
        raise DataError("the file may not be read", path=path, remedy="Check its permissions.") from None
    # The exception is one of Arrow, or ValueError, OverflowError and others from its bindings.
    except Exception as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        remedy = "Make or fetch the file again."
        raise DataError(f"the {kind} file is damaged ({reason})", path=path, remedy=remedy) from None
