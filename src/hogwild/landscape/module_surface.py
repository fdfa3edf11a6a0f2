"""Loss of a PyTorch model as a function of its parameters."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from hogwild.errors import ParameterError
from hogwild.landscape.surface import Vector
from hogwild.models.module import ModuleModel
from hogwild.problems.module import BATCH, MEASURED, Module
from hogwild.registry import invalid_parameter
from hogwild.run import Run
from hogwild.runtimes.processes import rng_state
from hogwild.training.torch_optimisers import self_updating


class ModuleSurface:
    """Mean loss of a ``Module`` over all samples of its data set, or of another data set.

    A vector holds all trainable parameters, tensor by tensor. The surface evaluates a copy of the net in evaluation
    mode and in the net's own precision. The copy has no dropout, and uses the current means of batch normalisation. The
    net itself keeps its parameters, gradients and buffers. A block is one filter (the part of a tensor that belongs to
    one output). A tensor of one dimension, such as a bias, is one block.
    """

    def __init__(self, problem: Module, data: object = None) -> None:
        if self_updating(problem.net):
            raise ParameterError(
                "A table that is updated in the backward pass has no gradient that one could look at: use "
                "nn.EmbeddingBag, or look at the loss alone with problem.measure()."
            )
        self._net, self._copy = problem.net, replace(problem, net=copy.deepcopy(problem.net).eval())
        self._feed = self._copy.feed(data)
        self._feed.options = {}  # read in this process, because reader processes would restart at each evaluation
        self._tensors = _trainable(self._copy.net)
        for tensor in self._tensors:
            tensor.grad = None
        if not self._tensors:
            raise invalid_parameter("problem", "a Module with parameters to learn", problem)

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(tensor.numel() for tensor in self._tensors)

    @property
    def blocks(self) -> tuple[slice, ...]:
        """The blocks: filters, and tensors of one dimension."""
        found, first = [], 0
        for tensor in self._tensors:
            parts = len(tensor) if tensor.dim() > 1 else 1
            each = tensor.numel() // max(1, parts)
            found += [slice(first + part * each, first + (part + 1) * each) for part in range(parts)]
            first += tensor.numel()
        return tuple(found)

    def at(self, run: Run | ModuleModel | nn.Module) -> Vector:
        """Return the parameters at the end of a run, or those of a net of the same shapes."""
        model = run.model if isinstance(run, Run) else run
        tensors = _trainable(model.net if isinstance(model, ModuleModel) else model)
        if [tensor.shape for tensor in tensors] != [tensor.shape for tensor in self._tensors]:
            raise invalid_parameter("run", "a run of this problem, or its net", type(model).__name__)
        return _flat(tensors)

    def loss(self, vector: Vector) -> float:
        """Compute the mean loss."""
        self._load(vector)
        total, count = 0.0, 0
        with torch.no_grad(), _fixed_seed():
            for loss, samples in self._losses():
                total += float(loss) * samples
                count += samples
        return total / count

    def gradient(self, vector: Vector) -> Vector:
        """Compute the derivative of the mean loss with respect to each parameter."""
        self._load(vector)
        found, count = np.zeros(self.size), 0
        with torch.enable_grad(), _fixed_seed():
            for loss, samples in self._losses():
                found += _flat(_slopes(loss, self._tensors)) * samples
                count += samples
        return found / count

    def times(self, vector: Vector, direction: Vector) -> Vector:
        """Compute the product of the Hessian with a direction, as the gradient of the directional derivative."""
        self._load(vector)
        ways = self._shaped(direction)
        found, count = np.zeros(self.size), 0
        with torch.enable_grad(), _fixed_seed():
            for loss, samples in self._losses():
                slopes = torch.autograd.grad(loss, self._tensors, create_graph=True, materialize_grads=True)
                along = torch.stack([(slope * way).sum() for slope, way in zip(slopes, ways, strict=True)]).sum()
                if along.requires_grad:  # a piecewise linear loss has a constant directional derivative
                    found += _flat(_slopes(along, self._tensors)) * samples
                count += samples
        return found / count

    def units(self, vector: Vector) -> Vector:
        """Return the root mean square of the tensor of each parameter, and 1 where that is zero."""
        units, first = np.ones(self.size), 0
        for tensor in self._tensors:
            part = slice(first, first + tensor.numel())
            size = float(np.sqrt(np.mean(np.square(vector[part])))) if tensor.numel() else 0.0
            units[part] = size or 1.0
            first += tensor.numel()
        return units

    def _losses(self) -> Iterator[tuple[Tensor, int]]:
        for batch in self._feed.in_order(MEASURED * (self._copy.batch or BATCH)):
            yield self._copy.loss(batch)

    def _shaped(self, vector: Vector) -> list[Tensor]:
        shaped, first = [], 0
        for tensor in self._tensors:
            part = torch.from_numpy(np.array(vector[first : first + tensor.numel()]))
            shaped.append(part.to(tensor.dtype).to(tensor.device).view(tensor.shape))
            first += tensor.numel()
        return shaped

    @torch.no_grad()
    def _load(self, vector: Vector) -> None:
        for tensor, values in zip(self._tensors, self._shaped(vector), strict=True):
            tensor.copy_(values)
        # Frozen parameters and buffers are copied anew, because training may have changed them since the net was
        # copied.
        for tensor, now in zip(_not_trainable(self._copy.net), _not_trainable(self._net), strict=True):
            tensor.copy_(now)


def _trainable(net: nn.Module) -> list[Tensor]:
    return [tensor for tensor in net.parameters() if tensor.requires_grad]


def _not_trainable(net: nn.Module) -> list[Tensor]:
    return [*(tensor for tensor in net.parameters() if not tensor.requires_grad), *net.buffers()]


def _slopes(value: Tensor, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the derivatives of a number with respect to tensors, zero for tensors that do not enter the number."""
    return torch.autograd.grad(value, tensors, materialize_grads=True)


def _flat(tensors: Sequence[Tensor]) -> Vector:
    parts = [tensor.detach().to_dense() if tensor.is_sparse else tensor.detach() for tensor in tensors]
    return np.concatenate([part.cpu().double().numpy().ravel() for part in parts])


@contextmanager
def _fixed_seed() -> Iterator[None]:
    """Fix the random seed within the block, so that every evaluation draws the same numbers, and restore it."""
    before, devices = rng_state.capture(), range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=devices):
        try:
            rng_state.seed(0)
            yield
        finally:
            rng_state.restore(before)
