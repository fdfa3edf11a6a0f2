"""Parameters of a PyTorch model as one vector."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from hogwild.errors import ParameterError
from hogwild.messaging.deltas import Floats


class FlatParameters:
    """Floating-point numbers of a model as one vector in single precision: its parameters, then its buffers.

    Integer buffers, such as a count of batches, are left out.

    >>> net = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
    >>> flat = FlatParameters(net)
    >>> flat.parameters, flat.size
    (5, 7)
    >>> flat.put(np.arange(7, dtype=np.float32)); net[0].bias.item(), net[1].running_var.item()
    (2.0, 6.0)
    """

    def __init__(self, net: nn.Module) -> None:
        numbers = [*net.parameters(), *net.buffers()]
        if any(tensor.is_complex() for tensor in numbers):
            raise ParameterError("Complex numbers cannot be sent: keep their real and imaginary parts in the model.")
        parameters = [tensor for tensor in net.parameters() if tensor.is_floating_point()]
        self._parameters = len(parameters)
        self._tensors = [*parameters, *(tensor for tensor in net.buffers() if tensor.is_floating_point())]
        self.parameters = sum(tensor.numel() for tensor in parameters)
        self.size = sum(tensor.numel() for tensor in self._tensors)

    def values(self) -> Floats:
        """Return a copy of all numbers as one vector."""
        values = np.empty(self.size, np.float32)
        whole, first = torch.from_numpy(values), 0
        for tensor in self._tensors:
            whole[first : first + tensor.numel()].copy_(tensor.detach().reshape(-1))
            first += tensor.numel()
        return values

    @torch.no_grad()
    def put(self, values: Floats, buffers: bool = True) -> None:
        """Copy a vector into the model's parameters and, with ``buffers``, into its buffers."""
        # Received arrays are read-only, and PyTorch accepts only writable ones.
        whole, first = torch.from_numpy(np.array(values, np.float32)), 0
        for tensor in self._tensors if buffers else self._tensors[: self._parameters]:
            tensor.copy_(whole[first : first + tensor.numel()].view_as(tensor))
            first += tensor.numel()
