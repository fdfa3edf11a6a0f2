"""Sparse table in the memory of a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hogwild.errors import DataError
from hogwild.kernels import embedding_cuda as kernels

if TYPE_CHECKING:
    from hogwild.nn.sparse_mlp import Batch, SparseTable

# Number of threads that compute the AdaGrad step sizes of a sample.
WARPS = 64


class CUDAEngine:
    """Operations on a table in GPU memory, by kernels on PyTorch's current stream; the host does not wait for the GPU.

    A kernel skips a wrong index and sets an error flag in main memory, which the next batch checks.
    """

    def __init__(self) -> None:
        self._error_flags: dict[torch.device, tuple[Tensor, Any]] = {}
        self._rates: dict[torch.device, Tensor] = {}

    def check(self, table: SparseTable) -> None:
        """Raise a DataError if an earlier batch had an index without a row."""
        flag, rows = self._error_flag(table.weight.device)[0], len(table.weight)
        if flag[0]:
            at, flag[0] = int(flag[0]) - 1, 0
            raise DataError(
                f"non-zero {at:,} of an earlier batch has an index that is not one of the table's rows, 0 to "
                f"{rows - 1:,}", remedy="Check the data, or make the table as large as the input is wide.",
            )  # fmt: skip

    def look_up(self, table: SparseTable, batch: Batch) -> Tensor:
        """Return the weighted sum of each sample's rows."""
        weight, samples = table.weight.detach(), len(batch.offsets) - 1
        self.check(table)
        out = torch.empty(samples, weight.shape[1], device=weight.device)
        if samples:
            shape = kernels.block(weight.shape[1])
            launch = kernels.launcher(kernels.gather, table.binary, samples, shape, _stream(weight))
            given = (weight, batch.indices, batch.offsets, _values(batch), out)
            launch(*map(kernels.array, given), self._error_flag(weight.device)[1])
        return out

    def descend(self, table: SparseTable, batch: Batch, gradient: Tensor) -> None:
        """Move the rows of all samples against their gradient."""
        weight, samples = table.weight.detach(), len(batch.offsets) - 1
        if not samples:
            return
        stream, rate = _stream(weight), self._rate(table, weight.device)
        values, binary = _values(batch), table.binary
        indices, offsets = kernels.array(batch.indices), kernels.array(batch.offsets)
        if table.update == "adagrad":
            steps = torch.empty(len(batch.indices), device=weight.device)
            square = gradient.square().mean(1)
            find = kernels.launcher(kernels.pace, binary, samples, (WARPS,), stream)
            find(kernels.array(table.squares), indices, offsets, *map(kernels.array, (values, square, rate, steps)))
            values, binary, rate = steps, False, torch.ones(1, device=weight.device)
        move = kernels.launcher(kernels.scatter, binary, samples, kernels.block(weight.shape[1]), stream)
        move(kernels.array(weight), indices, offsets, *map(kernels.array, (values, gradient, rate)))

    def _rate(self, table: SparseTable, device: torch.device) -> Tensor:
        """Return the step size in a GPU tensor of fixed address, from which a captured graph reads later changes."""
        if device not in self._rates:
            self._rates[device] = torch.empty(1, device=device)
        rate, now = self._rates[device], table.rate
        return rate.copy_(now) if isinstance(now, Tensor) else rate.fill_(now)

    def _error_flag(self, device: torch.device) -> tuple[Tensor, Any]:
        if device not in self._error_flags:
            flag = torch.zeros(1, dtype=torch.int64, pin_memory=device.type == "cuda")
            # A GPU writes to pinned main memory at its address.
            self._error_flags[device] = flag, kernels.array(flag)
        return self._error_flags[device]


def _values(batch: Batch) -> Tensor:
    # A binary kernel reads no values, so any array will do.
    return batch.indices if batch.values is None else batch.values


def _stream(tensor: Tensor) -> int:
    return torch.cuda.current_stream(tensor.device).cuda_stream if tensor.device.type == "cuda" else 0
