"""Of a cluster that a program started nothing is left when the program is killed, or when the cluster did not start."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest
from own_clusters import environment, running
from programs import LIMIT, TOKEN, processes_of, programs_in

pytestmark = pytest.mark.skipif("HOGWILD_CLUSTER" not in os.environ, reason="make cluster")

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")
AGENTS = {"ray::DashboardAgent", "ray::RuntimeEnvAgent"}  # These do not end with the raylet that has started them.
FAILING = """
import sys, time
from ray._private import node
from hogwild.errors import WorkerError
from hogwild.runtimes.ray.connection import connected

def fail(self, given=node.Node.start_ray_processes):
    given(self)
    time.sleep(2)  # until there are agents
    raise {error}

node.Node.start_ray_processes = fail
try:
    with connected("local", 2):
        pass
except (WorkerError, KeyboardInterrupt) as error:
    print(type(error).__name__, flush=True)
sys.stdin.read()
"""


def names(processes):
    found = set()
    for process in processes:
        try:
            found.add(process.name())
        except psutil.NoSuchProcess:  # it has ended since it was listed
            continue
    return found


def wait_until(condition, what):
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)


@pytest.fixture
def program(tmp_path):
    with programs_in(tmp_path) as start:
        yield start


def test_a_program_is_killed(program):
    """Spilled objects and sockets go too, and logs stay."""
    running = program("--epochs", "1000000")
    running.wait_for("epoch")
    raylet = next(each for each in running.started() if each.name() == "raylet")
    (option,) = (word for word in raylet.cmdline() if word.startswith("--raylet_socket_name="))
    sockets = Path(option.partition("=")[2]).parent
    spilled = sockets.parent / "ray_spilled_objects_of_a_test"
    spilled.mkdir()
    assert names(running.started()) >= AGENTS
    scripts = {Path(word).name for each in running.started() for word in each.cmdline()}
    assert not scripts & {"monitor.py", "log_monitor.py", "dashboard.py"}, "processes that one run does not need"
    running.kill()
    running.leaves_nothing()
    assert not spilled.exists()
    assert not sockets.exists()
    assert (sockets.parent / "logs").is_dir()


@pytest.mark.parametrize("count", [3, 7, 9])
def test_a_program_is_killed_while_it_starts(program, count):
    running = program("--epochs", "1000000")
    wait_until(lambda: len(running.started()) >= count, "no cluster")
    running.kill()
    running.leaves_nothing()


def test_a_worker_that_was_suspended_ends_too(program):
    running = program("--epochs", "1000000", "--heartbeat-timeout", "60")
    running.wait_for("epoch")
    for process in running.started():
        if process.name().startswith("ray::RayActor"):
            process.suspend()
    running.kill()
    running.leaves_nothing()


@pytest.mark.parametrize("error", ["RuntimeError('no')", "KeyboardInterrupt"])
def test_a_cluster_does_not_start(error):
    """The program goes on, without the processes that were started."""
    token = uuid.uuid4().hex
    variables = {**os.environ, TOKEN: token}
    with subprocess.Popen(
        [sys.executable, "-c", FAILING.format(error=error)], env=variables, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as failing:  # fmt: skip
        try:
            assert failing.stdout.readline().strip() == ("WorkerError" if "no" in error else error)
            until = time.monotonic() + LIMIT
            while (left := [each for each in processes_of(failing.pid, token) if each.pid != failing.pid]) != []:
                assert time.monotonic() < until, left
                time.sleep(0.2)
            assert failing.poll() is None
            assert psutil.Process(failing.pid).children() == []  # no zombies either
        finally:
            for process in processes_of(failing.pid, token):
                process.kill()


def test_other_clusters_stay(program, tmp_path):
    """A program that is killed takes its own cluster with it, but none that it was connected to or never heard of."""
    with running(environment(tmp_path, RAY_AUTH_MODE="disabled")) as head:
        started = psutil.Process(head.process.pid).children(recursive=True)
        assert names(started) >= {"gcs_server", "raylet"}
        alone = program("--epochs", "1000000")
        alone.wait_for("epoch")
        alone.kill()
        alone.leaves_nothing()
        (tmp_path / "log").unlink()
        joined = program("--epochs", "1000000", "--address", head.address)
        joined.wait_for("epoch")
        joined.kill()
        joined.leaves_nothing()
        time.sleep(2)  # a watchdog would have seen it by then
        assert [each for each in started if not each.is_running() or each.status() == psutil.STATUS_ZOMBIE] == []
