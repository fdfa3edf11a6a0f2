"""Divergence by messages: the run begins again with half the step, says so, and gives up with an error."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from talkers import train
from torch import nn
from torch.utils.data import TensorDataset

from hogwild import AllToAll, Budget, Constant, DiLoCo, Local, LocalSGD, Module, ParameterServer, Simulator, minimise
from hogwild.errors import DivergedError
from hogwild.training.checkpoints import Checkpoints


def divergences(run):
    return [event for event in run.events if event["event"] == "diverged"]


@pytest.mark.parametrize("runtime", [Simulator(), Local()], ids=["simulator", "local"])
@pytest.mark.parametrize(
    "strategy", [ParameterServer(12, push_every=1), AllToAll(6, synchronous=False, period=1)], ids=["server", "all"]
)
def test_a_step_that_is_too_large_is_halved_from_the_beginning(strategy, runtime):
    run = train(strategy, runtime, "squared", budget=4, schedule=Constant(0.9))
    scales = [event["scale"] for event in divergences(run)]
    assert scales == [0.5**k for k in range(1, len(scales) + 1)] != []
    assert run.objective < 10 or [event for event in run.events if event["event"] == "loss rose"]
    epochs = [record["epoch"] for record in run.history]
    assert epochs == sorted(set(epochs))
    assert epochs[-1] == 4
    assert run.history[-1]["step"] == pytest.approx(0.9 * scales[-1])


def test_after_five_halvings_it_is_an_error():
    with pytest.raises(DivergedError, match="smaller step"):
        train(ParameterServer(4), Simulator(), "squared", budget=2, schedule=Constant(1e4))


def test_the_factor_decides_what_counts_as_diverged():
    with pytest.raises(DivergedError):
        train(ParameterServer(1), Simulator(), "squared", budget=2, schedule=Constant(0.01), divergence_factor=1e-9)


def test_time_that_is_spent_is_not_given_again():
    budget = Budget(epochs=4, seconds=0.05)
    runtime = Simulator(0.001)
    run = train(ParameterServer(12), runtime, "squared", budget=budget, schedule=Constant(0.9))
    times = [event["at"] for event in [*divergences(run), run.events[-1]]]
    assert times == sorted(times)
    assert run.seconds < 0.06


def test_a_resumed_run_goes_on_with_the_smaller_step(tmp_path):
    options = {"schedule": Constant(0.9), "checkpoint": Checkpoints(tmp_path)}
    first = train(ParameterServer(12), Simulator(), "squared", budget=4, **options)
    assert divergences(first)
    again = train(ParameterServer(12), Simulator(), "squared", budget=4, resume=True, **options)
    assert not divergences(again)
    assert again.history[-1]["step"] == first.history[-1]["step"]


def net_with_batch_norm():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))


def data(count=96):
    x = torch.randn(count, 4, generator=torch.Generator().manual_seed(1))
    return TensorDataset(x, x.sum(1, keepdim=True))


def rule(parameters):
    return torch.optim.SGD(parameters, lr=0.05)


def test_the_outer_step_of_diloco_is_for_weights_alone():
    net = net_with_batch_norm()
    problem = Module(net, nn.functional.mse_loss, data(), batch=8)
    run = minimise(problem, rule=rule, strategy=DiLoCo(2, period=2), runtime=Simulator(), budget=12)
    assert np.isfinite(run.objective)
    assert run.objective < 1
    assert (net[1].running_var > 0).all()


def test_the_memory_of_a_rule_takes_no_outer_step():
    """AdaGrad's sums of squares only grow, and equal those of workers whose mean is taken."""
    outer = train(DiLoCo(2, period=4, momentum=0.9), Simulator(), rule="adagrad", budget=20, step=0.3)
    mean = train(LocalSGD(2, period=4), Simulator(), rule="adagrad", budget=20, step=0.3)
    assert outer.objective == pytest.approx(mean.objective, rel=0.01)


def test_a_module_by_messages_begins_again_too():
    net = net_with_batch_norm()
    problem = Module(net, nn.functional.mse_loss, data(), batch=8)
    run = minimise(
        problem, rule=lambda p: torch.optim.SGD(p, lr=2.0), strategy=ParameterServer(3), runtime=Simulator(), budget=3
    )
    assert divergences(run)
    assert np.isfinite(run.objective)
