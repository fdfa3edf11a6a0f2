"""Linear models with an output for each class on a GPU: the kernels of a problem and a rule, and their launches."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any, Literal

import numpy as np

from hogwild.data.csr import CSRRows
from hogwild.jit import Function, bind
from hogwild.kernels import cuda_jit, cuda_lanes, linear_classes_cuda, linear_cuda
from hogwild.kernels.cuda_device import Copy, DeviceRows, launch_size, to_device, whole_device
from hogwild.kernels.row_layouts import LAYOUTS
from hogwild.lazy import cached_property
from hogwild.losses import SOFTMAX
from hogwild.problems.coordinate_table import CoordinateTable
from hogwild.problems.linear_on_gpu import types_of
from hogwild.problems.problem import State

MOST_LANES = 32


@dataclass(frozen=True, eq=False)
class LinearClassesOnGPU:
    """Training and evaluation of a linear model with several outputs on a GPU."""

    table: CoordinateTable
    host_order: Literal["C"] = "C"

    @property
    def key(self) -> Hashable:
        """All that its kernels depend on."""
        kernels = self.table.kernels
        rule = sorted(self.table.kernel_parts.items(), key=itemgetter(0))
        loss = kernels.loss.function, kernels.loss.name == SOFTMAX.name
        return type(self), self._lanes, self._per_lane, kernels.layout, loss, *types_of(kernels.source), *rule

    def rows(self, rows: CSRRows, copied: Copy) -> DeviceRows:
        """Copy rows to the GPU; ``copied`` remembers arrays that are there."""
        return DeviceRows.of(rows, copied)

    def put(self, state: State, copied: Copy) -> tuple[Any, ...]:
        """Copy the parameters to the GPU."""
        return self.table.put(state, copied)

    def put_values(self, values: State) -> tuple[Any, ...]:
        """Copy parameters without the rule's numbers to the GPU, for evaluation."""
        return self.table.put_values(values)

    def get(self, parts: tuple[Any, ...], state: State) -> None:
        """Copy the parameters from the GPU."""
        self.table.get(parts, state)

    def penalty(self, parts: tuple[Any, ...], copied: Copy) -> float | None:
        """Return the penalty, which is not finite if a parameter is not."""
        return self.table.penalty(parts, copied)

    def descend(
        self, rows: DeviceRows, order: Any, first: int, count: int, rates: Any, parts: tuple[Any, ...], sums: Any
    ) -> None:
        """Train on the rows ``order[first : first + count]``, with a step size for each of as many parts of them."""
        table, kernels = self.table, self.table.kernels
        kernel = cuda_jit.kernel(linear_classes_cuda.descend, **self._parts(rows), **table.kernel_parts)
        kernel[launch_size(self._lanes, kernels.source.n_rows)](
            *rows.arrays, order, first, count, rates, -(-count // len(rates)), *parts[:2], kernels.outputs,
            *table.penalties, self._class_weights, float(kernels.loss.parameter), table.constants, *table.intercept,
            sums,
        )  # fmt: skip

    def evaluate(self, rows: DeviceRows, order: Any, count: int, parts: tuple[Any, ...], sums: Any) -> None:
        """Add up loss, weight, hits, labels, squared labels and rows."""
        kernels = self.table.kernels
        kernel = cuda_jit.kernel(linear_classes_cuda.evaluate, **self._parts(rows))
        kernel[whole_device()](
            *rows.arrays, order, count, *parts[:2], kernels.outputs, self._class_weights, float(kernels.loss.parameter),
            sums,
        )  # fmt: skip

    @property
    def _lanes(self) -> int:
        """As many lanes as classes, rounded up to a power of two."""
        outputs = self.table.kernels.outputs
        return 1 if cuda_jit.simulated() else min(MOST_LANES, 1 << (outputs - 1).bit_length())

    @property
    def _per_lane(self) -> int:
        return -(-self.table.kernels.outputs // self._lanes)

    def _parts(self, rows: DeviceRows) -> dict[str, Any]:
        kernels, lanes, per_lane = self.table.kernels, self._lanes, self._per_lane
        softmax = kernels.loss.name == SOFTMAX.name
        return {
            **LAYOUTS[kernels.layout],
            "LANES": lanes,
            "PER_LANE": per_lane,
            "weight_of": linear_cuda.stored if rows.weighted else linear_cuda.one,
            "add_up": _scores(kernels.layout, lanes, per_lane),
            "slopes_of": _slopes(None if softmax else kernels.loss.function, lanes, per_lane),
            "largest_of_lanes": linear_classes_cuda.lane_largest(lanes),
        }

    @cached_property
    def _class_weights(self) -> Any:
        return to_device(np.asarray(self.table.kernels.class_weights, np.float64))


@cache
def _scores(layout: str, lanes: int, per_lane: int) -> Function:
    """Return one function for each layout, so that kernels are compiled once."""
    return bind(linear_classes_cuda.add_up, LANES=lanes, PER_LANE=per_lane, **LAYOUTS[layout])


@cache
def _slopes(loss: Function | None, lanes: int, per_lane: int) -> Function:
    """Return the derivatives of a loss of one class against the rest; None: of softmax."""
    if loss is not None:
        return bind(linear_classes_cuda.slopes_against_rest, LANES=lanes, PER_LANE=per_lane, loss=loss)
    return bind(
        linear_classes_cuda.slopes_of_softmax, LANES=lanes, PER_LANE=per_lane,
        sum_of_lanes=cuda_lanes.lane_sum(lanes), largest_of_lanes=linear_classes_cuda.lane_largest(lanes),
    )  # fmt: skip
