"""Losses, metrics and networks of the user's: what they give, and what is said about those that do not fit."""

from __future__ import annotations

import re
import traceback
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

from hogwild import Module, ParameterServer, Serial, Simulator, minimise
from hogwild.errors import ParameterError

ENTROPY = nn.functional.cross_entropy


def classes(count: int = 24) -> TensorDataset:
    x = torch.randn(count, 3, generator=torch.Generator().manual_seed(0))
    return TensorDataset(x, (x[:, 0] > 0).long())


def margin(outputs: torch.Tensor, target: torch.Tensor) -> float:
    return float((outputs[:, 1] - outputs[:, 0]).detach().mean())


def test_metrics_are_added_to_the_accuracy() -> None:
    problem = Module(nn.Linear(3, 2), ENTROPY, classes(), batch=8, metrics={"margin": margin})
    assert list(problem.measure(problem.feed())) == ["loss", "accuracy", "margin"]


def test_a_metric_of_the_same_name_takes_the_place_of_the_accuracy() -> None:
    problem = Module(nn.Linear(3, 2), ENTROPY, classes(), batch=8, metrics={"accuracy": lambda outputs, target: 0.25})
    assert problem.measure(problem.feed())["accuracy"] == 0.25


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ([margin], "mapping of names to functions"),
        ({"margin": 3}, "mapping of names to functions"),
        ({"loss": margin}, "'loss' has the name of a figure that every record has"),
        ({"margin": lambda outputs: 0.0}, r"function \(outputs, target\) -> number. Got <lambda>\(outputs\)"),
    ],
)
def test_metrics_that_cannot_be_called(metrics: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Module(nn.Linear(3, 2), ENTROPY, classes(), metrics=metrics)


def test_classes_instead_of_objects() -> None:
    with pytest.raises(ParameterError, match=r"Got the class CrossEntropyLoss: write CrossEntropyLoss\(...\)"):
        Module(nn.Linear(3, 2), nn.CrossEntropyLoss, classes())
    with pytest.raises(ParameterError, match=r"Got the class Linear: write Linear\(...\)"):
        Module(nn.Linear, ENTROPY, classes())  # type: ignore[arg-type]


def test_a_budget_of_another_kind() -> None:
    with pytest.raises(ParameterError, match=r"'budget' parameter must be a number of epochs, or Budget"):
        minimise(Module(nn.Linear(3, 2), ENTROPY, classes()), budget={"epochs": 2})  # type: ignore[arg-type]


def test_a_loss_of_one_argument() -> None:
    with pytest.raises(ParameterError, match=r"'loss_fn' .* \(outputs, target\) -> mean loss. Got <lambda>\(outputs\)"):
        Module(nn.Linear(3, 2), lambda outputs: outputs.mean(), classes())


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a loss for each sample": (
        {"loss_fn": partial(ENTROPY, reduction="none")}, r"tensor of one number.* Got a tensor of shape \(\d+,\)"),
    "a loss without a gradient": ({"loss_fn": margin}, "tensor of one number.* Got the float"),
    "a metric of many numbers": (
        {"metrics": {"hits": lambda outputs, target: outputs.argmax(1) == target}},
        r"metric 'hits' must return one number, the mean over a batch. Got a tensor of shape",
    ),
}  # fmt: skip
FAILING: dict[str, tuple[dict[str, Any], str]] = {
    "a loss": (
        {"loss_fn": lambda outputs, target: (outputs * target).mean()},
        r"loss function <lambda>, on a batch with outputs of shape \(\d+, 2\), float32 and target of shape \(\d+,\)",
    ),
    "a network": ({"net": nn.Linear(4, 2)}, r"network Linear, on a batch with inputs of shape \(\d+, 3\), float32"),
    "a metric": ({"metrics": {"f1": lambda outputs, target: target.nonsense}}, "metric 'f1', on a batch with outputs"),
}  # fmt: skip


def train(options: dict[str, Any], where: str) -> None:
    problem = Module(**{"net": nn.Linear(3, 2), "loss_fn": ENTROPY, "dataset": classes(), "batch": 8, **options})
    alone: Any = {"strategy": Serial()} if where == "processes" else {
        "strategy": ParameterServer(1), "runtime": Simulator(),
    }  # fmt: skip
    minimise(problem, optim.SGD, budget=1, test=classes(), **alone)


@pytest.mark.parametrize("parts", WRONG)
@pytest.mark.parametrize("where", ["processes", "messages"])
def test_what_returns_something_else(parts: str, where: str) -> None:
    options, said = WRONG[parts]
    with pytest.raises(ParameterError, match=said):
        train(options, where)


@pytest.mark.parametrize("parts", FAILING)
@pytest.mark.parametrize("where", ["processes", "messages"])
def test_errors_name_the_part_and_the_shapes(parts: str, where: str) -> None:
    options, said = FAILING[parts]
    with pytest.raises((RuntimeError, AttributeError)) as error:  # by messages as it is, from a process as WorkerError
        train(options, where)
    assert re.search(said, "".join(traceback.format_exception(error.value)))
    if where == "processes":
        assert re.search(said, str(error.value).splitlines()[0])


def test_a_trial_reads_one_batch() -> None:
    """It takes as long for many samples as for few."""
    read: list[int] = []
    problem = Module(
        nn.Linear(3, 2), ENTROPY, classes(), batch=8, metrics={"size": lambda out, target: read.append(len(out)) or 1}
    )
    problem.try_to_measure(problem.feed())
    assert read == [8]


class Detached(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).detach()


@pytest.mark.parametrize(
    ("net", "said"),
    [
        (nn.Identity(), "Identity has nothing to train"),
        (nn.Linear(3, 2).requires_grad_(False), r"Linear has nothing to train: .* net.requires_grad_\(True\)"),
        (nn.LazyLinear(2), "LazyLinear has lazy modules, whose parameters have no shape yet"),
        (nn.Linear(3, 2, device="meta"), "parameters on the device 'meta', which have no values"),
        (Detached(3, 2), "depends on no parameter that trains, so that it has no gradient"),
    ],
)
def test_networks_that_cannot_train(net: nn.Module, said: str) -> None:
    problem = Module(net, ENTROPY, classes(), batch=8)
    settings: Any = {"strategy": ParameterServer(2), "runtime": Simulator()}
    with pytest.raises(ParameterError, match=said):
        minimise(problem, partial(optim.SGD, lr=0.1), budget=1, **settings)


def test_a_network_that_is_frozen_can_be_measured() -> None:
    problem = Module(nn.Linear(3, 2).requires_grad_(False), ENTROPY, classes(), batch=8)
    assert problem.measure(problem.feed())["loss"] > 0


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (optim.LBFGS, "LBFGS computes the loss of a batch several times .*: choose another optimiser"),
        (lambda: optim.SGD([], lr=0.1), r"'rule' parameter must be a function \(parameters\) -> optimizer"),
    ],
)
def test_optimisers_that_cannot_be_used(rule: Any, said: str) -> None:
    problem = Module(nn.Linear(3, 2), ENTROPY, classes(), batch=8)
    with pytest.raises(ParameterError, match=said):
        minimise(problem, rule, strategy=ParameterServer(2), runtime=Simulator(), budget=1)


def test_a_loss_of_complex_numbers() -> None:
    problem = Module(nn.Linear(3, 2), lambda outputs, target: (outputs * 1j).sum(), classes(), batch=8)
    with pytest.raises(ParameterError, match=r"Got a tensor of shape \(\), of complex numbers"):
        problem.measure(problem.feed())


def test_a_loader_has_its_limit_of_time() -> None:
    loader = DataLoader(classes(), batch_size=8, num_workers=1, timeout=7)
    assert Module(nn.Linear(3, 2), ENTROPY, loader).feed().options["timeout"] == 7


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sampling": None}, "'sampling' parameter must be a name, or a sampling method"),
        ({"sampling": 1}, "'sampling' parameter must be a name, or a sampling method"),
        ({"unpack": 1}, "'unpack' parameter must be a function that turns a batch into inputs and target"),
        ({"unpack": lambda: None}, r"'unpack' parameter must be a function \(batch\) -> \(inputs, target\)"),
        ({"unpack": lambda batch: None}, "'unpack' must return inputs and target, .* Got a NoneType"),
        ({"unpack": lambda batch: [*batch, 1]}, "'unpack' must return inputs and target, .* Got a list of 3"),
    ],
)
def test_options_that_do_not_fit(options: Any, said: str) -> None:
    def measured() -> None:
        problem = Module(nn.Linear(3, 2), ENTROPY, classes(), **options)
        problem.measure(problem.feed())

    with pytest.raises(ParameterError, match=said):
        measured()


def test_the_size_of_a_batch_may_be_a_number_of_numpy() -> None:
    assert type(Module(nn.Linear(3, 2), ENTROPY, classes(), batch=np.int8(4)).batch) is int  # type: ignore[arg-type]
