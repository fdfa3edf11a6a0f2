"""Tensors in shared memory: a model's parameters and buffers, and its optimiser's state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hogwild.errors import ParameterError
from hogwild.runtimes.processes.shared_memory import DeviceMemory, SharedBlock, check_space, offsets

CPU = "cpu"


@dataclass(frozen=True, slots=True)
class TensorSlot:
    """Position, type and shape of a tensor in its device's block."""

    device: str
    offset: int  # position in the block, in bytes
    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]  # in elements, as PyTorch counts them
    parameter: bool  # whether the tensor is an nn.Parameter
    requires_grad: bool


class SharedTensors:
    """Shared tensors, in one memory block for each device.

    One block holds all tensors of a device, because each block costs every process an open file. The usual limit is
    about 1,000 open files for each process.
    """

    def __init__(self, blocks: Mapping[str, SharedBlock | DeviceMemory], slots: Iterable[TensorSlot]) -> None:
        self.blocks, self.slots = dict(blocks), tuple(slots)
        self.tensors = [_view(self.blocks[slot.device], slot) for slot in self.slots]
        self._number = {id(tensor): number for number, tensor in enumerate(self.tensors)}

    def number(self, tensor: Tensor) -> int | None:
        """Return the position of a tensor among the shared tensors; None if it is not one of them."""
        return self._number.get(id(tensor))

    def describe(self) -> tuple[Any, ...]:
        """Return the description with which another process opens the tensors, given the block in main memory."""
        handles = {
            device: (block.size, device, block.handle)
            for device, block in self.blocks.items() if isinstance(block, DeviceMemory)
        }  # fmt: skip
        return handles, self.slots

    def close(self) -> None:
        """Close the file of the block in main memory; the tensors stay valid."""
        for block in self.blocks.values():
            if isinstance(block, SharedBlock):
                block.close()


def move_to_shared_memory(tensors: Iterable[Tensor]) -> SharedTensors:
    """Move tensors into shared memory in place: all references to a tensor then refer to shared memory.

    The tensors are moved one after the other, so that at any time memory holds at most one of them twice.

    >>> weight = nn.Parameter(torch.ones(2, 3))
    >>> arena = move_to_shared_memory([weight])
    >>> arena.number(weight), weight.sum().item()
    (0, 6.0)
    """
    kept = list(tensors)
    by_device: dict[str, list[Tensor]] = {CPU: []}
    for tensor in kept:
        _check(tensor)
        by_device.setdefault(str(tensor.device), []).append(tensor)
    blocks: dict[str, SharedBlock | DeviceMemory] = {}
    common = _in_common(kept)
    # Offset in bytes, by the id of a tensor or by the address of a storage that several tensors share.
    found: dict[int, int] = {}
    for device, group in by_device.items():
        pieces = {common.get(id(tensor), id(tensor)): _extent(tensor, id(tensor) in common) for tensor in group}
        starts, size = offsets(pieces.values())
        found |= dict(zip(pieces, starts, strict=True))
        if device == CPU:
            check_space(size, "The model with the state of its optimiser")
            blocks[device] = SharedBlock(size)
        else:
            blocks[device] = DeviceMemory(size, device)
    slots = [_slot(tensor, found[common.get(id(tensor), id(tensor))], id(tensor) in common) for tensor in kept]
    arena = SharedTensors({}, [])
    arena.blocks, arena.slots = blocks, tuple(slots)
    for number, (tensor, slot) in enumerate(zip(kept, slots, strict=True)):
        moved = _flat(blocks[slot.device], slot)
        with torch.no_grad():
            moved.copy_(tensor)
        tensor.data = moved
        arena.tensors.append(tensor)
        arena._number[id(tensor)] = number
    return arena


def open_shared_tensors(block: SharedBlock, description: tuple[Any, ...]) -> SharedTensors:
    """Open the shared tensors that another process has described with :meth:`SharedTensors.describe`."""
    handles, slots = description
    return SharedTensors({CPU: block, **{device: DeviceMemory(*given) for device, given in handles.items()}}, slots)


def return_freed_memory() -> None:
    """Make PyTorch's allocator return freed memory to the system, such as that of tensors moved to shared memory.

    On ARM this allocator is mimalloc, which keeps up to 1 GiB of freed memory. Only when another large block is freed,
    mimalloc checks whether it has kept the memory for more than 0.1 seconds. A training that frees no large block would
    hold its model twice. The block that is freed here is never written to, so it costs two system calls and no memory.
    """
    # The block of 64 MiB is larger than the memory that allocators keep in reserve for smaller blocks.
    torch.empty(2**26, dtype=torch.uint8)


def _in_common(tensors: list[Tensor]) -> dict[int, int]:
    """Return the storage address of each tensor that shares its storage, such as a weight and a view of it.

    The keys are ids of tensors. Tensors with a storage of their own are left out.
    """
    owners: dict[int, list[int]] = {}
    for tensor in tensors:
        if tensor.numel():
            owners.setdefault(tensor.untyped_storage().data_ptr(), []).append(id(tensor))
    return {one: memory for memory, several in owners.items() if len(several) > 1 for one in several}


def _extent(tensor: Tensor, in_common: bool) -> int:
    return tensor.untyped_storage().nbytes() if in_common else tensor.numel() * tensor.element_size()


def _slot(tensor: Tensor, offset: int, in_common: bool) -> TensorSlot:
    """Return the slot of a tensor: at its position within a storage shared with other tensors, else without gaps.

    ``offset`` is the position of the storage or of the tensor in the block, in bytes.
    """
    dense = torch.empty_like(tensor, device="meta")  # A dense tensor of this kind keeps the order of the axes.
    if in_common:
        offset, dense = offset + int(tensor.storage_offset()) * tensor.element_size(), tensor
    return TensorSlot(
        str(tensor.device), offset, tensor.dtype, tuple(tensor.shape), tuple(dense.stride()),
        isinstance(tensor, nn.Parameter), tensor.requires_grad,
    )  # fmt: skip


def _flat(block: SharedBlock | DeviceMemory, slot: TensorSlot) -> Tensor:
    if 0 in slot.shape:
        return torch.empty(slot.shape, dtype=slot.dtype, device=slot.device)
    count = 1 + sum((length - 1) * stride for length, stride in zip(slot.shape, slot.stride, strict=True))
    if isinstance(block, SharedBlock):
        flat = torch.frombuffer(block.bytes, dtype=slot.dtype, count=count, offset=slot.offset)
        return flat.as_strided(slot.shape, slot.stride)
    # Views of one tensor share its version counter: autograd would take a change of one parameter for a change of
    # another, and reject the backward pass. So the tensor is no view, but a new tensor over the same storage.
    empty = torch.empty(0, dtype=slot.dtype, device=slot.device)
    return empty.set_(
        block.tensor().untyped_storage(), slot.offset // slot.dtype.itemsize, slot.shape, slot.stride
    )  # fmt: skip


def _view(block: SharedBlock | DeviceMemory, slot: TensorSlot) -> Tensor:
    tensor = _flat(block, slot)
    return nn.Parameter(tensor, slot.requires_grad) if slot.parameter else tensor


def _check(tensor: Tensor) -> None:
    if nn.parameter.is_lazy(tensor):
        raise ParameterError(
            "A lazy layer of the model has no shape yet. Send one batch through the model before it is trained."
        )
    if tensor.layout != torch.strided or tensor.device.type not in ("cpu", "cuda"):
        raise ParameterError(
            f"Parameters must be ordinary tensors in main memory or on a GPU. Got one that is {tensor.layout} "
            f"on {tensor.device}."
        )
