"""Parameter averaging on a GPU: shares of the rows train copies of the parameters, whose mean all go on from."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hogwild.data.csr import CSRRows
from hogwild.kernels.average_cuda import accumulate
from hogwild.kernels.cuda_device import device_array
from hogwild.problems.on_gpu import ProblemOnGPU
from hogwild.problems.problem import State

SHARES = 4  # copies where the user gives no number


@dataclass(frozen=True, eq=False)
class AveragedOnGPU:
    """Training of another problem on a GPU by ``shares`` workers, each with parameters of its own.

    No worker sees what the others do before they meet. So it makes no difference that they train one after the other,
    each with the whole GPU for its part of the rows, and three copies of the parameters suffice for any number of them.
    """

    inner: ProblemOnGPU
    shares: int
    # Two copies of the parameters, by their shapes.
    memory: dict[tuple[Any, ...], tuple[tuple[Any, ...], ...]] = field(default_factory=dict)

    @property
    def key(self) -> Hashable:
        """All that its kernels depend on."""
        return type(self), self.inner.key

    @property
    def host_order(self) -> Literal["C", "F"]:
        """Whether rows ("C") or columns ("F") of the parameters are contiguous in the host's memory."""
        return self.inner.host_order

    def rows(self, rows: CSRRows, copied: Any) -> Any:
        """Copy rows to the GPU; ``copied`` remembers arrays that are there."""
        return self.inner.rows(rows, copied)

    def put(self, state: State, copied: Any) -> tuple[Any, ...]:
        """Copy the parameters to the GPU."""
        return self.inner.put(state, copied)

    def put_values(self, values: State) -> tuple[Any, ...]:
        """Copy parameters without the rule's numbers to the GPU, for evaluation."""
        return self.inner.put_values(values)

    def get(self, parts: tuple[Any, ...], state: State) -> None:
        """Copy the parameters from the GPU."""
        self.inner.get(parts, state)

    def penalty(self, parts: tuple[Any, ...], copied: Any) -> float | None:
        """Return the penalty, which is not finite if a parameter is not."""
        return self.inner.penalty(parts, copied)

    def descend(
        self, rows: Any, order: Any, first: int, count: int, rates: Any, parts: tuple[Any, ...], sums: Any
    ) -> None:
        """Train copies on parts of ``order[first : first + count]``, each with all step sizes; keep their mean."""
        bounds = first + np.linspace(0, count, self.shares + 1).astype(np.int64)
        own, mean = self._copies(parts)
        for number in range(self.shares):
            _copy(parts, own)
            begin, end = int(bounds[number]), int(bounds[number + 1])
            self.inner.descend(rows, order, begin, end - begin, rates, own, sums)
            for part, total in zip(_parameters(own), _parameters(mean), strict=True):
                accumulate(total, part, np.float32(1 / self.shares), number == 0)
        _copy(mean, parts)

    def evaluate(self, rows: Any, order: Any, count: int, parts: tuple[Any, ...], sums: Any) -> None:
        """Add up what :meth:`RowProblem.measure` returns over ``order[:count]``."""
        self.inner.evaluate(rows, order, count, parts, sums)

    def _copies(self, parts: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
        """Return memory for two copies of the parameters, in which parts that are the same are the same, too."""
        shapes = tuple(part.shape for part in parts)
        if shapes not in self.memory:
            self.memory.clear()
            made = [{id(part): device_array(part.shape, np.float32) for part in _parameters(parts)} for _ in range(2)]
            self.memory[shapes] = tuple(tuple(each.get(id(part), part) for part in parts) for each in made)
        return self.memory[shapes]


def _parameters(parts: tuple[Any, ...]) -> list[Any]:
    """Return each part once that training can change; others, such as the fields of features, are whole numbers."""
    return list({id(part): part for part in parts if part.dtype == np.float32}.values())


def _copy(source: tuple[Any, ...], target: tuple[Any, ...]) -> None:
    for part, copy in zip(_parameters(source), _parameters(target), strict=True):
        copy.copy_to_device(part)
