"""``hogwild report``: a report from recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hogwild.cli.console import Debug, Json, Output, check_out, counted


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_DIR...",
            help="Folders with records of 'hogwild lab' or 'compare', folders of runs ('hogwild train --folder'), or "
            "logs of 'hogwild train --log'.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Its title.")] = "What asynchrony does",
    figures: Annotated[
        Path | None, typer.Option(help="Write each figure as PNG and SVG into this folder.", show_default=False)
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a report from recorded runs, without running anything again.

    Example: hogwild report lab runs/today.jsonl --out study.html
    """
    from hogwild.cli.lab import check_extra
    from hogwild.lab.report import save_figures, write_report
    from hogwild.lab.report_builder import report_of

    screen = Output(as_json)
    check_extra()
    check_out(out, inputs=runs)
    made = report_of(runs, title)
    write_report(made, out)
    if figures is not None:
        save_figures(made, figures)
    screen.show(f"{out}: {counted(len(made.sections), 'section')}")
    screen.result({"report": out, "sections": [section.name for section in made.sections], "figures": figures})
