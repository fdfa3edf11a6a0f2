"""Optimiser steps that workers apply to the same memory: fused, locked, or bounded so that races stay harmless.

The user's optimiser object stays in use. A hook before its step takes the bounded step and removes the gradients, so
that PyTorch's own step has no effect. A hook after the step restores the gradients. Hence schedulers of the step size
and other hooks see the same optimiser and the same calls as without the bound.

Adam steps along the mean of the gradients, divided by the root of the mean of their squares. PyTorch updates the mean
first, for a whole tensor, and then the mean of squares. Between the two updates another worker can read a coordinate's
first gradient in the mean, and zero in the mean of squares. That worker then divides by zero and moves the coordinate
far away.

So fused Adam and AdamW update everything that belongs to a coordinate at once. In main memory they also bound the
effect of half a step. With the other optimisers that divide, one worker at a time takes its step. In all cases workers
compute gradients without waiting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hogwild.kernels import adam

KINDS = (torch.optim.Adam, torch.optim.AdamW)
CHUNK = 1 << 19  # smallest number of coordinates that is worth a thread of its own


def can_be_bounded(optimiser: torch.optim.Optimizer) -> bool:
    """Return whether the bounded step can update all parameters of an optimiser.

    It can if the optimiser is fused Adam or AdamW, and if all its parameters are contiguous tensors of float32 or
    float64 in main memory. Its betas must have a finite bound.

    >>> adam = torch.optim.Adam([torch.nn.Parameter(torch.ones(2))], fused=True)
    >>> can_be_bounded(adam), can_be_bounded(torch.optim.Adam(adam.param_groups[0]["params"]))
    (True, False)
    """
    return type(optimiser) in KINDS and all(map(_fits, optimiser.param_groups))


@contextmanager
def bounded(optimiser: torch.optim.Optimizer) -> Iterator[None]:
    """Replace the steps of an optimiser by bounded steps within the block; see :func:`can_be_bounded`."""
    steps = _Steps(optimiser)
    hooks = optimiser.register_step_pre_hook(steps.before), optimiser.register_step_post_hook(steps.after)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        steps.after()  # A step that raised has not restored the gradients.
        steps.pool.shutdown()


class _Steps:
    def __init__(self, optimiser: torch.optim.Optimizer) -> None:
        self._optimiser, self._aside = optimiser, list[tuple[Tensor, Tensor]]()
        self.pool = ThreadPoolExecutor(torch.get_num_threads())  # The pool starts each thread on first use.

    @torch.no_grad()
    def before(
        self, optimiser: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Take the bounded step and remove the gradients, so that PyTorch's own step has no effect."""
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self._optimiser.param_groups:
            for parameter in group["params"]:
                # Sparse gradients are left to PyTorch's step, which raises an error for them.
                if parameter.grad is not None and not parameter.grad.is_sparse:
                    self._step(parameter, group, self._optimiser.state[parameter])
                    self._aside.append((parameter, parameter.grad))
                    parameter.grad = None
        return None if closure is None else ((args[0], lambda: loss), {})

    def after(self, *_: object) -> None:
        """Restore the gradients, which the user may read after the step."""
        for parameter, gradient in self._aside:
            parameter.grad = gradient
        self._aside.clear()

    def _step(self, parameter: Tensor, group: Mapping[str, Any], state: dict[str, Tensor]) -> None:
        assert parameter.grad is not None
        state["step"] += 1
        decoupled = isinstance(self._optimiser, torch.optim.AdamW) or group.get("decoupled_weight_decay", False)
        constants = _constants(group, state["step"].item(), decoupled)
        of_all = parameter.detach(), parameter.grad.detach().contiguous(), state["exp_avg"], state["exp_avg_sq"]
        each = [tensor.numpy().reshape(-1) for tensor in of_all]
        each.append(state["max_exp_avg_sq"].numpy().reshape(-1) if group["amsgrad"] else each[-1])
        known = np.array(constants, each[0].dtype)
        if parameter.numel() < 2 * CHUNK or torch.get_num_threads() == 1:
            adam.step(*each, group["amsgrad"], known)
            return
        size = max(CHUNK, -(-parameter.numel() // torch.get_num_threads()))
        parts = [[array[at : at + size] for array in each] for at in range(0, parameter.numel(), size)]
        list(self.pool.map(lambda part: adam.step(*part, group["amsgrad"], known), parts))


def _fits(group: Mapping[str, Any]) -> bool:
    beta1, beta2 = map(float, group["betas"])
    return (
        bool(group["fused"]) and math.isfinite(adam.bound(beta1, beta2)) and all(map(_can_be_stepped, group["params"]))
    )


def _can_be_stepped(parameter: Tensor) -> bool:
    known = parameter.dtype in (torch.float32, torch.float64)
    return known and parameter.device.type == "cpu" and parameter.is_contiguous()


def _constants(group: Mapping[str, Any], count: float, decoupled: bool) -> list[float]:
    beta1, beta2 = map(float, group["betas"])
    rate, decay = float(group["lr"]), float(group["weight_decay"])
    return [
        rate / (1 - beta1**count), beta1, beta2, float(group["eps"]), 0.0 if decoupled else decay,
        1 - rate * decay if decoupled else 1.0, -1.0 if group["maximize"] else 1.0, 1 / math.sqrt(1 - beta2**count),
        adam.bound(beta1, beta2),
    ]  # fmt: skip


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
