"""The public interface as text: every name of the package, with its parameters and public members.

``make golden-record`` writes it to ``public_api.txt``, for a change that is meant to change it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hogwild

API = Path(__file__).parent / "public_api.txt"


def lines() -> Iterator[str]:
    for name in sorted(hogwild.__all__):
        found = getattr(hogwild, name)
        if inspect.isclass(found):
            yield f"class {name}{signature(found)}"
            yield from members(found)
        elif callable(found):
            yield f"def {name}{signature(found)}"
        else:
            yield f"{name}: {type(found).__name__}"


def members(kind: type) -> Iterator[str]:
    for name in sorted(dir(kind)):
        if name.startswith("_") or not of_ours(kind, name):
            continue
        found = inspect.getattr_static(kind, name)
        if isinstance(found, (staticmethod, classmethod)):
            found = found.__func__
        yield f"    {name}{signature(found) if inspect.isfunction(found) else ''}"


def of_ours(kind: type, name: str) -> bool:
    """Whether a member is from this package, and not from a class of another that ours is one of."""
    return any(name in vars(base) and base.__module__.startswith("hogwild") for base in kind.__mro__)


def signature(found: Any) -> str:
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(found)))
    except ValueError:
        return "(...)"


def text() -> str:
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    API.write_text(text())
