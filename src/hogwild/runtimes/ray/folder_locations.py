"""Locations of folders on a Ray cluster: which Ray nodes have the packed folders or shards that a worker reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from hogwild.errors import DataError
from hogwild.messaging.messages import is_worker, number_of

ANSWERS = 30.0  # seconds that Ray nodes have to answer before the run starts


class FolderLocations:
    """Knows which Ray nodes have which folders, and asks those that are new.

    Parameters
    ----------
    ray : module
        The module ``ray``, connected to a cluster.
    folders : mapping of int to sequence of path
        Packed folders that the machine of a worker must have, by worker number.
    """

    def __init__(self, ray: ModuleType, folders: Mapping[int, Sequence[Path]]) -> None:
        self._ray, self._needed = ray, {number: {str(path) for path in some} for number, some in folders.items()}
        self._all = sorted(set().union(*self._needed.values()))
        self._has: dict[str, set[str]] = {}  # folders of each Ray node that has answered
        self._names: dict[str, str] = {}
        self._asked: dict[str, Any] = {}  # calls that have not been answered, by Ray node
        if self._all:  # this machine needs no call
            self._has[ray.get_runtime_context().get_node_id()] = set(_present_function()(self._all))

    def nodes_for(self, name: str) -> list[str] | None:
        """Return the running Ray nodes that have the folders of a worker; None if all will do."""
        needed = self._needed.get(number_of(name), set()) if is_worker(name) else set()
        if not needed:
            return None
        running = self.update()
        found = [node for node in running if needed <= self._has.get(node, set())]
        return None if len(found) == len(running) else found

    def update(self, wait: float = 0.0) -> list[str]:
        """Ask Ray nodes that are new, and take answers, waiting at most ``wait`` seconds; return the running ones."""
        running = {node["NodeID"]: node["NodeManagerHostname"] for node in self._ray.nodes() if node["Alive"]}
        self._names |= running
        for node in running.keys() - self._has.keys() - self._asked.keys():
            self._asked[node] = self._ask(node)
        self._asked = {node: call for node, call in self._asked.items() if node in running}
        if self._asked:
            self._ray.wait(list(self._asked.values()), num_returns=len(self._asked), timeout=wait)
        for node, call in list(self._asked.items()):
            if self._ray.wait([call], timeout=0)[0]:
                del self._asked[node]
                try:
                    self._has[node] = set(self._ray.get(call))
                except self._ray.exceptions.RayError:
                    continue  # the Ray node has failed, or it is asked again
        return list(running)

    def check(self, names: Iterable[str]) -> None:
        """Raise ``DataError`` if a worker's folders are on no Ray node, or each on another one."""
        if not self._needed:
            return
        running = self.update(ANSWERS)
        for name in names:
            if self.nodes_for(name) == []:
                raise self._missing(name, running)

    def _missing(self, name: str, running: Sequence[str]) -> DataError:
        needed = sorted(self._needed[number_of(name)])
        held = set().union(*(self._has.get(node, set()) for node in running))
        silent = {node: "" if node in self._has else ", which has not answered" for node in running}
        machines = ", ".join(f"{self._names[node]} ({node[:8]}{silent[node]})" for node in running)
        nowhere = [path for path in needed if path not in held]
        if nowhere:
            what = f"{name} reads this folder, and no machine of the cluster has it: {machines}"
            return DataError(
                what,
                path=nowhere[0],
                remedy="Copy it to one of them, under the same path, or to a disk that they share.",
            )
        what = f"{name} reads the shards {_span(needed)}, and no machine of the cluster has all of them: {machines}"
        remedy = "Use as many workers as there are shards, without --holdout, or copy them to one machine."
        return DataError(what, path=Path(needed[0]).parent, remedy=remedy)

    def _ask(self, node: str) -> Any:
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        ask = self._ray.remote(num_cpus=0, max_retries=0)(_present_function())
        return ask.options(scheduling_strategy=affinity).remote(self._all)


def _span(folders: Sequence[str]) -> str:
    return f"{Path(folders[0]).name} to {Path(folders[-1]).name}"


def _present_function() -> Callable[[list[str]], list[str]]:
    """Return a function that Ray serialises by value, so that it runs without importing this package."""

    def present(folders: list[str]) -> list[str]:
        from pathlib import Path

        return [folder for folder in folders if (Path(folder) / "meta.json").is_file()]

    return present
