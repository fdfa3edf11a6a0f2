"""Every strategy by messages brings a small network to where its theory says, on every runtime."""

from __future__ import annotations

from functools import cache, partial

import pytest
import torch
from talkers import TALKERS, rows
from torch import nn
from torch.utils.data import TensorDataset

import references
from hogwild import Local, Module, Simulator, minimise

RUNTIMES = {"simulator": Simulator(), "local": Local()}


@cache
def samples() -> TensorDataset:
    X, y = rows("logistic")
    return TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor((y > 0).astype(int)))


def network() -> nn.Module:
    """No hidden layer, so that there is one optimum; the same scores twice over, so that it is no linear model."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))


def loss_of(net: nn.Module) -> float:
    X, y = samples().tensors
    with torch.no_grad():
        return float(nn.functional.cross_entropy(net(X), y))


@cache
def least() -> float:
    net = network()
    optimiser = torch.optim.LBFGS(net.parameters(), max_iter=500, line_search_fn="strong_wolfe")
    X, y = samples().tensors

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(net(X), y)
        loss.backward()
        return loss

    optimiser.step(closure)
    return loss_of(net)


@pytest.mark.parametrize("runtime", list(RUNTIMES if references.ALL else ["simulator"]))
@pytest.mark.parametrize("strategy", TALKERS.values(), ids=TALKERS)
def test_comes_to_the_optimum(strategy, runtime):
    net = network()
    run = minimise(
        Module(net, nn.functional.cross_entropy, samples(), batch=8), partial(torch.optim.SGD, lr=0.3), "cosine",
        strategy, RUNTIMES[runtime], budget=40,
    )  # fmt: skip
    assert loss_of(network()) > 1.3 * least()
    assert loss_of(net) <= 1.01 * least()
    if "consensus" in run.result:
        assert run.result["consensus"] < 1e-3
