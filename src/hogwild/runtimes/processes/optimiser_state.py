"""Optimiser state, allocated before the first step so that all workers can share it.

PyTorch's optimisers allocate their state in their first step. Each worker would then have a state of its own: a
momentum or variance of its own gradients only, and a count of its own steps only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from hogwild.errors import ParameterError

Group = Mapping[str, Any]
Fill = Callable[[Tensor, Group], Tensor]


def _zeros(tensor: Tensor, group: Group) -> Tensor:
    return torch.zeros_like(tensor, memory_format=torch.preserve_format)


def _count(tensor: Tensor, group: Group) -> Tensor:
    device = tensor.device if group.get("capturable") or group.get("fused") else "cpu"
    return torch.zeros((), dtype=torch.float32, device=device)


def _exact_count(tensor: Tensor, group: Group) -> Tensor:
    """Return a step count in float64, for SparseAdam, which computes 1 - 0.999**step in the count's own type.

    In float32 this difference has few significant digits.
    """
    return torch.zeros((), dtype=torch.float64)


def _one(tensor: Tensor, group: Group) -> Tensor:
    return torch.ones((), dtype=torch.float32, device=tensor.device if group.get("capturable") else "cpu")


# State of each optimiser for one parameter: the function that makes the initial tensor, and an option or None. The
# tensor exists only if that option is set; with None it always exists.
_MOMENTS: dict[str, tuple[Fill, str | None]] = {
    "step": (_count, None), "exp_avg": (_zeros, None), "exp_avg_sq": (_zeros, None),
}  # fmt: skip
STATE_TENSORS: dict[str, dict[str, tuple[Fill, str | None]]] = {
    "SGD": {"momentum_buffer": (_zeros, "momentum")},
    "SGDW": {"momentum_buffer": (_zeros, "momentum")},  # of hogwild.nn
    "Adam": {**_MOMENTS, "max_exp_avg_sq": (_zeros, "amsgrad")},
    "AdamW": {**_MOMENTS, "max_exp_avg_sq": (_zeros, "amsgrad")},
    "SparseAdam": {**_MOMENTS, "step": (_exact_count, None)},
    "RAdam": _MOMENTS,
    "NAdam": {**_MOMENTS, "mu_product": (_one, None)},
    "Adamax": {"step": (_count, None), "exp_avg": (_zeros, None), "exp_inf": (_zeros, None)},
    "Adadelta": {"step": (_count, None), "square_avg": (_zeros, None), "acc_delta": (_zeros, None)},
    "Adagrad": {},  # The constructor of Adagrad allocates its state.
    "RMSprop": {
        "step": (_count, None), "square_avg": (_zeros, None), "momentum_buffer": (_zeros, "momentum"),
        "grad_avg": (_zeros, "centered"),
    },
}  # fmt: skip


def has_shareable_state(optimiser: torch.optim.Optimizer) -> bool:
    """Return whether workers can share an optimiser's state; otherwise each worker has a state of its own."""
    kind = type(optimiser)
    return kind.__module__.startswith(("torch.optim", "hogwild.nn")) and kind.__name__ in STATE_TENSORS


def allocate_state(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    """Allocate an optimiser's state with its values before the first step; return the state's tensors.

    Raise :class:`ParameterError` for SGD with dampening, because its momentum begins with the first gradient, undamped.

    >>> weight = torch.nn.Parameter(torch.ones(2))
    >>> adam = torch.optim.Adam([weight])
    >>> [tuple(tensor.shape) for tensor in allocate_state(adam)], sorted(adam.state[weight])
    ([(), (2,), (2,)], ['exp_avg', 'exp_avg_sq', 'step'])
    """
    if not has_shareable_state(optimiser):
        return []
    parts = STATE_TENSORS[type(optimiser).__name__]
    for group in optimiser.param_groups:
        if group.get("momentum") and group.get("dampening"):
            raise ParameterError(
                "SGD with dampening begins its momentum with the first gradient, undamped, and workers that share a "
                "momentum have no first one. Use dampening=0."
            )
        for parameter in (one for one in group["params"] if one.requires_grad):
            state = optimiser.state[parameter]
            for name, (fill, option) in parts.items():
                if name not in state and (option is None or group[option]):
                    state[name] = fill(parameter, group)
    return state_tensors(optimiser)


def unallocated_bytes(optimiser: torch.optim.Optimizer) -> int:
    """Return the number of bytes that :func:`allocate_state` is going to allocate.

    It is 0 for an optimiser whose state is not known.

    >>> unallocated_bytes(torch.optim.Adam([torch.nn.Parameter(torch.ones(100))]))
    804
    """
    parts = STATE_TENSORS[type(optimiser).__name__] if has_shareable_state(optimiser) else {}
    size = 0
    for group in optimiser.param_groups:
        for parameter in (one for one in group["params"] if one.requires_grad and not is_lazy(one)):
            like = torch.empty_like(parameter, device="meta")
            for name, (fill, option) in parts.items():
                if name not in optimiser.state.get(parameter, {}) and (option is None or group[option]):
                    size += fill(like, group).nbytes
    return size


def state_tensors(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    """Return all tensors of an optimiser's state."""
    return [
        value for state in optimiser.state.values() for value in state.values() if isinstance(value, Tensor)
    ]  # fmt: skip


def make_optimiser(
    rule: torch.optim.Optimizer | Callable[..., object], parameters: Iterable[Tensor]
) -> torch.optim.Optimizer:
    """Return an optimiser made by a class or a factory; return an existing optimiser unchanged.

    Raise :class:`ParameterError` if the factory makes anything else.
    """
    if isinstance(rule, torch.optim.Optimizer):
        return rule
    optimiser = rule(list(parameters))
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise ParameterError(
            "The rule of a Module is an optimiser class or a function of the parameters that makes one, such as "
            f"functools.partial(torch.optim.Adam, lr=1e-3). Got {rule!r}, which makes {type(optimiser).__name__}."
        )
    return optimiser
