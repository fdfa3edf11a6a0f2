"""Optimiser of a module, its step sizes over the run, and the recipe for large minibatches (Goyal et al. 2017)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from hogwild import schedules
from hogwild.errors import ParameterError
from hogwild.nn.large_minibatch import NORMS, SGDW
from hogwild.nn.lr_scheduler import TorchSchedule
from hogwild.problems.module import Module
from hogwild.registry import check_arguments, invalid_parameter, lookup
from hogwild.runtimes.processes.optimiser_state import make_optimiser
from hogwild.runtimes.processes.worker_config import StepSize
from hogwild.schedules import Constant, LinearScaling, Schedule, scales, step_of, with_step, with_total
from hogwild.stopping import Budget
from hogwild.strategies import LargeMinibatch
from hogwild.training.job import Job

OPTIMISERS = {
    "sgd": torch.optim.SGD, "sgdw": SGDW, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad, "rmsprop": torch.optim.RMSprop, "sparse-adam": torch.optim.SparseAdam,
}  # fmt: skip


def optimiser_of(rule: object, problem: Module) -> torch.optim.Optimizer:
    """Return an optimiser of the problem's model, from a name, a class, an instance or a function; by default Adam."""
    _require_trainable(problem.net)
    if rule is None:
        rule = torch.optim.Adam
    if isinstance(rule, str):
        rule = lookup("rule", rule, OPTIMISERS)
    if not callable(rule) and not isinstance(rule, torch.optim.Optimizer):
        raise invalid_parameter(
            "rule", "an optimiser class, or a function of the parameters that makes an optimiser", rule
        )
    if callable(rule):
        check_arguments("rule", rule, 1, "(parameters) -> optimizer")
    optimiser = make_optimiser(rule, trainable_parameters(problem.net))
    if isinstance(optimiser, torch.optim.LBFGS):
        raise ParameterError(
            "LBFGS computes the loss of a batch several times in each step, and workers compute it once: choose "
            "another optimiser, such as torch.optim.Adam."
        )
    ours = {id(parameter) for parameter in problem.net.parameters()}
    if any(id(parameter) not in ours for group in optimiser.param_groups for parameter in group["params"]):
        raise ParameterError(
            f"The optimiser {type(optimiser).__name__} that was given as 'rule' has parameters that are not of this "
            "network: make it of the network that Module has, as in torch.optim.SGD(net.parameters(), lr=0.1)."
        )
    return optimiser


def _require_trainable(net: torch.nn.Module) -> None:
    """Raise ParameterError if a network has nothing to train, or parameters without a shape or values."""
    if any(isinstance(parameter, UninitializedParameter) for parameter in net.parameters()):
        raise ParameterError(
            f"The network {type(net).__name__} has lazy modules, whose parameters have no shape yet: call it with the "
            "inputs of a batch before, as in net(inputs)."
        )
    if any(parameter.is_meta for parameter in net.parameters()):
        raise ParameterError(
            f"The network {type(net).__name__} has parameters on the device 'meta', which have no values: make it on "
            "'cpu' or a GPU, as net.to_empty(device='cpu') does before its values are loaded."
        )
    if not any(parameter.requires_grad for parameter in net.parameters()):
        raise ParameterError(
            f"The network {type(net).__name__} has nothing to train: it has no parameters, or all are frozen. "
            "Parameters train after net.requires_grad_(True)."
        )


def trainable_parameters(net: torch.nn.Module) -> list[torch.nn.Parameter]:
    """Return the parameters that an optimiser steps: all but those that the backward pass itself updates.

    >>> len(trainable_parameters(torch.nn.Linear(2, 1)))
    2
    """
    own = {id(part) for module in self_updating(net) for part in module.parameters(recurse=False)}
    return [parameter for parameter in net.parameters() if id(parameter) not in own]


def self_updating(net: torch.nn.Module) -> list[torch.nn.Module]:
    """Return the modules of a model that update their parameters in the backward pass."""
    return [module for module in net.modules() if getattr(module, "updates_in_backward", False)]


def describe_optimiser(optimiser: torch.optim.Optimizer) -> str:
    """Return the name of an optimiser with its options, for records."""
    return f"{type(optimiser).__name__}({', '.join(f'{name}={value!r}' for name, value in optimiser.defaults.items())})"


def step_size_of(
    schedule: Schedule | str | float | None,
    optimiser: torch.optim.Optimizer,
    samples: int,
    budget: Budget,
    total: int,
) -> StepSize:
    """Return the step sizes of each parameter group over the run.

    A schedule with its own step size, and a function, replaces that of the first group. The other groups keep their
    ratio to the first.
    """
    steps = tuple(float(group["lr"]) for group in optimiser.param_groups)
    if schedule is None:
        return StepSize(None, steps, samples, budget.epochs, budget.seconds)
    found: Schedule = with_total(schedules.named(schedule), total)
    if isinstance(found, TorchSchedule):
        found = found.bound(optimiser)
    if found.needs_stall or isinstance(found, schedules.Optimal):
        raise ParameterError(f"The schedule {found!r} is not for a Module. Use for example 'cosine' or Steps(...).")
    if step_of(found) == "auto":
        return StepSize(with_step(found, 1.0), steps, samples, budget.epochs, budget.seconds)
    return StepSize(
        found, tuple(own / steps[0] if steps[0] else 1.0 for own in steps), samples, budget.epochs, budget.seconds
    )


def check_gradients(job: Job) -> None:
    """Raise ParameterError if the strategy exchanges gradients and the model has modules that never make any."""
    assert isinstance(job.problem, Module)
    if self_updating(job.problem.net) and (job.runtime.passes_messages or job.strategy.uses_all_reduce):
        raise ParameterError(
            "A table that is updated in the backward pass has no gradient to exchange: train it in one memory, with "
            f"runtime=Processes() and Hogwild(), Averaging() or Serial(). Got {job.strategy!r} instead."
        )


def scale_schedule(
    schedule: Schedule | str | float | None, recipe: LargeMinibatch | None
) -> Schedule | str | float | None:
    """Return the schedule of a run, scaled linearly with the batch size if there is a recipe."""
    if recipe is None:
        return schedule
    then = Constant() if schedule is None else schedules.named(schedule)
    if scales(then):
        raise ParameterError(
            f"The schedule {then!r} scales the step with the batch, and so does the recipe LargeMinibatch: leave out "
            "one of them."
        )
    return LinearScaling(then, recipe.reference, None, recipe.warmup)


def exclude_norms_from_decay(optimiser: torch.optim.Optimizer, net: nn.Module) -> None:
    """Remove weight decay from the parameters of normalisation layers, and put these into a group of their own.

    >>> net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    >>> sgd = torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=1e-4)
    >>> exclude_norms_from_decay(sgd, net)
    >>> [(len(group["params"]), group["weight_decay"]) for group in sgd.param_groups]
    [(2, 0.0001), (2, 0.0)]
    """
    norms = {
        id(parameter)
        for module in net.modules() if isinstance(module, NORMS)
        for parameter in module.parameters(recurse=False)
    }  # fmt: skip
    for group in list(optimiser.param_groups):
        spared = [parameter for parameter in group["params"] if id(parameter) in norms]
        if not spared or not group.get("weight_decay"):
            continue
        group["params"] = [parameter for parameter in group["params"] if id(parameter) not in norms]
        optimiser.add_param_group({**group, "params": spared, "weight_decay": 0.0})
