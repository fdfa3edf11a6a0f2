"""A perceptron for inputs that are millions wide and almost empty: its first layer is a lookup."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from hogwild.nn.sparse_table import SparseTable
from hogwild.registry import invalid_parameter


class SparseMLP(nn.Module):
    """A multi-layer perceptron whose first layer sums the embeddings of the non-zero inputs instead of multiplying.

    ``dense_size`` is how wide the input would be if its zeros were written out; ``hidden`` are the widths of the
    layers, the first of them that of the embeddings, each followed by a ReLU. The input is ``(indices, offsets,
    values)``: sample ``i`` has ``indices[offsets[i]:offsets[i + 1]]``. With ``binary`` there are no values.

    The embeddings are updated in the backward pass, as :class:`SparseTable` says: by ``update`` ("sgd" or "adagrad"),
    with ``factor`` times the step of the optimiser that :meth:`follow` names. ``minimise`` does so by itself.

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
        """Whether every value is one."""
        return self.table.binary

    def follow(self, optimiser: torch.optim.Optimizer) -> None:
        """Let the embeddings take the step of this optimiser's first group, as its schedule changes it."""
        self.table.follow(optimiser)

    def forward(self, indices: Tensor, offsets: Tensor, values: Tensor | None = None) -> Tensor:
        """The outputs of each sample, one for each class."""
        outputs: Tensor = self.layers(self.table(indices, offsets, values) + self.bias)
        return outputs
