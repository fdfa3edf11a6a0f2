"""Packing with several processes of this machine: none of them sees all rows, and this one sees none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hogwild.data.packing.file_parts import divide_files, file_size
from hogwild.data.packing.process_pool import ProcessPool
from hogwild.data.packing.sharded_rows import shard_name, summed_frequencies, write_shard_list
from hogwild.data.packing.stages import (
    PackOptions,
    Progress,
    common_schema,
    divide_part,
    first_rows,
    plan_shards,
    read_part,
    write_shard,
)

PARTS = 2  # Parts of the files for each process, so that one that is faster reads more.


def pack_side_by_side(
    paths: Sequence[Path], folder: Path, options: PackOptions, shards: int, workers: int, report: Progress
) -> None:
    """Fill a folder with the rows of files, in several processes.

    Parameters
    ----------
    paths : sequence of path
        Files of one format.
    folder : path
        An empty folder.
    options : PackOptions
        Options that all processes know.
    shards : int
        Number of parts of the folder.
    workers : int
        Number of processes.
    report : callable
        Called with the stage, the rows done, and the rows in total or None if unknown.
    """
    spilled = folder / "spilled"
    spilled.mkdir()
    parts = divide_files([file_size(path, options.reader) for path in paths], PARTS * workers)
    with ProcessPool(min(workers, max(len(parts), shards))) as pool:

        def done(stage: str, rows: int, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
            """Make the calls of a stage; 0 rows means that their number is unknown."""
            results: list[Any] = [None] * len(calls)
            for number, result in pool.call(function, calls):
                results[number] = result
                report(stage, sum(each.rows for each in results if each is not None), rows or None)
            return results

        spooled = done("reading", 0, read_part, [(options, *part, spilled) for part in enumerate(parts)])
        shape = common_schema(parts, spooled, options, shards, min(workers, shards))
        rows = sum(part.rows for part in spooled)
        divide = [
            (options, *part, spilled) for part in zip(range(len(parts)), spooled, first_rows(spooled), strict=True)
        ]
        divided = done("dividing", rows, divide_part, divide)
        folders = [folder] if shards == 1 else [folder / shard_name(number) for number in range(shards)]
        plans = plan_shards(divided, shards)
        write = [(options, plan, shape, folders[plan.number], spilled / shard_name(plan.number)) for plan in plans]
        metas = done("writing", rows, write_shard, write)
    shutil.rmtree(spilled)
    if shards > 1:
        write_shard_list(folder, metas, summed_frequencies(folders))
