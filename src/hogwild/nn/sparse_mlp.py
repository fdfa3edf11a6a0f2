"""Perceptron for inputs that are millions wide and almost empty, whose first layer is a sparse table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from hogwild.errors import MissingExtraError, ParameterError
from hogwild.kernels import embedding
from hogwild.nn import sparse_table_cpu
from hogwild.nn.memory_footprint import BYTES, MemoryFootprint
from hogwild.nn.sparse_table_cpu import CPUEngine
from hogwild.nn.step_profile import NO_PROFILE
from hogwild.registry import invalid_parameter

if TYPE_CHECKING:
    from onnx import ModelProto

    from hogwild.onnx_graph import Inputs

# Standard deviation of the initial numbers, small so that rare or unknown rows do not outweigh the trained ones.
SPREAD = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Samples in compressed sparse row (CSR) form: sample ``i`` has the rows ``indices[offsets[i]:offsets[i + 1]]``."""

    indices: Tensor
    offsets: Tensor
    values: Tensor | None


class Engine(Protocol):
    """Operations on a table, on the device of the table."""

    def check(self, table: SparseTable) -> None:
        """Raise a DataError if an earlier batch was wrong, on devices that report this later."""

    def look_up(self, table: SparseTable, batch: Batch) -> Tensor:
        """Return the weighted sum of each sample's rows."""

    def descend(self, table: SparseTable, batch: Batch, gradient: Tensor) -> None:
        """Move the rows of all samples against their gradient."""


class SparseTable(nn.Module):
    """Weighted sum of a table's rows for each sample, as in ``nn.EmbeddingBag(mode="sum")``.

    The table has no gradient. Instead, the backward pass updates each row that a sample has used at once, in place and
    without a lock. The step size is ``factor`` times the current step size of the optimiser given to :meth:`follow`.

    Parameters
    ----------
    rows : int
        Number of rows of the table.
    width : int
        Number of columns of the table.
    binary : bool, default False
        Whether every value is 1, so that values are neither stored, read nor multiplied.
    update : {"sgd", "adagrad"}, default "sgd"
        Update of the rows; AdaGrad stores one accumulator per row.
    factor : float, default 1.0
        Step size of the table relative to that of the optimiser.

    Raises
    ------
    ParameterError
        If a parameter is invalid, or if the table does not fit into memory.

    Examples
    --------
    >>> table = SparseTable(5, 3, binary=True)
    >>> table.follow(torch.optim.SGD(table.parameters(), lr=0.5))
    >>> before = table.weight.detach().clone()
    >>> sums = table(torch.tensor([0, 4, 4]), torch.tensor([0, 1, 3]))
    >>> sums.sum().backward()
    >>> (before - table.weight.detach())[:, 0], table.weight.grad
    (tensor([0.5000, 0.0000, 0.0000, 0.0000, 1.0000]), None)
    """

    updates_in_backward = True
    squares: Tensor

    def __init__(
        self, rows: int, width: int, *, binary: bool = False, update: str = "sgd", factor: float = 1.0
    ) -> None:  # fmt: skip
        super().__init__()
        for name, size in (("rows", rows), ("width", width)):
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise invalid_parameter(name, "a positive integer", size)
        if update not in embedding.UPDATES:
            raise invalid_parameter("update", "'sgd' or 'adagrad'", update)
        if not factor > 0:
            raise invalid_parameter("factor", "a positive number", factor)
        self.binary, self.update, self.factor = binary, update, float(factor)
        table_footprint(rows, width, update, str(torch.empty(0).device)).check(
            f"A table of {rows:,} rows x {width}",
            "Use fewer rows (hash the features into fewer), fewer columns, or update='sgd', which stores no "
            "accumulators.",
        )
        self.weight = nn.Parameter(sparse_table_cpu.empty(rows, width).normal_(0, SPREAD))
        self.register_buffer("squares", torch.zeros(rows if update == "adagrad" else 0))
        self.profile: Any = NO_PROFILE
        self.engine: Engine | None = None  # operations on this table; None: those of its device
        self._optimiser: torch.optim.Optimizer | None = None

    def follow(self, optimiser: torch.optim.Optimizer) -> None:
        """Set the optimiser whose first group gives the step size, as its schedule changes it."""
        self._optimiser = optimiser

    @property
    def rate(self) -> float | Tensor:
        """The current step size: a number, or a tensor if the optimiser's is a tensor.

        Raises
        ------
        ParameterError
            If the table follows no optimiser.
        """
        if self._optimiser is None:
            raise ParameterError(
                "The table is updated in the backward pass, and must know the step: call net.follow(optimiser) once, "
                "after both are made (and again after either is copied or loaded)."
            )
        rate: float | Tensor = self.factor * self._optimiser.param_groups[0]["lr"]
        return rate

    def forward(self, indices: Tensor, offsets: Tensor, values: Tensor | None = None) -> Tensor:
        """Return the sum of each sample's rows; there is one more of ``offsets`` than of samples."""
        batch = self._batch(indices, offsets, values)
        if not (self.training and torch.is_grad_enabled() and self.weight.requires_grad):
            return self._looked_up(batch)
        # PyTorch declares no types of ``apply``, ``once_differentiable`` and ``backward``.
        return _Sum.apply(self.weight, self, batch)  # type: ignore[no-any-return, no-untyped-call]

    def extra_repr(self) -> str:
        """Return a description in one line."""
        rows, width = self.weight.shape
        return f"{rows:,} x {width}, update={self.update!r}" + (", binary" if self.binary else "")

    def _looked_up(self, batch: Batch) -> Tensor:
        with self.profile.part("lookup", self.weight):
            return (self.engine or _engine(self.weight.device.type)).look_up(self, batch)

    def _descend(self, batch: Batch, gradient: Tensor) -> None:
        with self.profile.part("update", self.weight):
            (self.engine or _engine(self.weight.device.type)).descend(self, batch, gradient)

    def _batch(self, indices: Tensor, offsets: Tensor, values: Tensor | None) -> Batch:
        if self.weight.dtype != torch.float32 or not self.weight.is_contiguous():
            raise ParameterError(
                "A table must be of float32, row after row: call net.float(), or make its weight contiguous(). "
                f"It is of {self.weight.dtype}, in steps of {self.weight.stride()}."
            )
        if self.binary and values is not None:
            raise ParameterError("A binary table takes no values: every one is 1. Leave them out, or binary=True.")
        if not self.binary:
            if values is None:
                raise ParameterError("The table takes indices, offsets and values. If all values are 1: binary=True.")
            if values.shape != indices.shape or values.dtype != torch.float32 or values.requires_grad:
                raise invalid_parameter("values", "as many float32 as there are indices, without a gradient",
                           f"{tuple(values.shape)} of {values.dtype}")  # fmt: skip
        for name, tensor in (("indices", indices), ("offsets", offsets)):
            if tensor.dim() != 1 or tensor.dtype not in (torch.int32, torch.int64) or len(tensor) < (name == "offsets"):
                raise invalid_parameter(name, "a row of int32 or int64", f"{tuple(tensor.shape)} of {tensor.dtype}")
        if indices.device != self.weight.device or offsets.device != indices.device:
            raise invalid_parameter("indices", f"where the table is, on {self.weight.device}", f"{indices.device}")
        return Batch(indices.contiguous(), offsets.contiguous(), None if values is None else values.contiguous())

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without optimiser, profile and engine, which copies and files do not have."""
        return {**self.__dict__, "_optimiser": None, "profile": NO_PROFILE, "engine": None}


def table_footprint(rows: int, width: int, update: str, device: str = "cpu") -> MemoryFootprint:
    """Return the memory of a :class:`SparseTable`.

    >>> str(table_footprint(200_000_000, 64, "adagrad"))
    'embeddings 47.7 GiB, accumulators of AdaGrad 762.9 MiB'
    """
    accumulators = BYTES * rows if update == "adagrad" else 0
    return MemoryFootprint({"embeddings": BYTES * rows * width, "accumulators of AdaGrad": accumulators}, device)


class _Sum(torch.autograd.Function):
    """Autograd function of the sum, whose backward pass updates the table instead of returning a gradient."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, table: SparseTable, batch: Batch) -> Tensor:
        ctx.table, ctx.batch = table, batch
        return table._looked_up(batch)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        batch, ctx.batch = ctx.batch, None
        if batch is None:
            raise ParameterError("The table has been updated by this batch. Compute the loss again before backward().")
        ctx.table._descend(batch, gradient.float().contiguous())
        return None, None, None


def check_error_flags(table: SparseTable) -> None:
    """Raise a DataError if a GPU has found an index without a row; do not wait for its current work."""
    _engine(table.weight.device.type).check(table)


_engines: dict[str, Engine] = {"cpu": CPUEngine()}


def _engine(device: str) -> Engine:
    if device not in _engines:
        if device != "cuda":
            raise ParameterError(f"A table is in main memory or on a CUDA GPU. Got {device!r} instead.")
        try:
            from hogwild.nn.sparse_table_cuda import CUDAEngine
        except ImportError as missing:
            raise MissingExtraError(f"A table on a GPU ({missing})", "numba-cuda", "cuda") from None
        _engines[device] = CUDAEngine()
    return _engines[device]


class SparseMLP(nn.Module):
    """Multi-layer perceptron whose first layer sums the embeddings of the non-zero inputs.

    The input is ``(indices, offsets, values)``: sample ``i`` has ``indices[offsets[i]:offsets[i + 1]]``. With
    ``binary`` there are no values. The backward pass updates the embeddings, as in :class:`SparseTable`. Their step
    size is ``factor`` times that of the optimiser given to :meth:`follow`. ``minimise`` calls :meth:`follow` itself.

    Parameters
    ----------
    dense_size : int
        Width of the input as a dense vector, in features.
    hidden : sequence of int
        Widths of the layers, each followed by a ReLU; the first is the width of the embeddings.
    classes : int
        Number of outputs.
    binary : bool, default False
        Whether every value is 1, so that no values are given.
    update : {"sgd", "adagrad"}, default "sgd"
        Update of the embeddings.
    factor : float, default 1.0
        Step size of the embeddings relative to that of the optimiser.

    Raises
    ------
    ParameterError
        If a width is not a positive integer, if another parameter is invalid, or if the table does not fit into memory.

    Examples
    --------
    >>> net = SparseMLP(1_000_000, hidden=[8, 4], classes=3, binary=True)
    >>> optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> net.follow(optimiser)
    >>> outputs = net(torch.tensor([7, 999_999, 3]), torch.tensor([0, 2, 3]))
    >>> outputs.shape
    torch.Size([2, 3])
    >>> nn.functional.cross_entropy(outputs, torch.tensor([0, 2])).backward()  # the embeddings have moved
    >>> optimiser.step()  # the other layers move
    """

    def __init__(
        self,
        dense_size: int,
        hidden: Sequence[int],
        classes: int,
        binary: bool = False,
        *,
        update: str = "sgd",
        factor: float = 1.0,
    ) -> None:
        super().__init__()
        sizes = (*hidden, classes)
        if not hidden or not all(isinstance(size, int) and size > 0 for size in sizes):
            raise invalid_parameter(
                "hidden", "one width or more, and like 'classes' positive integers", (list(hidden), classes)
            )
        self.dense_size, self.hidden, self.classes = dense_size, tuple(hidden), classes
        self.table = SparseTable(dense_size, hidden[0], binary=binary, update=update, factor=factor)
        self.bias = nn.Parameter(torch.zeros(hidden[0]))
        layers: list[nn.Module] = []
        for width, next_width in pairwise(sizes):
            layers += [nn.ReLU(), nn.Linear(width, next_width)]
        self.layers = nn.Sequential(*layers)

    @property
    def binary(self) -> bool:
        """Whether every value is 1."""
        return self.table.binary

    def follow(self, optimiser: torch.optim.Optimizer) -> None:
        """Set the optimiser whose first group gives the step size of the embeddings, as its schedule changes it."""
        self.table.follow(optimiser)

    def to_onnx(self, path: str | os.PathLike[str] | None = None, *, inputs: Inputs = "sparse") -> ModelProto:
        """Return the net as an ONNX graph, and write it to ``path`` if a path is given.

        Parameters
        ----------
        path : str or Path, optional
            File that is written.
        inputs : {"sparse", "dense"}, default "sparse"
            Form of the rows: ``columns`` (int64) and ``values`` (float32), both [N, M], where shorter rows are filled
            up with values of 0; or a float32 matrix ``X`` [N, dense_size]. The values of a binary net are 1.

        Returns
        -------
        onnx.ModelProto
            Graph with the output ``scores`` [N, classes], which is what the net returns.
        """
        from hogwild.nn.sparse_mlp_onnx import to_onnx

        return to_onnx(self, path, inputs)

    def forward(self, indices: Tensor, offsets: Tensor, values: Tensor | None = None) -> Tensor:
        """Return the outputs of each sample, one for each class."""
        outputs: Tensor = self.layers(self.table(indices, offsets, values) + self.bias)
        return outputs
