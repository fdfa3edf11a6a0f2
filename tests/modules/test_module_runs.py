"""Runs that are resumed, averaged, scheduled and ended."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nets
import pytest
import torch
from torch import Tensor, nn, optim

from hogwild import (
    EMA,
    Averaging,
    Budget,
    Checkpoints,
    Cosine,
    Hogwild,
    Module,
    Processes,
    RoundRobin,
    Run,
    Serial,
    Synchronous,
    Warmup,
    load,
    load_weights,
    minimise,
)
from hogwild.data.sampling import Split, WorkerShare
from hogwild.errors import CheckpointError, CheckpointWarning, ModelError, ParameterError, WorkerError
from hogwild.events import Event
from hogwild.models.module import ModuleModel
from hogwild.training import module_checkpoints

LOSS = nn.functional.mse_loss
ADAM = partial(optim.Adam, lr=0.02)
SGD = partial(optim.SGD, lr=0.02)
ALONE = Processes(threads=1)  # small models gain nothing from more, and other tests want cores too


def train(dataset: Any = None, net: nn.Module | None = None, rule: Any = ADAM, budget: Any = 4, **options: Any) -> Run:
    problem = Module(net or nets.soft_net(), LOSS, dataset or nets.Noisy(), batch=8)
    return minimise(problem, rule, budget=budget, **{"strategy": "serial", "runtime": ALONE, **options})


def tensors(state: Any) -> list[Tensor]:
    if isinstance(state, Tensor):
        return [state]
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, (list, tuple)) else ()
    return [tensor for part in parts for tensor in tensors(part)]


def check_same_bits(one: Run, other: Run) -> None:
    pairs = list(zip(tensors(one.state), tensors(other.state), strict=True))
    assert pairs
    for found, expected in pairs:
        assert torch.equal(found, expected)


def stop_after(count: int, event: str = "checkpoint") -> Callable[[Event], None]:
    """A callback that breaks a run off when something has happened so often."""
    seen: list[Event] = []

    def hear(what: Event) -> None:
        if what["event"] == event:
            seen.append(what)
            if len(seen) == count:
                raise InterruptedError

    return hear


# Resumed


def test_one_worker_that_is_killed_and_resumed_ends_in_the_same_bits(tmp_path: Path) -> None:
    options: dict[str, Any] = {"schedule": "cosine", "average": 0.6}
    peaceful = train(**options)
    folder = Checkpoints(tmp_path, seconds=0.01)
    with pytest.raises(WorkerError, match="SIGKILL"):
        train(nets.Noisy(most=100, seconds=0.001), checkpoint=folder, **options)
    with pytest.raises(WorkerError, match="SIGKILL"):  # again, in the middle of the mean
        train(nets.Noisy(most=90, seconds=0.001), checkpoint=folder, resume=True, **options)
    run = train(checkpoint=folder, resume=True, **options)
    resumed = next(event for event in run.events if event["event"] == "resumed")
    assert 0 < resumed["updates"] < 4 * 64
    check_same_bits(run, peaceful)
    assert [record["epoch"] for record in run.history] == [1, 2, 3, 4]


def test_what_has_stopped_goes_on_from_where_it_was(tmp_path: Path) -> None:
    """From its last parameters, not from the mean that was its result."""
    peaceful = train(average=EMA(0.9))
    train(checkpoint=tmp_path, average=EMA(0.9), budget=2)
    check_same_bits(train(checkpoint=tmp_path, average=EMA(0.9), resume=True), peaceful)


def test_workers_apart_are_resumed_from_their_last_average(tmp_path: Path) -> None:
    options: dict[str, Any] = {"strategy": Averaging(2), "rule": SGD}
    peaceful = train(**options)
    for count in (1, 2):
        with pytest.raises(InterruptedError):
            train(checkpoint=tmp_path, resume=True, callbacks=[stop_after(count)], **options)
    run = train(checkpoint=tmp_path, resume=True, **options)
    assert any(event["event"] == "resumed" and event["epoch"] > 0 for event in run.events)
    for found, expected in zip(tensors(run.state[0]), tensors(peaceful.state[0]), strict=True):
        assert torch.equal(found, expected)


def test_one_that_died_takes_part_again(tmp_path: Path) -> None:
    options: dict[str, Any] = {"strategy": Hogwild(2), "checkpoint": tmp_path}
    data = nets.Noisy(most=30, seconds=0.002, grave=tmp_path / "grave")
    first = train(data, runtime=Processes(on_worker_failure="continue"), **options)
    assert any(event["event"] == "worker crashed" for event in first.events)
    run = train(budget=8, resume=True, **options)
    assert run.history[-1]["epoch"] == 8
    assert not any(event["event"] == "worker crashed" for event in run.events)


def test_what_is_written(tmp_path: Path) -> None:
    run = train(checkpoint=tmp_path)
    state = torch.load(tmp_path / "latest.pt", weights_only=True)
    net, twin = nets.soft_net(), nets.soft_net()
    net.load_state_dict(state["model"])
    optim.Adam(net.parameters()).load_state_dict(state["optimizer"])
    load_weights(twin, tmp_path / "model.safetensors")
    for one, other, found in zip(net.parameters(), twin.parameters(), run.model.net.parameters(), strict=True):
        assert torch.equal(one, other)
        assert torch.equal(one, found)
    assert (tmp_path / "latest.pt").stat().st_size < 100_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest.pt", "model.safetensors", "previous.pt"]


def test_a_file_of_weights_is_loaded_into_a_net(tmp_path: Path) -> None:
    path, net = tmp_path / "net.safetensors", nets.soft_net().to(torch.bfloat16)  # which NumPy cannot read
    ModuleModel(net, {"net": "Sequential"}).save(path)
    with pytest.raises(ModelError, match=r"weights of a network \(Sequential\), .* hogwild.load\(path, net\)"):
        load(path)
    found = load(path, nn.Sequential(*[copy.deepcopy(layer) for layer in net]))
    torch.testing.assert_close(found.net.state_dict(), net.state_dict())
    with pytest.raises(ModelError, match="not the weights of this model"):
        load(path, nets.line())
    (tmp_path / "other").write_bytes(b"nothing of the kind")
    for other in ({}, {"net": nets.line()}):
        with pytest.raises(ModelError, match="damaged"):
            load(tmp_path / "other", **other)


def test_damaged_checkpoints(tmp_path: Path) -> None:
    train(checkpoint=tmp_path, budget=3)
    (tmp_path / "latest.pt").write_bytes((tmp_path / "latest.pt").read_bytes()[:2000])
    with pytest.warns(CheckpointWarning, match=r"latest\.pt.*before it, .*previous\.pt"):
        run = train(checkpoint=tmp_path, resume=True, budget=3)
    assert next(event for event in run.events if event["event"] == "resumed")["epoch"] == 2
    check_same_bits(run, train(budget=3))
    for name in ("latest.pt", "previous.pt"):
        (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="no checkpoint that can be read"):
        train(checkpoint=tmp_path, resume=True)


def test_a_damaged_checkpoint_does_not_replace_the_one_before(tmp_path: Path) -> None:
    model, state = ModuleModel(nets.line(), {}), {"weight": torch.ones(1000)}
    for number in (5, 6):
        module_checkpoints.save(Checkpoints(tmp_path), state, {"number": number}, model)
    latest = tmp_path / "latest.pt"
    latest.write_bytes(latest.read_bytes()[:2000])
    module_checkpoints.save(Checkpoints(tmp_path), state, {"number": 7}, model)
    found = module_checkpoints.load(Checkpoints(tmp_path))
    latest.write_bytes(b"nothing")
    with pytest.warns(CheckpointWarning, match=r"latest\.pt"):
        before = module_checkpoints.load(Checkpoints(tmp_path))
    assert [each[1]["number"] for each in (found, before) if each is not None] == [7, 5]


def test_checkpoints_of_other_runs_are_refused(tmp_path: Path) -> None:
    train(checkpoint=tmp_path, budget=1)
    for other in ({"rule": SGD}, {"net": nets.line()}, {"dataset": nets.Noisy(count=32)}, {"average": 0.5}):
        with pytest.raises(CheckpointError, match="belongs to another run"):
            train(checkpoint=tmp_path, resume=True, **other)
    with pytest.raises(CheckpointError, match=r"of 1 worker, .* hogwild.load\(folder"):
        train(checkpoint=tmp_path, resume=True, strategy=Hogwild(2))
    with pytest.raises(ParameterError):
        train(resume=True)


# Ended


class Away(nn.Module):
    """Its loss falls in training; held-out, it falls for a while and then rises."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return -self.weight if self.training else (self.weight - 3.0) ** 2


@pytest.mark.parametrize("average", [0.0, EMA(0.5)])
def test_patience_keeps_the_best(average: Any, tmp_path: Path) -> None:
    test, rule = nets.numbers(8), partial(optim.SGD, lr=0.1)
    problem = Module(Away(), nets.as_it_is, nets.Trouble("", seconds=0.001), batch=8)
    options: dict[str, Any] = {
        "strategy": "serial", "runtime": ALONE, "checkpoint": tmp_path, "test": test, "average": average,
    }  # fmt: skip
    with pytest.raises(InterruptedError):  # after the best
        minimise(problem, rule, budget=Budget(epochs=50, patience=4), callbacks=[stop_after(6, "epoch")], **options)
    problem = copy.deepcopy(problem)
    run = minimise(problem, rule, budget=Budget(epochs=50, patience=4), resume=True, **options)
    losses = [record["test_loss"] for record in run.history if "test_loss" in record]
    assert run.stop_reason == "patience"
    assert run.result["test_loss"] == min(losses)
    assert problem.measure(problem.feed(test))["loss"] == pytest.approx(min(losses), abs=1e-6)
    assert losses[-1] > min(losses)


class Level(nn.Module):
    """Its loss falls for ever, in training and held-out; its output, by which a metric goes, falls with it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return -self.weight


def peak(outputs: Tensor, target: Tensor) -> Tensor:
    """Rises until the weight is 3, and falls after it."""
    return -((outputs + 3.0) ** 2)


@pytest.mark.parametrize("strategy", [Serial(), Synchronous(2)], ids=["serial", "synchronous"])
def test_patience_with_a_metric_of_ones_own(strategy: Any) -> None:
    data = nets.Trouble("", seconds=0.001)
    problem = Module(Level(), nets.as_it_is, data, batch=8, metrics={"peak": peak})
    budget = Budget(epochs=50, patience=4, monitor="test_peak", mode="max")
    rule = partial(optim.SGD, lr=0.1)
    run = minimise(problem, rule, strategy=strategy, runtime=ALONE, budget=budget, test=nets.numbers(8))
    figures = [record["test_peak"] for record in run.history if "test_peak" in record]
    assert run.stop_reason == "patience"
    assert run.result["test_peak"] == max(figures) > figures[-1]
    assert problem.measure(problem.feed(nets.numbers(8)))["peak"] == pytest.approx(max(figures), abs=1e-6)


def test_target_and_seconds_and_nothing_to_do() -> None:
    run = train(
        nets.numbers(), nets.line(), partial(optim.SGD, lr=0.1), Budget(epochs=200, target=1e-3), test=nets.numbers()
    )
    assert run.stop_reason == "target"
    assert run.history[-1]["epoch"] < 200
    # Ten workers on eight samples of one batch: nine have nothing to do, for ever.
    for strategy in (Hogwild(3), Averaging(3)):
        run = train(nets.numbers(8), nets.line(), SGD, Budget(seconds=0.2), strategy=strategy)
        assert run.stop_reason == "seconds"
        assert run.history[-1]["updates"] > 0


def test_workers_apart_that_are_stopped_keep_what_they_have() -> None:
    net = nets.Constant()
    problem = Module(net, nets.as_it_is, nets.Trouble("", count=4000, seconds=0.001), batch=8)
    run = minimise(problem, SGD, strategy=Averaging(2), budget=Budget(seconds=0.3))
    assert run.stop_reason == "seconds"
    assert net.weight.item() == pytest.approx(-0.02 * run.history[-1]["steps"] / 2, rel=1e-4)


# Averaged


def iterates(rule: Any, epochs: int, batch: int) -> list[Tensor]:
    """The parameters after every update of an ordinary loop."""
    net, data = nets.line(), nets.numbers()
    optimiser, found = rule(net.parameters()), []
    for epoch in range(epochs):
        for rows in Split().batches(WorkerShare(len(data), 0, 1, epoch, 0, batch)):
            x, y = data[torch.from_numpy(rows)]
            optimiser.zero_grad()
            LOSS(net(x), y).backward()
            optimiser.step()
            found.append(net.weight.detach().clone())
    return found


def test_means_of_the_iterates() -> None:
    found = iterates(SGD, epochs=3, batch=8)
    polyak = train(nets.numbers(), nets.line(), SGD, 3, average=0.25)
    torch.testing.assert_close(polyak.model.net.weight.data, torch.stack(found[-7:]).mean(0))
    fading, expected = train(nets.numbers(), nets.line(), SGD, 3, average=EMA(0.8)), torch.zeros(1, 3)
    for number, iterate in enumerate(found, start=1):
        expected += max(0.2, 1 / number) * (iterate - expected)
    torch.testing.assert_close(fading.model.net.weight.data, expected)


def test_a_mean_does_not_end_with_the_worker_that_keeps_it() -> None:
    """The first worker has a third of the samples of the second, and so finishes long before it."""
    net = nets.Constant()
    problem = Module(net, nets.as_it_is, nets.Trouble("", seconds=0.001), batch=4, sampling="size-skew")
    run = minimise(problem, SGD, strategy=Hogwild(2), budget=4, average=EMA(0.5))
    last = -0.02 * run.history[-1]["steps"]
    assert net.weight.item() == pytest.approx(last, rel=0.1)


# Scheduled


def test_schedules_follow_the_progress_of_all_workers() -> None:
    net = nets.Constant()
    problem = Module(net, nets.as_it_is, nets.numbers(256), batch=4)
    run = minimise(problem, partial(optim.SGD, lr=0.1), Cosine(), RoundRobin(2), budget=4)
    steps = [record["step"] for record in run.history]
    spent = [record["updates"] / (4 * 256) for record in run.history]
    assert steps == pytest.approx([0.1 * (0.5 + 0.5 * math.cos(math.pi * part)) for part in spent], abs=1e-9)
    assert steps[-1] == pytest.approx(0, abs=1e-9)
    assert net.weight.item() == pytest.approx(-0.1 * 256 / 2, rel=0.03)  # half of what a constant step gives


def test_a_schedule_with_a_step_of_its_own_replaces_that_of_the_optimiser() -> None:
    net = nets.Constant()
    problem = Module(net, nets.as_it_is, nets.numbers(256), batch=4)
    minimise(
        problem, partial(optim.SGD, lr=0.1), Warmup(Cosine(0.2, floor=1.0), epochs=1, start=0.0), "serial", ALONE, 2
    )
    assert net.weight.item() == pytest.approx(-0.2 * (64 / 2 + 64), rel=0.02)


def test_progress_tells_the_rate_of_every_worker() -> None:
    heard: list[Event] = []
    train(nets.Trouble("", seconds=0.003), nets.line(), SGD, 3, strategy=Hogwild(2), callbacks=[heard.append])
    rates = [event["workers"] for event in heard if event["event"] == "progress"]
    assert all(len(each) == 2 for each in rates)
    assert min(rates[-1]) > 0
    assert sum(rates[-1]) < 2 / 0.003


# Buffers


@pytest.mark.parametrize(
    ("strategy", "buffers"),
    [(Hogwild(2), "shared"), (Hogwild(2), "own"), (Averaging(2), "own"), (Averaging(2), "shared")],
)
def test_running_means_of_batches(strategy: Any, buffers: str) -> None:
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1))
    data = nets.numbers()
    data.tensors[0].add_(5)
    run = minimise(Module(net, LOSS, data, batch=4, buffers=buffers), SGD, strategy=strategy, budget=6)
    norm: Any = net[0]
    steps = run.history[-1]["steps"]
    assert steps == 6 * 16
    seen = norm.num_batches_tracked.item()
    if strategy == Hogwild(2) and buffers == "shared":
        assert steps / 2 < seen <= steps
    else:
        assert seen == steps / 2
    torch.testing.assert_close(norm.running_mean, torch.full((3,), 5.0), atol=0.5, rtol=0)
