"""What momentum has gathered, when the step changes."""

from __future__ import annotations

from typing import Any

import torch

GATHERED = "momentum_buffer"  # what PyTorch's optimisers gather: gradients, not steps


def set_step_with_correction(
    optimiser: torch.optim.Optimizer, group: dict[str, Any], step: float, correction: bool
) -> None:
    """Give a group of parameters another step.

    Goyal et al. 2017 write momentum in two ways: ``u = m u + g, w = w - step u`` (their equation 9) and
    ``v = m v + step g, w = w - v`` (10). While the step stays the same they are one. When it changes, (10) must
    multiply what it has gathered by new / old ("momentum correction"), or it is as if the old step still held; (9)
    need not. PyTorch's optimisers are of the form (9), so with the correction there is nothing to do for them, and
    without it what they have gathered is multiplied by old / new. An optimiser of the form (10) says so by an
    attribute ``gathers_steps``, the name of what it gathers in its state.

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
