"""What is counted of worker processes that train one network is what happened, and the counting changes nothing."""

from __future__ import annotations

import copy
import json
from functools import partial
from pathlib import Path
from typing import Any

import nets
import numpy as np
import pytest
import torch
from torch import Tensor, nn, optim
from torch.utils.data import TensorDataset

from hogwild import (
    Averaging,
    Hogwild,
    Locked,
    Module,
    ParameterServer,
    Processes,
    RoundRobin,
    Run,
    Serial,
    SparseMLP,
    Synchronous,
    minimise,
)
from hogwild.cli import main
from hogwild.errors import ParameterError
from hogwild.lab.report_builder import section_of_log
from hogwild.runtimes.processes import conflict_monitor
from hogwild.runtimes.processes.conflict_monitor import ModuleConflictMonitor
from hogwild.runtimes.processes.watched_updates import WatchedUpdates

LOSS = nn.functional.mse_loss
ALONE = Processes(threads=1)
WIDTH = 57  # parameters of nets.soft_net()


def train(problem: Module, rule: Any, strategy: Any, budget: int = 2, **options: Any) -> Run:
    options = {"runtime": ALONE, "count_conflicts": True, **options}
    return minimise(problem, rule, strategy=strategy, budget=budget, **options)


def sparse_mlp(update: str = "adagrad", samples: int = 96) -> Module:
    torch.manual_seed(0)
    net = SparseMLP(40, [16, 4], 3, update=update)
    return Module(net, nn.functional.cross_entropy, nets.Sparse(samples), batch=8)


def dense() -> Module:
    return Module(nets.soft_net(), LOSS, nets.numbers(96), batch=8)


def embeddings() -> Module:
    words = torch.randint(0, 20, (96, 3), generator=torch.Generator().manual_seed(0))
    return Module(nets.Bag(), nets.as_it_is, TensorDataset(words, torch.zeros(96)), batch=8)


CASES = {
    "adam": (dense, partial(optim.Adam, lr=0.02)),
    "momentum": (dense, partial(optim.SGD, lr=0.02, momentum=0.9, weight_decay=0.1)),
    "sparse gradients": (embeddings, partial(optim.SGD, lr=0.02)),
    "table": (sparse_mlp, partial(optim.Adagrad, lr=0.05)),
}


@pytest.mark.parametrize("case", CASES)
def test_one_worker_that_is_watched_comes_to_the_same_bits(case: str) -> None:
    make, rule = CASES[case]
    states = []
    for watched in (False, True):
        problem = make()
        run = train(problem, rule, Serial(), count_conflicts=watched)
        states.append(problem.net.state_dict())
    assert all(torch.equal(one, other) for one, other in zip(states[0].values(), states[1].values(), strict=True))
    seen = run.conflicts
    assert seen is not None
    assert seen["updates"] == 24 == run.history[-1]["steps"]
    assert seen["staleness"]["mean"] == seen["collided"] == seen["lost_writes"] == seen["lost_change"] == 0


# An interleaving that is known, of two workers in this process that share parameters and counters.


def share(net: nn.Module) -> nn.Module:
    other = copy.deepcopy(net)
    for one, same in zip(other.parameters(), net.parameters(), strict=True):
        one.data = same.data
    return other


def pair(make: Any) -> tuple[ModuleConflictMonitor, list[tuple[nn.Module, WatchedUpdates]]]:
    one = make()
    workers = [one, share(one)]
    rules = [optim.SGD([part for part in net.parameters() if part.requires_grad], lr=1.0) for net in workers]
    monitor = ModuleConflictMonitor.of(one, rules[0], 2, updates=48)
    updates = [WatchedUpdates(monitor, rank, workers[rank], rules[rank]) for rank in range(2)]
    return monitor, list(zip(workers, updates, strict=True))


def test_counts_are_those_of_a_known_interleaving() -> None:
    monitor, ((one, first), (other, second)) = pair(lambda: nn.Linear(3, 2, bias=False))
    with torch.no_grad():
        one.weight.fill_(0.0)
    one.weight.grad, other.weight.grad = torch.ones(2, 3), torch.ones(2, 3)
    with first:  # reads before the two updates of the other worker, and writes after them
        for _ in range(2):
            with second:
                second.step()
        first.step()
    with second:  # has seen everything
        second.step()
    assert torch.equal(one.weight.detach(), torch.full((2, 3), -4.0))
    assert [row.nonzero()[0].tolist() for row in monitor.delays] == [[2], [0]]
    assert monitor.collided == 1
    assert monitor.tally.tolist() == [[4 * 6, 6, 12, 0]]
    assert monitor.heat.sum((1, 2)).tolist() == [6, 18]
    assert monitor.predicted() == {
        "collided": 1.0, "missed": 6.0, "collided_by_staleness": 0.25, "missed_by_staleness": 0.5 * 6,
    }  # fmt: skip


def test_rows_of_a_table_collide_only_where_both_write() -> None:
    monitor, ((one, first), (other, second)) = pair(lambda: nn.EmbeddingBag(20, 2, sparse=True, mode="sum"))
    with first:
        one(torch.tensor([[1, 2, 19]])).sum().backward()
        with second:
            other(torch.tensor([[2, 3]])).sum().backward()
            second.step()
        first.step()
    assert monitor.collided == 1
    assert monitor.tally.sum(0).tolist() == [5 * 2, 2, 2, 0]
    written = {group["name"]: group["writes"] for group in monitor.groups() if group["writes"]}
    assert sum(written.values()) == 10
    assert written["weight[19:20]"] == 2
    one.weight.grad = other.weight.grad = None
    with first:
        one(torch.tensor([[5]])).sum().backward()
        with second:
            other(torch.tensor([[6]])).sum().backward()
            second.step()
        first.step()
    assert monitor.collided == 1


def test_a_row_of_a_sparse_table_that_others_moved_keeps_both_changes() -> None:
    monitor, ((one, first), (other, second)) = pair(lambda: SparseMLP(6, [16], 1).table)
    for net in (one, other):
        net.follow(optim.SGD(net.parameters(), lr=0.5))
    before = one.weight.detach().clone()

    def pull(net: nn.Module, rows: list[int]) -> Tensor:
        found: Tensor = net(torch.tensor(rows), torch.tensor([0, len(rows)]), torch.ones(len(rows))).sum()
        return found

    with first:
        loss = pull(one, [1, 1, 4])
        with second:
            pull(other, [4, 5]).backward()
            second.step()
        loss.backward()
        first.step()
    moved = (before - one.weight.detach())[:, 0]
    assert torch.allclose(moved, torch.tensor([0.0, 1.0, 0.0, 0.0, 1.0, 0.5]))
    assert monitor.collided == 1
    assert monitor.tally.sum(0).tolist() == [4 * 16, 16, 16, 0]


# Worker processes.


@pytest.mark.parametrize("strategy", [Hogwild(2), Locked(2), RoundRobin(2)], ids=repr)
def test_figures_of_a_dense_network_agree(strategy: Any) -> None:
    run = train(dense(), CASES["momentum"][1], strategy)
    seen = run.conflicts
    assert seen is not None
    assert seen["workers"] == 2
    assert seen["updates"] == 24 == sum(seen["staleness"]["histogram"].values())
    assert seen["writes"] == 24 * WIDTH == np.sum(seen["heat"])
    assert np.sum(seen["heat"], axis=(1, 2)).tolist() == [12 * WIDTH, 12 * WIDTH]
    assert [group["name"] for group in seen["groups"]][:2] == ["0.weight", "0.bias"]
    assert sum(group["coordinates"] for group in seen["groups"]) == WIDTH
    assert seen["predicted"]["collided"] == 1
    if not isinstance(strategy, Hogwild):  # one at a time nothing is lost, however stale the gradient
        assert seen["lost_writes"] == 0
    json.dumps(seen)


def test_what_a_parameter_lacks_is_what_was_lost() -> None:
    """Every update adds -1 to the only parameter, so that it lacks what was overwritten."""
    problem = Module(nets.Constant(), nets.as_it_is, nets.numbers(400), batch=1)
    run = train(problem, partial(optim.SGD, lr=1.0), Hogwild(2), budget=1)
    seen, lacks = run.conflicts, 400 + problem.net.weight.item()
    assert seen is not None
    assert 0 <= lacks <= round(400 * seen["lost_change"])
    assert (seen["lost_change"] > 0) == (seen["lost_writes"] > 0)


def test_the_table_of_a_sparse_network_is_counted_by_rows(tmp_path: Path) -> None:
    run = train(sparse_mlp(), CASES["table"][1], Hogwild(2), folder=tmp_path / "run")
    seen = Run.load(tmp_path / "run").conflicts
    assert seen is not None
    table = [group for group in seen["groups"] if group["name"].startswith("table.weight[")]
    assert sum(group["coordinates"] for group in table) == 40 * 16
    assert 0 < sum(group["writes"] for group in table) < 24 * 40 * 8
    assert {group["share_of_updates"] for group in seen["groups"] if group not in table} == {1.0}
    assert seen["updates"] == run.history[-1]["steps"]
    pictures = {part.title: part for part in section_of_log(tmp_path / "run" / "events.jsonl").parts}
    assert "layers.1.bias" in pictures["Writes of worker 1"].ys
    assert "Staleness" in pictures


def test_a_worker_that_is_killed_leaves_what_it_and_the_others_counted(tmp_path: Path) -> None:
    data = nets.Noisy(most=40, seconds=0.002, grave=tmp_path / "grave")
    problem = Module(nets.line(), LOSS, data, batch=4)
    run = train(
        problem, CASES["momentum"][1], Hogwild(2), 4, runtime=Processes(on_worker_failure="continue", threads=1)
    )
    seen = run.conflicts
    assert seen is not None
    assert any(event["event"] == "worker crashed" for event in run.events)
    assert seen["updates"] == run.history[-1]["steps"]
    assert run.history[-1]["workers_used"] == 1


# What cannot be counted is refused, with the reason.


@pytest.mark.parametrize("strategy", [Averaging(2), Synchronous(2)], ids=repr)
def test_workers_with_parameters_of_their_own_have_no_conflicts(strategy: Any) -> None:
    with pytest.raises(ParameterError, match="no conflicts to count"):
        train(dense(), None, strategy)


def test_messages_count_staleness_anyway() -> None:
    with pytest.raises(ParameterError, match="always count"):
        train(dense(), None, ParameterServer(2), runtime="simulator")


def test_large_networks_and_other_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match=r"float32 or float64.*0\.weight is torch\.bfloat16"):
        train(Module(nets.soft_net().bfloat16(), LOSS, nets.numbers(), batch=8), "sgd", Hogwild(2))
    monkeypatch.setattr(conflict_monitor, "MOST_STAMPS", 80)
    with pytest.raises(ParameterError, match="at most 80 are taken"):
        train(sparse_mlp(), "sgd", Hogwild(2))
    monkeypatch.setattr(conflict_monitor, "MOST_NUMBERS", 50)
    with pytest.raises(ParameterError, match="Here they are 57, and at most 50"):
        train(dense(), "sgd", Hogwild(2))


# How many workers trained.


def test_a_worker_without_batches_does_not_count_as_used() -> None:
    one_batch = Module(nets.line(), LOSS, nets.numbers(16), batch=16)
    run = train(one_batch, "sgd", Hogwild(2), count_conflicts=False)
    assert [record["workers_used"] for record in run.history] == [1, 1]
    assert run.result["workers_used"] == 1
    assert run.config["workers"] == 2


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "rows.svm"
    data.write_text("".join(f"{1 if k % 3 else -1} {k % 7 + 1}:1 {k % 5 + 8}:0.5\n" for k in range(200)))
    asked = ["train", str(data), "--problem", "sparse-mlp", "--hidden", "16,4", "--batch", "10", "--epochs", "1"]
    assert main([*asked, "--count-conflicts", "--workers", "2", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["conflicts"]["updates"] == 20
    assert record["workers"] == record["workers_used"] == 2
    assert main([*asked, "--count-conflicts", "--strategy", "serial"]) == 0
    assert "of updates; 0.00% were to be expected" in capsys.readouterr().out
