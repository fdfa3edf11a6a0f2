"""Command line: one file per command, imported only when that command runs.

A new command is a function in a file of the same name, and one line in ``COMMANDS``: its name, and the first paragraph
of its docstring, so that ``hogwild --help`` and the completion of names import no command.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from hogwild.cli import console
from hogwild.cli.console import InterruptedRunError
from hogwild.cli.path_command import PathCommand, paths_of
from hogwild.cli.streams import open_streams
from hogwild.environment import check_environment
from hogwild.signals import terminations

COMMANDS = {
    "train": "Train a model on all cores: a linear one, or another kind of --problem.",
    "predict": "Predict the class, or the number, of every row: one line per row, in the order of the file.",
    "inspect": "Show the size and sparsity of the data, the expected collisions of workers, and what to use.",
    "pack": "Convert files once into a folder, from which every run starts without parsing text again.",
    "generate": "Write data with a planted model, in any size: its optimum is known.",
    "doctor": "Check the machine and the installation, and report problems with their remedies.",
    "lab": "Run experiments, and write a report as one page that can be shared.",
    "compare": "Train the same model with several strategies, numbers of workers and schedules, and write a report.",
    "report": "Write a report from recorded runs, without running anything again.",
}


class ListedCommand(TyperCommand):
    """Command as a list of commands shows it; its file is imported when its arguments are read."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        """Load the command, and let it read the arguments."""
        return load(str(self.name)).make_context(*arguments, **settings)


class Commands(TyperGroup):
    """Group of all commands that imports the file of a command on demand, so that no command pays for the others."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # The values stay None, which is not a command, because get_command makes a command on demand.
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        """Return a command, or None if no command has that name."""
        return ListedCommand(cmd_name, help=COMMANDS[cmd_name]) if cmd_name in COMMANDS else None

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        """Read the arguments, and turn Ctrl-C into an error of our own, because typer would swallow it."""
        try:
            return super().make_context(*arguments, **settings)
        except KeyboardInterrupt as error:
            raise InterruptedRunError from error

    def invoke(self, ctx: Any) -> object:
        """Run a command, and turn Ctrl-C into an error of our own."""
        check_environment()
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise InterruptedRunError from error


app = typer.Typer(name="hogwild", cls=Commands)


def load(name: str) -> Any:
    """Import the file of a command, and return the command."""
    own = name.replace("-", "_")
    function = getattr(importlib.import_module(f"hogwild.cli.{own}"), own)
    single = typer.Typer(add_completion=False)
    single.command(name, cls=PathCommand, help=_unwrapped(function.__doc__ or ""))(function)
    command = typer.main.get_command(single)
    assert isinstance(command, PathCommand)
    command.paths = paths_of(function)
    return command


def _unwrapped(text: str) -> str:
    """Join the lines of each paragraph, because the terminal wraps them anew."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _show_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(f"hogwild {version('hogwild')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def hogwild(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Stochastic gradient descent with many workers that do not wait for each other.

    Start with: hogwild inspect DATA
    """
    if context.invoked_subcommand is None and not context.resilient_parsing:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: success. 1: an error in the data or the run. 2: wrong usage. 130: stopped by Ctrl-C. 143: by SIGTERM. 129: by
    SIGHUP. 152: by SIGXCPU. 141: the reader of stdout has left (:mod:`hogwild.cli.streams`).

    >>> main(["generate", "no-such-kind"])
    2
    """
    if arguments is None:
        open_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    code, termination = console.INTERRUPTED, None
    try:
        # Handlers come last: from their first moment on, a signal must find the code below that catches it.
        with console.plain_warnings(), terminations(last=arguments is None) as termination:
            code = _run(words)
    except KeyboardInterrupt:  # It came between the end of the command and that of its handlers.
        pass
    return termination.exit_code if termination is not None and code == console.INTERRUPTED else code


def _run(words: list[str]) -> int:
    flags: list[str] = []
    try:
        flags = words[: words.index("--")] if "--" in words else words
        code = typer.main.get_command(app).main(words, prog_name="hogwild", standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as end:
        cause = end.__context__
        # Typer ends a program without a word then, which is right only for its own stdout.
        if isinstance(cause, BrokenPipeError) and cause.filename is not None:
            return console.report(cause, as_json="--json" in flags, debug="--debug" in flags)
        return end.code if isinstance(end.code, int) else 1
    except BaseException as error:
        # The flags are searched in the raw arguments, because a parse error leaves no parsed ones.
        return console.report(error, as_json="--json" in flags, debug="--debug" in flags)
    return code if isinstance(code, int) else 0
