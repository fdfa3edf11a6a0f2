"""Packing on several machines: each reads the files that it has, and no row passes through the program that asks.

The rows of a shard come from all machines, so that each shard is a random sample. Machines send each other the rows
that belong elsewhere. Where they see the same disk, they read them there.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from hogwild.data.packing.file_parts import FilePart, divide_files
from hogwild.data.packing.format import Meta
from hogwild.data.packing.machine_packer import Fetch, FoundFile
from hogwild.data.packing.stages import PackOptions, Progress, common_schema, first_rows, plan_shards
from hogwild.errors import DataError, HogwildError

PARTS = 2  # Parts of the files for each process, so that one that is faster reads more.


class Machines(Protocol):
    """Machines that each have a ``MachinePacker``, numbered from 0."""

    names: list[str]

    def call(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a method of the packers of some machines side by side; return the result of each machine."""

    def refer(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Begin such calls; return references to their results, which may be arguments of other calls."""

    def fetch(self, folders: Mapping[Path, int]) -> Fetch:
        """Return access to files in folders of machines, which can be an argument of calls."""


@dataclass(frozen=True, slots=True)
class Duties:
    """Which machines do what."""

    home: int  # The machine of the program.
    working: list[int]  # The machines that read files which others have too, and that write shards.
    shards: int

    def writer(self, shard: int) -> int:
        """Return the machine that writes a shard.

        >>> [Duties(0, [0, 2], 4).writer(shard) for shard in range(4)]
        [0, 0, 2, 2]
        """
        return self.home if self.shards == 1 else self.working[shard * len(self.working) // self.shards]


def pack_on_machines(
    machines: Machines, duties: Duties, sources: Sequence[str], options: PackOptions, workers: int, overwrite: bool,
    report: Progress,
) -> list[Meta]:  # fmt: skip
    """Pack files that lie on machines into a folder of each machine, under the same path; return its shards.

    Parameters
    ----------
    machines : Machines
        The machines.
    duties : Duties
        Which machines do what.
    sources : sequence of str
        Absolute paths or patterns of files. A file may be on one machine or on several.
    options : PackOptions
        Options that all processes know. The format may be "auto".
    workers : int
        Processes of each machine.
    overwrite : bool
        Whether an existing packed folder is replaced.
    report : callable
        Called with the stage, the rows done, and the rows in total or None if unknown.
    """
    found = machines.call("look", dict.fromkeys(range(len(machines.names)), (sources, options.reading)))
    held = _held(machines.names, sources, found)
    origin = replace(options.origin, sources=[file.size.path.name for file, _ in held])
    options = replace(options, reading=replace(options.reading, format=_format(held)), origin=origin)
    parts = divide_files([file.size for file, _ in held], PARTS * workers * len(duties.working))
    reader = _readers(parts, {file.size.path: set(holders) for file, holders in held}, duties.working)
    with _folders(machines, duties, overwrite) as folders:
        spooled = _done(machines, "read", dict(enumerate(reader)), [*enumerate(parts)], options)
        shape = common_schema(parts, spooled, options, duties.shards, min(workers, duties.shards))
        rows = sum(part.rows for part in spooled)
        report("reading", rows, None)
        numbered = [*zip(range(len(parts)), spooled, first_rows(spooled), strict=True)]
        divided = _done(machines, "divide", dict(enumerate(reader)), numbered, options)
        report("dividing", rows, rows)
        writer = {shard: duties.writer(shard) for shard in range(duties.shards)}
        owners = {folder: each for each, folder in sorted(folders.items(), reverse=True)}
        plans, fetch = plan_shards(divided, duties.shards), machines.fetch(owners)
        metas: list[Meta] = _done(
            machines, "write", writer, [*enumerate(plans)], options, shape, len(plans) == 1, fetch
        )
        report("writing", rows, rows)
        if duties.shards > 1:
            _describe(machines, writer, list(owners.values()), metas)
            if folders[duties.home] not in {folders[each] for each in writer.values()}:
                # A program that trains looks at rows of its own machine before it starts workers.
                machines.call("copy", {duties.home: (0, metas[0], folders[writer[0]], fetch)})
    return metas


def _done(
    machines: Machines, method: str, machine: Mapping[int, int], items: Sequence[tuple[Any, ...]], *more: Any
) -> list[Any]:
    """Call a method with the items of each machine; return the results in the order of the items."""
    mine: dict[int, list[tuple[Any, ...]]] = {}
    for item in items:
        mine.setdefault(machine[item[0]], []).append(item)
    results = machines.call(method, {each: (some, *more) for each, some in mine.items()})
    numbered = {item[0]: done for each in mine for item, done in zip(mine[each], results[each], strict=True)}
    return [numbered[item[0]] for item in items]


def _describe(machines: Machines, writer: Mapping[int, int], owners: Sequence[int], metas: list[Meta]) -> None:
    """Write the description of all shards on each disk."""
    shards: dict[int, list[int]] = {}
    for shard, each in writer.items():
        shards.setdefault(each, []).append(shard)
    counts = machines.refer("frequencies", {each: (some,) for each, some in shards.items()})
    first = writer[0]
    total = machines.refer("total", {first: tuple(counts.values())})[first]
    machines.call("finish", dict.fromkeys(owners, (metas, total)))


Held = list[tuple[FoundFile, list[int]]]


def _held(names: Sequence[str], sources: Sequence[str], found: Mapping[int, list[list[FoundFile]]]) -> Held:
    """Return each file with the machines that have it, in the order of the sources and of names."""
    held: Held = []
    for source, *on in zip(sources, *(found[number] for number in range(len(names))), strict=True):
        files: dict[Path, tuple[FoundFile, list[int]]] = {}
        for number, file in ((number, file) for number, some in enumerate(on) for file in some):
            first, holders = files.setdefault(file.size.path, (file, []))
            if file != first:
                raise DataError(
                    f"this is another file on the machine {names[number]!r} than on {names[holders[0]]!r}",
                    path=file.size.path, remedy="Give files that differ different names.",
                )  # fmt: skip
            holders.append(number)
        if not files:
            machines = ", ".join(dict.fromkeys(names))
            raise DataError(f"no machine has such a file ({machines})", path=source, remedy="Check the path.")
        held += [files[path] for path in sorted(files)]
    return held


def _format(held: Held) -> str:
    (first, _), *others = held
    for file, _ in others:
        if file.format != first.format:
            what = f"this is a {file.format} file, and '{first.size.path}' is a {first.format} file"
            raise DataError(what, path=file.size.path, remedy="Give files of one format.")
    return first.format


def _readers(parts: Sequence[FilePart], holders: Mapping[Path, set[int]], working: Sequence[int]) -> list[int]:
    """Return the machine that reads each part: one that has its file, and has the least to read."""
    load = dict.fromkeys(sorted(set().union(*holders.values())), 0)
    chosen = []
    for part in parts:
        able = holders[part.path]
        chosen.append(min(sorted(able & set(working)) or sorted(able), key=lambda each: load[each]))
        load[chosen[-1]] += part.bytes
    return chosen


@contextmanager
def _folders(machines: Machines, duties: Duties, overwrite: bool) -> Iterator[dict[int, Path]]:
    """Make a folder on each disk; yield the folder of each machine. They take their places if there is no error."""
    everyone, run = range(len(machines.names)), uuid.uuid4().hex[:12]
    try:
        machines.call("mark", dict.fromkeys(everyone, (run,)))
        seen = machines.call("marks", dict.fromkeys(everyone, (run, len(everyone))))
    finally:
        with suppress(HogwildError):
            machines.call("unmark", dict.fromkeys(everyone, (run,)))
    owners = {each: min(seen[each]) for each in everyone}
    made = sorted(set(owners.values()))
    try:
        folders = machines.call("make", dict.fromkeys(made, (overwrite,)))
        machines.call("fill", {each: (folders[owner],) for each, owner in owners.items() if each != owner})
        yield {each: folders[owner] for each, owner in owners.items()}
    except BaseException:
        with suppress(HogwildError):
            machines.call("close", dict.fromkeys(everyone, (False,)))
        raise
    # A folder in one piece is on one disk alone.
    kept = {owners[duties.home]} if duties.shards == 1 else set(made)
    machines.call("close", {each: (each in kept,) for each in everyone})
