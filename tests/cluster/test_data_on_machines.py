"""Data on machines with disks of their own: each packs what it has, and workers run where their shards are."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import disks
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hogwild import Linear, ParameterServer, Ray, Run, minimise
from hogwild.cli import main
from hogwild.data import open as open_data
from hogwild.data.packing.pack import pack
from hogwild.errors import DataError

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")
pytestmark = pytest.mark.skipif("HOGWILD_CLUSTER" not in os.environ, reason="make cluster")
sys.path.append(str(Path(__file__).parents[1] / "data"))
from packed_contents import contents, svmlight_lines  # noqa: E402

ROWS = 600  # of each file
SHARDS = 2


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[disks.Disks]:
    """This machine and another one, each with a file, and both with their shards of all rows."""
    why_not = disks.missing()
    if why_not:
        pytest.skip(why_not)
    with disks.disks(tmp_path_factory.mktemp("machines")) as cluster:
        cluster.start("other").wait()
        for number, folder in enumerate((cluster.disk, cluster.folder("other"))):
            (folder / f"day_{number}.svm").write_text("\n".join(svmlight_lines(ROWS * number, ROWS)))
        yield cluster


@pytest.fixture(scope="module")
def packed(machines: disks.Disks) -> Path:
    dest = machines.disk / "days.packed"
    words = ["pack", str(machines.disk / "day_*.svm"), str(dest), "--runtime", "ray", "--shards", str(SHARDS)]
    assert main([*words, "--seed", "5"]) == 0
    return dest


def train(folder: Path, workers: int = 2, budget: int = 3, delay: float = 0.0, listen: Any = None) -> Run:
    problem, heard = Linear(str(folder), "squared", l2=1e-3), [] if listen is None else [listen]
    return minimise(
        problem, strategy=ParameterServer(workers), runtime=Ray(delay=delay), budget=budget, callbacks=heard
    )


def placed(run: Run, name: str) -> list[str]:
    """The machines on which a worker has been, one after the other."""
    return [event["ray_node"] for event in run.events if event["event"] == "placed" and event["node"] == name]


def test_each_machine_packs_its_file_and_keeps_its_shard(machines: disks.Disks, packed: Path, tmp_path: Path) -> None:
    other = machines.folder("other")
    pack([machines.disk / "day_0.svm", other / "day_1.svm"], tmp_path / "whole", seed=5, shards=SHARDS)
    whole = contents(tmp_path / "whole")
    for number, folder in enumerate((packed, other / packed.name)):
        found = contents(folder)
        assert found == {name: one for name, one in whole.items() if "/" not in name or name[9] == str(number)}
        assert f"shard-000{number}/meta.json" in found


def test_workers_run_where_their_shards_are_and_come_back_there(
    machines: disks.Disks, packed: Path, tmp_path: Path
) -> None:
    import ray

    homes = {name: node["NodeID"] for node in ray.nodes() for name in ("other",) if name in node["Resources"]}
    here, there = ray.get_runtime_context().get_node_id(), homes["other"]
    struck: list[str] = []
    where: dict[str, int] = {}

    def strike(event: Any) -> None:
        if event["event"] == "placed":
            where[event["node"]] = event["process"]
        if event["event"] == "epoch" and not struck:
            struck.append("worker-1")
            os.kill(where["worker-1"], signal.SIGKILL)

    run = train(packed, budget=12, delay=0.002, listen=strike)
    assert placed(run, "worker-0") == [here]
    assert placed(run, "worker-1") == [there, there]
    pack([machines.disk / "day_0.svm", machines.folder("other") / "day_1.svm"], tmp_path / "whole", seed=5)
    alone = minimise(Linear(str(tmp_path / "whole"), "squared", l2=1e-3), strategy="serial", budget=12)
    assert mean_square(run, tmp_path / "whole") < 1.05 * mean_square(alone, tmp_path / "whole")


def mean_square(run: Run, folder: Path) -> float:
    """The loss on all rows, of which a machine of the cluster has only a part."""
    rows = open_data(folder).at_once().rows
    X = csr_matrix((rows.values, rows.indices, rows.indptr), (len(rows), rows.features))
    return float(np.mean((run.model.predict(X) - rows.labels) ** 2))


def test_a_machine_that_leaves_takes_its_rows_along_and_brings_them_back(machines: disks.Disks, packed: Path) -> None:
    import ray

    third = machines.start("third")
    gone = third.wait()
    dest = machines.disk / "third.packed"
    shutil.copytree(packed, dest)
    shutil.copytree(machines.folder("other") / packed.name, machines.folder("third") / dest.name)
    shutil.copytree(packed / "shard-0000", machines.folder("third") / dest.name / "shard-0000")
    back: list[disks.Machine] = []

    def strike(event: Any) -> None:
        if event["event"] == "epoch" and event["epoch"] == 1:
            third.end()
        if event["event"] == "unplaced":
            back.append(machines.start("third"))

    run = train(dest, budget=30, delay=0.002, listen=strike)
    (waits,) = (event for event in run.events if event["event"] == "unplaced")
    assert (waits["node"], waits["reason"]) == ("worker-1", "no machine of the cluster has its data")
    assert placed(run, "worker-1") == [gone, back[0].wait()]
    assert {ray.get_runtime_context().get_node_id(), gone, back[0].wait()} >= set(placed(run, "worker-0"))
    assert run.stop_reason == "epochs"


def test_a_shard_that_is_nowhere_is_told_before_the_run(machines: disks.Disks, packed: Path) -> None:
    there = machines.folder("other") / packed.name / "shard-0001"
    there.rename(there.with_name("elsewhere"))
    try:
        with pytest.raises(DataError, match=r"shard-0001: worker-1 reads this folder, and no machine of the cluster"):
            train(packed)
    finally:
        there.with_name("elsewhere").rename(there)


def test_what_machines_cannot_pack_is_told_and_leaves_nothing(
    machines: disks.Disks, capsys: pytest.CaptureFixture[str]
) -> None:
    other = machines.folder("other")
    (other / "bad.svm").write_text("1 1:1\n1 x\n")
    words = ["--runtime", "ray", "--json"]
    assert main(["pack", str(machines.disk / "bad.svm"), str(machines.disk / "out"), *words]) == 1
    assert "bad.svm, line 2" in json.loads(capsys.readouterr().out)["error"]
    assert main(["pack", str(machines.disk / "none.svm"), str(machines.disk / "out"), *words]) == 1
    assert "no machine has such a file" in json.loads(capsys.readouterr().out)["error"]
    assert [path.name for folder in (machines.disk, other) for path in folder.iterdir() if "out" in path.name] == []
