"""Perceptron for inputs that are millions wide and almost empty, whose first layer is a lookup."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from hogwild.nn.sparse_table import SparseTable
from hogwild.registry import invalid_parameter


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
        If a width is not a positive integer, or if another parameter is invalid.

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

    def forward(self, indices: Tensor, offsets: Tensor, values: Tensor | None = None) -> Tensor:
        """Return the outputs of each sample, one for each class."""
        outputs: Tensor = self.layers(self.table(indices, offsets, values) + self.bias)
        return outputs
