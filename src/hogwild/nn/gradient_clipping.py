"""Clipping of gradients, by their norm or by the size of each number, before the optimiser's step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True)
class ClipNorm:
    """Clipping by norm: all gradients of a step are scaled by one factor, so that their joint norm is at most this.

    Parameters
    ----------
    max_norm : float
        Largest norm of the gradients of all parameters of the optimiser together.
    norm_type : float, default 2.0
        Order of the norm; ``float("inf")`` is the largest absolute value.

    Raises
    ------
    ParameterError
        If ``max_norm`` or ``norm_type`` is not a positive number.

    Examples
    --------
    >>> weight = torch.nn.Parameter(torch.zeros(2))
    >>> weight.grad = torch.tensor([3.0, 4.0])
    >>> ClipNorm(1.0)(torch.optim.SGD([weight]))
    >>> weight.grad
    tensor([0.6000, 0.8000])
    """

    max_norm: float
    norm_type: float = 2.0

    def __post_init__(self) -> None:
        _check_positive("max_norm", self.max_norm)
        if self.norm_type != float("inf"):
            _check_positive("norm_type", self.norm_type)

    def __call__(self, optimiser: torch.optim.Optimizer) -> None:
        """Clip the gradients of the parameters of an optimiser, in place."""
        clip_grad_norm_(list(_with_gradients(optimiser)), self.max_norm, self.norm_type)


@dataclass(frozen=True, slots=True)
class ClipValue:
    """Clipping by value: each number of a gradient is cut to ``[-max_value, max_value]``.

    Parameters
    ----------
    max_value : float
        Largest absolute value of each number of a gradient.

    Raises
    ------
    ParameterError
        If ``max_value`` is not a positive number.

    Examples
    --------
    >>> weight = torch.nn.Parameter(torch.zeros(2))
    >>> weight.grad = torch.tensor([3.0, -0.5])
    >>> ClipValue(1.0)(torch.optim.SGD([weight]))
    >>> weight.grad
    tensor([ 1.0000, -0.5000])
    """

    max_value: float

    def __post_init__(self) -> None:
        _check_positive("max_value", self.max_value)

    def __call__(self, optimiser: torch.optim.Optimizer) -> None:
        """Clip the gradients of the parameters of an optimiser, in place."""
        clip_grad_value_(list(_with_gradients(optimiser)), self.max_value)


def clip_of(clip: object) -> ClipNorm | ClipValue | None:
    """Return the clipping that a parameter ``clip`` stands for: a number is the largest norm, None clips nothing.

    >>> clip_of(1), clip_of(None)
    (ClipNorm(max_norm=1.0, norm_type=2.0), None)
    """
    if clip is None or isinstance(clip, (ClipNorm, ClipValue)):
        return clip
    if isinstance(clip, bool) or not isinstance(clip, Real):
        raise invalid_parameter("clip", "a number (the largest norm), ClipNorm(...), ClipValue(...) or None", clip)
    _check_positive("clip", clip)
    return ClipNorm(float(clip))


def _with_gradients(optimiser: torch.optim.Optimizer) -> Iterator[Tensor]:
    """Yield tensors whose ``grad`` are the gradients of an optimiser's parameters; of sparse ones, their values."""
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            if not parameter.grad.is_sparse:
                yield parameter
                continue
            # The values of a row that occurs several times have to be added before they are compared with a limit.
            parameter.grad = parameter.grad.coalesce()
            values = parameter.grad.values()
            holder = torch.empty_like(values)
            holder.grad = values
            yield holder


def _check_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < float("inf"):
        raise invalid_parameter(name, "a positive number", value)
