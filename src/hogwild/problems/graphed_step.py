"""A whole training step of a small net on a GPU as one CUDA graph.

Such a step is dozens of kernels of a few microseconds each, and Python takes longer to launch them than the GPU to run
them. Captured once, they are launched together. A sparse gradient cannot be captured, since its size must be known to
the host; a table that is updated in the backward pass has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from hogwild.errors import ParameterError
from hogwild.naming import must
from hogwild.problems.sparse_table import SparseTable, check_notes

WARMING = 3  # steps before the capture, as PyTorch advises


class GraphedStep:
    """Forward, backward and step of ``net`` on batches of ``batch`` samples with at most ``nonzeros`` non-zeros in all.

    The optimiser must be a ``fused`` one, whose step can be captured. Its rate is a tensor from then on: change it with
    :meth:`set_rate`. Calling the step copies a batch to the GPU, trains on it and gives the loss, without waiting.
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
            raise must("net", "a net with one SparseTable, on a GPU", type(net).__name__)
        if not all(group.get("fused") for group in optimiser.param_groups):
            raise must("optimiser", "a fused one, such as torch.optim.SGD(..., fused=True)", type(optimiser).__name__)
        self.net, self.optimiser, self._table = net, optimiser, tables[0]
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
        tables[0].follow(optimiser)
        net.train()
        self._warm_up(device)
        with torch.cuda.graph(self._graph):
            self.loss = self._step()

    def set_rate(self, rate: float) -> None:
        """The step from now on; that of the table follows it."""
        for group in self.optimiser.param_groups:
            group["lr"].fill_(rate)

    def __call__(self, *batch: Tensor) -> Tensor:
        """Train on ``(indices, offsets[, values], target)``, in main memory (best pinned) or on the GPU."""
        check_notes(self._table)
        if len(batch) != len(self._inputs) or len(batch[0]) > len(self._inputs[0]):
            raise ParameterError(
                f"A step was captured for {len(self._inputs)} tensors and {len(self._inputs[0]):,} non-zeros. Got "
                f"{len(batch)} and {len(batch[0]):,}: capture one for the largest batch."
            )
        for place, part in zip(self._inputs, batch, strict=True):
            place[: len(part)].copy_(part, non_blocking=True)
        self._graph.replay()
        return self.loss

    def _step(self) -> Tensor:
        *inputs, target = self._inputs
        loss: Tensor = self._loss_fn(self.net(*inputs), target)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        self.optimiser.step()
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
                self._step()
        torch.cuda.current_stream(device).wait_stream(side)
        with torch.no_grad():
            for one, old in zip((one for one in stepped if one is not self._table.weight), before, strict=True):
                one.copy_(old)
            for one, found in state.items():
                for name, value in found.items():
                    if isinstance(value, Tensor):
                        value.copy_(kept[one][name]) if name in kept.get(one, {}) else value.zero_()
