"""Output of commands: results, progress, errors and exit codes.

With ``--json`` exactly one JSON object goes to stdout, and everything else goes to stderr. Without ``--json`` results
go to stdout. Progress, warnings and errors go to stderr in both cases.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hogwild.cli.streams import BROKEN_PIPE_EXIT_CODE, STDOUT, ReaderGoneError, discard_stdout, is_stdout
from hogwild.errors import CheckpointWarning, HogwildError, LogWarning, ParameterError, shortened
from hogwild.files import check_writable, to_jsonable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress

Json = Annotated[
    bool, typer.Option("--json", help="Print exactly one JSON object on stdout; everything else goes to stderr.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

# Some versions of typer bring their own copy of click. This class is the base of usage errors in both cases.
ClickException: type[Exception] = typer.BadParameter.__mro__[2]


LEAST_WIDTH = 20  # columns that are written, however few the terminal says that it has
INTERRUPTED = 130  # exit code of a command that Ctrl-C has ended


# Endings of files that are read where a folder is given: tables, and what a run has written.
_READ_IN_FOLDERS = (".parquet", ".pq", ".json", ".jsonl")


class InterruptedRunError(Exception):
    """Interruption of a command by Ctrl-C."""

    def __str__(self) -> str:
        return "interrupted"


class Output:
    """Output streams of one command.

    ``show`` prints for people, ``result`` for programs. A command calls both, and one of them does nothing.
    """

    def __init__(self, as_json: bool = False, out: Path | None = None) -> None:
        """Open the streams of a command that writes its result to ``out``, which may be stdout."""
        if as_json and is_stdout(out):
            raise ParameterError(f"--json and --out {out} would both write to standard output. Leave one out.")
        self.as_json = as_json
        self.console, self.messages = _console(stderr=is_stdout(out)), _console(stderr=True)

    def show(self, *parts: RenderableType) -> None:
        """Print for people, unless ``--json`` is set. Strings are printed verbatim; ``Text`` may have colour."""
        if not self.as_json:
            for part in parts:
                self.console.print(part, soft_wrap=isinstance(part, str))

    def result(self, record: Mapping[str, Any]) -> None:
        """Print the only JSON object, if ``--json`` is set. A command calls this method once, last."""
        if self.as_json:
            print_json(record)

    def alone(self) -> AbstractContextManager[Any]:
        """Redirect stdout to stderr within the block, if ``--json`` is set: Ray, for one, prints crashed workers."""
        return redirect_stdout(sys.stderr) if self.as_json else nullcontext()

    def note(self, message: str) -> None:
        """Print a note on stderr."""
        self.messages.print(message, style="dim", soft_wrap=True)

    def warn(self, message: str) -> None:
        """Print a warning on stderr."""
        _print_line(self.messages, "warning: ", "bold yellow", message)

    def error(self, message: str) -> None:
        """Print an error on stderr that did not keep the command from its result."""
        _print_line(self.messages, "error: ", "bold red", message)

    def progress(self, unit: str = "") -> Progress:
        """Make a progress bar on stderr that disappears at the end, and is silent if stderr is not a terminal.

        With ``unit="bytes"`` amounts are shown in bytes.
        """
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        amount = DownloadColumn(binary_units=True) if unit == "bytes" else MofNCompleteColumn()
        words = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(), words, BarColumn(), amount, TimeRemainingColumn())
        return Progress(*columns, console=self.messages, transient=True, disable=not self.messages.is_terminal)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings of Python as lines within the block: without the place that they come from, and in one line."""
    with warnings.catch_warnings():
        for kind in (LogWarning, CheckpointWarning):
            warnings.simplefilter("always", kind)
        warnings.showwarning = lambda message, *_: Output(False).warn(str(message).split("\n", 1)[0])
        yield


def check_out(
    out: Path | None,
    option: str = "--out",
    check: Callable[[Path], None] = check_writable,
    *,
    inputs: Iterable[str | Path | None] = (),
) -> None:
    """Raise an error for a file or folder that could not be written, or is read, before any work is done for it.

    >>> check_out(Path("no-such-folder/model"))
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: --out no-such-folder/model: there is no folder ...no-such-folder.
    """
    try:
        if out is not None:
            check(out)
    except ParameterError as error:
        raise ParameterError(f"{option} {error}") from None
    if out is not None and any(_is_read(out, each) for each in inputs):
        raise ParameterError(f"{option} {out}: this file is read, and would be lost. Choose another name.")


def check_distinct(outputs: Mapping[str, Path | None]) -> None:
    """Raise an error if two options name one file, of which the later would replace the earlier.

    >>> check_distinct({"--out": Path("a"), "--log": Path("./a")})
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: --out and --log have the same name: a. Choose another one.
    """
    seen: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is not None and (path.is_file() or not path.exists()):
            other = seen.setdefault(Path(os.path.realpath(path)), option)
            if other != option:
                raise ParameterError(f"{other} and {option} have the same name: {path}. Choose another one.")


def _is_read(out: Path, read: str | Path | None) -> bool:
    """Return whether a file is read, or is a file of a folder that is."""
    if read is None:
        return False
    try:
        if out.samefile(read):
            return out.is_file()
    except OSError:  # There is no such file, or it is an address.
        pass
    folder = Path(read)
    if not folder.is_dir() or folder.resolve() not in out.resolve().parents:
        return False
    return is_packed(folder) or (out.is_file() and out.suffix.lower() in _READ_IN_FOLDERS)


def is_packed(folder: Path) -> bool:
    """Return whether a folder holds packed rows."""
    from hogwild.data.packing import sharded_rows

    return sharded_rows.is_packed(folder)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    >>> counted(1, "section"), counted(1200, "row")
    ('1 section', '1,200 rows')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def print_json(record: Mapping[str, Any]) -> None:
    """Write one JSON object and nothing else to stdout: on one line, or indented on a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(to_jsonable(record), indent=indent, allow_nan=False) + "\n")
    sys.stdout.flush()


def report(error: BaseException, *, as_json: bool, debug: bool) -> int:
    """Print an error in one line on stderr, and return the exit code of the command."""
    if isinstance(error, ReaderGoneError) or (isinstance(error, BrokenPipeError) and is_stdout(error.filename)):
        discard_stdout()
        return BROKEN_PIPE_EXIT_CODE
    if debug:
        traceback.print_exception(error)
    message, code = explain(error), exit_code(error)
    _print_line(_console(stderr=True), "error: ", "bold red", message)
    kind = "KeyboardInterrupt" if isinstance(error, InterruptedRunError) else type(error).__name__
    try:
        if as_json and not (isinstance(error, OSError) and error.filename == STDOUT):
            print_json({"error": message, "kind": kind})
        sys.stdout.flush()
    except (ReaderGoneError, OSError):  # The error that is reported is the first one.
        discard_stdout()
    return code


def exit_code(error: BaseException) -> int:
    """Return the exit code of a command that ends with this error.

    >>> exit_code(ParameterError("no such loss")), exit_code(MemoryError()), exit_code(InterruptedRunError())
    (2, 1, 130)
    """
    if isinstance(error, (InterruptedRunError, KeyboardInterrupt)):
        return INTERRUPTED
    return 2 if isinstance(error, (ParameterError, ClickException)) else 1


def explain(error: BaseException) -> str:
    """Return the message of an error: the cause, the place, and the remedy.

    >>> explain(FileNotFoundError(2, "No such file or directory", "ads.svm"))
    'ads.svm: No such file or directory'
    >>> explain(ZeroDivisionError("division by zero"))
    "ZeroDivisionError: division by zero. This should not happen: it is a bug of hogwild. Please report it ..."
    """
    if isinstance(error, ClickException):
        return _explain_usage(error)
    if isinstance(error, FileNotFoundError) and not error.filename and not isinstance(error, HogwildError):
        return "The current folder does not exist any more. Change to another one with cd."
    if isinstance(error, OSError) and error.strerror and not isinstance(error, HogwildError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        what = f"There is not enough memory{f' ({error})' if str(error) else ''}."
        return f"{what} Use fewer features, factors or workers; large files can be packed ('hogwild pack')."
    if isinstance(error, (HogwildError, InterruptedRunError, KeyboardInterrupt, OSError)):
        return str(error) or "interrupted"
    return f"{type(error).__name__}: {shortened(str(error)).rstrip('.')}. {_bug_report()}"


def _bug_report() -> str:
    """Return what to send about a bug, and where."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        links = dict(link.split(", ", 1) for link in metadata("hogwild").get_all("Project-URL") or ())
    except (PackageNotFoundError, ValueError):
        links = {}
    where = links.get("Issues", "the place where you got hogwild")
    return (
        f"This should not happen: it is a bug of hogwild. Please report it at {where}, with the command, what it "
        "prints with --debug, what 'hogwild doctor --json' prints, and the smallest input for which it happens."
    )


def _explain_usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    what = str(error.format_message()).rstrip(".") + "."
    return f"{what} See: {context.command_path} --help" if context else what


def _console(stderr: bool = False) -> Console:
    """Make a console that prints brackets and colons in file names verbatim, and escapes control characters.

    A terminal that does not know its width says 0 or 1, where nothing would be printed, or one letter a line.
    """
    from hogwild.cli.safe_console import SafeConsole

    made = SafeConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
    if made.width < LEAST_WIDTH:
        made.width = LEAST_WIDTH
    return made


def _print_line(console: Console, start: str, style: str, message: str) -> None:
    from rich.text import Text

    console.print(Text.assemble((start, style), message), soft_wrap=True)
