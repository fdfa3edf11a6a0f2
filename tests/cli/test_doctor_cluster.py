"""What the doctor says of clusters: those that there are not, that do not fit together, or whose doors are open."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")
pytest.importorskip("grpc", reason="pip install 'hogwild[ray]'")

from hogwild.cli import main
from hogwild.errors import WorkerError
from hogwild.runtimes.ray import cluster_probe, preflight
from hogwild.runtimes.ray.preflight import Preflight, own_token

LOCKED = Preflight("", token=True, tls=True)
MINE = {"python": "3.11.7", "ray": "2.60.0", "hogwild": "0.1.0", "numba": "0.68.1", "numpy": "2.4.6"}


def node(name: str, **more: object) -> dict[str, object]:
    return {"node": name * 8, "host": "a", "address": "10.0.0.1", "head": False, "cpus": 4.0, "memory": 2**30} | more


@pytest.fixture
def shown(monkeypatch, capsys):
    """What is said of a cluster with such nodes and such a door."""

    def look(nodes, door=LOCKED, address="10.0.0.1:6379"):
        monkeypatch.setattr(preflight, "preflight", lambda where: door)
        found = {"nodes": nodes, "mine": MINE}
        monkeypatch.setattr(cluster_probe, "probe_cluster", lambda where: {"address": where, **found})
        code = main(["doctor", "--cluster", address, "--json"])
        record = json.loads(capsys.readouterr().out)
        assert record["ok"] is (code == 0)
        return {check["name"]: (check["status"], check["said"]) for check in record["checks"]}

    return look


def test_nodes_that_are_alike_behind_locked_doors_are_well(shown):
    checks = shown([node("a", **MINE), node("b", **MINE)])
    assert {status for status, _ in checks.values()} == {"ok"}
    assert checks["nodes"] == ("ok", "2 nodes with 8 CPUs")


def test_other_versions_are_named(shown):
    checks = shown([node("a", **MINE), node("b", **{**MINE, "hogwild": None, "python": "3.12.1"})])
    assert checks["node bbbbbbbb"] == ("error", "python 3.12.1, here 3.11.7, hogwild is missing, here 0.1.0")
    assert "versions" not in checks


def test_a_node_that_does_not_answer_is_named(shown):
    assert shown([node("a", error="it has not answered for 15 s")])["node aaaaaaaa"][0] == "error"


@pytest.mark.parametrize(("address", "status"), [("10.0.0.1:6379", "warning"), ("127.0.0.1:6379", "note")])
def test_open_doors_are_warned_of_unless_only_this_machine_can_reach_them(shown, address, status):
    checks = shown([node("a", **MINE)], Preflight("", token=False, tls=False), address)
    assert (checks["token"][0], checks["TLS"][0]) == (status, status)
    assert checks["nodes"][0] == "ok"


def test_no_cluster_is_told_and_nothing_is_started(capsys):
    assert main(["doctor", "--cluster", "127.0.0.1:1", "--json"]) == 1
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["said"] == "There is no Ray cluster at '127.0.0.1:1': no server answers there."
    assert "ray start --head" in check["remedy"]


def test_a_cluster_that_never_answers_is_given_up(monkeypatch):
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    run = subprocess.run
    monkeypatch.setattr(cluster_probe.subprocess, "run", lambda command, **more: run(sleeper, **more))
    with pytest.raises(WorkerError, match=r"has not answered for 0\.5 s"):
        cluster_probe.probe_cluster("10.0.0.1:6379", limit=0.5)


WRONG = {
    "ray://10.0.0.1:10001": "an address for Ray's client",
    "http://10.0.0.1:8265": "an address for Ray's dashboard",
    "10.0.0.1": "has a port",
}


@pytest.mark.parametrize(("address", "said"), WRONG.items())
def test_other_addresses_are_refused(address, said, capsys):
    assert main(["doctor", "--cluster", address]) == 2
    assert said in capsys.readouterr().err


def test_an_address_without_the_option_is_refused(capsys):
    assert main(["doctor", "10.0.0.1:6379"]) == 2
    assert "add --cluster" in capsys.readouterr().err


def test_the_token_is_found_where_ray_finds_it(tmp_path):
    (tmp_path / "here").write_text("from a path\n")
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("from home")
    home, path = {"HOME": str(tmp_path)}, {"RAY_AUTH_TOKEN_PATH": str(tmp_path / "here")}
    assert own_token(home) == "from home"
    assert own_token({**home, **path}) == "from a path"
    assert own_token({**home, **path, "RAY_AUTH_TOKEN": "itself"}) == "itself"
    assert own_token({**home, "RAY_AUTH_MODE": "disabled"}) == ""


def test_tls_without_certificates_is_told():
    refusal = preflight.preflight("127.0.0.1:1", {"RAY_USE_TLS": "1"}).refusal
    assert "RAY_TLS_CA_CERT, RAY_TLS_SERVER_KEY, RAY_TLS_SERVER_CERT must name files" in refusal
