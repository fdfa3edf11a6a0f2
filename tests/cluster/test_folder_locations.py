"""Which nodes of a cluster a worker may run on: those that have its shards, also when nodes come and go."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hogwild.errors import DataError
from hogwild.runtimes.ray.folder_locations import FolderLocations


class FakeRay:
    """A cluster that answers at once: the folders of each node, by name; a node that is silent has none."""

    def __init__(self, **folders: list[str] | None) -> None:
        self.folders, self.asked = folders, list[str]()
        self.util = SimpleNamespace(
            scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=self._affinity)
        )
        self.exceptions = SimpleNamespace(RayError=ConnectionError)

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "here")

    def _affinity(self, node: str, soft: bool) -> str:
        assert not soft
        return node

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": name, "NodeManagerHostname": f"host-{name}", "Alive": True} for name in self.folders]

    def remote(self, **_: object) -> Any:
        return lambda function: SimpleNamespace(options=lambda scheduling_strategy: SimpleNamespace(
            remote=lambda wanted: self._ask(scheduling_strategy, wanted)))  # fmt: skip

    def _ask(self, node: str, wanted: list[str]) -> tuple[str, list[str]]:
        self.asked.append(node)
        return node, wanted

    def wait(self, calls: list[Any], num_returns: int = 1, timeout: float = 0) -> tuple[list[Any], list[Any]]:
        ready = [call for call in calls if self.folders.get(call[0]) is not None]
        return ready, [call for call in calls if call not in ready]

    def get(self, call: tuple[str, list[str]]) -> list[str]:
        return [path for path in self.folders[call[0]] or [] if path in call[1]]


def shards(*numbers: int) -> list[Path]:
    return [Path(f"/data/shard-{number}") for number in numbers]


def paths(*numbers: int) -> list[str]:
    return [str(path) for path in shards(*numbers)]


def test_workers_go_where_their_shards_are() -> None:
    ray = FakeRay(a=paths(0, 1), b=paths(2, 1), c=paths())
    found = FolderLocations(ray, {0: shards(0), 1: shards(1), 2: shards(2)})  # type: ignore[arg-type]
    found.check(["coordinator", "worker-0", "worker-1", "worker-2"])
    assert found.nodes_for("worker-0") == ["a"]
    assert found.nodes_for("worker-1") == ["a", "b"]
    assert found.nodes_for("worker-2") == ["b"]
    assert found.nodes_for("server-0") is None
    assert sorted(ray.asked) == ["a", "b", "c"]


def test_where_all_have_everything_any_will_do() -> None:
    found = FolderLocations(FakeRay(a=paths(0, 1), b=paths(0, 1)), {0: shards(0), 1: shards(1)})  # type: ignore[arg-type]
    found.check(["worker-0", "worker-1"])
    assert found.nodes_for("worker-0") is None


def test_nobody_is_asked_where_nothing_is_needed() -> None:
    ray = FakeRay(a=paths())
    found = FolderLocations(ray, {})  # type: ignore[arg-type]
    found.check(["worker-0"])
    assert found.nodes_for("worker-0") is None
    assert ray.asked == []


def test_nodes_that_come_and_go() -> None:
    ray = FakeRay(a=paths(0), b=paths(1))
    found = FolderLocations(ray, {0: shards(0), 1: shards(1)})  # type: ignore[arg-type]
    found.check(["worker-0", "worker-1"])
    del ray.folders["b"]
    assert found.nodes_for("worker-1") == []
    ray.folders["c"] = None
    assert found.nodes_for("worker-1") == []
    ray.folders["c"] = paths(1)
    assert found.nodes_for("worker-1") == ["c"]
    assert ray.asked == ["a", "b", "c"] or ray.asked == ["b", "a", "c"]


def test_what_is_missing_is_told() -> None:
    found = FolderLocations(FakeRay(a=paths(0), b=paths(1)), {0: shards(0, 1)})  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"worker-0 reads the shards shard-0 to shard-1, and no machine .* all of them"):
        found.check(["worker-0"])
    found = FolderLocations(FakeRay(a=paths(0), b=paths(0)), {0: shards(0), 1: shards(2)})  # type: ignore[arg-type]
    told = (
        r"/data/shard-2: worker-1 reads this folder, and no machine of the cluster has it: host-a \(a\), host-b \(b\)"
    )
    with pytest.raises(DataError, match=told):
        found.check(["worker-0", "worker-1"])
    ray = FakeRay(a=paths(0), b=None)
    found = FolderLocations(ray, {0: shards(1)})  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"has it: host-a \(a\), host-b \(b, which has not answered\)"):
        found.check(["worker-0"])
