"""Delayed processes: a gradient grows old before it is used, and the end of the run ends every delay."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import hogwild
from hogwild.errors import ParameterError
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.hogwild_worker import HogwildWorker
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.write_policies import sleep_delay


@pytest.mark.parametrize("in_backward", [False, True])
def test_a_worker_waits_between_its_read_and_its_write(in_backward: bool) -> None:
    """What others write in the meantime is not in its gradient. It failed before, as processes had no delay."""
    net = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(net.weight)
    seen: list[bool] = []
    worker = object.__new__(HogwildWorker)
    problem = SimpleNamespace(
        loss=lambda batch: ((net(batch) - 3.0).square().mean(), 1), clip_gradients=lambda optimiser: None
    )
    worker.work = SimpleNamespace(problem=problem)
    worker.optimiser, worker.policy = torch.optim.SGD(net.parameters(), lr=0.1), contextlib.nullcontext()
    worker._watched, worker._writes_in_backward = None, in_backward

    def others_write() -> None:
        seen.append(net.weight.grad is not None)
        with torch.no_grad():
            net.weight.data += 1.0

    worker._wait = others_write
    worker._step(torch.ones(1, 1))
    assert seen == [not in_backward]  # with tables that update themselves, before the backward pass
    assert net.weight.item() == pytest.approx(1.0 + 0.1 * 2 * 3.0)


@pytest.mark.parametrize("flag", [at.STOP, at.PAUSE])
def test_the_supervisor_ends_a_delay(flag: int) -> None:
    counters = SharedCounters(1)
    try:
        counters.flags[flag] = 1
        sleep_delay(3000.0, 0, counters)
        counters.flags[flag] = 0
        sleep_delay(0.001, 0, counters)
        assert counters.sums[0, at.BEAT] > 0  # who waits is not taken for crashed
    finally:
        counters.block.close()


@pytest.mark.parametrize("strategy", [hogwild.Hogwild(2), hogwild.Synchronous(2)], ids=["hogwild", "synchronous"])
def test_a_limit_ends_all_delays(strategy: hogwild.strategies.Strategy) -> None:
    data = torch.utils.data.TensorDataset(torch.ones(32, 2), torch.ones(32, 1))
    net = nn.Linear(2, 1)
    problem = hogwild.Module(net, nn.functional.mse_loss, data, batch=4)
    run = hogwild.minimise(
        problem, "sgd", hogwild.Constant(0.01), strategy, hogwild.Processes(delay=3000.0), hogwild.Budget(seconds=0.1)
    )
    assert run.stop_reason == "seconds"
    with pytest.raises(ParameterError, match="There are workers 0 to 1; 2 is none of them"):
        hogwild.minimise(problem, "sgd", hogwild.Constant(0.01), strategy, hogwild.Processes(delay={2: 1.0}), 1)


def test_a_loop_of_ones_own_waits_by_itself() -> None:
    net = nn.Linear(1, 1)
    with pytest.raises(ParameterError, match="leave out 'delay'"):
        hogwild.shared(net, torch.optim.SGD(net.parameters(), lr=0.1), 2, runtime=hogwild.Processes(delay=0.1))
