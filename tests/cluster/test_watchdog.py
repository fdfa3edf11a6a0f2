"""The watchdog of a cluster kills the processes of Ray with its mark, and nothing else, whenever the program ends."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager

import psutil

from hogwild.runtimes.ray import watchdog
from hogwild.runtimes.ray.own_cluster import own_cluster

SLEEPING = "import time; time.sleep(300)"
OF_RAY = "--log_dir=/tmp/ray/session_of_a_test/logs"
# Starts what looks like a process of Ray, and forks a process that keeps the pipe to the watchdog open.
PROGRAM = f"""
import os, subprocess, sys, time
from hogwild.runtimes.ray.own_cluster import own_cluster
with own_cluster() as cluster:
    cluster.tell(os.fsencode(sys.argv[1]))
    with cluster.marking():
        child = subprocess.Popen([sys.executable, "-c", {SLEEPING!r}, {OF_RAY!r}], start_new_session=True)
    forked = os.fork()
    if not forked:
        time.sleep(300)
    print(cluster.watching.pid, child.pid, forked, flush=True)
    time.sleep(300)
"""


@contextmanager
def sleeping(*words, **variables):
    command = [sys.executable, "-c", SLEEPING, *words]
    with subprocess.Popen(command, env={**os.environ, **variables}) as process:
        try:
            yield psutil.Process(process.pid)
        finally:
            process.kill()


def test_processes_of_ray_that_have_the_mark():
    with own_cluster() as cluster, sleeping(OF_RAY) as unmarked:
        with cluster.marking():
            kin = [sleeping(OF_RAY), sleeping(RAY_RAYLET_PID="1"), sleeping()]
            first, second, other = (each.__enter__() for each in kin)
        assert watchdog.MARK not in os.environ
        found = set(watchdog.marked(cluster.mark))
    assert found == {first, second}
    gone, left = psutil.wait_procs([first, second], timeout=0)
    assert (len(gone), left) == (2, [])
    assert other.is_running()
    for each in kin:
        each.__exit__(None, None, None)
    assert unmarked.pid not in {each.pid for each in found}


def test_variables_are_as_before(monkeypatch):
    monkeypatch.setenv("SPT_NOENV", "given")
    with own_cluster() as cluster:
        with cluster.marking():
            assert os.environ["SPT_NOENV"] == "1"
        assert os.environ["SPT_NOENV"] == "given"
    assert cluster.watching.returncode == 0


def test_a_watchdog_that_was_killed_harms_no_run():
    with own_cluster() as cluster:
        cluster.watching.kill()
        cluster.watching.wait(10)
        cluster.tell(b"/nowhere")


def test_a_program_that_is_killed(tmp_path):
    for name in ("sockets", "ray_spilled_objects_1", "logs"):
        (tmp_path / name).mkdir()
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True) as program:
        watching, child, forked = (psutil.Process(int(pid)) for pid in program.stdout.readline().split())
        try:
            assert child.is_running()
            program.kill()
            program.wait(10)
            assert psutil.wait_procs([watching, child], timeout=15)[1] == []
            assert forked.is_running()  # so the pipe was open all the time
            assert [each.name for each in tmp_path.iterdir()] == ["logs"]
        finally:
            forked.kill()


def test_it_takes_no_module_of_this_package():
    """It starts with the program, and stays as long: it has to be small."""
    imported = "import runpy, sys; runpy.run_path(sys.argv[1]); print('numpy' in sys.modules, 'hogwild' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", imported, watchdog.__file__], capture_output=True, text=True, timeout=60
    )
    assert said.stdout.split() == ["False", "False"]
