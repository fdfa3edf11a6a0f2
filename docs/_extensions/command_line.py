"""A page for each command, written from the help of the command itself before the site is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from hogwild.cli import COMMANDS, load

FOLDER = "reference/commands"
OTHERS = "Options"  # the group of options that have none


def page(name: str, command: Any) -> str:
    """Return the page of a command in Markdown."""
    if not command.params:
        raise ValueError(f"hogwild {name} has no parameters: its options were not loaded.")
    usage = " ".join(
        parameter.metavar or parameter.name.upper() for parameter in command.params if not named(parameter)
    )
    return "\n".join(
        [
            f"# hogwild {name}",
            "",
            "```text",
            f"hogwild {name} {usage} [OPTIONS]",
            "```",
            "",
            *prose(command.help or ""),
        ]
        + [line for title, parameters in groups(command.params) for line in table(title, parameters)]
    )


def prose(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; an example becomes a block."""
    for paragraph in text.split("\n\n"):
        example = re.fullmatch(r"Example: (hogwild .*)", paragraph.strip())
        yield f"```console\n$ {example[1]}\n```" if example else escaped(paragraph.strip())
        yield ""


def named(parameter: Any) -> bool:
    """Return whether a parameter is an option, and no argument."""
    return bool(parameter.opts[0].startswith("-"))


def groups(parameters: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield arguments, then options by the group in which the help shows them."""
    shown = [parameter for parameter in parameters if not parameter.hidden]
    arguments = [parameter for parameter in shown if not named(parameter)]
    if arguments:
        yield "Arguments", arguments
    options = [parameter for parameter in shown if named(parameter)]
    panels = list(dict.fromkeys(parameter.rich_help_panel or OTHERS for parameter in options))
    options.sort(key=lambda parameter: panels.index(parameter.rich_help_panel or OTHERS))
    for panel, members in groupby(options, lambda parameter: parameter.rich_help_panel or OTHERS):
        yield panel, list(members)


def table(title: str, parameters: list[Any]) -> Iterator[str]:
    """Yield a section with a table of parameters."""
    yield from (f"## {title}", "", "| name | meaning |", "|---|---|")
    for parameter in parameters:
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        if not named(parameter):
            names = f"`{parameter.metavar or parameter.name.upper()}`"
        default = parameter.default
        given = parameter.show_default is not False and default not in (None, False, (), []) and not callable(default)
        suffix = f" Default: `{default}`." if given else ""
        help_text = escaped(" ".join((parameter.help or "").split()))
        yield f"| {names} | {help_text}{suffix} |"
    yield ""


def escaped(text: str) -> str:
    """Return a text in which no character has a meaning for Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", text)


def write_pages(sphinx: Sphinx) -> None:
    """Write the pages of all commands; a page that has not changed is left alone."""
    folder = Path(sphinx.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name in COMMANDS:
        path, text = folder / f"{name}.md", page(name, load(name))
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before documents are looked for."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
