"""Objects on their way to a process that was just started. Large arrays are not sent: they are put into shared memory.

What is sent is pickled and unpickled by the same program within the same second, as ``multiprocessing`` does; nothing
that comes from a file or another machine is ever read in this way. Functions and classes of ``__main__``, a notebook
or a test are sent by value, so that a script needs no ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import cloudpickle
import numpy as np
import torch

from hogwild.errors import ParameterError
from hogwild.runtimes.processes.arena import Arena
from hogwild.runtimes.processes.memory import Block, check_room

LARGE = 2**16  # bytes from which on an array is shared instead of copied


class Parcel:
    """An object as bytes, and the blocks of memory in which its large arrays are."""

    def __init__(self, what: Any, arena: Arena) -> None:
        self.blocks: list[Block] = []
        buffer = io.BytesIO()
        try:
            _Pickler(buffer, arena, self.blocks).dump(what)
        except ParameterError:
            raise
        except Exception as reason:  # pickling runs whatever code the objects bring along
            raise ParameterError(
                f"This cannot be sent to another process: {reason}. The model, its loss function and the data set must "
                "be picklable: no open files, locks or generators in them; open those when they are first used."
            ) from reason
        self.content = buffer.getvalue()


def enclosed(description: Any, content: bytes) -> bytes:
    """Both as one piece: how to open the arena, and what refers to its tensors."""
    return pickle.dumps((description, content))


def loaded(piece: bytes) -> tuple[Any, bytes]:
    """Both again."""
    description, content = pickle.loads(piece)
    return description, content


def unpacked(content: bytes, arena: Arena, blocks: list[Block]) -> Any:
    """The object again, its arrays in shared memory."""
    return _Unpickler(io.BytesIO(content), arena, blocks).load()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, arena: Arena, blocks: list[Block]) -> None:
        super().__init__(file)
        self._arena, self._blocks = arena, blocks
        self._seen: dict[int, tuple[Any, ...]] = {}
        self._alive: list[Any] = []  # so that no id is used twice

    def persistent_id(self, what: Any) -> tuple[Any, ...] | None:
        if isinstance(what, torch.Tensor):
            number = self._arena.number(what)
            if number is not None:
                return "arena", number
            return self._once(what, self._tensor) if _is_large_tensor(what) else None
        if isinstance(what, np.memmap):
            return self._once(what, _file_of)
        if isinstance(what, np.ndarray) and what.nbytes >= LARGE and not what.dtype.hasobject:
            return self._once(what, self._array)
        return None

    def _once(self, what: Any, place: Any) -> tuple[Any, ...] | None:
        if id(what) not in self._seen:
            self._alive.append(what)
            self._seen[id(what)] = place(what)
        return self._seen[id(what)]

    def _block(self, size: int) -> Block:
        check_room(size, "The data")
        self._blocks.append(Block(size))
        return self._blocks[-1]

    def _tensor(self, tensor: torch.Tensor) -> tuple[Any, ...]:
        """Move it, as ``share_memory_`` would, so that it is there once."""
        block = self._block(tensor.nbytes)
        shared = torch.frombuffer(block.bytes, dtype=tensor.dtype, count=tensor.numel()).view(tensor.shape)
        shared.copy_(tensor)
        tensor.data = shared
        return "tensor", len(self._blocks) - 1, tensor.dtype, tuple(tensor.shape)

    def _array(self, array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
        self._block(array.nbytes).array(array.dtype, array.shape)[...] = array
        return "array", len(self._blocks) - 1, array.dtype, array.shape


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, arena: Arena, blocks: list[Block]) -> None:
        super().__init__(file)
        self._arena, self._blocks, self._made = arena, blocks, dict[tuple[Any, ...], Any]()

    def persistent_load(self, key: tuple[Any, ...]) -> Any:
        if key not in self._made:
            self._made[key] = self._make(*key)
        return self._made[key]

    def _make(self, kind: str, *where: Any) -> Any:
        if kind == "arena":
            return self._arena.tensors[where[0]]
        if kind == "file":
            name, dtype, shape, offset, order = where
            return np.memmap(name, dtype, "r", offset, shape, order)
        number, dtype, shape = where
        if kind == "array":
            return self._blocks[number].array(dtype, shape)
        count = int(np.prod(shape, dtype=np.int64))
        return torch.frombuffer(self._blocks[number].bytes, dtype=dtype, count=count).view(shape)


def _is_large_tensor(tensor: torch.Tensor) -> bool:
    plain = type(tensor) is torch.Tensor and tensor.layout == torch.strided and tensor.device.type == "cpu"
    return plain and not tensor.requires_grad and tensor.nbytes >= LARGE


def _file_of(array: np.memmap[Any, Any]) -> tuple[Any, ...] | None:
    """A whole mapped file is opened again by name; a part of one is read."""
    whole = array.filename is not None and not isinstance(array.base, np.memmap)
    order = "C" if array.flags.c_contiguous else "F"
    return ("file", str(array.filename), array.dtype, array.shape, array.offset, order) if whole else None
