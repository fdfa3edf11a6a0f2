"""Steps that several workers can take at once, by optimisers that divide one thing they remember by another.

Adam steps along the mean of the gradients, divided by the root of the mean of their squares. PyTorch brings first the
one up to date, for a whole tensor, and then the other. A worker that looks in between finds the first gradient of a
coordinate in the one and nothing in the other: it divides by nothing, and throws the coordinate far away. So Adam and
AdamW write all that belongs to a coordinate at once, and in main memory bound what half of a step could do; of the
others one takes its step at a time. Either way gradients are computed without waiting.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from hogwild.runtimes.processes.bounded_adam import bounded, can_be_bounded

FUSED = ("Adam", "AdamW")
DIVIDES = (*FUSED, "NAdam", "RAdam", "Adamax", "SparseAdam")


def fuse(optimiser: torch.optim.Optimizer) -> None:
    """Let an optimiser write all that belongs to a coordinate at once, where PyTorch can, unless told otherwise.

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
    """Whether only one worker may take a step at any time.

    >>> weight = torch.nn.Parameter(torch.ones(2))
    >>> needs_step_lock(torch.optim.Adamax([weight])), needs_step_lock(torch.optim.SGD([weight], momentum=0.9))
    (True, False)
    """
    name = type(optimiser).__name__
    if name == "RMSprop":  # the variance, as the difference of two means, must not be less than nothing
        return any(group["centered"] for group in optimiser.param_groups)
    return name in DIVIDES and not (can_be_bounded(optimiser) or _fused_on_gpu(optimiser))


def concurrent_steps(optimiser: torch.optim.Optimizer) -> AbstractContextManager[None]:
    """Let an optimiser take its steps in the block so that other workers' halves of steps do no harm."""
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
