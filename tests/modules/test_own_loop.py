"""``hogwild.shared``: a loop of one's own, run by several workers."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

import hogwild
from hogwild.errors import ParameterError, WorkerError
from hogwild.runtimes.processes.script import worker as script_worker
from hogwild.runtimes.processes.script.peers import PeerWorkers, ScriptHandshake, attach, shared_tensors, signature
from hogwild.runtimes.processes.script.worker import Script
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.shared_tensors import move_to_shared_memory

# Scripts

LIMIT = 60  # seconds to wait for what must come
BEGINNING = r"""
import json, os, sys, time
import torch, hogwild
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(200, 3)
loader = DataLoader(TensorDataset(x, x @ torch.tensor([[1.0], [2.0], [3.0]]), torch.arange(200)), batch_size=7)
net = nn.Linear(3, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)

def train(worker, epochs):
    seen = []
    for epoch in range(epochs):
        for x, y, number in worker.split(loader):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
            seen.append(number.tolist())
    return seen

def say(**what):
    sys.stdout.write(json.dumps({"pid": os.getpid(), **what}) + "\n")
    sys.stdout.flush()
"""


def script(folder, text, *words):
    path = folder / "script.py"
    path.write_text(BEGINNING + textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path), *words], capture_output=True, text=True, check=False, timeout=100
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    gone(what["pid"] for what in said)
    return done, said


def epoch_of(seen, epoch):
    each = len(seen) // 5
    return sorted(number for batch in seen[epoch * each : (epoch + 1) * each] for number in batch)


def gone(pids):
    """Whoever was there has ended, or is about to."""
    until = time.monotonic() + LIMIT
    left = set(pids)
    while left and time.monotonic() < until:
        left = {pid for pid in left if psutil.pid_exists(pid)}
        time.sleep(0.01)
    assert not left


def test_a_script_with_three_changed_lines_and_two_blocks(tmp_path):
    done, said = script(
        tmp_path,
        """
        say(when="before", words=sys.argv[1:])
        for block in range(2):
            with hogwild.shared(net, optimizer, workers=2, keep=block == 0) as worker:
                say(when=block, rank=worker.rank, threads=torch.get_num_threads(), seen=train(worker, 5),
                    drawn=torch.rand(1).item())
            torch.manual_seed(1)
            say(when="after", error=(net.weight - torch.tensor([[1.0, 2.0, 3.0]])).abs().max().item(),
                steps=optimizer.state[net.weight]["step"].item())
        import psutil
        copies = [child for child in psutil.Process().children(recursive=True) if child.num_threads() > 1]
        say(when="end", copies=len(copies))
        """,
        "a word",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    blocks = [[what for what in said if what["when"] == number] for number in (0, 1)]
    first = {what["pid"] for what in said if what["when"] in ("before", "after", "end")}
    assert len(first) == 1  # what is outside the blocks is heard once
    assert said[0]["words"] == ["a word"]
    for those in blocks:
        assert sorted(what["rank"] for what in those) == [0, 1]
        assert len({what["pid"] for what in those}) == 2
        assert len({what["drawn"] for what in those}) == 2  # random numbers of their own
        walked = [what["seen"] for what in those]
        assert sum(map(len, walked)) == 5 * 29
        per_worker = [[epoch_of(seen, epoch) for epoch in range(5)] for seen in walked]
        for epoch in range(5):  # each sample once in each epoch
            assert sorted(per_worker[0][epoch] + per_worker[1][epoch]) == list(range(200))
        assert per_worker[0][0] != per_worker[0][1]  # a new shuffle each
    assert {what["pid"] for what in blocks[0]} == {what["pid"] for what in blocks[1]}
    after = [what for what in said if what["when"] == "after"]
    for what, steps in zip(after, (5 * 29, 10 * 29), strict=True):  # one count of the steps of both, but for lost ones
        assert 0.8 * steps < what["steps"] <= steps
    assert after[1]["error"] < after[0]["error"] < 3
    assert said[-1]["copies"] == 0  # keep=False


# Functions, where there is no script


def model():
    torch.manual_seed(0)
    net = nn.Linear(3, 1)
    return net, torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.5)


def data():
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    return TensorDataset(x, x @ torch.tensor([[1.0], [2.0], [3.0]]))


def loop(worker, net, optimizer, epochs=30, then=lambda worker: None):
    loader = DataLoader(data(), batch_size=4)
    for _ in range(epochs):
        for x, y in worker.split(loader):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
            then(worker)
    return worker.rank, os.getpid()


def test_a_function_in_every_worker():
    net, optimizer = model()
    threads = torch.get_num_threads()
    assert hogwild.shared(net, optimizer, workers=2).run(loop) == (0, os.getpid())
    assert torch.allclose(net.weight, torch.tensor([[1.0, 2.0, 3.0]]), atol=0.05)
    assert torch.get_num_threads() == threads
    assert optimizer.param_groups[0]["params"][0] is net.weight  # whoever has the parameters still has them
    assert not optimizer._optimizer_step_post_hooks
    assert not optimizer._optimizer_step_pre_hooks


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "Adamax", "NAdam"])
def test_no_worker_divides_by_what_another_has_not_written_yet(kind):
    """Features that most batches lack: their first gradient is in one of two sums before it is in the other."""
    generator = torch.Generator().manual_seed(0)
    rows = TensorDataset(torch.randint(0, 512, (400, 3), generator=generator), torch.randn(400, generator=generator))
    net = nn.Linear(512, 64)
    optimizer = getattr(torch.optim, kind)(net.parameters(), lr=1e-3)

    def train(worker, net, optimizer):
        for _ in range(2):
            for features, y in worker.split(rows, batch=4):
                x = torch.zeros(len(y), 512).scatter_(1, features, 1.0)
                optimizer.zero_grad()
                nn.functional.mse_loss(net(x).sum(1), y).backward()
                optimizer.step()
        return worker

    before = net.weight.detach().clone()
    worker = hogwild.shared(net, optimizer, workers=2).run(train)
    assert worker.steps == 200
    assert (net.weight - before).abs().max() < 200 * 1e-3  # none of these steps is much longer than the rate


def at_the_second(kind):
    """Something that happens to worker 1 at its first step, while others train on."""

    def then(worker):
        if worker.rank == 1 and kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if worker.rank == 1 and kind == "raise":
            raise ValueError("worker one is unwell")
        if worker.rank == 1 and kind == "sleep":
            time.sleep(60)

    return then


@pytest.mark.parametrize(
    ("kind", "said"),
    [("kill", "SIGKILL"), ("raise", "worker one is unwell"), ("sleep", "it did not respond for 3 seconds")],
)
@pytest.mark.usefixtures("no_copies_left")
def test_one_that_dies_ends_the_block_with_its_reason(kind, said):
    net, optimizer = model()
    then = at_the_second(kind)
    with pytest.raises(WorkerError, match=said) as caught:
        hogwild.shared(net, optimizer, workers=2, runtime=hogwild.Processes(heartbeat_timeout=3)).run(
            lambda *given: loop(*given, epochs=1, then=then)
        )
    assert str(caught.value).startswith("worker 1")


def test_the_others_go_on_without_one_that_dies(capfd):
    net, optimizer = model()
    then = at_the_second("raise")
    shared = hogwild.shared(net, optimizer, workers=3, runtime=hogwild.Processes(on_worker_failure="continue"))
    shared.run(lambda *given: loop(*given, then=then))
    said = capfd.readouterr().err
    assert "worker 1 failed: ValueError: worker one is unwell" in said
    assert "in then" in said  # its traceback
    assert torch.allclose(net.weight, torch.tensor([[1.0, 2.0, 3.0]]), atol=0.05)


@pytest.mark.usefixtures("no_copies_left")
def test_one_that_ends_or_is_late_before_the_block_is_named(tmp_path):
    nothing = move_to_shared_memory([])
    (tmp_path / "empty.py").write_text("")
    script = Script(str(tmp_path / "empty.py"))
    for task, limit, said in ((script, 60, "without coming to the block"), (None, 0.2, "Not ready after 0.2 seconds")):
        runtime = hogwild.Processes(startup_timeout=limit)
        others = PeerWorkers(
            SharedCounters(2),
            runtime,
            nothing,
            script_worker.run_script_worker if task else lambda *_, **__: time.sleep(60),
            task,
        )
        with pytest.raises(WorkerError, match=rf"(?s){said}.*worker 1|worker 1.*{said}"):
            others.begin(runtime)
        others.close()
    nothing.close()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.usefixtures("no_copies_left")
def test_what_goes_wrong_in_the_first_ends_all(error):
    net, optimizer = model()

    def train(worker, net, optimizer):
        if worker.rank == 0:
            raise error
        time.sleep(60)

    with pytest.raises(error):
        hogwild.shared(net, optimizer, workers=2).run(train)


def test_all_stop_when_one_says_so():
    net, optimizer = model()

    def train(worker, net, optimizer):
        while len(list(worker.split(data(), batch=60 // worker.workers))):
            if worker.rank == 1:
                worker.stop()
            time.sleep(0.001)
        return len(list(worker.split(data())))

    assert hogwild.shared(net, optimizer, workers=2).run(train) == 0


def copies():
    """Workers of this process that are still there: they have a thread that watches whether it lives."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended just now
            if child.status() != psutil.STATUS_ZOMBIE and child.num_threads() > 1:
                found.append(child)
    return found


@pytest.fixture
def no_copies_left():
    """What a test has started ends with it; what an earlier one has left, as a search does, may still be there."""
    before = copies()
    yield
    until = time.monotonic() + LIMIT
    while set(copies()) - set(before) and time.monotonic() < until:
        time.sleep(0.01)
    assert not set(copies()) - set(before)


# Without a second process


def test_where_there_is_no_script_one_worker_warns_and_several_are_refused():
    net, optimizer = model()
    block = hogwild.shared(net, optimizer)
    with pytest.warns(UserWarning, match=r"\.run\(train\)"):
        worker = block.__enter__()
    loop(worker, net, optimizer, epochs=1)
    block.__exit__(None, None, None)
    assert (worker.rank, worker.workers, worker.steps) == (0, 1, 15)
    with pytest.raises(ParameterError, match=r"\.run\(train\)"), hogwild.shared(net, optimizer, workers=2):
        raise AssertionError("the block was run")


def test_a_part_is_read_as_the_loader_does():
    net, optimizer = model()
    doubled = DataLoader(range(10), batch_size=4, drop_last=True, collate_fn=lambda numbers: [2 * n for n in numbers])
    with hogwild.shared(net, optimizer, workers=1, seed=3) as worker:
        part = worker.split(doubled)
        epochs = [list(part), list(part), list(worker.split(doubled))]
        assert len(part) == 2
        assert all([len(batch) for batch in epoch] == [4, 4] for epoch in epochs)
        assert all(number % 2 == 0 for epoch in epochs for batch in epoch for number in batch)
        assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
        assert [len(batch) for batch in worker.split(range(10), batch=3)] == [3, 3, 3, 1]
        drawn = DataLoader(range(10), sampler=RandomSampler(range(10), replacement=True))
        with pytest.raises(ParameterError, match="RandomSampler"):
            worker.split(drawn)
        with pytest.raises(ParameterError, match="batch_size=None"):
            worker.split(DataLoader(range(10), batch_size=None))


def test_the_seed_gives_the_shuffle():
    def order(seed):
        net, optimizer = model()
        with hogwild.shared(net, optimizer, workers=1, seed=seed) as worker:
            return [int(batch) for batch in worker.split(range(20), batch=1)]

    assert sorted(order(1)) == list(range(20))
    assert order(1) != order(2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: (nn.Linear(4, 1), torch.optim.SGD), r"parameter 'weight' is \(1, 4\)"),
        (lambda: (nn.Linear(3, 1), torch.optim.Adam), "the optimiser is Adam"),
        (lambda: (nn.Linear(3, 1, bias=False), torch.optim.SGD), "the optimiser instead of parameter 'bias'"),
        (lambda: (nn.Linear(3, 1).double(), torch.optim.SGD), "float64"),
    ],
)
def test_another_model_is_not_attached(change, said):
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters())
    terms = ScriptHandshake(signature(net, optimizer), 0, 1, locked=False, keep=False)
    arena = move_to_shared_memory(shared_tensors(net, optimizer))
    other, kind = change()
    with pytest.raises(ParameterError, match=said):
        attach(other, kind(other.parameters(), lr=0.1), arena, terms)
    arena.close()


def test_parameters_that_only_the_optimiser_has_are_shared_too():
    net, beside = nn.Linear(2, 1), nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([*net.parameters(), beside])
    assert any(tensor is beside for tensor in shared_tensors(net, optimizer))


def test_an_optimiser_of_another_net_is_refused():
    net, other = nn.Linear(2, 1), nn.Linear(2, 1)
    with pytest.raises(ParameterError, match=r"no parameter of the net.*net\.parameters\(\)"):
        hogwild.shared(net, torch.optim.SGD(other.parameters(), lr=0.1), workers=1)
