"""``hogwild lab``: experiments on the effects of asynchrony, and a report of their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hogwild.cli.console import Debug, Json, Output
from hogwild.errors import ParameterError

if TYPE_CHECKING:
    from rich.progress import TaskID

    from hogwild.lab.runner import Study

REPORT = "report.html"
MARKS = {True: "✓", False: "✗", None: "○"}


def lab(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME...]",
            help="collisions, delays, regularisation, schedules, topologies, batch-size, strategies, paper, all; or a "
            "file of your own. Without any, they are listed.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings and seeds, for a first look.")] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of repetitions of each setting.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for records and the report.")] = Path("lab"),
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE", help="paper: a file of your own in place of generated data.", show_default=False
        ),
    ] = None,
    figures: Annotated[bool, typer.Option("--figures", help="Write each figure as PNG and SVG, too.")] = False,
    copy: Annotated[bool, typer.Option("--copy", help="Write an experiment's file here, to change it.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run experiments, and write a report as one page that can be shared.

    Recorded trials are kept: after Ctrl-C the same command continues where it stopped.

    Example: hogwild lab collisions delays --quick
    """
    from hogwild.lab.experiment import in_words
    from hogwild.lab.experiments import NAMES, named, source
    from hogwild.lab.runner import Study

    screen = Output(as_json)
    asked = [name for given in names or () for name in (NAMES if given == "all" else (given,))]
    if not asked:
        _list(screen)
        return
    if copy:
        _copy(screen, asked, source)
        return
    check_extra()
    files = _files(data or [])
    studies = []
    for name in dict.fromkeys(asked):
        experiment = named(name)
        if files and experiment.name == "paper":
            points = [
                {**point, "file": files.get(point["data"])} for point in experiment.points if point["data"] in files
            ]
            experiment = replace(experiment, points=points, quick=points)
        studies.append(Study(experiment, name, out / f"{experiment.name}.jsonl", quick, seeds))
    total = sum(study.expected for study in studies)
    for study in studies:
        screen.note(f"{study.experiment.name}: {len(study.trials)} trials, about {in_words(study.expected)}")
    if len(studies) > 1:
        screen.note(f"all of them: about {in_words(total)} on this machine")
    run_studies(screen, studies)
    written = write(out, [study.path for study in studies] if "all" not in (names or ()) else None, figures)
    records = [record_of(study) for study in studies]
    show_findings(screen, records)
    screen.show(f"report: {written}")
    screen.result({"report": written, "studies": records})


def run_studies(screen: Output, studies: list[Study]) -> None:
    """Run studies in sequence, with a progress bar for each."""
    with screen.progress() as bar:
        for study in studies:
            task = bar.add_task(study.experiment.name, total=len(study.trials))

            def shown(done: int, of: int, what: str, task: TaskID = task) -> None:
                bar.update(task, completed=done, total=of)

            study.run(shown)
            bar.update(task, completed=len(study.trials))


def write(folder: Path, paths: list[Path] | None, figures: bool, title: str = "What asynchrony does") -> Path:
    """Write a report of the given records, or of all records in a folder."""
    from hogwild.lab.report import save_figures, write_report
    from hogwild.lab.report_builder import report_of

    report = report_of(paths or [folder], title)
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

    section = section_of(study.experiment, recorded(study.path), study.quick)
    return {
        "name": study.experiment.name, "title": study.experiment.title, "trials": len(study.trials),
        "records": study.path,
        "findings": [{"text": finding.text, "holds": finding.holds} for finding in section.findings],
    }  # fmt: skip


def _list(screen: Output) -> None:
    from rich.table import Table

    from hogwild.lab.experiment import in_words, pace
    from hogwild.lab.experiments import NAMES, named

    table = Table("experiment", "question", "quick", "in full", box=None, padding=(0, 2))
    records = []
    for name in NAMES:
        experiment = named(name)
        full, quick = (seconds * pace() for seconds in experiment.seconds)
        table.add_row(name, experiment.question, in_words(quick), in_words(full))
        records.append({"name": name, "question": experiment.question, "quick_seconds": quick, "seconds": full})
    screen.show(table, "Run one with: hogwild lab NAME --quick, or all of them: hogwild lab all --quick")
    screen.result({"experiments": records})


def _copy(screen: Output, names: list[str], source: Callable[[str], str]) -> None:
    for name in names:
        path = Path(f"{name.replace('-', '_')}.py")
        if path.exists():
            raise ParameterError(f"{path} exists already. Remove it, or go to another folder.")
        path.write_text(source(name))
        screen.show(f"{path}: change it, and run it with: hogwild lab {path}")


def _files(given: list[str]) -> dict[str, str]:
    from hogwild.lab.experiments.paper import PAPER
    from hogwild.registry import lookup

    known, found = {name.lower(): name for name in PAPER}, {}
    for each in given:
        name, equals, path = each.partition("=")
        if not equals or not Path(path).exists():
            raise ParameterError(
                f"--data is NAME=FILE, such as RCV1=rcv1.svm.gz, of a file that is there. Got {each!r}."
            )
        found[lookup("data", name, known)] = path
    return found


def check_extra() -> None:
    """Raise an error if a package of the extra ``lab`` is missing, before any experiment runs."""
    import importlib.util

    from hogwild.errors import MissingExtraError

    for module in ("plotly", "jinja2"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError("The laboratory", module, "lab")
