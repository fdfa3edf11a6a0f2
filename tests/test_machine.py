from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hogwild import machine
from hogwild.machine import Cache, Machine, caches, cpu_quota, memory_limit, numa_nodes, processor_name, this_machine


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def test_version_2_groups_grant_the_least_of_all_levels(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/outer/inner\n",
            "sys/fs/cgroup/outer/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/outer/inner/cpu.max": "max 100000\n",
            "sys/fs/cgroup/outer/memory.max": "max\n",
            "sys/fs/cgroup/outer/inner/memory.max": "1000\n",
        },
    )
    assert cpu_quota(tmp_path) == 1.5
    assert memory_limit(4000, tmp_path) == 1000
    assert memory_limit(900, tmp_path) is None


def test_version_1_groups(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/a\n1:cpu,cpuacct:/a\n0::/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "250000\n",
            "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "2048\n",
        },
    )
    assert cpu_quota(tmp_path) == 2.5
    assert memory_limit(2**30, tmp_path) == 2048


def test_what_a_group_uses_is_not_available(tmp_path: Path) -> None:
    """Cached files can be dropped, shared memory cannot. The usage of inner groups was not looked at."""
    stat = "anon 500\nshmem 50\ninactive_file 100\nactive_file 40\n"
    tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/outer/inner\n",
            "sys/fs/cgroup/outer/memory.max": "1000\n",
            "sys/fs/cgroup/outer/memory.current": "700\n",
            "sys/fs/cgroup/outer/memory.stat": stat,
            "sys/fs/cgroup/outer/inner/memory.max": "max\n",
            "sys/fs/cgroup/outer/inner/memory.current": "650\n",
            "sys/fs/cgroup/outer/memory.swap.max": "0\n",
            "sys/fs/cgroup/outer/memory.swap.current": "0\n",
        },
    )
    assert machine.available_bytes(tmp_path) == 1000 - (700 - 140)
    assert machine.swap_bytes(tmp_path) == 0
    tree(tmp_path, {"sys/fs/cgroup/outer/memory.current": "2000\n"})
    assert machine.available_bytes(tmp_path) == 0


def test_what_a_group_of_version_1_uses_is_not_available(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/a\n0::/\n",
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1000\n",
            "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "700\n",
            "sys/fs/cgroup/memory/a/memory.stat": "cache 90\ninactive_file 1\ntotal_inactive_file 60\n",
        },
    )
    assert machine.available_bytes(tmp_path) == 1000 - (700 - 60)
    assert machine.swap_bytes(tmp_path) == 0


def test_a_group_without_limits_leaves_all_that_the_machine_has(tmp_path: Path) -> None:
    tree(tmp_path, {"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"})
    assert machine.available_bytes(tmp_path) > 1000
    here = this_machine()  # asked once: the memory that is available changes all the time
    assert here.usable_memory == here.available or here.memory_limit is not None


def test_inside_a_container_the_root_is_the_group(tmp_path: Path) -> None:
    tree(tmp_path, {"proc/self/cgroup": "0::/not/visible\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"})
    assert cpu_quota(tmp_path) == 0.5


def test_a_system_that_says_nothing(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None
    assert memory_limit(100, tmp_path) is None
    assert caches(tmp_path) == ()
    assert numa_nodes(tmp_path) == 1
    assert processor_name(tmp_path) != ""


def test_damaged_answers_are_no_answers(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            "proc/self/cgroup": "nonsense\n\n",
            "sys/fs/cgroup/cpu.max": "\n",
            "sys/fs/cgroup/memory.max": "lots",
            "sys/devices/system/cpu/cpu0/cache/index0/level": "1",
            "sys/devices/system/cpu/cpu0/cache/index0/size": "",
        },
    )
    assert cpu_quota(tmp_path) is None
    assert memory_limit(100, tmp_path) is None


def test_caches_are_listed_from_the_core_outwards(tmp_path: Path) -> None:
    at = "sys/devices/system/cpu/cpu0/cache/"
    tree(
        tmp_path,
        {
            f"{at}index0/level": "3\n",
            f"{at}index0/size": "32M\n",
            f"{at}index0/type": "Unified\n",
            f"{at}index0/shared_cpu_list": "0-7,16\n",
            f"{at}index1/level": "1\n",
            f"{at}index1/size": "48K\n",
            f"{at}index1/type": "Data\n",
            f"{at}index1/shared_cpu_list": "0\n",
        },
    )
    assert caches(tmp_path) == (Cache(1, "data", 48 * 2**10, 1), Cache(3, "unified", 32 * 2**20, 9))


def test_usable_cores_respect_affinity_and_quota() -> None:
    this = this_machine()
    wide = replace(this, logical_cores=64, allowed_cores=16, quota=None)
    assert wide.usable_cores == 16
    assert replace(wide, quota=4.9).usable_cores == 4
    assert replace(wide, quota=0.1).usable_cores == 1
    assert replace(wide, quota=99.0).usable_cores == 16
    assert replace(wide, available=100, memory_limit=10).usable_memory == 10


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_affinity_is_seen() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert machine.allowed_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_this_machine_is_whole() -> None:
    this = this_machine()
    assert isinstance(this, Machine)
    assert this.processor
    assert all(cache.size > 0 and cache.level >= 1 for cache in this.caches)


QUOTAS = {
    "version 2": {"proc/self/cgroup": "0::/box\n", "sys/fs/cgroup/box/cpu.max": "100000 100000\n"},
    "version 1": {
        "proc/self/cgroup": "1:cpu,cpuacct:/box\n",
        "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "100000\n",
        "sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000\n",
    },
}


@pytest.mark.parametrize("version", QUOTAS)
def test_in_a_container_of_one_cpu_everything_defaults_to_one(version: str, tmp_path: Path, monkeypatch) -> None:
    """However many cores the machine has."""
    from hogwild import Hogwild, HogwildClassifier, Linear, Locked, ParameterServer, Processes, RoundRobin, minimise
    from hogwild.data import loader, statistics
    from hogwild.estimators.sklearn_parameters import processors_left
    from hogwild.strategies import worker_count
    from hogwild.training.batch_message_driver import threads_per_worker

    monkeypatch.setattr(machine, "ROOT", tree(tmp_path, QUOTAS[version]))
    monkeypatch.setattr(machine, "allowed_cores", lambda: 64)
    machine._quota_during.cache_clear()  # the quota of this second, which another test may have read
    assert machine.usable_cores() == this_machine().usable_cores == 1
    assert [worker_count(strategy) for strategy in (Hogwild(), Locked(), RoundRobin(), ParameterServer())] == [
        1,
        1,
        1,
        1,
    ]
    assert processors_left(-1) == processors_left(-2) == 1
    assert loader.reader_threads() == 1
    assert statistics.usable_cores() == 1
    assert Processes().threads_for(1) == threads_per_worker(1) == 1
    X = np.random.default_rng(0).standard_normal((40, 3))
    assert minimise(Linear((X, X[:, 0] > 0), "logistic"), budget=1).config["workers"] == 1
    assert HogwildClassifier(n_jobs=-1, max_iter=5, tol=None).fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.5


def test_cores_are_counted_in_one_place() -> None:
    """Whoever counts by itself forgets the quota."""
    source = Path(machine.__file__).parent
    counting = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if any(word in path.read_text() for word in ("sched_getaffinity", "cpu_count("))
    }
    assert counting == {"machine.py"}
