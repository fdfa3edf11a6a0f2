"""Command that refuses empty paths: Python takes one for the working directory, where a script has lost a name.

It refuses addresses, too, where only this machine's files can stand: Python takes the scheme of one for a folder.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import typer
from typer.core import TyperCommand

from hogwild.data.remote import is_remote

# Options that name data: a path, an address or standard input.
DATA_OPTIONS = ("data", "test")


class PathCommand(TyperCommand):
    """Command that looks at the words that stand for files and folders before it reads its arguments."""

    paths: tuple[str, ...] = ()  # names of the parameters that are such words

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, none of which may be an empty path."""
        words, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        parameters: list[Any] = list(self.params)
        for parameter in parameters:
            given = words.get(str(parameter.name)) if parameter.name in self.paths else None
            texts = given if isinstance(given, list | tuple) else (given,)
            if "" in texts:
                raise typer.BadParameter("the path is empty. Name a file or a folder.", ctx, parameter)
            if parameter.name not in DATA_OPTIONS and any(map(is_remote, texts)):
                what = "this is an address. Name a file or a folder on this machine."
                raise typer.BadParameter(what, ctx, parameter)
        return super().parse_args(ctx, args)


def paths_of(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of the parameters of a command that are paths.

    >>> from typing import Annotated
    >>> def draw(data: str, width: int, out: Annotated[Path | None, "where it is drawn"] = None) -> None: ...
    >>> paths_of(draw)
    ('data', 'out')
    """
    parameters = signature(function, eval_str=True).parameters.items()
    return tuple(name for name, each in parameters if name in DATA_OPTIONS or _has_path(each.annotation))


def _has_path(annotation: object) -> bool:
    return annotation is Path or any(map(_has_path, get_args(annotation)))
