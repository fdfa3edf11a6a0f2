"""Groups of options as dataclasses: each field is an option, and typer sees ordinary parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, get_type_hints

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

    spread_out.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return spread_out


def _fields(kind: type[DataclassInstance]) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields(kind)
    ]
