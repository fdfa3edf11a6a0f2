"""``hogwild compare``: strategies, numbers of workers and schedules compared on the user's data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hogwild.cli.console import Debug, Json, Output
from hogwild.cli.lab import check_extra, check_that_some_ran, record_of, run_studies, show_findings, write
from hogwild.cli.options.text_limits import LongestLine, MostUnpacked
from hogwild.errors import ParameterError


def compare(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A file, or a packed folder.", show_default=False)],
    strategies: Annotated[
        str, typer.Option(help="Names, with commas between them; those by messages run on threads of this machine.")
    ] = "serial,hogwild,locked,averaging",
    workers: Annotated[
        str, typer.Option(help="Numbers, with commas between them. Default: one, and one per core.", show_default=False)
    ] = "",
    schedules: Annotated[
        str,
        typer.Option(
            help="Names, with commas between them, such as constant,cosine,warmup:2:cosine. Default: what suits the "
            "rule, cooldown or cosine.",
            show_default=False,
        ),
    ] = "",
    loss: Annotated[str, typer.Option(help="Of a linear model.")] = "logistic",
    l2: Annotated[float, typer.Option(help="The strength of its penalty.")] = 0.0,
    rule: Annotated[str, typer.Option(help="sgd, momentum, adagrad, ftrl or adam.")] = "adagrad",
    epochs: Annotated[int, typer.Option(min=1, max=10**6, help="Of each run.")] = 5,
    target: Annotated[
        float | None,
        typer.Option(
            help="The held-out loss to which epochs and seconds are counted. Default: 1% above the lowest of any run.",
            show_default=False,
        ),
    ] = None,
    holdout: Annotated[float, typer.Option(help="Hold this fraction out.")] = 0.1,
    seeds: Annotated[int, typer.Option(min=1, max=10**4, help="Number of repetitions of each run.")] = 3,
    out: Annotated[Path, typer.Option(help="The folder for records and the report.")] = Path("compare"),
    longest_line: LongestLine = None,
    most_unpacked: MostUnpacked = None,
    figures: Annotated[bool, typer.Option("--figures", help="Write each figure as PNG and SVG, too.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train the same model with several strategies, numbers of workers and schedules, and write a report.

    Example: hogwild compare rcv1.svm.gz --strategies serial,hogwild,parameter-server --workers 1,2,4

    Example: hogwild compare rcv1.svm.gz --strategies hogwild --schedules constant,cosine,adaptive
    """
    from hogwild import losses, rules
    from hogwild import schedules as known_schedules
    from hogwild import strategies as known
    from hogwild.lab.experiments import COMPARE
    from hogwild.lab.experiments.compare import experiment
    from hogwild.lab.runner import Study
    from hogwild.machine import usable_cores

    screen = Output(as_json)
    check_extra()
    if not data.exists():
        raise ParameterError(f"{data}: there is no such file.")
    if not 0 < holdout < 1:
        raise ParameterError(f"--holdout is a fraction between 0 and 1. Got {holdout:g}.")
    names = _names("--strategies", strategies)
    courses = _names("--schedules", schedules or rules.named(rule).usual_schedule)
    for name in names:
        known.named(name)
    for name in courses:
        known_schedules.named(name)
    losses.named(loss)
    counts = _counts(workers) or sorted({1, usable_cores()})
    settings = {
        "data": str(data.absolute()), "loss": loss, "l2": l2, "rule": rule, "epochs": epochs, "holdout": holdout,
        "target": target,
    }  # fmt: skip
    points = [
        {**settings, "given_target": target is not None, "strategy": name, "workers": count, "schedule": course}
        for name in names for count in (counts if name != "serial" else [1]) for course in courses
    ]  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    study = Study(
        replace(experiment, points=points, quick=points, seconds=(2.0 * len(points), 2.0 * len(points))),
        COMPARE, out / f"{COMPARE}.jsonl", False, seeds, settings,
    )  # fmt: skip
    run_studies(screen, [study])
    written = write(out, figures, f"Strategies on {data.name}")
    record = record_of(study)
    show_findings(screen, [record])
    screen.show(f"report: {written}")
    screen.result({"report": written, **record})
    check_that_some_ran([study])


def _names(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ParameterError(f"{option} are names with commas between them. Got {text!r}.")
    return list(dict.fromkeys(names))


def _counts(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ParameterError(f"--workers are numbers with commas between them, such as 1,2,4. Got {text!r}.")
    return [int(part) for part in parts]
