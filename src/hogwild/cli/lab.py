"""``hogwild lab``: experiments on the effects of asynchrony, and a report of their results."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hogwild.cli.console import Debug, Json, Output
from hogwild.errors import ParameterError, WorkerError
from hogwild.files import write_file

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from hogwild.lab.experiment import Experiment
    from hogwild.lab.runner import Progress, Study

REPORT = "report.html"
MOST_LINES = 200  # of progress, for one study, where there is no terminal
MARKS = {True: "✓", False: "✗", None: "○"}


def lab(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME...]",
            help="Experiments by name, or all of them: all; or a file of your own. Without any, they are listed.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings and seeds, for a first look.")] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=10**4, help="Number of repetitions of each setting.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for records and the report.")] = Path("lab"),
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Your own rows in place of generated ones, for experiments that can use them. For paper NAME=FILE, "
            "such as RCV1=rcv1.svm.gz, once for each data set.",
            show_default=False,
        ),
    ] = None,
    figures: Annotated[bool, typer.Option("--figures", help="Write each figure as PNG and SVG, too.")] = False,
    copy: Annotated[bool, typer.Option("--copy", help="Write an experiment's file here, to change it.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run experiments, and write a report as one page that can be shared.

    Recorded trials are kept: after Ctrl-C the same command continues where it stopped, and runs failed trials again.
    The report has all experiments that are recorded in the folder.

    Example: hogwild lab collisions delays --quick
    """
    from hogwild.lab.experiments import COMPARE, NAMES, named, source
    from hogwild.lab.forecast import in_words

    screen = Output(as_json)
    asked = [name for given in names or () for name in (NAMES if given == "all" else (given,))]
    if not asked:
        _list(screen)
        return
    if COMPARE in asked:
        raise ParameterError("Strategies and schedules on your own data are compared by: hogwild compare DATA.")
    if copy:
        _copy(screen, asked, source)
        return
    check_extra()
    chosen = [(name, named(name)) for name in dict.fromkeys(asked)]
    studies = [_study(name, experiment, out, quick, seeds, data or []) for name, experiment in chosen]
    expected = [study.expected for study in studies]
    for study, seconds in zip(studies, expected, strict=True):
        forecast = (
            " on your data: the first of them tell the time" if seconds is None else f", about {in_words(seconds)}"
        )
        screen.note(f"{study.experiment.name}: {len(study.trials)} trials{forecast}")
    known = [seconds for seconds in expected if seconds is not None]
    if len(known) == len(studies) > 1:
        screen.note(f"all of them: about {in_words(sum(known))} on this machine")
    run_studies(screen, studies)
    written = write(out, figures)
    records = [record_of(study) for study in studies]
    show_findings(screen, records)
    screen.show(f"report: {written}")
    screen.result({"report": written, "studies": records})
    check_that_some_ran(studies)


def _study(name: str, experiment: Experiment, out: Path, quick: bool, seeds: int | None, data: list[str]) -> Study:
    """Return the study of an experiment, on the user's data if any is given, with a file of records for this data."""
    from hogwild.lab.experiments import NAMES, named
    from hogwild.lab.runner import Study

    if not data:
        return Study(experiment, name, out / f"{experiment.name}.jsonl", quick, seeds)
    if experiment.on_data is None:
        able = [known for known in NAMES if named(known).on_data is not None]
        raise ParameterError(
            f"{experiment.name} generates its own problem and reads no --data. Leave --data out, or name one of "
            f"{', '.join(able)}. 'hogwild compare DATA' compares strategies and schedules on your own data."
        )
    points, fewer = (experiment.on_data(points, data) for points in (experiment.points, experiment.quick))
    files = [value.rpartition("=")[2] for value in data]
    stems = "-".join(Path(file).name.partition(".")[0] for file in files)
    path = out / f"{experiment.name}-{stems}.jsonl"
    settings = {"data": [str(Path(file).absolute()) for file in files]}
    return Study(replace(experiment, points=points, quick=fewer), name, path, quick, seeds, settings)


def run_studies(screen: Output, studies: list[Study]) -> None:
    """Run studies in sequence, with a progress bar and the remaining time for each.

    Where stderr is no terminal that could have a bar, it has a line for each trial.
    """
    from hogwild.lab.forecast import in_words, seconds_left_of_all

    # Nothing is known about trials on the user's data before one has ended, and any forecast is then a correction.
    expected = [math.inf if (seconds := study.expected) is None else seconds for study in studies]
    finished = list[tuple[float, float]]()
    with _bar(screen) as bar:
        for number, study in enumerate(studies):
            name, began, later = study.experiment.name, time.perf_counter(), expected[number + 1 :]
            task = bar.add_task(name, total=len(study.trials), left="")

            def shown(progress: Progress, task: TaskID = task, later: list[float] = later, name: str = name) -> None:
                over = progress.done == progress.total
                left = "" if over or progress.seconds_left is None else f"about {in_words(progress.seconds_left)} left"
                if left and later and all(map(math.isfinite, later)):
                    left += f", {in_words(seconds_left_of_all(finished, progress.seconds_left or 0.0, later))} for all"
                bar.update(task, completed=progress.done, total=progress.total, left=left)
                if bar.disable and has_line(progress.done, progress.total):
                    screen.note(f"{name}: {progress.done} of {progress.total} trials" + (f", {left}" if left else ""))

            study.run(shown)
            bar.update(task, completed=len(study.trials), left="")
            if math.isfinite(expected[number]):
                finished.append((expected[number], time.perf_counter() - began))


def has_line(done: int, total: int) -> bool:
    """Return whether a number of trials has a line of its own where there is no terminal: all of few, some of many.

    >>> [done for done in range(4) if has_line(done, 3)], sum(has_line(done, 5_000) for done in range(5_001))
    ([0, 1, 2, 3], 201)
    """
    return done == total or done % -(-total // MOST_LINES) == 0


def _bar(screen: Output) -> Bar:
    """Make a progress bar whose remaining time is a forecast: trials differ too much to count them."""
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    name, left = (TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[left]"))
    columns = (SpinnerColumn(), name, BarColumn(), MofNCompleteColumn(), left)
    return Bar(*columns, console=screen.messages, transient=True, disable=not screen.messages.is_terminal)


def write(folder: Path, figures: bool, title: str = "What asynchrony does") -> Path:
    """Write a report of all records in a folder, also of those that an earlier command has recorded."""
    from hogwild.lab.report import save_figures, write_report
    from hogwild.lab.report_builder import report_of

    report = report_of([folder], title)
    path = folder / REPORT
    write_report(report, path)
    if figures:
        save_figures(report, folder / "figures")
    return path


def show_findings(screen: Output, records: list[dict[str, Any]]) -> None:
    """Print one line per finding, with a mark that shows whether the finding supports its claim."""
    for record in records:
        screen.show(record["title"])
        for finding in record["findings"]:
            screen.show(f"  {MARKS[finding['holds']]} {finding['text']}")


def record_of(study: Study) -> dict[str, Any]:
    """Return the result of a study as a record for programs."""
    from hogwild.lab.report_builder import section_of
    from hogwild.lab.runner import recorded

    section = section_of(study.experiment, recorded(study.path), study.quick, study.settings)
    return {
        "name": study.experiment.name, "title": section.title, "trials": len(study.trials),
        "records": study.path,
        "findings": [{"text": finding.text, "holds": finding.holds} for finding in section.findings],
    }  # fmt: skip


def check_that_some_ran(studies: list[Study]) -> None:
    """Raise WorkerError if a study has failed trials alone: its report says nothing."""
    from hogwild.lab.runner import failures, recorded

    for study in studies:
        records = list(recorded(study.path))
        wrong = failures(records)
        if wrong and len(wrong) == len(records):
            raise WorkerError(f"{study.experiment.name}: no trial of {len(wrong)} could be run. The first: {wrong[0]}")


def _list(screen: Output) -> None:
    from rich.table import Table

    from hogwild.lab.experiments import NAMES, named
    from hogwild.lab.forecast import in_words
    from hogwild.lab.runner import Study

    table = Table("experiment", "question", "quick", "in full", box=None, padding=(0, 2))
    records = []
    for name in NAMES:
        experiment = named(name)
        full, quick = (Study(experiment, name, Path(f"{name}.jsonl"), short).duration for short in (False, True))
        table.add_row(name, experiment.question, in_words(quick), in_words(full))
        records.append({"name": name, "question": experiment.question, "quick_seconds": quick, "seconds": full})
    screen.show(table, "Run one with: hogwild lab NAME --quick, or all of them: hogwild lab all --quick")
    screen.result({"experiments": records})


def _copy(screen: Output, names: list[str], source: Callable[[str], str]) -> None:
    for name in names:
        path = Path(f"{name.replace('-', '_')}.py")
        if path.exists():
            raise ParameterError(f"{path} exists already. Remove it, or go to another folder.")
        write_file(path, source(name).encode())
        screen.show(f"{path}: change it, and run it with: hogwild lab {path}")


def check_extra() -> None:
    """Raise an error if a package of the extra ``lab`` is missing, before any experiment runs."""
    import importlib.util

    from hogwild.errors import MissingExtraError

    for module in ("plotly", "jinja2"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError("The laboratory", module, "lab")
