"""Construction of a report from records."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hogwild.errors import DataError, ParameterError
from hogwild.lab.environment import about
from hogwild.lab.experiment import Experiment
from hogwild.lab.experiments import NAMES, named
from hogwild.lab.log_section import section_of_log
from hogwild.lab.report_model import Finding, Report, Section, Table
from hogwild.lab.results import Results
from hogwild.lab.runner import failures, head_of, recorded, results_of

Record = Mapping[str, Any]


def section_of(experiment: Experiment, records: Iterable[Record], quick: bool = False) -> Section:
    """Make the section of an experiment from its records."""
    records = list(records)
    results, wrong = results_of(records), failures(records)
    findings: list[Finding] = []
    parts: list[Any] = []
    if results:
        read = experiment.read(results)
        findings, parts = list(read[0]), list(read[1])
    else:
        findings.append(Finding("No trial has come to an end yet."))
    if wrong:
        findings.append(Finding(f"{len(wrong)} of {len(records)} trials could not be run; they are in the last table."))
        parts.append(Table("What went wrong", ("trial",), tuple((text,) for text in wrong)))
    seeds = len(results.values("seed")) if results else 0
    settings = {"trials": len(records), "seeds": seeds, "quick": "yes" if quick else "no"}
    return Section(
        experiment.name, experiment.title, experiment.question, tuple(findings), tuple(parts),
        tuple(_flat(record) for record in results.records), experiment.method, settings,
    )  # fmt: skip


def section_of_file(path: Path) -> Section:
    """Make a section from a file: the trials of an experiment, or the events of a run."""
    head = head_of(path)
    if "experiment" in head:
        experiment = _known(str(head["experiment"]))
        return section_of(experiment, recorded(path), bool(head.get("quick")))
    if "event" in head:
        return section_of_log(path)
    raise DataError(f"{path}: this is neither a record of an experiment nor a log of a run ('hogwild train --log').")


def report_of(folders: Iterable[Path], title: str = "What asynchrony does") -> Report:
    """Make a report from all records in the given folders, or from the given files."""
    paths = [path for folder in folders for path in _records(folder)]
    if not paths:
        raise ParameterError("There is nothing recorded here: run 'hogwild lab', or 'hogwild train --log'.")
    heads = [head for head in map(head_of, paths) if "machine" in head]
    made = heads[-1] if heads else about()
    sections = sorted((section_of_file(path) for path in paths), key=lambda section: _rank(section.name))
    now = time.strftime("%Y-%m-%d %H:%M")
    return Report(title, tuple(_numbered(sections)), now, made["machine"], made["versions"])


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


def _never(point: Any, seed: int) -> dict[str, Any]:
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
