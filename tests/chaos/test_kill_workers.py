"""Workers, the evaluator, the template or the whole program are killed or stopped at random moments.

No run may hang, and nothing may be left behind: no process, no shared memory, no open files. ``HOGWILD_KILLS`` says how
many kills; ``HOGWILD_SEED`` repeats a sequence of them.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset

from hogwild import Averaging, Hogwild, Locked, Module, Processes, RoundRobin, minimise
from hogwild.errors import WorkerError
from hogwild.runtimes.processes import fork_server
from leftovers import open_files, shared_memory

pytestmark = pytest.mark.skipif(
    "HOGWILD_KILLS" not in os.environ, reason="make chaos; single deaths are in tests/modules/test_worker_death.py"
)
KILLS = int(os.environ.get("HOGWILD_KILLS", "2"))
SEED = int(os.environ.get("HOGWILD_SEED", str(random.SystemRandom().randrange(10**6))))
MARK = f"HOGWILD_CHAOS={uuid.uuid4()}"  # in the environment of every process that is started here
LIMIT = 10.0  # seconds after a kill in which everything must be over
SILENCE = 3.0  # more than a worker needs on a machine with other things to do


class Slow(Dataset[Any]):
    """Samples that take a while, so that there is something to kill."""

    def __len__(self) -> int:
        return 240

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.001)
        x = torch.full((4,), index / 240)
        return x, x.sum().view(1)


def problem() -> Module:
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    return Module(net, nn.functional.mse_loss, Slow(), batch=8)


def train(strategy: Any, failures: str, folder: Path | None) -> Any:
    runtime = Processes(on_worker_failure=failures, threads=1, heartbeat_timeout=SILENCE, startup_timeout=2 * SILENCE)
    return minimise(
        problem(), "adam", strategy=strategy, runtime=runtime, budget=6, test=Slow(), checkpoint=folder
    )  # fmt: skip


def marked() -> list[psutil.Process]:
    """Every process with our mark, whoever its parent is by now, but for those that have ended."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            if MARK.encode() in environment and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (OSError, psutil.Error):
            continue
    return [process for process in found if process.pid != os.getpid()]


def all_but(kept: int | None, seconds: float) -> list[psutil.Process]:
    """The processes that are still there after some time, but for one."""
    until = time.monotonic() + seconds
    while (left := [one for one in marked() if one.pid != kept]) and time.monotonic() < until:
        time.sleep(0.02)
    return left


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a template of our own, with our mark."""
    monkeypatch.setenv(*MARK.split("="))
    if fork_server._current is not None:
        fork_server._current.close()
    yield
    if fork_server._current is not None:
        fork_server._current.close()


class Killer(threading.Thread):
    """Strikes one of the processes of a run at some moment, if there is one then."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.after, self.luck = chance.uniform(0, 0.8), chance.random()
        self.signal = signal.SIGSTOP if chance.random() < 0.2 else signal.SIGKILL
        self.struck: float | None = None
        self.victim = ""
        self.ended = threading.Event()

    def run(self) -> None:
        while not self._candidates() and not self.ended.wait(0.005):
            pass
        if self.ended.wait(self.after):
            return
        candidates = self._candidates()
        if candidates:
            victim = candidates[int(self.luck * len(candidates))]
            self.victim = "template" if victim.pid == self._template() else "worker or evaluator"
            self.struck = time.monotonic()
            # A template that stands still is waited for as long as one that loads PyTorch may take: it is only killed.
            victim.send_signal(signal.SIGKILL if self.victim == "template" else self.signal)

    def _candidates(self) -> list[psutil.Process]:
        """Nobody while there is only a template."""
        found = [one for one in marked() if one.ppid() in (os.getpid(), self._template())]
        return found if len(found) > 1 else []

    @staticmethod
    def _template() -> int | None:
        return fork_server._current._process.pid if fork_server._current is not None else None


def test_processes_of_a_run_are_killed(mark: None, tmp_path: Path) -> None:
    chance, kills, rounds = random.Random(SEED), 0, 0
    shared = shared_memory()
    train(Hogwild(1), "stop", None)
    files = open_files()
    while kills < KILLS:
        rounds += 1
        assert rounds < 20 * KILLS, "nobody was there to be killed"
        strategy = chance.choice([Hogwild, Locked, RoundRobin, Averaging])(chance.choice([2, 3]))
        failures = chance.choice(["stop", "continue"])
        folder = chance.choice([None, tmp_path / str(rounds)])
        killer = Killer(chance)
        killer.start()
        try:
            run = train(strategy, failures, folder)
            outcome = run.stop_reason
        except WorkerError as error:
            outcome = str(error).splitlines()[0]
        over = time.monotonic()
        killer.ended.set()
        killer.join()
        if killer.struck is None:
            continue
        kills += 1
        what = f"seed {SEED}, round {rounds}: {strategy}, {failures}, {killer.victim}, {killer.signal.name}: {outcome}"
        assert over - killer.struck < LIMIT, what
        kept = fork_server._current._process.pid if fork_server._current is not None else None
        assert not all_but(kept, 1.0), what
        assert shared_memory() <= shared, what
        assert open_files() <= files + 3, what  # a template, and mappings that wait to be collected


PROGRAM = """
import runpy, sys
sys.path[:0] = {paths!r}
given = runpy.run_path({file!r})
from hogwild import Hogwild
print("begins", flush=True)
for _ in range(1000):
    given["train"](Hogwild(2), "stop", None)
"""


def test_the_program_is_killed(mark: None) -> None:
    """At any moment after it has begun: while the template loads, while workers start, train, or end."""
    chance = random.Random(SEED)
    shared = shared_memory()
    for _ in range(max(1, KILLS // 10)):
        program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(file=__file__, paths=sys.path)], stdout=subprocess.PIPE, text=True
        )
        assert program.stdout is not None
        assert program.stdout.readline() == "begins\n"
        time.sleep(chance.uniform(0, 5))
        program.kill()
        program.communicate()
        assert not all_but(None, LIMIT), f"seed {SEED}"
        assert shared_memory() <= shared, f"seed {SEED}"
