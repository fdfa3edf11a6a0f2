"""``hogwild compare``: strategies and numbers of workers compared on the user's data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hogwild.cli.console import Debug, Json, Output
from hogwild.cli.lab import check_extra, record_of, run_studies, show_findings, write
from hogwild.errors import ParameterError


def compare(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A file, or a packed folder.", show_default=False)],
    strategies: Annotated[
        str, typer.Option(help="Names, with commas between them; those by messages run on threads of this machine.")
    ] = "serial,hogwild,locked,averaging",
    workers: Annotated[
        str, typer.Option(help="Numbers, with commas between them. Default: one, and one per core.", show_default=False)
    ] = "",
    loss: Annotated[str, typer.Option(help="Of a linear model.")] = "logistic",
    l2: Annotated[float, typer.Option(help="The strength of its penalty.")] = 0.0,
    rule: Annotated[str, typer.Option(help="sgd, momentum, adagrad, ftrl or adam.")] = "adagrad",
    epochs: Annotated[int, typer.Option(min=1, help="Of each run.")] = 5,
    holdout: Annotated[float, typer.Option(help="Hold this fraction out.")] = 0.1,
    seeds: Annotated[int, typer.Option(min=1, help="Number of repetitions of each run.")] = 3,
    out: Annotated[Path, typer.Option(help="The folder for records and the report.")] = Path("compare"),
    figures: Annotated[bool, typer.Option("--figures", help="Write each figure as PNG and SVG, too.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train the same model with several strategies and numbers of workers, and write a report.

    Example: hogwild compare rcv1.svm.gz --strategies serial,hogwild,parameter-server --workers 1,2,4
    """
    from hogwild import losses, rules
    from hogwild import strategies as known
    from hogwild.lab.experiments.compare import experiment
    from hogwild.lab.runner import Study
    from hogwild.machine import usable_cores

    screen = Output(as_json)
    check_extra()
    if not data.exists():
        raise ParameterError(f"{data}: there is no such file.")
    if not 0 < holdout < 1:
        raise ParameterError(f"--holdout is a fraction between 0 and 1. Got {holdout:g}.")
    names = [name.strip() for name in strategies.split(",") if name.strip()]
    for name in names:
        known.named(name)
    losses.named(loss)
    rules.named(rule)
    counts = _counts(workers) or sorted({1, usable_cores()})
    points = [
        {"data": str(data.absolute()), "strategy": name, "workers": count, "loss": loss, "l2": l2, "rule": rule,
         "epochs": epochs, "holdout": holdout}
        for name in names for count in (counts if name != "serial" else [1])
    ]  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    study = Study(replace(experiment, points=points, quick=points), "compare", out / "compare.jsonl", False, seeds)
    run_studies(screen, [study])
    written = write(out, [study.path], figures, f"Strategies on {data.name}")
    record = record_of(study)
    show_findings(screen, [record])
    screen.show(f"report: {written}")
    screen.result({"report": written, **record})


def _counts(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ParameterError(f"--workers are numbers with commas between them, such as 1,2,4. Got {text!r}.")
    return [int(part) for part in parts]
