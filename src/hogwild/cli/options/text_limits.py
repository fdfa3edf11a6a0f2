"""Options that raise the limits of text files, for every file that a command reads, in each of its processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

_PANEL = "How the data is read"


def _limit(variable: str, help: str) -> typer.models.OptionInfo:
    option_name = variable.replace("HOGWILD_", "--").replace("_", "-").lower()

    def check(context: typer.Context, text: str | None) -> str | None:
        if text is not None:
            _check(option_name, text)
            context.with_resource(_in_environment(variable, text))
        return text

    option: typer.models.OptionInfo = typer.Option(
        metavar="SIZE", help=help, callback=check, show_default=False, rich_help_panel=_PANEL
    )
    return option


def _check(option: str, text: str) -> None:
    from hogwild.errors import ParameterError
    from hogwild.files import parse_size

    try:
        parse_size(text)
    except ParameterError as error:
        raise ParameterError(f"{option}: {error}") from None


@contextmanager
def _in_environment(variable: str, text: str) -> Iterator[None]:
    """Set a variable of the environment, which processes started meanwhile inherit, and restore it."""
    before = os.environ.get(variable)
    os.environ[variable] = text
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


LongestLine = Annotated[
    str | None,
    _limit("HOGWILD_LONGEST_LINE", "The longest line or record that is not taken for damage. Default: 64MiB."),
]
MostUnpacked = Annotated[
    str | None,
    _limit(
        "HOGWILD_MOST_UNPACKED",
        "The most bytes that a compressed file may hold. Default: 1GiB, or 200 times its size if that is more.",
    ),
]
