"""Sections of a report, from experiments and from the event logs of runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hogwild.errors import DataError, HogwildError, ParameterError
from hogwild.lab.experiment import Experiment, Point, Results, about
from hogwild.lab.experiments import NAMES, named
from hogwild.lab.report_model import Chart, Finding, Map, Part, Report, Section, Series, Table
from hogwild.lab.runner import failures, head_of, recorded, results_of

MOST = 64  # maximum number of different delays in a chart


def staleness_chart(histogram: Mapping[int, int] | Mapping[str, int], title: str = "Staleness") -> Chart:
    """Make a histogram of the staleness of updates. Records of JSON have its numbers as text.

    >>> staleness_chart({"0": 5, "10": 2, "2": 1}).series[0].x
    [0, 2, 10]
    """
    updates = {int(delay): count for delay, count in histogram.items()}
    delays = sorted(updates)[:MOST]
    return Chart(
        title, "updates by others between reading and writing", "updates",
        (Series("updates", delays, [updates[delay] for delay in delays], style="bars"),),
        "How many updates were how stale.", log_y=True,
    )  # fmt: skip


def heat_maps(heat: Sequence[Any], groups: Sequence[Mapping[str, Any]], workers: int) -> list[Map]:
    """Make a heat map of the writes of each of the first ``workers`` workers, from ``heat[worker][moment][group]``.

    The groups of a module are tensors and blocks of rows of tables, and have names. Those of rows have ranks.
    """
    of_module = all("name" in group for group in groups)
    return [
        Map(
            f"Writes of worker {worker}", "time (share of the run)",
            "parameters" if of_module else "coordinates, the most frequent first",
            [round(moment / len(moments), 3) for moment in range(len(moments))],
            [group["name"] if of_module else f"from {group['from_rank']:,}" for group in groups],
            [list(column) for column in zip(*moments, strict=True)], "writes",
            "How often this worker wrote to each group of coordinates at each time.", log=True,
        )
        for worker, moments in enumerate(heat[:workers])
    ]  # fmt: skip


SETTINGS = ("problem", "loss", "rule", "schedule", "strategy", "runtime", "workers", "rows", "features", "seed")


def section_of_log(path: Path) -> Section:
    """Make a section from the events of a run."""
    events = _events(path)
    started: dict[str, Any] = next((event for event in events if event["event"] == "started"), {})
    epochs = [event for event in events if event["event"] == "epoch"]
    result = next((event for event in reversed(events) if event["event"] == "result"), None)
    findings, parts = [], list[Part]()
    if result is not None:
        findings.append(Finding(
            f"The run was stopped by {result['stop_reason']} after {result['epoch']} epochs and "
            f"{result['seconds']:.3g} s, with a loss of {result['loss']:.6g}"
            + (f" ({result['test_loss']:.6g} held out)." if "test_loss" in result else "."),
        ))  # fmt: skip
    else:
        findings.append(Finding("The run has not ended."))
    if epochs:
        losses = [name for name in ("objective", "loss", "test_loss") if name in epochs[0]]
        parts.append(Chart(
            "Loss over epochs", "epoch", "loss",
            tuple(Series(name.replace("test_", "held-out "), [each["epoch"] for each in epochs],
                         [each.get(name) for each in epochs]) for name in losses),
            "The objective and the loss after each epoch.",
        ))  # fmt: skip
    for event in events:
        if event["event"] == "staleness" and event.get("histogram"):
            parts.append(staleness_chart(event["histogram"]))
        elif event["event"] == "conflicts":
            findings.append(Finding(
                f"{event['collided']:.3g} of updates collided with a change of one of their coordinates, where "
                f"{event['predicted']['collided']:.3g} were to be expected of {event['workers']} workers; "
                f"{event['lost_writes']:,} of {event['writes']:,} writes lost a change."
            ))  # fmt: skip
            parts.append(staleness_chart(event["staleness"]["histogram"]))
            parts += heat_maps(event["heat"], event["groups"], workers=4)
    settings = {name: started[name] for name in SETTINGS if name in started}
    parts.append(Table("Settings", ("setting", "value"), tuple((name, str(value)) for name, value in settings.items())))
    return Section(
        f"run-{path.stem}", f"Run {path.stem}", "How did this run go?", tuple(findings), tuple(parts),
        tuple({name: value for name, value in each.items() if not isinstance(value, (list, dict))} for each in epochs),
        settings=settings,
    )  # fmt: skip


def _events(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: this is no log of a run: {error}.") from error


Record = Mapping[str, Any]


def section_of(
    experiment: Experiment, records: Iterable[Record], quick: bool = False, settings: Mapping[str, Any] | None = None
) -> Section:
    """Make the section of an experiment from its records.

    Parameters
    ----------
    experiment : Experiment
        Experiment whose ``read`` computes findings and figures.
    records : iterable of mapping
        Records of its trials.
    quick : bool, default False
        Whether the settings were those of ``--quick``.
    settings : mapping, optional
        What all trials have in common. The name of the user's data becomes a part of the title.

    Returns
    -------
    Section
        Findings, figures, a table of failed trials, and all records.
    """
    records, shared = list(records), dict(settings or {})
    results, wrong = results_of(records), failures(records)
    findings: list[Finding] = []
    parts: list[Any] = []
    if results:
        read = experiment.read(results)
        findings, parts = list(read[0]), list(read[1])
    else:
        findings.append(Finding("No trial has ended yet."))
    if wrong:
        findings.append(
            Finding(
                f"{len(wrong)} of {len(records)} trials could not be run; they are in the last table. "
                "The same command runs them again."
            )
        )
        parts.append(Table("What went wrong", ("trial",), tuple((text,) for text in wrong)))
    seeds = len(results.values("seed")) if results else 0
    data = ", ".join(Path(str(path)).name for path in _several(shared.get("data")))
    return Section(
        experiment.name, f"{experiment.title} ({data})" if data else experiment.title, experiment.question,
        tuple(findings), tuple(parts), tuple(_flat(record) for record in results.records), experiment.method,
        {"trials": len(records), "seeds": seeds, "quick": "yes" if quick else "no", **shared},
    )  # fmt: skip


def section_of_file(path: Path) -> Section:
    """Make a section from a file: the trials of an experiment, or the events of a run.

    Raises
    ------
    DataError
        If the file is none of these, or lacks something.
    """
    head = head_of(path)
    try:
        if "experiment" in head:
            experiment = _known(str(head["experiment"]))
            return section_of(experiment, recorded(path), bool(head.get("quick")), head.get("settings"))
        if "event" in head:
            return section_of_log(path)
    except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, HogwildError):
            raise
        raise DataError(f"{path}: the record is damaged ({type(error).__name__}: {error}).") from None
    raise DataError(f"{path}: this is neither a record of an experiment nor a log of a run ('hogwild train --log').")


def report_of(folders: Iterable[Path], title: str = "What asynchrony does") -> Report:
    """Make a report from all records in the given folders, and from the given files.

    A file in a folder that cannot be read gets a section that says so, because the other records are still of use. A
    file that was given by its name must be readable.

    Parameters
    ----------
    folders : iterable of Path
        Folders with files ``*.jsonl``, or such files.
    title : str, default "What asynchrony does"
        Title of the report.

    Returns
    -------
    Report
        One section for each file.

    Raises
    ------
    ParameterError
        If there is no such file or folder, or nothing is recorded there.
    DataError
        If a given file is neither a record of an experiment nor a log of a run.
    """
    sections, heads, problems = list[Section](), list[dict[str, Any]](), list[DataError]()
    for folder in folders:
        for path in _records(folder):
            try:
                heads.append(head_of(path))
                sections.append(section_of_file(path))
            except DataError as error:
                if path == folder:
                    raise
                problems.append(error)
                sections.append(_unreadable(path, error))
    if not sections:
        raise ParameterError("There is nothing recorded here: run 'hogwild lab', or 'hogwild train --log'.")
    if len(problems) == len(sections):
        raise problems[0]
    known = [head for head in heads if "machine" in head]
    made = known[-1] if known else about()
    sections.sort(key=lambda section: _rank(section.name))
    now = time.strftime("%Y-%m-%d %H:%M")
    return Report(title, tuple(_numbered(sections)), now, made["machine"], made["versions"])


def _unreadable(path: Path, error: DataError) -> Section:
    return Section(path.stem, f"{path.name} cannot be read", "What is in this file?", (Finding(str(error)),), (), ())


def _several(data: object) -> list[object]:
    """Return one value or several as a list, without None."""
    return [] if data is None else list(data) if isinstance(data, (list, tuple)) else [data]


def _numbered(sections: list[Section]) -> list[Section]:
    """Make the names of sections unique, where two records are of the same experiment."""
    seen: dict[str, int] = {}
    found = []
    for section in sections:
        seen[section.name] = seen.get(section.name, 0) + 1
        again = seen[section.name]
        found.append(section if again == 1 else replace(section, name=f"{section.name}-{again}"))
    return found


def _records(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.glob("*.jsonl"))
    if not path.exists():
        raise ParameterError(f"{path}: there is no such file or folder.")
    return [path]


def _rank(name: str) -> tuple[int, str]:
    return (NAMES.index(name), name) if name in NAMES else (len(NAMES), name)


def _known(name: str) -> Experiment:
    """Return the experiment of a record, or one that shows the numbers alone if its file no longer exists."""
    try:
        return named(name)
    except ParameterError:
        return Experiment(
            Path(name).stem, f"Records of {name}", "The file of this experiment is not here any more.", "", (), (),
            _never, _as_they_are, (0, 0),
        )  # fmt: skip


def _never(point: Point, seed: int) -> dict[str, Any]:
    raise ParameterError("The file of this experiment is not here any more.")


def _as_they_are(results: Results) -> tuple[list[Finding], list[Any]]:
    flat = [_flat(record) for record in results.records]
    columns = tuple(dict.fromkeys(name for record in flat for name in record))
    rows = tuple(tuple(record.get(name) for name in columns) for record in flat)
    return [], [Table("Trials", columns, rows)]


def _flat(record: Record) -> dict[str, Any]:
    """Return a record without values that do not fit into a table cell; short lists become text."""
    return {
        name: value if not isinstance(value, (list, dict)) else json.dumps(value)
        for name, value in record.items() if not isinstance(value, (list, dict)) or len(json.dumps(value)) < 2_000
    }  # fmt: skip
