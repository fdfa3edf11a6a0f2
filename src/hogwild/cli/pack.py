"""``hogwild pack``: conversion of files into one packed, shuffled folder, in bounded memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hogwild.cli import options
from hogwild.cli.console import Debug, Json, Output
from hogwild.cli.download_progress import downloads_shown
from hogwild.cli.options import spread
from hogwild.cli.options.table import TableOptions
from hogwild.cli.options.text_limits import LongestLine, MostUnpacked
from hogwild.errors import ParameterError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from hogwild.data.packing.format import Meta
    from hogwild.data.packing.packed_dataset import PackedDataset


@spread
def pack(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC",
            help="Files of one format, addresses (s3://, gs://, hf://, https://), or - for standard input. "
            "With --runtime ray also patterns in quotes, which every machine looks for.",
            show_default=False,
        ),
    ],
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
        int | None,
        typer.Option(
            min=1,
            help="Parts of the folder: on a cluster, a machine needs only those of its workers. Default: 1; with "
            "--runtime ray one for each machine.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            help="Processes (of each machine). Each reads a share of the files: files, lines or row groups of Parquet. "
            "Then it writes shards. The rows are the same with any number.",
        ),
    ] = 1,
    runtime: Annotated[
        str | None,
        typer.Option(
            help="ray: each machine of a cluster reads the files that it has, and writes shards to its own DEST. Rows "
            "go from machine to machine. Default: this machine packs.",
            show_default=False,
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="ray: the cluster's head, or auto; left out, RAY_ADDRESS or an own one.",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a packed folder that is there.")] = False,
    *,
    format: options.Format = "auto",
    features: options.Features = None,
    bits: options.Bits = 18,
    base: options.Base = "auto",
    longest_line: LongestLine = None,
    most_unpacked: MostUnpacked = None,
    table_options: TableOptions,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Convert files once into a folder, from which every run starts without parsing text again.

    The conversion checks and shuffles the rows. The folder appears only when it is complete. Training reads data larger
    than memory from it block by block.

    Example: hogwild pack day_*.svm.gz clicks.packed --memory 2GiB

    Example: hogwild pack '/data/day_*.svm' /data/clicks.packed --runtime ray --shards 8
    """
    out = Output(as_json)
    if runtime not in (None, "ray"):
        raise ParameterError(f"Files are packed here or with --runtime ray. Got --runtime {runtime} instead.")
    if address is not None and runtime is None:
        raise ParameterError("--address goes with --runtime ray.")
    how = options.reading(format, features, bits, base, table_options)
    started = time.perf_counter()
    from hogwild.files import format_size, parse_size

    limit = None if memory is None else parse_size(memory)
    with out.progress() as bar:
        common: dict[str, Any] = {
            "reading": how, "memory": limit, "seed": seed, "overwrite": overwrite, "workers": workers,
            "progress": _Stages(bar).update,
        }  # fmt: skip
        with downloads_shown(out, bar):
            made, machines = _packed(sources, dest, runtime, address, shards, common)
    seconds = time.perf_counter() - started
    if made.encoding is not None:
        from hogwild.data.tables.guess import describe

        out.note(describe(made.encoding))
    size = _bytes(made.meta, dest, machines)
    out.show(
        f"{made.n_rows:,} rows x {made.n_features:,} features, {made.nonzeros:,} non-zeros in {dest} "
        f"({format_size(size)}, {seconds:.1f} s)"
    )
    for number, machine in enumerate(machines):
        out.show(f"shard {number} is on {machine}")
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
            "shards": max(1, len(machines)) if shards is None else shards,
            "workers": workers,
            "machines": machines,
            "seconds": round(seconds, 3),
        }
    )


def _packed(
    sources: list[str],
    dest: Path,
    runtime: str | None,
    address: str | None,
    shards: int | None,
    common: dict[str, Any],
) -> tuple[PackedDataset, list[str]]:
    """Pack here or on a cluster; return the folder, and the machine of each shard on a cluster."""
    if runtime is None:
        from hogwild.data.packing.pack import pack as pack_files

        return pack_files(sources, dest, shards=shards or 1, **common), []
    from hogwild.data.remote import is_remote
    from hogwild.runtimes.ray.packing import pack_on_ray

    if any(is_remote(source) or source == "-" for source in sources):
        raise ParameterError("With --runtime ray each machine packs files that it has: fetch remote files first.")

    made = pack_on_ray(sources, dest, address=address, shards=shards, **common)
    return made.data, made.machines


def _bytes(meta: Meta, dest: Path, machines: list[str]) -> int:
    """Return the bytes of a folder. Of shards on other machines these are the bytes of their arrays."""
    if machines:
        return sum(size for _, size in meta.files())
    return sum(part.stat().st_size for part in dest.rglob("*") if part.is_file())


class _Stages:
    """Progress bars, one for each stage, which appear when their stage begins."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.tasks: dict[str, TaskID] = {}

    def update(self, stage: str, done: int, total: int | None) -> None:
        if stage not in self.tasks:
            self.tasks[stage] = self.bar.add_task(f"{stage.capitalize()} rows", total=total)
        self.bar.update(self.tasks[stage], completed=done, total=total)
