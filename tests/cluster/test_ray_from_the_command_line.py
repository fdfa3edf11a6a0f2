"""``hogwild train --runtime ray``: interrupted once and twice, and resumed when its coordinator has died."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid

import numpy as np
import psutil
import pytest

from hogwild import load

pytestmark = pytest.mark.skipif("HOGWILD_CLUSTER" not in os.environ, reason="make cluster")

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")
TOKEN = "HOGWILD_TEST_RUN"  # by which processes are known that a program has started, whoever their parents are now


class Program:
    """A training of a small model on a cluster of its own, in a session of its own."""

    def __init__(self, folder, *options):
        self.folder, self.token, self.log = folder, uuid.uuid4().hex, folder / "log"
        data = folder / "rows.svm"
        if not data.exists():
            X = np.random.default_rng(0).standard_normal((60, 3))
            data.write_text("".join(f"{1 if x[0] > 0 else -1} 1:{x[0]:.3f} 2:{x[1]:.3f} 3:{x[2]:.3f}\n" for x in X))
        # fmt: off
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hogwild", "train", str(data), "--runtime", "ray", "--strategy", "parameter-server",
             "--workers", "2", "--push-every", "4", "--step", "0.1", "--log", str(self.log),
             "--out", str(folder / "model"), *options],
            start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**{name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}, TOKEN: self.token},
        )
        # fmt: on

    def events(self, kind):
        """What it has told so far, of a kind."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        told = [json.loads(line) for line in lines if line.endswith("}")]
        return [event for event in told if event["event"] == kind]

    def wait_for(self, kind, count=1):
        """Wait until something has happened so many times."""
        until = time.monotonic() + 120
        while len(self.events(kind)) < count:
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < until, f"no {kind}"
            time.sleep(0.05)

    def press_ctrl_c(self):
        """As a terminal does: everything in the session hears it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def started(self):
        """All processes that it has started and that are there."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(TOKEN) == self.token and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def end(self, seconds=60):
        """Its exit code and what it says, when it has ended within so long and nothing of it is left."""
        _, said = self.process.communicate(timeout=seconds)
        assert psutil.wait_procs(self.started(), timeout=20)[1] == []
        return self.process.returncode, said


@pytest.fixture
def program(tmp_path):
    made = []

    def start(*options):
        made.append(Program(tmp_path, *options))
        return made[-1]

    yield start
    for each in made:
        for process in each.started():
            process.kill()
        each.process.stderr.close()


def test_ctrl_c_keeps_the_model_and_leaves_no_process(program, tmp_path):
    running = program("--epochs", "100000")
    running.wait_for("epoch", 3)
    assert len(running.started()) > 4  # four participants, and a cluster
    running.press_ctrl_c()
    code, said = running.end()
    assert code == 130, said
    assert np.isfinite(load(tmp_path / "model").weights).all()


def test_a_second_ctrl_c_ends_it_at_once(program, tmp_path):
    running = program("--epochs", "100", "--delay", "300")
    running.wait_for("ready")
    running.press_ctrl_c()
    time.sleep(0.5)
    running.press_ctrl_c()
    code, said = running.end()
    assert code == 130
    assert "interrupted" in said
    assert not (tmp_path / "model").exists()


def test_when_the_coordinator_dies_the_same_command_goes_on(program, tmp_path):
    options = (
        "--epochs",
        "60",  # A checkpoint takes a second or two: the first run must not end by itself before it is killed.
        "--resume",
        str(tmp_path / "kept"),
        "--delay",
        "0.005",
    )
    first = program(*options)
    first.wait_for("checkpoint", 3)
    (where,) = (each for each in first.events("placed") if each["node"] == "coordinator")
    os.kill(where["process"], signal.SIGKILL)
    code, said = first.end()
    assert code == 1, said
    assert "coordinator crashed" in said
    second = program(*options)
    code, said = second.end(120)
    assert code == 0, said
    assert second.events("resumed")[-1]["epoch"] >= 2
    assert [event["epoch"] for event in second.events("epoch")][-1] == 60
    assert np.isfinite(load(tmp_path / "model").weights).all()
