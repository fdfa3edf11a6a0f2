"""Clusters with locks on their doors: who may come in does so, and who may not is told why in one line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import own_clusters
import psutil
import pytest

from hogwild.runtimes.ray.preflight import preflight

pytestmark = pytest.mark.skipif("HOGWILD_CLUSTER" not in os.environ, reason="make cluster")

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")
pytest.importorskip("grpc", reason="pip install 'hogwild[ray]'")

TOKEN = "0123456789abcdef0123456789abcdef"
SHOWN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
TRAIN = ("--runtime", "ray", "--workers", "1", "--strategy", "parameter-server", "--epochs", "2", "--step", "0.1")
NEEDS_OPENSSL = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make certificates")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("doors")


@pytest.fixture(scope="module")
def keys(folder):
    return own_clusters.certificates(folder)


@pytest.fixture(scope="module")
def locked(folder, keys):
    """A cluster that asks for a token and speaks TLS."""
    with own_clusters.running(own_clusters.environment(folder, **SHOWN, **keys)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def data(folder):
    path = folder / "some.svm"
    path.write_text("".join(f"{(-1) ** row} {row % 7 + 1}:1 {row % 11 + 8}:0.5\n" for row in range(200)))
    return path


def hogwild(variables, *words):
    return subprocess.run(
        [sys.executable, "-m", "hogwild", *words],
        env=variables,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@NEEDS_OPENSSL
def test_a_run_takes_the_cluster_of_the_variable_and_leaves_it_standing(locked, folder, keys, data):
    variables = own_clusters.environment(folder, **SHOWN, **keys, RAY_ADDRESS=locked.address)
    log = folder / "events.jsonl"
    ended = hogwild(variables, "train", str(data), *TRAIN, "--json", "--log", str(log))
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["runtime"] == "ray"
    events = [json.loads(line) for line in log.read_text().splitlines()]
    placed = {event["node"] for event in events if event["event"] == "placed"}
    assert placed == {"coordinator", "server-0", "worker-0"}
    assert not any(event["event"] == "cluster" for event in events)

    shown = hogwild(variables, "doctor", "--cluster", "--json")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert found["cluster"]["address"] == locked.address
    assert [node["cpus"] for node in found["cluster"]["nodes"]] == [2.0]
    assert found["cluster"]["nodes"][0]["hogwild"] == found["cluster"]["mine"]["hogwild"]
    assert (found["cluster"]["token"], found["cluster"]["tls"]) == (True, True)
    assert {check["name"]: check["status"] for check in found["checks"]} == dict.fromkeys(
        ("nodes", "versions", "token", "TLS"), "ok"
    )


REFUSED = {
    "no token": ((), True, "requires a token: set RAY_AUTH_MODE=token"),
    "another token": (("RAY_AUTH_TOKEN",), True, "has another token than the one given"),
    "no TLS": (("RAY_AUTH_TOKEN",), False, "If the cluster uses TLS, set RAY_USE_TLS=1"),
}


@NEEDS_OPENSSL
@pytest.mark.parametrize(("given", "tls", "said"), REFUSED.values(), ids=REFUSED)
def test_who_may_not_come_in_is_told_why(locked, folder, keys, given, tls, said):
    variables = own_clusters.environment(folder, **dict.fromkeys(given, "f" * 32), **(keys if tls else {}))
    assert said in preflight(locked.address, variables).refusal


@NEEDS_OPENSSL
def test_the_command_line_says_it_in_one_line(locked, folder, keys, data):
    ended = hogwild(own_clusters.environment(folder, **keys), "train", str(data), *TRAIN, "--address", locked.address)
    assert ended.returncode == 1
    (line,) = ended.stderr.strip().splitlines()
    assert "requires a token: set RAY_AUTH_MODE=token" in line


@NEEDS_OPENSSL
def test_without_a_cluster_an_own_one_is_started_and_only_that_one_stopped(locked, folder, keys, data):
    ended = hogwild(
        own_clusters.environment(folder), "train", str(data), *TRAIN, "--json", "--log", str(folder / "own")
    )
    assert ended.returncode == 0, ended.stderr
    placed = next(event for event in map(json.loads, (folder / "own").read_text().splitlines()) if "process" in event)
    variables = own_clusters.environment(folder, **SHOWN, **keys)
    assert preflight(locked.address, variables).refusal == ""
    assert not psutil.pid_exists(placed["process"])


@NEEDS_OPENSSL
def test_workers_come_late_or_when_there_is_room_for_them(locked, folder, keys, data):
    """Of four workers two have a place; one has none until a node is added, and one is late."""
    log = folder / "late.jsonl"
    words = ("train", str(data), "--runtime", "ray", "--workers", "4", "--strategy", "parameter-server")
    more = (
        "--epochs",
        "100000",
        "--step",
        "0.1",
        "--admission-timeout",
        "0.5",
        "--join-times",
        "3@0.2",
        "--log",
        str(log),
    )
    variables = own_clusters.environment(folder, **SHOWN, **keys, RAY_ADDRESS=locked.address)
    errors = folder / "errors"
    with errors.open("w") as file:
        run = subprocess.Popen([sys.executable, "-m", "hogwild", *words, *more], env=variables, stderr=file)
    try:
        (homeless,) = wait_for(run, log, "unplaced", 1)
        first = {event["node"] for event in wait_for(run, log, "placed", 4)}
        assert len(first & {"worker-0", "worker-1", "worker-2"}) == 2
        assert homeless["node"] not in first
        locked.add_node()
        after = {event["node"]: event["ray_node"] for event in wait_for(run, log, "placed", 6)}
        assert set(after) - first == {homeless["node"], "worker-3"}
        assert len(set(after.values())) == 2
        joined = {event["node"] for event in wait_for(run, log, "joined", 2)}
        assert joined == {homeless["node"], "worker-3"}
        run.send_signal(signal.SIGINT)
        assert run.wait(100) == 130, errors.read_text()
    finally:
        run.kill()
        run.wait()


def wait_for(run, log, kind, count, limit=120.0):
    """The events of a kind, as soon as there are so many."""
    until, found = time.monotonic() + limit, []
    while time.monotonic() < until and run.poll() is None:
        if log.exists():
            lines = log.read_text().splitlines(keepends=True)
            events = map(json.loads, (line for line in lines if line.endswith("\n")))
            found = [event for event in events if event["event"] == kind]
        if len(found) >= count:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{len(found)} events {kind!r} instead of {count}: {log.with_name('errors').read_text()}")
