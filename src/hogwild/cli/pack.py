"""``hogwild pack``: conversion of files into one packed, shuffled folder, in bounded memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hogwild.cli import options
from hogwild.cli.console import Debug, Json, Output

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def pack(
    sources: Annotated[list[Path], typer.Argument(metavar="SRC", help="Files of one format.", show_default=False)],
    dest: Annotated[Path, typer.Argument(metavar="DEST", help="The folder to make.", show_default=False)],
    memory: Annotated[
        str | None,
        typer.Option(
            help="The most memory of a process, whatever the size of the files. Default: 1GiB besides the program.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the shuffle.")] = 0,
    shards: Annotated[
        int, typer.Option(min=1, help="Parts of the folder: on a cluster, a machine needs only those of its workers.")
    ] = 1,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes, each of which reads a share of the files and writes shards.")
    ] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a packed folder that is there.")] = False,
    format: options.Format = "auto",
    features: options.Features = None,
    bits: options.Bits = 18,
    label: options.Label = "label",
    weight: options.Weight = None,
    base: options.Base = "auto",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Convert files once into a folder, from which every run starts without parsing text again.

    The conversion checks and shuffles the rows. The folder appears only when it is complete. Training reads data larger
    than memory from it block by block.

    Example: hogwild pack day_*.svm.gz clicks.packed --memory 2GiB
    """
    out = Output(as_json)
    how = options.reading(format, features, bits, label, weight, base)
    started = time.perf_counter()
    from hogwild.data.packing.pack import pack as pack_files
    from hogwild.files import format_size, parse_size

    limit = None if memory is None else parse_size(memory)
    with out.progress() as bar:
        shown = _Stages(bar)
        made = pack_files(
            sources,
            dest,
            reading=how,
            memory=limit,
            seed=seed,
            overwrite=overwrite,
            shards=shards,
            workers=workers,
            progress=shown.update,
        )
    seconds = time.perf_counter() - started
    size = sum(part.stat().st_size for part in dest.rglob("*") if part.is_file())
    out.show(
        f"{made.n_rows:,} rows x {made.n_features:,} features, {made.nonzeros:,} non-zeros in {dest} "
        f"({format_size(size)}, {seconds:.1f} s)"
    )
    out.result(
        {
            "sources": sources,
            "dest": dest,
            "rows": made.n_rows,
            "features": made.n_features,
            "nonzeros": made.nonzeros,
            "base": made.base,
            "bytes": size,
            "memory": made.meta.memory,
            "seed": seed,
            "shards": shards,
            "workers": workers,
            "seconds": round(seconds, 3),
        }
    )


class _Stages:
    """Progress bars, one for each stage, which appear when their stage begins."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.tasks: dict[str, TaskID] = {}

    def update(self, stage: str, done: int, total: int | None) -> None:
        if stage not in self.tasks:
            self.tasks[stage] = self.bar.add_task(f"{stage.capitalize()} rows", total=total)
        self.bar.update(self.tasks[stage], completed=done, total=total)
