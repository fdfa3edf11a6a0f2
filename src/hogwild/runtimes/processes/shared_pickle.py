"""Pickling of objects for a process that was just started, with large arrays in shared memory.

The same program pickles and unpickles these bytes within the same second, as ``multiprocessing`` does. Bytes from a
file or from another machine are never unpickled here. Functions and classes of ``__main__``, a notebook or a test are
pickled by value, so that a script needs no ``if __name__ == "__main__"``.
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
from numpy.typing import NDArray

from hogwild.errors import ParameterError
from hogwild.runtimes.processes.shared_memory import ALIGNED, SharedBlock, check_space
from hogwild.runtimes.processes.shared_tensors import SharedTensors

Key = tuple[Any, ...]  # reference that replaces a shared array in the pickle
Shared = NDArray[Any] | torch.Tensor

LARGE = 2**16  # size in bytes from which on an array is shared instead of pickled
FIRST_BLOCK = 2**28  # size in bytes of the first block; each further block has twice the size of the one before


class SharedArrays:
    """Blocks of shared memory with large arrays; an array that is sent several times is stored once.

    One block holds many arrays, because each block costs every process an open file. The system allocates no memory
    for the unused part of a block.
    """

    def __init__(self) -> None:
        self.blocks: list[SharedBlock] = []
        self._end = 0  # end of the used part of the last block, in bytes
        self._places: dict[int, Key] = {}  # reference of each stored object, by its id
        self._references: list[Any] = []  # stored objects, referenced here so that Python does not reuse their ids

    def place(self, what: object, store: Callable[[Any], Key]) -> Key:
        """Return the reference of an object; store the object with ``store`` if it is not stored yet."""
        if id(what) not in self._places:
            self._places[id(what)] = store(what)
            self._references.append(what)
        return self._places[id(what)]

    def reserve(self, size: int) -> tuple[int, int]:
        """Reserve ``size`` bytes; return the number of the block and the offset in the block in bytes."""
        check_space(size, "The data")
        if not self.blocks or self._end + size > self.blocks[-1].size:
            self.blocks.append(SharedBlock(max(size, FIRST_BLOCK * 2 ** len(self.blocks))))
            self._end = 0
        start, self._end = self._end, -(-(self._end + size) // ALIGNED) * ALIGNED
        return len(self.blocks) - 1, start

    def close(self) -> None:
        """Close the files of all blocks."""
        for block in self.blocks:
            block.close()


def dumps(what: object, arena: SharedTensors, arrays: SharedArrays) -> bytes:
    """Pickle an object; refer to its tensors in the arena, and copy its other large arrays into ``arrays``.

    Raise :class:`ParameterError` if the object cannot be pickled.
    """
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, arena, arrays).dump(what)
    except ParameterError:
        raise
    except Exception as reason:  # Pickling runs methods of the user's objects, which may raise any exception.
        raise ParameterError(
            f"This cannot be sent to another process: {reason}. The model, its loss function and the data set must "
            "be picklable: no open files, locks or generators in them; open those when they are first used."
        ) from reason
    return buffer.getvalue()


def frame(description: object, content: bytes) -> bytes:
    """Join the arena's description, and the pickle that refers to its tensors, into one byte string."""
    return pickle.dumps((description, content))


def unframe(piece: bytes) -> tuple[Any, bytes]:
    """Split the byte string of :func:`frame` into the arena's description and the pickle."""
    description, content = pickle.loads(piece)
    return description, content


def loads(content: bytes, arena: SharedTensors, blocks: list[SharedBlock]) -> Any:
    """Unpickle an object of :func:`dumps`; its large arrays and its tensors are views of shared memory."""
    return _Unpickler(io.BytesIO(content), arena, blocks).load()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, arena: SharedTensors, arrays: SharedArrays) -> None:
        super().__init__(file)
        self._arena, self._arrays = arena, arrays

    def persistent_id(self, what: Any) -> Key | None:
        if isinstance(what, torch.Tensor):
            number = self._arena.number(what)
            if number is not None:
                return "arena", number
            return self._arrays.place(what, self._tensor) if _is_large_tensor(what) else None
        if type(what) is np.memmap and _is_whole_file(what):
            return self._arrays.place(what, _file_of)
        # A slice of a mapped file is stored as an ordinary array. Other subclasses of ndarray carry more than their
        # values, so they are pickled.
        if type(what) in (np.ndarray, np.memmap) and what.nbytes >= LARGE and not what.dtype.hasobject:
            return self._arrays.place(what, self._array)
        return None

    def _tensor(self, tensor: torch.Tensor) -> Key:
        """Move a tensor into shared memory in place, as ``share_memory_`` does, so that memory holds it once."""
        number, start = self._arrays.reserve(tensor.nbytes)
        shared = _tensor(self._arrays.blocks[number], start, tensor.dtype, tensor.shape)
        shared.copy_(tensor)
        tensor.data = shared
        return "tensor", number, start, tensor.dtype, tuple(tensor.shape)

    def _array(self, array: np.ndarray[Any, Any]) -> Key:
        number, start = self._arrays.reserve(array.nbytes)
        self._arrays.blocks[number].array(array.dtype, array.shape, start)[...] = array
        return "array", number, start, array.dtype, array.shape


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, arena: SharedTensors, blocks: list[SharedBlock]) -> None:
        super().__init__(file)
        self._arena, self._blocks, self._made = arena, blocks, dict[Key, Shared]()

    def persistent_load(self, key: Key) -> Shared:
        if key not in self._made:
            self._made[key] = self._make(*key)
        return self._made[key]

    def _make(self, kind: str, *where: Any) -> Shared:
        if kind == "arena":
            tensor: torch.Tensor = self._arena.tensors[where[0]]
            return tensor
        if kind == "file":
            name, dtype, shape, offset, order = where
            mapped: NDArray[Any] = np.memmap(name, dtype, "r", offset, shape, order)
            return mapped
        number, start, dtype, shape = where
        if kind == "array":
            array: NDArray[Any] = self._blocks[number].array(dtype, shape, start)
            return array
        return _tensor(self._blocks[number], start, dtype, shape)


def _tensor(block: SharedBlock, start: int, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    count = math.prod(shape)
    return torch.frombuffer(block.bytes, dtype=dtype, count=count, offset=start).view(shape)


def _is_large_tensor(tensor: torch.Tensor) -> bool:
    plain = type(tensor) is torch.Tensor and tensor.layout == torch.strided and tensor.device.type == "cpu"
    if not plain or tensor.requires_grad or tensor.nbytes < LARGE:
        return False
    # An expanded tensor is larger than its storage; pickling that storage takes less memory than a copy of the tensor.
    return tensor.nbytes <= tensor.untyped_storage().nbytes()


def _is_whole_file(array: np.memmap[Any, Any]) -> bool:
    """Return whether an array maps a file as it is: not a slice, and not a copy-on-write mapping (mode "c").

    Changes of a copy-on-write mapping exist in memory only, so another process would not find them in the file.
    """
    return array.filename is not None and not isinstance(array.base, np.memmap) and array.mode != "c"


def _file_of(array: np.memmap[Any, Any]) -> Key:
    order = "C" if array.flags.c_contiguous else "F"
    return "file", str(array.filename), array.dtype, array.shape, array.offset, order
