"""Concurrent steps of optimisers that divide one part of their state by another, such as Adam.

Adam steps along the mean of the gradients, divided by the root of the mean of their squares. PyTorch updates the mean
first, for a whole tensor, and then the mean of squares. Between the two updates another worker can read a coordinate's
first gradient in the mean, and zero in the mean of squares. That worker then divides by zero and moves the coordinate
far away.

So fused Adam and AdamW update everything that belongs to a coordinate at once. In main memory they also bound the
effect of half a step. With the other optimisers that divide, one worker at a time takes its step. In all cases workers
compute gradients without waiting.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from hogwild.runtimes.processes.bounded_adam import bounded, can_be_bounded

FUSED = ("Adam", "AdamW")  # optimisers with a fused step in PyTorch that is used here
DIVIDES = (*FUSED, "NAdam", "RAdam", "Adamax", "SparseAdam")  # optimisers that divide one part of the state by another


def fuse(optimiser: torch.optim.Optimizer) -> None:
    """Switch an optimiser to PyTorch's fused step, where PyTorch has one and the user has chosen no other.

    A fused step writes everything that belongs to a coordinate at once.

    >>> adam = torch.optim.Adam([torch.nn.Parameter(torch.ones(2))])
    >>> fuse(adam)
    >>> adam.param_groups[0]["fused"], needs_step_lock(adam)
    (True, False)
    """
    if type(optimiser).__name__ not in FUSED:
        return
    for group in optimiser.param_groups:
        chosen = group.get("fused") is not None or group.get("foreach") or group.get("differentiable")
        if not chosen and all(_can_be_fused(one, optimiser.state.get(one, {})) for one in group["params"]):
            group["fused"] = True


def needs_step_lock(optimiser: torch.optim.Optimizer) -> bool:
    """Return whether only one worker at a time may take a step.

    >>> weight = torch.nn.Parameter(torch.ones(2))
    >>> needs_step_lock(torch.optim.Adamax([weight])), needs_step_lock(torch.optim.SGD([weight], momentum=0.9))
    (True, False)
    """
    name = type(optimiser).__name__
    if name == "RMSprop":
        # Centred RMSprop computes a variance as the difference of two means; half a step can make it negative.
        return any(group["centered"] for group in optimiser.param_groups)
    return name in DIVIDES and not (can_be_bounded(optimiser) or _fused_on_gpu(optimiser))


def concurrent_steps(optimiser: torch.optim.Optimizer) -> AbstractContextManager[None]:
    """Return a context in which an optimiser's steps tolerate half-finished steps of other workers."""
    return bounded(optimiser) if can_be_bounded(optimiser) else nullcontext()


def _fused_on_gpu(optimiser: torch.optim.Optimizer) -> bool:
    return all(
        group.get("fused") and all(one.device.type != "cpu" for one in group["params"])
        for group in optimiser.param_groups
    )  # fmt: skip


def _can_be_fused(parameter: Tensor, state: dict[str, Any]) -> bool:
    count = state.get("step")
    fits = count is None or (count.dtype == torch.float32 and count.device == parameter.device)
    return fits and parameter.is_floating_point() and parameter.is_contiguous()
