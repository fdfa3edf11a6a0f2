"""Packing on a Ray cluster: each machine reads the files that it has and writes shards, which stay there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from hogwild.data.packing.machine_packer import Fetch, MachinePacker
from hogwild.data.packing.memory_limit import memory_limit
from hogwild.data.packing.on_machines import Duties, pack_on_machines
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.data.packing.stages import PackOptions, Progress
from hogwild.data.packing.writer import Origin
from hogwild.data.reader import ReadOptions
from hogwild.errors import HogwildError, WorkerError
from hogwild.registry import invalid_parameter
from hogwild.runtimes.ray.connection import connected


@dataclass(frozen=True, slots=True)
class PackedOnRay:
    """Packed folder on the machines of a cluster, and the machine that wrote each shard."""

    data: PackedDataset
    machines: list[str]  # Name of the machine of each shard.


def pack_on_ray(
    sources: Sequence[str | Path],
    dest: str | Path,
    *,
    address: str | None = None,
    reading: ReadOptions | None = None,
    memory: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    shards: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> PackedOnRay:
    """Convert files that lie on the machines of a cluster into a packed folder in shards, with shuffled rows.

    Each machine reads the files that it has, and writes shards under the same path. A file that several machines have
    is divided among them. The rows are those that ``pack`` writes, in the same order.

    Parameters
    ----------
    sources : sequence of path
        Files of one format, or patterns such as ``/data/day_*.svm``, which every machine looks for.
    dest : path
        The folder to write, on each machine or on a disk that machines share.
    address : str, optional
        Address of the cluster's head, as for :class:`hogwild.Ray`.
    reading : ReadOptions, optional
        Options of reading, such as the format and the number of features.
    memory : int, optional
        Largest resident memory of each process, in bytes. By default 1 GiB more than its memory at the start.
    seed : int, default 0
        Seed of the shuffle.
    overwrite : bool, default False
        Whether an existing packed folder is replaced.
    shards : int, optional
        Number of parts of the folder. By default one for each machine with CPUs. One shard is a folder in one piece, on
        the machine of this program.
    workers : int, default 1
        Number of processes of each machine.
    progress : callable, optional
        Called with the stage, the rows done, and the rows in total or None if unknown.

    Returns
    -------
    PackedOnRay
        The packed folder, and the machine of each shard.

    Raises
    ------
    DataError
        If a file cannot be read, is invalid or is on no machine.
    ParameterError
        If ``dest`` exists and may not be replaced, or if ``memory`` is too small.
    WorkerError
        If the cluster cannot be used, or a machine leaves it.
    """
    for name, number in (("shards", 1 if shards is None else shards), ("workers", workers)):
        if number < 1:
            raise invalid_parameter(name, "a number of at least 1", number)
    dest, limit = Path(dest).absolute(), memory_limit(memory)
    options = PackOptions(reading or ReadOptions(), memory, Origin(limit, seed, []))
    with connected(address, 1) as ray:
        home = ray.get_runtime_context().get_node_id()
        nodes = [node for node in ray.nodes() if node["Alive"]]
        nodes.sort(key=lambda node: (node["NodeID"] != home, node["NodeManagerHostname"], node["NodeID"]))
        with_cpus = [number for number, node in enumerate(nodes) if node["Resources"].get("CPU", 0) > 0]
        working = with_cpus or [*range(len(nodes))]
        duties = Duties(0, working, len(working) if shards is None else shards)
        machines = RayMachines(ray, nodes, dest, workers)
        try:
            paths = [str(Path(source).absolute()) for source in sources]
            metas = pack_on_machines(
                machines, duties, paths, options, workers, overwrite, progress or (lambda stage, done, total: None)
            )
        finally:
            machines.end()
    return PackedOnRay(
        PackedDataset(dest, limit, verify=False), [machines.names[duties.writer(shard)] for shard in range(len(metas))]
    )


class RayMachines:
    """Nodes of a Ray cluster, each with a packer."""

    def __init__(self, ray: ModuleType, nodes: Sequence[Mapping[str, Any]], dest: Path, workers: int) -> None:
        self._ray, self.names = ray, [f"{node['NodeManagerHostname']} ({node['NodeID'][:8]})" for node in nodes]
        affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        # While packers fetch from each other, each must answer the others.
        packer = ray.remote(num_cpus=0, max_restarts=0, max_concurrency=len(nodes) + 2)(MachinePacker)
        self._packers = [
            packer.options(scheduling_strategy=affinity(node["NodeID"], soft=False)).remote(number, dest, workers)
            for number, node in enumerate(nodes)
        ]

    def call(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a method of the packers of some machines side by side; return the result of each machine."""
        return {number: self._result(number, call) for number, call in self.refer(method, arguments).items()}

    def refer(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Begin such calls; return references to their results, which may be arguments of other calls."""
        return {number: getattr(self._packers[number], method).remote(*given) for number, given in arguments.items()}

    def fetch(self, folders: Mapping[Path, int]) -> Fetch:
        """Return access to files in folders of machines, which can be an argument of calls."""
        return RayFetch({folder: self._packers[number] for folder, number in folders.items()})

    def end(self) -> None:
        """End all packers."""
        for packer in self._packers:
            self._ray.kill(packer, no_restart=True)

    def _result(self, number: int, call: Any) -> Any:
        try:
            return self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, HogwildError):
                raise error.cause from None
            raise WorkerError(f"The machine {self.names[number]} could not pack: {error.cause}") from error
        except self._ray.exceptions.RayError as error:
            raise WorkerError(f"The packer of the machine {self.names[number]} has ended.") from error


@dataclass(frozen=True, slots=True)
class RayFetch:
    """Access to files of other machines through their packers, which send them directly."""

    packers: dict[Path, Any]

    def sizes(self, folder: Path, paths: Sequence[Path]) -> list[int]:
        """Return the bytes of files."""
        import ray

        found: list[int] = ray.get(self.packers[folder].sizes.remote(paths))
        return found

    def read(self, folder: Path, paths: Sequence[Path], first: int, size: int) -> bytes:
        """Return some bytes of files, one file after the other."""
        import ray

        found: bytes = ray.get(self.packers[folder].chunk.remote(paths, first, size))
        return found
