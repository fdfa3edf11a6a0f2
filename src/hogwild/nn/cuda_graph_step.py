"""Training step of a small network on a GPU, captured as one CUDA graph.

A training step of a small network consists of dozens of kernels of a few microseconds each. Python takes longer to
launch them than the GPU takes to run them. A captured graph launches them together. A sparse gradient cannot be
captured, since the host must know its size. A table that is updated in the backward pass has no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hogwild.errors import ParameterError
from hogwild.nn.sparse_mlp import SparseMLP, SparseTable, check_error_flags
from hogwild.registry import invalid_parameter

# Number of steps before the capture, as PyTorch advises.
WARMING = 3


class CUDAGraphStep:
    """Captured forward pass, backward pass and update of a network with one SparseTable.

    A call copies a batch to the GPU, trains on it and returns the loss, without waiting for the GPU. A batch of another
    size, such as the last one of an epoch, is trained without the graph, one kernel after the other. The capture turns
    the optimiser's step size into a tensor: change it with :meth:`set_rate`.

    Parameters
    ----------
    net : torch.nn.Module
        Network with one :class:`SparseTable`, on a GPU.
    loss_fn : callable
        Function of outputs and target that returns the mean loss of a batch.
    optimiser : torch.optim.Optimizer
        Optimiser whose step can be captured: SGD, Adam or AdamW in their ``fused`` form, or Adagrad without decay.
    batch : int
        Number of samples of a batch.
    nonzeros : int
        Maximum number of non-zeros of a batch.

    Raises
    ------
    ParameterError
        If the network or the optimiser cannot be captured.
    """

    def __init__(
        self,
        net: nn.Module,
        loss_fn: Callable[..., Tensor],
        optimiser: torch.optim.Optimizer,
        batch: int,
        nonzeros: int,
    ) -> None:
        tables = [module for module in net.modules() if isinstance(module, SparseTable)]
        places = [table.weight.device.type for table in tables]
        if places != ["cuda"]:
            raise invalid_parameter(
                "net", "a net with one SparseTable, on a GPU", f"{type(net).__name__} with tables on {places}"
            )
        if not make_capturable(optimiser):
            raise invalid_parameter(
                "optimiser", "one that can be captured, such as torch.optim.SGD(..., fused=True)", repr(optimiser)
            )
        self.net, self.optimiser, self._table = net, optimiser, tables[0]
        self.batch, self.nonzeros = batch, nonzeros
        device = tables[0].weight.device
        self._inputs = [
            torch.zeros(nonzeros, dtype=torch.int32, device=device),
            torch.zeros(batch + 1, dtype=torch.int64, device=device),
            *([] if tables[0].binary else [torch.zeros(nonzeros, device=device)]),
            torch.zeros(batch, dtype=torch.int64, device=device),
        ]
        for group in optimiser.param_groups:
            group["lr"] = torch.as_tensor(float(group["lr"]), device=device)
        self._loss_fn, self._graph = loss_fn, torch.cuda.CUDAGraph()
        self._advance = _adagrad if isinstance(optimiser, torch.optim.Adagrad) else type(optimiser).step
        tables[0].follow(optimiser)
        net.train()
        self._warm_up(device)
        with torch.cuda.graph(self._graph):
            # Without ``detach``, the loss would keep the autograd graph and the memory of the capture's stream.
            self.loss = self._step(self._inputs).detach()

    def set_rate(self, rate: float) -> None:
        """Set the step size of the optimiser, which that of the table follows."""
        for group in self.optimiser.param_groups:
            group["lr"].fill_(rate)

    def __call__(self, *batch: Tensor) -> Tensor:
        """Train on ``(indices, offsets[, values], target)``, in main memory (preferably pinned) or on the GPU.

        Return the loss.

        Raises
        ------
        ParameterError
            If the batch has more non-zeros or other tensors than the captured step.
        """
        check_error_flags(self._table)
        if len(batch) != len(self._inputs) or len(batch[0]) > self.nonzeros:
            raise ParameterError(
                f"A step was captured for {len(self._inputs)} tensors and {self.nonzeros:,} non-zeros. Got "
                f"{len(batch)} and {len(batch[0]):,}: capture one for the largest batch."
            )
        if len(batch[-1]) != self.batch:
            return self._step([part.to(self.loss.device, non_blocking=True) for part in batch]).detach()
        for place, part in zip(self._inputs, batch, strict=True):
            place[: len(part)].copy_(part, non_blocking=True)
        self._graph.replay()
        return self.loss

    def _step(self, batch: Sequence[Tensor]) -> Tensor:
        *inputs, target = batch
        loss: Tensor = self._loss_fn(self.net(*inputs), target)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        self._advance(self.optimiser)
        return loss

    def _warm_up(self, device: torch.device) -> None:
        """Compile kernels and allocate memory on samples without non-zeros, then restore parameters and optimiser."""
        state = self.optimiser.state
        stepped = [one for group in self.optimiser.param_groups for one in group["params"]]
        before = [one.detach().clone() for one in stepped if one is not self._table.weight]
        kept = {one: {k: v.clone() for k, v in state[one].items() if isinstance(v, Tensor)} for one in list(state)}
        new_stream: Any = torch.cuda.Stream
        side = new_stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(WARMING):
                self._step(self._inputs)
        torch.cuda.current_stream(device).wait_stream(side)
        with torch.no_grad():
            for one, old in zip((one for one in stepped if one is not self._table.weight), before, strict=True):
                one.copy_(old)
            for one, found in state.items():
                for name, value in found.items():
                    if isinstance(value, Tensor):
                        value.copy_(kept[one][name]) if name in kept.get(one, {}) else value.zero_()


class CUDAGraphSteps:
    """Captured steps of a problem whose network is a :class:`SparseMLP` on a GPU; a larger batch is captured anew."""

    def __init__(self, problem: Any, optimiser: torch.optim.Optimizer) -> None:
        self.problem, self.optimiser = problem, optimiser
        self._step: CUDAGraphStep | None = None

    def __call__(self, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
        """Train on a batch; return its mean loss, without waiting for the GPU, and the number of its samples."""
        problem, nonzeros = self.problem, len(batch[0])
        if self._step is None or nonzeros > self._step.nonzeros:
            # The margin of a quarter suffices for most further batches.
            room = nonzeros + nonzeros // 4
            self._step = None  # This frees the memory of the old graph.
            self._step = CUDAGraphStep(problem.net, problem.loss_fn, self.optimiser, problem.batch, room)
        return self._step(*batch), len(batch[-1])

    def set_rates(self, rates: Sequence[float]) -> None:
        """Set the step size of each of the optimiser's groups.

        After the capture, write to the tensors that the graph reads.
        """
        for group, rate in zip(self.optimiser.param_groups, rates, strict=True):
            if self._step is None:
                group["lr"] = rate
            else:
                group["lr"].fill_(rate)


def steps_for(problem: Any, optimiser: torch.optim.Optimizer, workers: int) -> type[CUDAGraphSteps] | None:
    """Return the class that captures the steps of a problem; None if they run one kernel after the other.

    If several workers share a network, the changes of the warm-up steps could not be undone.
    """
    known = type(problem.net) is SparseMLP and problem.unpack is None
    if not known or workers != 1 or not problem.device.startswith("cuda"):
        return None
    return CUDAGraphSteps if make_capturable(optimiser) else None


def make_capturable(optimiser: torch.optim.Optimizer) -> bool:
    """Switch an optimiser to the form in which its step can be captured; return whether it has one.

    The function does not override the user's own choice of a form.

    >>> adam = torch.optim.Adam([nn.Parameter(torch.ones(2))])
    >>> make_capturable(adam), adam.param_groups[0]["capturable"]
    (True, True)
    >>> make_capturable(torch.optim.Rprop([nn.Parameter(torch.ones(2))]))
    False
    """
    groups = optimiser.param_groups
    if type(optimiser) is torch.optim.Adagrad:
        return not any(group["lr_decay"] or group["weight_decay"] or group["maximize"] for group in groups)
    if type(optimiser) not in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        return False
    if any(group.get("foreach") or group.get("differentiable") or group.get("fused") is False for group in groups):
        return False
    for group in groups:
        group["fused"] = True
        if "capturable" in group:
            group["capturable"] = True
    return True


@torch.no_grad()
def _adagrad(optimiser: torch.optim.Optimizer) -> None:
    """Take a step of Adagrad, as PyTorch's own cannot be captured; the count of steps matters only with a decay."""
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                total = optimiser.state[parameter]["sum"].addcmul_(parameter.grad, parameter.grad)
                parameter.sub_(group["lr"] * parameter.grad / total.sqrt().add_(group["eps"]))
