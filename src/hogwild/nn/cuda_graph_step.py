"""A whole training step of a small net on a GPU as one CUDA graph.

Such a step is dozens of kernels of a few microseconds each, and Python takes longer to launch them than the GPU to run
them. Captured once, they are launched together. A sparse gradient cannot be captured, since its size must be known to
the host; a table that is updated in the backward pass has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hogwild.errors import ParameterError
from hogwild.nn.sparse_mlp import SparseMLP
from hogwild.nn.sparse_table import SparseTable, check_notes
from hogwild.registry import invalid_parameter

WARMING = 3  # steps before the capture, as PyTorch advises


class CUDAGraphStep:
    """Forward, backward and step of ``net`` on batches of ``batch`` samples with at most ``nonzeros`` non-zeros in all.

    The optimiser must be one whose step can be captured: SGD, Adam or AdamW in their ``fused`` form, or Adagrad without
    decay. Its rate is a tensor from then on: change it with :meth:`set_rate`. Calling the step copies a batch to the
    GPU, trains on it and gives the loss, without waiting. A batch of another size, such as the last one of an epoch, is
    trained on all the same, one kernel after the other.
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
        if len(tables) != 1 or tables[0].weight.device.type != "cuda":
            raise invalid_parameter("net", "a net with one SparseTable, on a GPU", type(net).__name__)
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
            self.loss = self._step(self._inputs).detach()  # or what made it would live on, in the capture's stream

    def set_rate(self, rate: float) -> None:
        """The step from now on; that of the table follows it."""
        for group in self.optimiser.param_groups:
            group["lr"].fill_(rate)

    def __call__(self, *batch: Tensor) -> Tensor:
        """Train on ``(indices, offsets[, values], target)``, in main memory (best pinned) or on the GPU."""
        check_notes(self._table)
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
        """Compile kernels and make all memory, on samples without a non-zero; then have everything as it was."""
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
    """The steps of a problem whose net is a :class:`SparseMLP` on a GPU, captured anew for ever larger batches."""

    def __init__(self, problem: Any, optimiser: torch.optim.Optimizer) -> None:
        self.problem, self.optimiser = problem, optimiser
        self._step: CUDAGraphStep | None = None

    def __call__(self, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
        """Train on a batch; its mean loss, which nobody has waited for, and the number of its samples."""
        problem, nonzeros = self.problem, len(batch[0])
        if self._step is None or nonzeros > self._step.nonzeros:
            room = nonzeros + nonzeros // 4  # more than most others will have
            self._step = None  # whose memory is free now
            self._step = CUDAGraphStep(problem.net, problem.loss_fn, self.optimiser, problem.batch, room)
        return self._step(*batch), len(batch[-1])

    def set_rates(self, rates: Sequence[float]) -> None:
        """The step of each of the optimiser's groups from now on: once captured, it is where the graph finds it."""
        for group, rate in zip(self.optimiser.param_groups, rates, strict=True):
            if self._step is None:
                group["lr"] = rate
            else:
                group["lr"].fill_(rate)


def steps_for(problem: Any, optimiser: torch.optim.Optimizer, workers: int) -> type[CUDAGraphSteps] | None:
    """What launches the steps of a problem as a whole; None where they are taken one kernel after the other.

    With several workers who share a net, what the capture tries out could not be taken back.
    """
    known = type(problem.net) is SparseMLP and problem.unpack is None
    if not known or workers != 1 or not problem.device.startswith("cuda"):
        return None
    return CUDAGraphSteps if make_capturable(optimiser) else None


def make_capturable(optimiser: torch.optim.Optimizer) -> bool:
    """Have an optimiser take the form in which its step can be captured, unless told otherwise; whether it has one.

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
    """A step of Adagrad, whose own is not made to be captured. Its count of steps matters for a decay alone."""
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                total = optimiser.state[parameter]["sum"].addcmul_(parameter.grad, parameter.grad)
                parameter.sub_(group["lr"] * parameter.grad / total.sqrt().add_(group["eps"]))
