"""What optimisers remember is shared: workers that take turns end where one worker with the same gradients ends."""

from __future__ import annotations

from functools import partial
from typing import Any

import nets
import pytest
import torch
from torch import nn, optim
from torch.utils.data import TensorDataset

from hogwild import Averaging, Hogwild, LocalSGD, Module, RoundRobin, Simulator, Synchronous, minimise
from hogwild.data.sampling import Split, WorkerShare
from hogwild.errors import ParameterError

BATCH, EPOCHS = 4, 2

RULES: dict[str, Any] = {
    "sgd": partial(optim.SGD, lr=0.1),
    "momentum": partial(optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": partial(optim.SGD, lr=0.1, momentum=0.9, nesterov=True),
    "adam": partial(optim.Adam, lr=0.1),
    "amsgrad": partial(optim.Adam, lr=0.1, amsgrad=True),
    "adamw": partial(optim.AdamW, lr=0.1, weight_decay=0.1),
    "adagrad": partial(optim.Adagrad, lr=0.1, lr_decay=0.01),
    "rmsprop": partial(optim.RMSprop, lr=0.01, centered=True, momentum=0.5),
    "nadam": partial(optim.NAdam, lr=0.1),
    "adamax": partial(optim.Adamax, lr=0.1),
}


def batches(dataset: TensorDataset) -> Any:
    """The batches of all epochs, in the order in which two workers that take turns apply them."""
    for epoch in range(EPOCHS):
        share = WorkerShare(len(dataset), worker=0, workers=1, epoch=epoch, seed=0, batch=BATCH)
        for rows in Split().batches(share):
            yield dataset[torch.from_numpy(rows)]


def serial(net: nn.Module, rule: Any, dataset: TensorDataset) -> optim.Optimizer:
    """An ordinary loop."""
    optimiser = rule(net.parameters())
    for x, *_ in batches(dataset):
        optimiser.zero_grad()
        net(x).backward()
        optimiser.step()
    return optimiser


def check_same(found: Any, net: nn.Module, optimiser: optim.Optimizer) -> None:
    values, memory = found.state
    for name, tensor in net.state_dict().items():
        assert torch.equal(values[name], tensor), name
    for number, state in optimiser.state_dict()["state"].items():
        for name, value in state.items():
            if value is not None:
                assert torch.equal(torch.as_tensor(memory["state"][number][name]).float(),
                                   torch.as_tensor(value).float()), name  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_turns_are_like_one_worker(name: str) -> None:
    data, rule = nets.numbers(32), RULES[name]
    net = nets.Fixed()
    optimiser = serial(net, rule, data)
    run = minimise(Module(nets.Fixed(), nets.as_it_is, data, batch=BATCH), rule, strategy=RoundRobin(2), budget=EPOCHS)
    check_same(run, net, optimiser)
    assert run.history[-1]["steps"] == EPOCHS * 32 // BATCH


def words() -> TensorDataset:
    """Bags of words, of which those above 12 never come."""
    bags = torch.randint(0, 12, (32, 3), generator=torch.Generator().manual_seed(1))
    return TensorDataset(bags, torch.zeros(32))


SPARSE: dict[str, Any] = {
    "sparse adam": partial(optim.SparseAdam, lr=0.1),
    "adagrad": partial(optim.Adagrad, lr=0.1),
    "sgd": partial(optim.SGD, lr=0.1),
}


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_gradients_in_turns(name: str) -> None:
    net = nets.Bag()
    optimiser = serial(net, SPARSE[name], words())
    run = minimise(
        Module(nets.Bag(), nets.as_it_is, words(), batch=BATCH), SPARSE[name], strategy=RoundRobin(2), budget=EPOCHS
    )
    check_same(run, net, optimiser)


def test_sparse_gradients_touch_their_rows_alone() -> None:
    run = minimise(
        Module(nets.Bag(), nets.as_it_is, words(), batch=BATCH), SPARSE["sparse adam"], strategy=Hogwild(2), budget=1
    )
    values, memory = run.state
    table, state = values["table.weight"], memory["state"][0]
    assert (table[12:] == 1).all()
    assert (table[:12] != 1).all()
    assert (state["exp_avg_sq"][12:] == 0).all()
    assert (state["exp_avg_sq"][:12] > 0).all()
    assert state["step"] > 0


def test_parameters_without_gradient_stay() -> None:
    net = nets.Fixed()
    net.bias.requires_grad = False
    run = minimise(Module(net, nets.as_it_is, nets.numbers(), batch=8), optim.Adam, strategy=Hogwild(2), budget=1)
    assert net.bias.item() == 0
    assert list(run.state[1]["state"]) == [0]


def test_an_optimiser_that_cannot_share_says_so() -> None:
    problem = Module(nets.Fixed(), nets.as_it_is, nets.numbers(), batch=8)
    run = minimise(problem, partial(optim.Rprop, lr=0.01), strategy=Hogwild(2), budget=1)
    assert any(event["event"] == "optimiser state" for event in run.events)


def test_rules_that_cannot_work() -> None:
    problem = Module(nets.Fixed(), nets.as_it_is, nets.numbers(), batch=8)
    for rule in (partial(optim.SGD, lr=0.1, momentum=0.9, dampening=0.5), "adm", 3, lambda parameters: "adam"):
        with pytest.raises(ParameterError):
            minimise(problem, rule, budget=1)
    with pytest.raises(ParameterError, match="not of this network: make it of the network that Module has"):
        minimise(problem, optim.SGD(nets.Fixed().parameters(), lr=0.1), budget=1)


@pytest.mark.parametrize(
    ("strategy", "runtime"),
    [(Hogwild(2), None), (Averaging(2), None), (Synchronous(2), None), (LocalSGD(2), Simulator())],
    ids=["hogwild", "averaging", "synchronous", "messages"],
)
def test_parameter_groups_of_an_optimiser_that_exists(strategy: Any, runtime: Any) -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    before = [layer.weight.detach().clone() for layer in net]
    optimiser = optim.SGD(
        [{"params": net[0].parameters(), "lr": 0.0}, {"params": net[1].parameters()}], lr=0.05, momentum=0.9
    )
    problem = Module(net, nn.functional.mse_loss, nets.numbers(), batch=8)
    minimise(problem, optimiser, "cosine", strategy=strategy, runtime=runtime, budget=1)
    assert torch.equal(net[0].weight, before[0])  # its step is 0
    assert not torch.equal(net[1].weight, before[1])
