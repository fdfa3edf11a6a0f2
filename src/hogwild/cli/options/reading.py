"""Options of reading a file, defined once for every command that reads files.

A command declares the options it accepts, by these names, and passes them to :func:`reading`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

import typer

from hogwild.data.reader import ReadOptions
from hogwild.errors import ParameterError

_PANEL = "How the data is read"

Format = Annotated[
    str,
    typer.Option(
        help="svmlight, vw, parquet or npz; auto goes by the file's name and first bytes.", rich_help_panel=_PANEL
    ),
]
Features = Annotated[
    int | None,
    typer.Option(min=1, help="How many columns there are. Default: as many as are seen.", rich_help_panel=_PANEL),
]
Bits = Annotated[
    int,
    typer.Option(min=1, max=31, help="vw, parquet: hash features into 2**bits columns.", rich_help_panel=_PANEL),
]
Label = Annotated[str, typer.Option(help="parquet: the column with the label.", rich_help_panel=_PANEL)]
Weight = Annotated[str | None, typer.Option(help="parquet: the column with the row's weight.", rich_help_panel=_PANEL)]
Base = Annotated[
    str,
    typer.Option(
        metavar="[auto|0|1]",
        help="svmlight: do indices count from 0 or from 1? auto: from 0 if a 0 is seen.",
        rich_help_panel=_PANEL,
    ),
]

_DEFAULT = ReadOptions()


def reading(
    format: str = _DEFAULT.format,
    features: int | None = None,
    bits: int = _DEFAULT.bits,
    label: str = _DEFAULT.label,
    weight: str | None = None,
    base: str = "auto",
    **others: Any,
) -> ReadOptions:
    """Convert the options into a ``ReadOptions``; ``others`` are fields that a command sets itself.

    >>> reading(format="svmlight", base="1", extra="ignore")
    ReadOptions(format='svmlight', features=None, extra='ignore', base=1, bits=18, ...)
    """
    if base not in ("auto", "0", "1"):
        raise ParameterError(f"The 'base' parameter must be 'auto', 0 or 1. Got {base!r} instead.")
    number = cast(Literal["auto", 0, 1], "auto" if base == "auto" else int(base))
    return ReadOptions(format=format, features=features, base=number, bits=bits, label=label, weight=weight, **others)


def given(format: str, base: str) -> dict[str, Any]:
    """Return the format and the base if they were given, for a model that knows the other options.

    >>> given("auto", "1")
    {'base': 1}
    """
    chosen = reading(format=format, base=base)
    return {name: getattr(chosen, name) for name in ("format", "base") if getattr(chosen, name) != "auto"}
