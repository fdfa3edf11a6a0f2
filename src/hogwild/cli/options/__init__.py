"""Options that several commands share: groups of options as dataclasses, and the options of reading a file.

With :func:`spread`, each field of a dataclass is an option, and typer sees ordinary parameters. A command that reads
files declares the options it accepts, by the names here, and passes them to :func:`reading`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_type_hints

import typer

from hogwild.cli.options.table import TableOptions
from hogwild.data.reader import ReadOptions
from hogwild.errors import ParameterError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the dataclass parameters of a command by the fields of those dataclasses.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int = 2
    ...     height: int = 3
    >>> @spread
    ... def draw(name: str, *, size: Size, colour: str = "red") -> None:
    ...     print(name, size, colour)
    >>> [*signature(draw).parameters]
    ['name', 'width', 'height', 'colour']
    >>> draw(name="box", width=4, height=3, colour="blue")
    box Size(width=4, height=3) blue
    """
    own = signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: each.annotation for name, each in own.parameters.items() if is_dataclass(each.annotation)
    }
    parameters: list[Parameter] = []
    for name, each in own.parameters.items():
        parameters += _fields(groups[name]) if name in groups else [each]

    @wraps(command)
    def spread_out(**given: object) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    # Functions have no declared attribute of this name; ``inspect.signature`` reads it.
    spread_out.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return spread_out


def _fields(kind: type[DataclassInstance]) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields(kind)
    ]


_PANEL = "How the data is read"

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file, a packed folder, an address (s3://, gs://, hf://, https://), or - for standard input.",
        show_default=False,
    ),
]
Format = Annotated[
    str,
    typer.Option(
        help="svmlight, libffm, vw, csv, json, arrow, parquet, criteo, npz or tfrecord; auto: by name and first bytes.",
        rich_help_panel=_PANEL,
    ),
]
Features = Annotated[
    int | None,
    typer.Option(min=1, help="How many columns there are. Default: as many as are seen.", rich_help_panel=_PANEL),
]
Bits = Annotated[
    int,
    typer.Option(min=1, max=30, help="vw, tables: hash features into 2**bits columns.", rich_help_panel=_PANEL),
]
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
    base: str = "auto",
    table: TableOptions | None = None,
    **others: Any,
) -> ReadOptions:
    """Convert the options into a ``ReadOptions``; ``others`` are fields that a command sets itself.

    >>> reading(format="svmlight", base="1", extra="ignore")
    ReadOptions(format='svmlight', features=None, extra='ignore', base=1, bits=18, ...)
    """
    if base not in ("auto", "0", "1"):
        raise ParameterError(f"The 'base' parameter must be 'auto', 0 or 1. Got {base!r} instead.")
    number = cast(Literal["auto", 0, 1], "auto" if base == "auto" else int(base))
    columns: dict[str, Any] = {}
    if table is not None:
        columns = {"label": table.label, "weight": table.weight, "roles": table.roles(), "header": table.header,
                   "fields": table.grouped()}  # fmt: skip
    return ReadOptions(format=format, features=features, base=number, bits=bits, **columns, **others)


def given(format: str, base: str) -> dict[str, Any]:
    """Return the format and the base if they were given, for a model that knows the other options.

    >>> given("auto", "1")
    {'base': 1}
    """
    chosen = reading(format=format, base=base)
    return {name: getattr(chosen, name) for name in ("format", "base") if getattr(chosen, name) != "auto"}
