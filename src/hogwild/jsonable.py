"""Conversion of values to the types that JSON has, for records."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any


def to_jsonable(value: Any) -> Any:
    """Return a value as types that JSON has; a number that is not finite becomes None.

    >>> from pathlib import Path; import numpy as np
    >>> to_jsonable({"loss": float("nan"), "counts": np.array([1, 2]), "out": Path("m"), 3: (np.float32(0.5), None)})
    {'loss': None, 'counts': [1, 2], 'out': 'm', '3': [0.5, None]}
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): to_jsonable(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy
        return to_jsonable(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_jsonable(item) for item in value]
    return str(value)
