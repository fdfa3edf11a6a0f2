"""Memory that a network takes, part by part, and the check that it is free before any of it is allocated."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from hogwild.errors import ParameterError
from hogwild.files import format_size
from hogwild.machine import available_bytes, swap_bytes

# Bytes; to query the free memory takes longer than to allocate less than this.
LITTLE = 2**22
BYTES = 4  # Bytes of a number in single precision.


@dataclass(frozen=True, slots=True)
class MemoryFootprint:
    """Bytes of memory that are to be allocated on a device, by the name of the part that they are for.

    >>> footprint = MemoryFootprint({"embeddings": 3 * 2**30, "average": 0, "gradients": 2**20})
    >>> footprint.total, str(footprint)
    (3222274048, 'embeddings 3.0 GiB, gradients 1.0 MiB')
    """

    parts: Mapping[str, int]
    device: str = "cpu"

    @property
    def total(self) -> int:
        """The number of bytes of all parts."""
        return sum(self.parts.values())

    def __str__(self) -> str:
        return ", ".join(f"{name} {format_size(size)}" for name, size in self.parts.items() if size)

    def check(self, what: str, remedy: str) -> None:
        """Check that all parts fit into the free memory; warn if they fit only with swap space.

        Parameters
        ----------
        what : str
            Subject of the message: the thing that needs the memory.
        remedy : str
            Advice to the user, as sentences.

        Raises
        ------
        ParameterError
            If the memory, with swap space, is too small.
        """
        if self.total <= LITTLE or self.device == "meta":
            return
        room, swap = free_memory(self.device)
        if self.total <= room:
            return
        where = "memory" if self.device == "cpu" else f"memory of the GPU ({self.device})"
        spare = f", and {format_size(swap)} of swap" if swap else ""
        need = (
            f"{what} needs {format_size(self.total)} of {where}: {self}. There is {format_size(room)} free{spare}. "
            f"{remedy} See docs/guide/memory.md."
        )
        if self.total > room + swap:
            raise ParameterError(need)
        warnings.warn(f"{need} Parts of it will be swapped out, and steps will wait for the disk.", stacklevel=3)


def free_memory(device: str) -> tuple[int, int]:
    """Return the free bytes of a device, and those of the swap space beyond them.

    >>> room, swap = free_memory("cpu")
    >>> room > 0 and swap >= 0
    True
    """
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0]), 0
    return available_bytes(), swap_bytes()


def bytes_of(tensors: Iterable[Tensor]) -> int:
    """Return the number of bytes of tensors; a lazy layer, which has no shape yet, counts as empty.

    >>> bytes_of([torch.zeros(3), torch.zeros(2, dtype=torch.float64)])
    28
    """
    return sum(tensor.nbytes for tensor in tensors if not is_lazy(tensor))


def gradient_bytes(net: nn.Module) -> int:
    """Return the number of bytes of a network's gradients.

    Sparse gradients are as small as a batch, so they are left out. A table that the backward pass updates has none.

    >>> net = nn.Sequential(nn.EmbeddingBag(1000, 4, sparse=True), nn.Linear(4, 1))
    >>> gradient_bytes(net)
    20
    """
    small = {
        id(parameter)
        for module in net.modules()
        if getattr(module, "updates_in_backward", False)
        or (isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.sparse)
        for parameter in module.parameters(recurse=False)
    }
    return bytes_of(one for one in net.parameters() if one.requires_grad and id(one) not in small)
