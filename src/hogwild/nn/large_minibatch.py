"""Large minibatches in a network and its optimiser (Goyal et al. 2017): zero gammas, and decoupled weight decay."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter

# ``_NormBase`` is the base class of batch and instance normalisation.
NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)
# Names of the classes of residual blocks in torchvision and in most code that follows it.
BLOCKS = ("BasicBlock", "Bottleneck")


def zero_last_gammas(net: nn.Module, layers: Iterable[str] | str | None = None) -> list[str]:
    """Set gamma, the scale, of the last normalisation of each residual block to zero (Goyal et al. 2017, section 5.1).

    Each block is then the identity at the start, which eases the first steps of large minibatches. Call the function
    before training, on a network whose blocks add their input to the output of that layer.

    Blocks are found by the names of torchvision: classes ``BasicBlock`` and ``Bottleneck``, and classes derived from
    them, whose last normalisation is the one with the largest number in its name (``bn2``, ``bn3``).

    Parameters
    ----------
    net : torch.nn.Module
        Network, whose parameters are changed in place.
    layers : str or iterable of str, optional
        Names of the normalisation layers, as in ``net.named_modules()``; ``*`` stands for any part of a name. Left out,
        the function finds the blocks by itself.

    Returns
    -------
    list of str
        Names of the layers that were changed.

    Raises
    ------
    ParameterError
        If there is no such layer, or if a layer has no scale.

    Examples
    --------
    >>> class BasicBlock(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.conv1, self.bn1 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
    ...         self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
    >>> zero_last_gammas(nn.Sequential(BasicBlock(), BasicBlock()))
    ['0.bn2', '1.bn2']
    >>> zero_last_gammas(nn.Sequential(BasicBlock(), BasicBlock()), layers="0.bn*")
    ['0.bn1', '0.bn2']

    References
    ----------
    P. Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour", 2017.
    """
    found = _last_norms(net) if layers is None else _named_norms(net, [layers] if isinstance(layers, str) else layers)
    if not found:
        raise ParameterError(
            f"{type(net).__name__} has no residual blocks named as in torchvision ({' or '.join(BLOCKS)}): name the "
            "last normalisation of each block, such as layers='*.norm2'."
        )
    for name, layer in found.items():
        scale = layer.weight
        if scale is None:
            raise ParameterError(f"The layer {name!r} has no scale: give it affine=True, or leave it out of 'layers'.")
        with torch.no_grad():
            scale.zero_()
    return list(found)


def _last_norms(net: nn.Module) -> dict[str, Any]:
    """Return the last normalisation of each residual block, by name."""
    found: dict[str, Any] = {}
    for name, block in net.named_modules():
        if not any(kind.__name__ in BLOCKS for kind in type(block).__mro__):
            continue
        norms = {}
        for child, layer in block.named_children():
            number = re.search(r"(\d+)$", child)
            if isinstance(layer, NORMS) and number:
                norms[int(number[1])] = child, layer
        if norms:
            child, layer = norms[max(norms)]
            found[f"{name}.{child}" if name else child] = layer
    return found


def _named_norms(net: nn.Module, patterns: Iterable[str]) -> dict[str, Any]:
    """Return the normalisation layers whose names match the patterns, by name."""
    norms: dict[str, Any] = {name: layer for name, layer in net.named_modules() if isinstance(layer, NORMS)}
    found: dict[str, Any] = {}
    for pattern in patterns:
        matching = {name: layer for name, layer in norms.items() if fnmatchcase(name, pattern)}
        if not matching:
            raise invalid_parameter("layers", "names of normalisation layers of the network", pattern, norms)
        found |= matching
    return found


class SGDW(torch.optim.SGD):
    """SGD with weight decay that is independent of the step size (Loshchilov and Hutter 2019).

    Each step first multiplies all weights by ``1 - weight_decay``, and then moves them along the gradient or the
    momentum. PyTorch's own SGD adds ``weight_decay * weight`` to the gradient instead. There the decay of a step is
    proportional to the step size, and is a part of the momentum. Schedules and :class:`hogwild.LinearScaling` leave
    the decay of a step here as it is.

    Parameters
    ----------
    params : iterable
        Parameters, or groups of them.
    lr : float, default 1e-3
        Step size.
    momentum : float, default 0.0
        Momentum.
    weight_decay : float, default 1e-5
        Share of each weight that a step removes, at least 0 and below 1.
    **options
        Other options of ``torch.optim.SGD``: ``dampening``, ``nesterov`` and ``maximize``.

    Raises
    ------
    ParameterError
        If ``weight_decay`` is out of its range.

    Examples
    --------
    >>> weight = nn.Parameter(torch.ones(1))
    >>> weight.grad = torch.zeros(1)
    >>> SGDW([weight], lr=0.001, weight_decay=0.25).step()
    >>> weight.item()
    0.75

    References
    ----------
    I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization", ICLR 2019.
    """

    def __init__(
        self, params: Any, lr: float = 1e-3, momentum: float = 0.0, weight_decay: float = 1e-5, **options: Any
    ) -> None:
        if not 0 <= weight_decay < 1:
            raise invalid_parameter("weight_decay", "at least 0 and below 1", weight_decay)
        super().__init__(params, lr, momentum, weight_decay=weight_decay, **options)

    # A step is written out here, because a call of PyTorch's step would call the hooks of the optimiser again.
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Take one step, and return the loss if there is a ``closure`` that computes it."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                direction = self._direction(weight, group)
                if group["weight_decay"]:
                    weight.mul_(1 - group["weight_decay"])
                weight.add_(direction, alpha=group["lr"] if group["maximize"] else -group["lr"])
        return loss

    def _direction(self, weight: torch.Tensor, group: dict[str, Any]) -> torch.Tensor:
        gradient, momentum, state = weight.grad, group["momentum"], self.state[weight]
        assert gradient is not None
        if not momentum:
            return gradient
        gathered: torch.Tensor | None = state.get("momentum_buffer")
        if gathered is None:
            gathered = state["momentum_buffer"] = gradient.detach().clone()
        else:
            gathered.mul_(momentum).add_(gradient, alpha=1 - group["dampening"])
        return gradient.add(gathered, alpha=momentum) if group["nesterov"] else gathered
