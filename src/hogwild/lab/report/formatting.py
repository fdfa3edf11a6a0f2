"""Formatting of values, names and sizes for people."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import Any

from hogwild.jsonable import to_jsonable

NOTHING = "\N{EN DASH}"


def written(value: Any, digits: int = 4) -> str:
    """Return a value as text, with ``digits`` significant digits where it has more.

    >>> [written(value) for value in (0.123456, 0.000012345, 1234567, 2048, 31415.9265, 3.0, None, True)]
    ['0.1235', '1.234e-5', '1,234,567', '2048', '31,416', '3', '–', 'yes']
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return (
            str(value) if abs(value) < 10_000 else f"{value:,}" if abs(value) < 10**15 else _short(float(value), digits)
        )
    if isinstance(value, float):
        return _short(value, digits)
    return value if isinstance(value, str) else json.dumps(to_jsonable(value), ensure_ascii=False)


def shortened(text: str, longest: int) -> str:
    """Return a text on one line, cut to ``longest`` characters.

    >>> shortened("a very long name", 10), shortened("short", 10)
    ('a very lo…', 'short')
    """
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def slug(text: str, longest: int = 60) -> str:
    """Return a text as a part of file names and URLs.

    >>> slug("Loss, over time (µs)"), slug("</script>"), slug("???")
    ('loss-over-time-us', 'script', 'untitled')
    """
    letters = unicodedata.normalize("NFKD", text.lower().replace("µ", "u")).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:longest].strip("-") or "untitled"


class Names:
    """Generator of unique names: the second ``loss`` becomes ``loss-2``.

    >>> names = Names()
    >>> names("loss"), names("loss"), names("Loss!")
    ('loss', 'loss-2', 'loss-3')
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, text: str) -> str:
        first = name = slug(text)
        count = 1
        while name in self._taken:
            count += 1
            name = f"{first}-{count}"
        self._taken.add(name)
        return name


def _short(value: float, digits: int) -> str:
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if 1e4 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    if value != 0 and not 1e-3 <= abs(value) < 1e4:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:.{digits}g}"
