"""Recipe for large minibatches (Goyal et al. 2017): scaled schedule, and no weight decay of normalisation layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from hogwild import schedules
from hogwild.errors import ParameterError
from hogwild.schedules import Constant, LinearScaling, scales
from hogwild.strategies import LargeMinibatch

# ``_NormBase`` is the base class of batch and instance normalisation.
NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)


def scale_schedule(schedule: Any, recipe: LargeMinibatch | None) -> Any:
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
