"""``python -m benchmarks [NAME...]``: one after the other, because two at once would measure nothing."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import quiet, results, show

# Each is a module of this package with a ``main(out, quick)``, imported when it is run: some need more packages.
BENCHMARKS = (
    "startup", "prediction", "whole_fit", "whole_minimise", "sklearn_suite", "busy", "lost_updates", "parser", "tables",
    "one_core", "roofline", "scaling", "convergence", "peers", "modules", "gpu", "large_batch", "synchronous",
    "messages", "replay", "cluster_pays", "scale_out", "ray_calls", "ray_slow_worker", "hosts", "ratings",
    "real_ratings", "interactions", "sparse_mlp", "cuda_engine",
)  # fmt: skip


def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"Any of {', '.join(BENCHMARKS)}; none: all.")] = None,
    out: Annotated[Path, typer.Option(help="The folder for tables and plots.")] = results.FOLDER,
    quick: Annotated[bool, typer.Option(help="Tiny sizes: shows that it works, measures nothing.")] = False,
    busy: Annotated[bool, typer.Option("--busy", help="Measure although other work goes on; tables say so.")] = False,
) -> None:
    """Measure, and keep the tables and plots. A machine that does other work is refused."""
    chosen = [name.replace("-", "_") for name in names or BENCHMARKS]
    for name in chosen:
        if name not in BENCHMARKS:
            raise typer.BadParameter(f"There is no benchmark {name!r}. There are {', '.join(BENCHMARKS)}.")
    if quick and out == results.FOLDER:
        raise typer.BadParameter("Quick figures mean nothing: give another folder to write them to, --out FOLDER.")
    for name in chosen:
        benchmark = importlib.import_module(f"benchmarks.{name}")
        try:
            results.before = quiet.state(anyway=busy or quick)
        except quiet.BusyError as error:
            raise SystemExit(f"{name} is not measured. {error}") from None
        benchmark.main(out, quick=quick)
    if out == results.FOLDER:
        show.main()


if __name__ == "__main__":
    typer.run(main)
