"""Momentum correction when the step size changes (Goyal et al. 2017)."""

from __future__ import annotations

from typing import Any

import torch

GATHERED = "momentum_buffer"  # name of the momentum in the state of PyTorch's optimisers: a sum of gradients, not steps


def set_step_with_correction(
    optimiser: torch.optim.Optimizer, group: dict[str, Any], step: float, correction: bool
) -> None:
    """Set the step size of a parameter group, with or without momentum correction.

    Goyal et al. 2017 write momentum in two ways: ``u = m u + g, w = w - step u`` (their equation 9) and
    ``v = m v + step g, w = w - v`` (10). For a constant step size the two are equal. When the step size changes, form
    (10) must multiply its momentum by new / old ("momentum correction"). Otherwise the momentum acts as if the old step
    size still held. Form (9) needs no correction.

    PyTorch's optimisers have the form (9). With the correction their momentum is left unchanged; without the
    correction it is multiplied by old / new. An optimiser of the form (10) has an attribute ``gathers_steps``, the name
    of the momentum in its state.

    >>> weight = torch.nn.Parameter(torch.zeros(1))
    >>> sgd = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    >>> sgd.state[weight]["momentum_buffer"] = torch.ones(1)
    >>> set_step_with_correction(sgd, sgd.param_groups[0], 0.2, correction=True); sgd.state[weight]["momentum_buffer"]
    tensor([1.])
    >>> set_step_with_correction(sgd, sgd.param_groups[0], 0.8, correction=False); sgd.state[weight]["momentum_buffer"]
    tensor([0.2500])
    """
    before, group["lr"] = float(group["lr"]), step
    if step == before or not step or not before:
        return
    steps = getattr(optimiser, "gathers_steps", None)
    if (steps is not None) != correction:
        return
    for parameter in group["params"]:
        gathered = optimiser.state.get(parameter, {}).get(steps or GATHERED)
        if gathered is not None:
            gathered.mul_(step / before if steps else before / step)
