"""Programs that train on a cluster of their own, and the processes that they have started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager

import numpy as np
import psutil

LIMIT = 15.0  # seconds in which everything ends that a program has started
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

    def kill(self):
        """Kill the program alone, without any chance to stop what it has started."""
        self.process.kill()
        self.process.wait(10)

    def started(self):
        """All processes that it has started and that are there."""
        return processes_of(self.process.pid, self.token)

    def end(self, seconds=60):
        """Its exit code and what it says, when it has ended within so long and nothing of it is left."""
        _, said = self.process.communicate(timeout=seconds)
        self.leaves_nothing()
        return self.process.returncode, said

    def leaves_nothing(self):
        """Nothing that it started is there after LIMIT seconds."""
        until = time.monotonic() + LIMIT
        while left := self.started():
            assert time.monotonic() < until, left
            time.sleep(0.2)


def processes_of(session, token):
    """The processes in a session, and those with a token.

    Some of Ray's processes write their titles over their variables, and others begin a session of their own.
    """
    found = []
    for process in psutil.process_iter():
        try:
            inside = os.getsid(process.pid) == session or process.environ().get(TOKEN) == token
            if inside and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


@contextmanager
def programs_in(folder):
    """Return the function that starts a program in a folder; whatever they have started ends with the block."""
    made = []

    def start(*options):
        made.append(Program(folder, *options))
        return made[-1]

    try:
        yield start
    finally:
        for each in made:
            for process in each.started():
                process.kill()
            each.process.stderr.close()
