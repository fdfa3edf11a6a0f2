"""The loss of a net as a function of vectors, against PyTorch's own Hessians; and that the net is left alone."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from grounds import numerical
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.data import DataLoader, Dataset, TensorDataset

from hogwild import Module, ParameterServer, Serial, SparseTable
from hogwild.errors import HogwildError, ParameterError
from hogwild.landscape import (
    ball,
    line,
    path_plane,
    sensitivity,
    sharpness,
    spectrum,
    sphere,
    surface,
    trace,
    trajectory,
)
from hogwild.landscape.loss_slices import random_filters

cross_entropy = nn.functional.cross_entropy


def samples(count: int = 40, dtype: torch.dtype = torch.float64) -> TensorDataset:
    chance = torch.Generator().manual_seed(0)
    x = torch.randn(count, 4, generator=chance, dtype=dtype)
    return TensorDataset(x, (x[:, 0] > x[:, 1]).long() + (x[:, 2] > 1).long())


def made(**options: Any) -> Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 3)).double()
    return Module(net, cross_entropy, options.pop("dataset", samples()), batch=3, **options)


def dense(problem: Module, vector: Any) -> Any:
    """The Hessian that PyTorch finds, all data in one batch."""
    net = copy.deepcopy(problem.net).eval()
    shapes = {name: tensor.shape for name, tensor in net.named_parameters() if tensor.requires_grad}
    x, y = problem.dataset.tensors

    def loss(flat: Tensor) -> Tensor:
        parts = torch.split(flat, [shape.numel() for shape in shapes.values()])
        named = {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
        return cross_entropy(functional_call(net, named, (x,)), y)

    return torch.autograd.functional.hessian(loss, torch.tensor(vector)).numpy()


def state(net: nn.Module) -> list[Any]:
    return [(name, tensor.clone(), tensor.requires_grad) for name, tensor in net.state_dict().items()]


def test_products_eigenvalues_and_trace_are_those_of_the_whole_hessian() -> None:
    problem = made()
    ground = surface(problem)
    at = ground.at(problem.net)
    whole = dense(problem, at)
    assert ground.size == len(whole)
    assert np.array([ground.times(at, way) for way in np.eye(ground.size)]) == pytest.approx(whole, abs=1e-10)
    assert ground.gradient(at) == pytest.approx(numerical(ground.loss, at), abs=1e-8)
    values = np.linalg.eigvalsh(whole)[::-1]
    assert spectrum(ground, at, k=4).values == pytest.approx(values[:4], rel=1e-6)
    found = trace(ground, at, probes=100)
    assert abs(found.value - np.trace(whole)) < 4 * found.error


def test_the_net_is_left_as_it_was() -> None:
    problem = made()
    problem.net.train()
    problem.net[0].weight.grad = torch.ones_like(problem.net[0].weight)
    before, chance = state(problem.net), torch.get_rng_state()
    ground = surface(problem)
    at = ground.at(problem.net)
    sphere(ground, at + 1, 0.1, directions=2)
    sharpness(ground, at)
    spectrum(ground, at, k=1, steps=2)
    line(ground, at, points=3)
    assert problem.net.training
    assert (problem.net[0].weight.grad == 1).all()
    for (name, old, _), (other, new, _) in zip(before, state(problem.net), strict=True):
        assert name == other
        assert torch.equal(old, new)
    assert torch.equal(chance, torch.get_rng_state())


def test_the_loss_is_what_is_measured_and_always_the_same() -> None:
    problem = made()
    problem.net.train()
    for batch in problem.feed().in_order(8):
        problem.net(batch[0])  # moves the means of the normalisation
    ground = surface(problem)
    at = ground.at(problem.net)
    assert ground.loss(at) == pytest.approx(problem.measure(problem.feed())["loss"])
    assert ground.loss(at) == ground.loss(at)
    some = TensorDataset(*(tensor[:7] for tensor in samples().tensors))
    assert surface(problem, some).loss(at) == pytest.approx(problem.measure(problem.feed(some))["loss"])
    assert ground.loss(at) == pytest.approx(surface(made(dataset=DataLoader(samples(), 5))).loss(at), rel=0.5)


def test_a_net_that_was_trained_meanwhile_is_looked_at_with_its_new_means() -> None:
    problem = made()
    ground = surface(problem)
    with torch.no_grad():
        problem.net[1].running_mean += 3.0
    assert ground.loss(ground.at(problem.net)) == pytest.approx(problem.measure(problem.feed())["loss"])


def test_filters_and_units_of_a_net() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Flatten(), nn.Linear(12, 2)).double()
    with torch.no_grad():
        net[2].bias.zero_()
    images = TensorDataset(torch.randn(6, 2, 3, 3, dtype=torch.float64), torch.zeros(6, dtype=torch.long))
    ground = surface(Module(net, cross_entropy, images))
    sizes = [len(range(ground.size)[block]) for block in ground.blocks]
    assert sizes == [8, 8, 8, 3, 12, 12, 2]
    at = ground.at(net)
    direction = random_filters(np.random.default_rng(0), at, ground.blocks)
    for number, block in enumerate(ground.blocks[:3]):
        assert np.linalg.norm(direction[block]) == pytest.approx(float(net[0].weight[number].detach().norm()))
    assert (direction[-2:] == 0).all()
    units = ground.units(at)
    assert units[0] == units[23] == pytest.approx(float(net[0].weight.detach().square().mean().sqrt()))
    assert (units[-2:] == 1).all()
    found = sensitivity(ground, at, 0.1, coordinates=[3])
    moved = at.copy()
    moved[3] += 0.1 * units[3]
    assert found.up[0] == pytest.approx(ground.loss(moved) - ground.loss(at))
    norms = [np.linalg.norm(units * ground.gradient(point)) for point in (moved, at)]
    assert found.gradient_up[0] == pytest.approx(norms[0] - norms[1])


def test_balls_in_units_of_filters_do_not_see_a_rescaled_relu_net() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)).double()
    other = copy.deepcopy(net)
    with torch.no_grad():  # the same function of the input (Dinh et al. 2017)
        other[0].weight *= 8
        other[0].bias *= 8
        other[2].weight /= 8
    one, two = (surface(Module(each, cross_entropy, samples(), batch=3)) for each in (net, other))
    at, there = one.at(net), two.at(other)
    assert one.loss(at) == pytest.approx(two.loss(there))
    found, same = (ball(*each, 0.2, samples=8, units="filters") for each in ((one, at), (two, there)))
    assert found.loss.each == pytest.approx(same.loss.each)
    assert found.gradient_norm.each == pytest.approx(same.gradient_norm.each)
    plain, sharper = (ball(*each, 0.2, samples=8) for each in ((one, at), (two, there)))
    assert sharper.gradient.mean > 2 * plain.gradient.mean


class Noisy(Dataset[Any]):
    """A data set whose samples are never the same twice."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return torch.randn(4, dtype=torch.float64), torch.tensor(index % 3)


def test_what_is_random_in_a_data_set_is_the_same_at_every_look() -> None:
    problem = made(dataset=Noisy())
    ground = surface(problem)
    at = ground.at(problem.net)
    assert ground.loss(at) == ground.loss(at)
    assert ground.gradient(at) == pytest.approx(numerical(ground.loss, at), abs=1e-7)


def test_parameters_that_are_not_learnt_or_have_no_part_in_it() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(4, 3).double(), nn.Linear(2, 2).double()
            self.fixed = nn.Parameter(torch.ones(1, dtype=torch.float64), requires_grad=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.used(x) * self.fixed

    net = Odd()
    ground = surface(Module(net, cross_entropy, samples()))
    assert ground.size == 15 + 6
    at = ground.at(net)
    assert (ground.gradient(at)[15:] == 0).all()
    assert (ground.times(at, np.ones(21))[15:] == 0).all()
    assert np.abs(ground.times(at, np.ones(21))[:15]).max() >= 0

    straight = surface(Module(nn.Linear(4, 1).double(), lambda outputs, target: outputs.mean(), samples()))
    assert (straight.times(np.zeros(5), np.ones(5)) == 0).all()


def test_what_has_no_surface_is_refused() -> None:
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = SparseTable(4, 3, binary=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.table(x)

    with pytest.raises(ParameterError, match="backward pass"):
        surface(Module(Wide(), cross_entropy, samples()))
    with pytest.raises(HogwildError, match="its net"):
        surface(made()).at(nn.Linear(2, 2))
    with pytest.raises(HogwildError, match="parameters to learn"):
        surface(Module(nn.Tanh(), cross_entropy, samples()))
    with pytest.raises(ParameterError, match="processes share it"):
        trajectory(made(), None, None, ParameterServer(2))


def test_the_way_of_a_net_and_its_plane() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3))
    problem = Module(net, cross_entropy, samples(2000, torch.float32), batch=4)
    ground = surface(problem)
    before = ground.at(net)
    path = trajectory(problem, partial(torch.optim.SGD, lr=0.1), None, Serial(), budget=4)
    assert path.epochs[0] == 0
    assert path.epochs[-1] == 4
    assert list(path.epochs) == sorted(set(path.epochs))
    assert (path.points[0] == before).all()
    assert (path.points[-1] == ground.at(path.run)).all()
    assert ground.loss(path.points[-1]) < ground.loss(path.points[1]) < ground.loss(path.points[0])
    found = path_plane(ground, path, points=3)
    assert found.plane.losses.shape == (3, 3)
    assert len(found.x) == len(path.points)
