"""Hosts made as network namespaces: their network does what it is told, a training survives it, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest
from benchmarks import hosts
from benchmarks.hosts import world

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")
pytestmark = pytest.mark.skipif("HOGWILD_KILLS" not in os.environ, reason="make chaos")


@pytest.fixture(scope="module", autouse=True)
def _hosts_can_be():
    why_not = world.missing()
    if why_not:
        pytest.skip(f"there can be no hosts here: {why_not}")


@pytest.mark.parametrize("kind", ["kernel", "relay"])
def test_the_network_does_what_it_is_told(kind, tmp_path):
    assert world.within([sys.executable, "-m", "tests.chaos.wires", kind, tmp_path / "seen.json"]) == 0
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen["cut"]["lost_one_way"] == 1.0
    for calm in ("calm", "the others", "healed"):
        assert seen[calm]["lost_one_way"] < 0.001
    if kind == "relay" or world.has_netem():
        assert seen["rough"]["round_trip"] >= 0.04
        assert 0.002 < seen["rough"]["lost_one_way"] < 0.03


def test_a_training_survives_a_cut():
    found = hosts.measure(quick=True)
    calm, rough = found["trials"]
    assert [each["stop_reason"] for each in found["trials"]] == ["epochs", "epochs"], found
    assert rough["objective"] <= 1.01 * calm["objective"]
    assert rough["ran_on"], "it was over before the cut was healed"
    cut_off = {name for name, incarnation, host, _ in rough["places"] if host == rough["victim"] and incarnation == 0}
    assert cut_off <= {name for name, *_ in rough["deaths"]}
    assert cut_off <= {back.split()[0] for back in hosts.came_back(rough)}
    assert [each["nodes_after"] for each in found["trials"]] == [4, 4]
    assert [each["left"] for each in found["trials"]] == [0, 0]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_it_is_ended(how, tmp_path):
    before = subprocess.run(["ip", "link"], capture_output=True, check=True).stdout
    command = [sys.executable, "-m", "benchmarks", "hosts", "--quick", "--out", str(tmp_path)]
    process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)})
    limit = time.monotonic() + 60
    while _names_below(process).count("sleep") < 4:
        assert process.poll() is None
        assert time.monotonic() < limit, "the hosts did not come up"
        time.sleep(0.1)
    there = _below(process)
    process.send_signal(how)
    process.wait(60)
    assert psutil.wait_procs(there, timeout=20)[1] == []
    assert subprocess.run(["ip", "link"], capture_output=True, check=True).stdout == before


def _below(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def _names_below(process: subprocess.Popen[bytes]) -> list[str]:
    """The names of its descendants, without those that end while they are listed."""
    names = []
    for each in _below(process):
        with suppress(psutil.NoSuchProcess):
            names.append(each.name())
    return names
