"""Objects on their way to a process that was just started. Large arrays are not sent: they are put into shared memory.

What is sent is pickled and unpickled by the same program within the same second, as ``multiprocessing`` does; nothing
that comes from a file or another machine is ever read in this way. Functions and classes of ``__main__``, a notebook
or a test are sent by value, so that a script needs no ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle
import numpy as np
import torch

from hogwild.errors import ParameterError
from hogwild.runtimes.processes.shared_memory import ALIGNED, SharedBlock, check_space
from hogwild.runtimes.processes.shared_tensors import SharedTensors

Key = tuple[Any, ...]  # what stands for an array that is not sent

LARGE = 2**16  # bytes from which on an array is shared instead of copied
FIRST = 2**28  # bytes of the first block for arrays; each further one has twice as many


class SharedArrays:
    """Blocks of memory with large arrays in them, each once, however often it is sent.

    Many arrays are in one block: each block costs every process an open file. Memory that no array is in is only
    reserved, not taken.
    """

    def __init__(self) -> None:
        self.blocks: list[SharedBlock] = []
        self._end = 0  # of what is taken of the last block
        self._places: dict[int, Key] = {}
        self._alive: list[Any] = []  # so that no id is used twice

    def place(self, what: Any, put: Callable[[Any], Key]) -> Key:
        """Where this object is; if it is nowhere yet, ``put`` puts it somewhere."""
        if id(what) not in self._places:
            self._places[id(what)] = put(what)
            self._alive.append(what)
        return self._places[id(what)]

    def room(self, size: int) -> tuple[int, int]:
        """Room for so many bytes: the number of a block, and where in it."""
        check_space(size, "The data")
        if not self.blocks or self._end + size > self.blocks[-1].size:
            self.blocks.append(SharedBlock(max(size, FIRST * 2 ** len(self.blocks))))
            self._end = 0
        start, self._end = self._end, -(-(self._end + size) // ALIGNED) * ALIGNED
        return len(self.blocks) - 1, start

    def close(self) -> None:
        """Give back the files."""
        for block in self.blocks:
            block.close()


def dumps(what: Any, arena: SharedTensors, shelf: SharedArrays) -> bytes:
    """An object as bytes; its tensors stay in the arena, its large arrays are put on the shelf."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, arena, shelf).dump(what)
    except ParameterError:
        raise
    except Exception as reason:  # pickling runs whatever code the objects bring along
        raise ParameterError(
            f"This cannot be sent to another process: {reason}. The model, its loss function and the data set must "
            "be picklable: no open files, locks or generators in them; open those when they are first used."
        ) from reason
    return buffer.getvalue()


def frame(description: Any, content: bytes) -> bytes:
    """Both as one piece: how to open the arena, and what refers to its tensors."""
    return pickle.dumps((description, content))


def unframe(piece: bytes) -> tuple[Any, bytes]:
    """Both again."""
    description, content = pickle.loads(piece)
    return description, content


def loads(content: bytes, arena: SharedTensors, blocks: list[SharedBlock]) -> Any:
    """The object again, its arrays in shared memory."""
    return _Unpickler(io.BytesIO(content), arena, blocks).load()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, arena: SharedTensors, shelf: SharedArrays) -> None:
        super().__init__(file)
        self._arena, self._shelf = arena, shelf

    def persistent_id(self, what: Any) -> Key | None:
        if isinstance(what, torch.Tensor):
            number = self._arena.number(what)
            if number is not None:
                return "arena", number
            return self._shelf.place(what, self._tensor) if _is_large_tensor(what) else None
        if type(what) is np.memmap and _is_whole_file(what):
            return self._shelf.place(what, _file_of)
        # A part of a mapped file becomes an ordinary array; other kinds of arrays know more than their numbers.
        if type(what) in (np.ndarray, np.memmap) and what.nbytes >= LARGE and not what.dtype.hasobject:
            return self._shelf.place(what, self._array)
        return None

    def _tensor(self, tensor: torch.Tensor) -> Key:
        """Move it, as ``share_memory_`` would, so that it is there once."""
        number, start = self._shelf.room(tensor.nbytes)
        shared = _tensor(self._shelf.blocks[number], start, tensor.dtype, tensor.shape)
        shared.copy_(tensor)
        tensor.data = shared
        return "tensor", number, start, tensor.dtype, tuple(tensor.shape)

    def _array(self, array: np.ndarray[Any, Any]) -> Key:
        number, start = self._shelf.room(array.nbytes)
        self._shelf.blocks[number].array(array.dtype, array.shape, start)[...] = array
        return "array", number, start, array.dtype, array.shape


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, arena: SharedTensors, blocks: list[SharedBlock]) -> None:
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
        number, start, dtype, shape = where
        if kind == "array":
            return self._blocks[number].array(dtype, shape, start)
        return _tensor(self._blocks[number], start, dtype, shape)


def _tensor(block: SharedBlock, start: int, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    count = math.prod(shape)
    return torch.frombuffer(block.bytes, dtype=dtype, count=count, offset=start).view(shape)


def _is_large_tensor(tensor: torch.Tensor) -> bool:
    plain = type(tensor) is torch.Tensor and tensor.layout == torch.strided and tensor.device.type == "cpu"
    if not plain or tensor.requires_grad or tensor.nbytes < LARGE:
        return False
    return tensor.nbytes <= tensor.untyped_storage().nbytes()  # one that repeats a small one is sent as it is


def _is_whole_file(array: np.memmap[Any, Any]) -> bool:
    """Whether it is what is in a file: no part of it, and nothing that was only changed in memory."""
    return array.filename is not None and not isinstance(array.base, np.memmap) and array.mode != "c"


def _file_of(array: np.memmap[Any, Any]) -> Key:
    order = "C" if array.flags.c_contiguous else "F"
    return "file", str(array.filename), array.dtype, array.shape, array.offset, order
