"""Copy of the parameters of a run in the memory of a GPU, where a copy takes microseconds."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.cuda_device import device_array
from hogwild.problems.on_gpu import ProblemOnGPU
from hogwild.problems.problem import State


class PartsCopy:
    """Copy of the arrays in which a problem has its parameters on a GPU; ``like`` has the form of those on the host."""

    def __init__(self, gpu: ProblemOnGPU, parts: tuple[Any, ...], like: State) -> None:
        self._gpu, self._like = gpu, like
        self._arrays = {id(part): device_array(part.shape, part.dtype) for part in parts}  # Some parts are the same.
        self._parts = tuple(self._arrays[id(part)] for part in parts)
        self.take(parts)

    def take(self, parts: tuple[Any, ...]) -> None:
        """Copy parameters of the same form."""
        pairs = {id(part): (kept, part) for kept, part in zip(self._parts, parts, strict=True)}
        for kept, part in pairs.values():
            kept.copy_to_device(part)

    def arrays(self) -> State:
        """Return the copy in the memory of the host."""
        state = tuple(np.empty_like(part) for part in self._like)
        self._gpu.get(self._parts, state)
        return state
