"""Section of a report, made from the log that ``hogwild train --log`` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hogwild.errors import DataError
from hogwild.lab.conflict_charts import heat_maps, staleness_chart
from hogwild.lab.report_model import Chart, Finding, Part, Section, Series, Table

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
        findings.append(Finding("The run has not come to an end."))
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
                f"{event['collided']:.3g} of updates met another's change of a coordinate of theirs, where "
                f"{event['predicted']['collided']:.3g} were to be expected of {event['workers']} workers; "
                f"{event['lost_writes']:,} of {event['writes']:,} writes lost a change."
            ))  # fmt: skip
            parts.append(staleness_chart(event["staleness"]["histogram"]))
            parts += heat_maps(event["heat"], event["groups"], workers=4)
    told = {name: started[name] for name in SETTINGS if name in started}
    parts.append(Table("What was asked", ("what", "value"), tuple((name, str(value)) for name, value in told.items())))
    return Section(
        f"run-{path.stem}", f"Run {path.stem}", "How did this run go?", tuple(findings), tuple(parts),
        tuple({name: value for name, value in each.items() if not isinstance(value, (list, dict))} for each in epochs),
        settings=told,
    )  # fmt: skip


def _events(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    except json.JSONDecodeError as error:
        raise DataError(f"{path}: this is no log of a run: {error}.") from error
