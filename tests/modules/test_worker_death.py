"""Workers that die, fall silent or are interrupted: a clear error or a run that goes on, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nets
import psutil
import pytest
from torch import nn

from hogwild import Averaging, Hogwild, Locked, Module, Processes, RoundRobin, minimise
from hogwild.errors import DivergedError, WorkerError
from hogwild.runtimes.processes import fork_server
from hogwild.training.process_supervisor import ProcessSupervisor
from leftovers import open_files, shared_memory

STRATEGIES = [Hogwild(2), Locked(2), RoundRobin(2), Averaging(2)]
LOSS = nn.functional.mse_loss


def ours() -> set[int]:
    """All processes below this one, but for the template, which waits for the next run."""
    kept = fork_server._current._process.pid if fork_server._current is not None else None
    return {child.pid for child in psutil.Process().children(recursive=True) if child.pid != kept}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = ours()  # an earlier test's browser, a tracker of resources
    shared = shared_memory()
    files = open_files()
    yield
    until = time.monotonic() + 60
    while ours() - before and time.monotonic() < until:
        time.sleep(0.01)
    assert ours() <= before
    assert shared_memory() <= shared
    assert open_files() <= files + 4  # the template, mappings of weights


def problem(dataset: Any, net: nn.Module | None = None, **options: Any) -> Module:
    return Module(net or nets.line(), LOSS, dataset, batch=4, **options)


def test_an_exception_shows_where() -> None:
    with pytest.raises(WorkerError, match=r"worker [01] failed: LookupError: sample 40 is rotten(?s:.*)nets\.py"):
        minimise(problem(nets.Trouble("raise")), strategy=Hogwild(2), budget=3)


def test_an_exception_in_the_model_shows_where() -> None:
    with pytest.raises(WorkerError, match=r"RuntimeError: mat1 and mat2(?s:.*)loss_fn|net\("):
        minimise(problem(nets.numbers(width=5)), strategy=Hogwild(2), budget=3)


class Shy:
    def __reduce__(self) -> Any:
        return (os.strerror, ("not a number",))


def test_what_cannot_be_unpacked_shows_why() -> None:
    net = nets.line()
    net.shy = Shy()
    with pytest.raises(WorkerError, match=r"worker [01] failed: TypeError"):
        minimise(problem(nets.numbers(), net), strategy=Hogwild(2), budget=1)


def test_a_process_that_just_leaves() -> None:
    with pytest.raises(WorkerError, match=r"worker [01] ended by itself, with status 0"):
        minimise(problem(nets.Trouble("leave")), strategy=Hogwild(2), budget=3)


def test_a_kill_stops_the_run() -> None:
    with pytest.raises(WorkerError, match=r"worker [01] was ended by the signal SIGKILL \(perhaps"):
        minimise(problem(nets.Trouble("kill")), strategy=RoundRobin(2), budget=3)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_others_go_on(strategy: Any, tmp_path: Path) -> None:
    """One of two dies at once; the other has all samples from the next epoch on."""
    data = nets.Noisy(most=1, seconds=0.003, grave=tmp_path / "grave")
    run = minimise(problem(data), strategy=strategy, budget=4, runtime=Processes(on_worker_failure="continue"))
    lost = [event for event in run.events if event["event"] == "worker crashed"]
    assert len(lost) == 1
    assert "SIGKILL" in lost[0]["message"]
    assert run.stop_reason == "epochs"
    assert 4 * 32 < run.history[-1]["updates"] <= 4 * 64
    assert run.history[-1]["epoch"] == 4


def test_when_all_die_the_run_ends() -> None:
    with pytest.raises(WorkerError, match=r"worker 0(?s:.*)worker 1"):
        minimise(
            problem(nets.Trouble("kill")), strategy=Locked(2), budget=5, runtime=Processes(on_worker_failure="continue")
        )


def test_one_that_stands_still_is_ended() -> None:
    """The other, which waits for the lock that the first one has, is not to blame."""
    run = minimise(
        problem(nets.numbers()), strategy=Locked(2), budget=3,
        runtime=Processes(on_worker_failure="continue", heartbeat_timeout=4), rule=nets.Holding,
    )  # fmt: skip
    lost = [event for event in run.events if event["event"] == "worker crashed"]
    assert len(lost) == 1
    assert "it did not respond for 4 seconds" in lost[0]["message"]


def test_not_a_number() -> None:
    data = nets.numbers()
    data.tensors[0][5] = float("nan")
    with pytest.raises(DivergedError, match="smaller step"):
        minimise(problem(data), strategy=Hogwild(2), budget=3)


@pytest.mark.parametrize("failures", ["stop", "continue"])
def test_the_evaluator_dies(failures: str) -> None:
    data = nets.numbers()
    ways: dict[str, Any] = {"runtime": Processes(on_worker_failure=failures), "test": nets.Trouble("kill", at=3)}
    if failures == "stop":
        with pytest.raises(WorkerError, match="the evaluator was ended by the signal SIGKILL"):
            minimise(problem(data), strategy=Hogwild(2), budget=50, **ways)
    else:
        run = minimise(problem(data), strategy=Hogwild(2), budget=4, **ways)
        assert run.history[-1]["epoch"] == 4
        assert "test_loss" not in run.history[-1]


def test_an_evaluator_that_stands_still_is_ended_with_a_hint_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint was about a batch. Workers, which may be slow to answer, are not what this is about."""
    monkeypatch.setattr(ProcessSupervisor, "_check_heartbeats", lambda self: None)
    runtime, test = Processes(heartbeat_timeout=0.2), nets.Trouble("stop", at=3)
    with pytest.raises(WorkerError) as caught:
        minimise(problem(nets.numbers()), strategy=Hogwild(1), budget=1, runtime=runtime, test=test)
    said = str(caught.value)
    assert "the evaluator failed: it did not respond for 0.2 seconds" in said
    assert "An evaluation of the held-out data that takes longer needs Processes(heartbeat_timeout=...)" in said
    assert "batch" not in said


# One program, since it takes seconds to start. It is typed in, has no file and no main guard, has used its threads
# before, and all warnings are errors. It is interrupted, interrupted twice, loses its template, and is killed.
SCRIPT = """
import sys; sys.path.insert(0, {folder!r})
import nets, torch
from hogwild import *
torch.set_num_threads(2)
many = torch.randn(600, 600); (many @ many).sum()
scale = 2.0
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.said = torch.nn.Linear(3, 1), False
    def forward(self, x):
        if not self.said:
            print("a worker speaks")
            self.said = True
        return self.layer(x) * scale
run = minimise(Module(Net(), lambda out, y: (out - y).pow(2).mean(), nets.numbers(), batch=4),
               lambda parameters: torch.optim.SGD(parameters, lr=0.02), strategy=Hogwild(2), budget=20)
print("loss:", round(run.history[-1]["loss"], 2), flush=True)

problem = Module(nets.line(), torch.nn.functional.mse_loss, nets.Trouble("", seconds=0.01), batch=4)
def tell(event):
    if event["event"] == "progress": print("at", event["updates"], flush=True)
for stage in range(3):
    try:
        run = minimise(problem, strategy=Hogwild(2), budget=1000, callbacks=[tell], test=nets.numbers())
        print("stopped:", run.stop_reason, flush=True)
    except KeyboardInterrupt:
        print("broken off", flush=True)
"""


class Program:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin is not None
        with self.process.stdin as typed:
            typed.write(SCRIPT.format(folder=str(Path(__file__).parent)))

    def says(self, beginning: str) -> str:
        assert self.process.stdout is not None
        while not (said := self.process.stdout.readline()).startswith(beginning):
            assert said, "it has ended"
        return said

    def others(self) -> tuple[psutil.Process, list[psutil.Process]]:
        """The template, and two workers with an evaluator."""
        (server,) = psutil.Process(self.process.pid).children()
        assert len(server.children()) == 3
        return server, server.children()


def all_end(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, 5)
    return not alive


def test_a_program_is_interrupted_and_killed() -> None:
    program = Program()
    program.says("a worker speaks")
    assert program.says("loss") == "loss: 0.0\n"

    program.says("at")
    server, workers = program.others()
    program.process.send_signal(signal.SIGINT)
    assert program.says("stopped") == "stopped: interrupted\n"
    assert all_end(workers)

    program.says("at")
    server, workers = program.others()
    for worker in workers:
        worker.suspend()  # so that nobody hears the first Ctrl-C
    program.process.send_signal(signal.SIGINT)
    program.says("at")
    program.process.send_signal(signal.SIGINT)
    program.says("broken off")
    assert all_end(workers)

    before = int(program.says("at").split()[1])
    server, workers = program.others()
    server.kill()
    while int(program.says("at").split()[1]) < before + 30:  # workers go on without it
        pass
    program.process.kill()
    program.process.wait()
    assert program.process.stdout is not None
    program.process.stdout.close()
    assert all_end([server, *workers])


def test_in_a_thread_and_twice_at_once() -> None:
    found: list[str] = []

    def train() -> None:
        found.append(minimise(problem(nets.numbers()), strategy=Hogwild(2), budget=2).stop_reason)

    threads = [threading.Thread(target=train) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == ["epochs", "epochs"]
