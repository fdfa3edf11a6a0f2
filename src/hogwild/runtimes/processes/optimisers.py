"""What optimisers remember, laid out before the first step, so that all workers can share it.

PyTorch's optimisers make their memory at their first step. Each worker would make its own: a momentum, or a variance,
of the gradients it saw alone, and a count of its own steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from hogwild.errors import ParameterError

Group = Mapping[str, Any]
Fill = Callable[[Tensor, Group], Tensor]


def _zeros(tensor: Tensor, group: Group) -> Tensor:
    return torch.zeros_like(tensor, memory_format=torch.preserve_format)


def _count(tensor: Tensor, group: Group) -> Tensor:
    device = tensor.device if group.get("capturable") or group.get("fused") else "cpu"
    return torch.zeros((), dtype=torch.float32, device=device)


def _exact_count(tensor: Tensor, group: Group) -> Tensor:
    """For one that reckons with its count as it is: 1 - 0.999**step has few digits left in float32."""
    return torch.zeros((), dtype=torch.float64)


def _one(tensor: Tensor, group: Group) -> Tensor:
    return torch.ones((), dtype=torch.float32, device=tensor.device if group.get("capturable") else "cpu")


# What each remembers of a parameter, how that begins, and the option, if any, without which it is not there.
_MOMENTS: dict[str, tuple[Fill, str | None]] = {
    "step": (_count, None), "exp_avg": (_zeros, None), "exp_avg_sq": (_zeros, None),
}  # fmt: skip
MEMORIES: dict[str, dict[str, tuple[Fill, str | None]]] = {
    "SGD": {"momentum_buffer": (_zeros, "momentum")},
    "Adam": {**_MOMENTS, "max_exp_avg_sq": (_zeros, "amsgrad")},
    "AdamW": {**_MOMENTS, "max_exp_avg_sq": (_zeros, "amsgrad")},
    "SparseAdam": {**_MOMENTS, "step": (_exact_count, None)},
    "RAdam": _MOMENTS,
    "NAdam": {**_MOMENTS, "mu_product": (_one, None)},
    "Adamax": {"step": (_count, None), "exp_avg": (_zeros, None), "exp_inf": (_zeros, None)},
    "Adadelta": {"step": (_count, None), "square_avg": (_zeros, None), "acc_delta": (_zeros, None)},
    "Adagrad": {},  # makes its memory when it is made
    "RMSprop": {
        "step": (_count, None), "square_avg": (_zeros, None), "momentum_buffer": (_zeros, "momentum"),
        "grad_avg": (_zeros, "centered"),
    },
}  # fmt: skip


# Optimisers whose steps others cannot spoil by what they have half written, and those that can step in one pass.
DIVIDE_THEIR_OWN = ("SGD", "Adagrad", "RMSprop", "Adadelta")
FUSED = ("Adam", "AdamW")


def shares_memory(optimiser: torch.optim.Optimizer) -> bool:
    """Whether workers can share what an optimiser remembers; others have a memory each."""
    return type(optimiser).__module__.startswith("torch.optim") and type(optimiser).__name__ in MEMORIES


def lay_out(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    """Let an optimiser have all it will remember, as it is before the first step; return those tensors.

    >>> weight = torch.nn.Parameter(torch.ones(2))
    >>> adam = torch.optim.Adam([weight])
    >>> [tuple(tensor.shape) for tensor in lay_out(adam)], sorted(adam.state[weight])
    ([(), (2,), (2,)], ['exp_avg', 'exp_avg_sq', 'step'])
    """
    if not shares_memory(optimiser):
        return []
    memory = MEMORIES[type(optimiser).__name__]
    for group in optimiser.param_groups:
        if group.get("momentum") and group.get("dampening"):
            raise ParameterError(
                "SGD with dampening begins its momentum with the first gradient, undamped, and workers that share a "
                "momentum have no first one. Use dampening=0."
            )
        for parameter in (one for one in group["params"] if one.requires_grad):
            state = optimiser.state[parameter]
            for name, (fill, option) in memory.items():
                if name not in state and (option is None or group[option]):
                    state[name] = fill(parameter, group)
    return remembered(optimiser)


def steps_whole(optimiser: torch.optim.Optimizer) -> bool:
    """See that a step is safe while others take theirs; say whether it is, or needs a lock.

    Adam writes the mean of the gradients in one pass over a tensor, that of their squares in a second, and divides in a
    third. Somebody who comes in between finds the one without the other: where the squares are still zero his step is a
    million times too large, and the model is lost. (Four workers on two cores: in two runs of three.) PyTorch's fused
    implementation does it all in one pass, and is taken where there is one. Optimisers that divide their own gradient
    by something they have just added it to need no such care; the others must step one at a time.

    >>> adam = torch.optim.Adam([torch.nn.Parameter(torch.ones(2))])
    >>> steps_whole(adam), adam.param_groups[0]["fused"]
    (True, True)
    """
    name = type(optimiser).__name__
    if not shares_memory(optimiser) or name in DIVIDE_THEIR_OWN:
        return not any(group.get("centered") for group in optimiser.param_groups)
    if name not in FUSED or not all(_can_be_fused(group) for group in optimiser.param_groups):
        return False
    for group in (*optimiser.param_groups, optimiser.defaults):
        group["fused"], group["foreach"] = True, False
    return True


def _can_be_fused(group: Group) -> bool:
    asked_otherwise = group.get("foreach") or group.get("fused") is False or group.get("differentiable")
    kinds = {(tensor.device.type, tensor.is_floating_point()) for tensor in group["params"]}
    return not asked_otherwise and kinds <= {("cpu", True), ("cuda", True)}


def remembered(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    """All tensors an optimiser has of its own."""
    return [
        value for state in optimiser.state.values() for value in state.values() if isinstance(value, Tensor)
    ]  # fmt: skip


def made(rule: Any, parameters: Iterable[Any]) -> torch.optim.Optimizer:
    """An optimiser from a class, a factory, or a name; one that exists already is taken as it is."""
    if isinstance(rule, torch.optim.Optimizer):
        return rule
    optimiser = rule(list(parameters))
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise ParameterError(
            "The rule of a Module is an optimiser class or a function of the parameters that makes one, such as "
            f"functools.partial(torch.optim.Adam, lr=1e-3). Got {rule!r}, which makes {type(optimiser).__name__}."
        )
    return optimiser
