"""Parts for large minibatches (Goyal et al. 2017): zero gammas, decoupled weight decay, and the step of each record."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from nets import line, numbers
from torch import nn

from hogwild import Averaging, Hogwild, LinearScaling, Module, ParameterServer, Serial, Simulator, minimise
from hogwild.errors import ParameterError
from hogwild.nn import SGDW, zero_last_gammas
from hogwild.runtimes.processes.optimiser_state import allocate_state, has_shareable_state
from hogwild.schedules import Constant
from hogwild.training.torch_optimisers import exclude_norms_from_decay

# Gammas


class BasicBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)
        self.conv2, self.bn2 = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)

    def forward(self, x):
        return x + self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))


class Bottleneck(BasicBlock):
    def __init__(self):
        super().__init__()
        self.conv3, self.bn3 = nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2)
        self.downsample = nn.Sequential(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(2), nn.BatchNorm2d(2, affine=False)  # no block: a stem of two layers
        self.layer1 = nn.Sequential(BasicBlock(), Bottleneck())


def test_the_last_normalisation_of_each_block_begins_at_zero_and_no_other():
    net = Residual()
    assert zero_last_gammas(net) == ["layer1.0.bn2", "layer1.1.bn3"]
    gammas = {name: layer.weight for name, layer in net.named_modules() if isinstance(layer, nn.BatchNorm2d)}
    zero = {name for name, gamma in gammas.items() if gamma is not None and not gamma.any()}
    assert zero == {"layer1.0.bn2", "layer1.1.bn3"}
    assert gammas["layer1.0.bn2"].requires_grad


def test_a_block_with_a_gamma_of_zero_is_the_identity_and_learns():
    torch.manual_seed(0)
    block, x = BasicBlock(), torch.randn(4, 2, 5, 5)
    assert zero_last_gammas(block) == ["bn2"]
    assert torch.equal(block(x), x)
    block(x).square().sum().backward()
    assert block.bn2.weight.grad.abs().max() > 0


def test_layers_can_be_named():
    net = Residual()
    assert zero_last_gammas(net, "layer1.*.bn1") == ["layer1.0.bn1", "layer1.1.bn1"]
    assert zero_last_gammas(net, ["bn1", "layer1.0.bn2"]) == ["bn1", "layer1.0.bn2"]
    with pytest.raises(ParameterError, match=r"Got 'layer1\.0\.bn4' instead\. Did you mean 'layer1\.0\.bn"):
        zero_last_gammas(net, ["layer1.0.bn4"])
    with pytest.raises(ParameterError, match="The layer 'bn2' has no scale"):
        zero_last_gammas(net, "bn2")
    with pytest.raises(ParameterError, match="Sequential has no residual blocks named as in torchvision"):
        zero_last_gammas(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))


# Weight decay


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"maximize": True}])
def test_without_decay_sgdw_is_sgd(options):
    weights = [nn.Parameter(torch.tensor([1.0, -2.0, 3.0])) for _ in range(2)]
    ours = SGDW([weights[0]], lr=0.1, weight_decay=0.0, **options)
    theirs = torch.optim.SGD([weights[1]], lr=0.1, **options)
    for _ in range(5):
        for weight, optimiser in zip(weights, (ours, theirs), strict=True):
            weight.grad = (weight.detach() - 1).clone()
            optimiser.step()
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-6, atol=0)


def test_decay_does_not_depend_on_the_step_nor_enter_the_momentum():
    for lr in (0.1, 1e-6):
        weight = nn.Parameter(torch.ones(3))
        optimiser = SGDW([weight], lr=lr, momentum=0.9, weight_decay=0.25)
        for _ in range(2):
            weight.grad = torch.zeros(3)
            optimiser.step()
        torch.testing.assert_close(weight.detach(), torch.full((3,), 0.75**2))
    with pytest.raises(ParameterError, match="'weight_decay' parameter must be at least 0 and below 1"):
        SGDW([nn.Parameter(torch.ones(1))], weight_decay=1.0)


def test_decay_spares_normalisation_and_workers_share_the_momentum():
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    optimiser = SGDW(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    exclude_norms_from_decay(optimiser, net)
    assert [(len(group["params"]), group["weight_decay"]) for group in optimiser.param_groups] == [(2, 1e-4), (2, 0.0)]
    assert has_shareable_state(optimiser)
    assert len(allocate_state(optimiser)) == 4


def test_a_run_with_decoupled_decay():
    rule = partial(SGDW, lr=1e-9, weight_decay=0.1)
    net = nn.Linear(3, 1)
    before = net.weight.detach().clone()
    run = minimise(Module(net, nn.functional.mse_loss, numbers(64), batch=16), rule, strategy=Serial(), budget=2)
    torch.testing.assert_close(net.weight.detach(), before * 0.9**8, rtol=1e-5, atol=1e-7)
    assert run.config["rule"].startswith("SGDW(")


# Steps


def steps(strategy, runtime=None, schedule=None, epochs=3):
    problem = Module(line(), nn.functional.mse_loss, numbers(64), batch=8)
    rule = partial(torch.optim.SGD, lr=0.01)
    return minimise(problem, rule, schedule, strategy, runtime, epochs)


def test_every_record_has_its_step():
    # The worker does not wait for the record of an epoch: the step is that of the updates in the record.
    history = steps(Serial(), schedule="warmup:2:0.5").history
    expected = [0.01 * min(1.0, 0.5 + 0.5 * record["updates"] / (2 * 64)) for record in history]
    assert [record["step"] for record in history] == pytest.approx(expected)
    assert len(history) == 3
    assert [record["step"] for record in steps(Serial(), epochs=2).history] == [0.01, 0.01]
    assert steps(Serial(), epochs=1).result["step"] == 0.01


def test_linear_scaling_counts_the_samples_whose_changes_are_averaged():
    scaled = LinearScaling(Constant(0.001), reference=8, warmup=0.0)
    assert steps(Hogwild(2), schedule=scaled, epochs=1).history[-1]["step"] == pytest.approx(0.001)
    assert steps(Averaging(2), schedule=scaled, epochs=1).history[-1]["step"] == pytest.approx(0.002)
    # Pushes that are added in full are damped, so that those of both workers together are one step.
    both, one = (
        steps(ParameterServer(2), Simulator(), schedule, 1)
        for schedule in (scaled, Constant(0.002))
    )  # fmt: skip
    assert both.history[-1]["loss"] == one.history[-1]["loss"]
