"""Variables of the environment with which libraries do not start: each is named in one line instead."""

from __future__ import annotations

import os
import time

from hogwild.errors import ParameterError


def check_environment() -> None:
    """Raise ``ParameterError`` for a variable with which NumPy fails when it is imported, or the compiler aborts."""
    date = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        if date is not None:
            time.gmtime(int(date))
    except (ValueError, OverflowError, OSError):
        raise _invalid("SOURCE_DATE_EPOCH", "a time in seconds since 1970, or NumPy does not start", date) from None
    features = os.environ.get("NUMBA_CPU_FEATURES", "")
    if features and not all(part.strip().startswith(("+", "-")) for part in features.split(",")):
        raise _invalid("NUMBA_CPU_FEATURES", "names with + or - before each, such as +avx2,-fma", features)


def _invalid(name: str, must: str, value: object) -> ParameterError:
    return ParameterError(f"The environment variable {name} must be {must}. Got {value!r} instead: unset it.")
