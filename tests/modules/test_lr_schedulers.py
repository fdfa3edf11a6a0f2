"""Learning-rate schedulers of PyTorch, and functions, as schedules of a Module."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import nets
import pytest
import torch
from torch import nn, optim
from torch.optim import lr_scheduler as lr

from hogwild import LocalSGD, Module, Serial, Simulator, TorchSchedule, minimise
from hogwild.errors import ParameterError
from hogwild.schedules import Moment

SGD = partial(optim.SGD, lr=0.1)


def moments(epochs: int, steps: int = 1) -> Any:
    at = torch.arange(epochs * steps).numpy() / steps
    return Moment(at, at, at / epochs)


def by_hand(factory: Any, steps: int, optimiser: optim.Optimizer) -> list[float]:
    scheduler, found = factory(optimiser), []
    for _ in range(steps):
        found.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step()
    return found


def one(kind: Any = optim.SGD, **options: Any) -> optim.Optimizer:
    found: optim.Optimizer = kind([nn.Parameter(torch.ones(1))], **{"lr": 0.1, **options})
    return found


FACTORIES: dict[str, Any] = {
    "steps": partial(lr.StepLR, step_size=3, gamma=0.5),
    "cosine with a floor": partial(lr.CosineAnnealingLR, T_max=6, eta_min=0.01),
    "lambda": partial(lr.LambdaLR, lr_lambda=lambda epoch: 0.9**epoch),
    "a chain": lambda optimizer: lr.SequentialLR(
        optimizer, [lr.LinearLR(optimizer, 0.1, total_iters=2), lr.ExponentialLR(optimizer, 0.8)], [2]
    ),
    "one cycle": partial(lr.OneCycleLR, max_lr=1.0, total_steps=12, cycle_momentum=False),
}


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("steps", [1, 3])
def test_step_sizes_are_those_of_a_loop_by_hand(name: str, steps: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # SequentialLR of PyTorch warns of itself.
        found = TorchSchedule(FACTORIES[name], steps).bound(one())(moments(12 // steps, steps))
        expected = by_hand(FACTORIES[name], 12, one())
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("where", ["processes", "messages"])
def test_runs_follow_it(where: str) -> None:
    alone: Any = {"strategy": Serial()} if where == "processes" else {
        "strategy": LocalSGD(1), "runtime": Simulator(),
    }  # fmt: skip
    problem = Module(nets.line(), nn.functional.mse_loss, nets.numbers(), batch=8)
    run = minimise(problem, SGD, schedule=partial(lr.StepLR, step_size=1, gamma=0.5), budget=3, **alone)
    # On processes, the record of an epoch has the step at the moment at which it is made.
    assert run.history[-1]["step"] == pytest.approx(0.0125 if where == "processes" else 0.025)


def test_a_function_is_a_schedule_of_a_module() -> None:
    problem = Module(nets.line(), nn.functional.mse_loss, nets.numbers(), batch=8)
    run = minimise(problem, SGD, schedule=lambda moment: 0.2 / (1 + moment.epochs), strategy="serial", budget=2)
    assert run.history[-1]["step"] == pytest.approx(0.2 / 3)


WRONG: dict[str, tuple[Any, str]] = {
    "a class without its arguments": (lr.StepLR, r"Write schedule=functools.partial\(StepLR, \.\.\.\) with its arg"),
    "one that exists": (lr.ExponentialLR(one(), 0.9), r"that exists: .*=functools.partial\(ExponentialLR, \.\.\.\)"),
    "wrong arguments": (partial(lr.StepLR, size=3), "cannot be made: .*'size'"),
    "one that reacts": (lr.ReduceLROnPlateau, "reacts to losses"),
    "one that changes momentum": (
        partial(lr.CyclicLR, base_lr=0.1, max_lr=0.2, step_size_up=2), "cycle_momentum=False"),
    "another kind": (TorchSchedule(lambda optimizer: optimizer), "makes SGD, and not a scheduler"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_schedulers_that_cannot_work(name: str) -> None:
    schedule, said = WRONG[name]
    problem = Module(nets.line(), nn.functional.mse_loss, nets.numbers(), batch=8)
    with pytest.raises(ParameterError, match=said):
        minimise(problem, partial(optim.SGD, lr=0.1, momentum=0.9), schedule=schedule, budget=1)


def test_groups_of_different_courses() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    optimiser = optim.SGD([{"params": layer.parameters()} for layer in net], lr=0.1)
    apart = partial(lr.LambdaLR, lr_lambda=[lambda epoch: 1.0, lambda epoch: 0.5**epoch])
    with pytest.raises(ParameterError, match="different factors"):
        TorchSchedule(apart).bound(optimiser)


@pytest.mark.parametrize("steps", [0, 1.5, True])
def test_steps_that_are_no_number(steps: Any) -> None:
    with pytest.raises(ParameterError, match="'steps_per_epoch'"):
        TorchSchedule(FACTORIES["steps"], steps)
