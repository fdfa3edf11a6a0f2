"""Linear models with one output on a GPU: the kernels of a problem and a rule, and their launches."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal

from hogwild.data.csr import CSRRows
from hogwild.data.dataset import Dataset
from hogwild.kernels import cuda_jit, linear_cuda
from hogwild.kernels.cuda_device import Copy, DeviceRows, launch_size, whole_device
from hogwild.kernels.row_layouts import LAYOUTS
from hogwild.problems.coordinate_table import CoordinateTable
from hogwild.problems.problem import State

KEPT = 4  # non-zeros that a lane keeps in registers between the score and the step
TURNS, OFTEN = 8, 16  # most rows after which a group adds its changes to the intercept; times it does in an epoch
COPIES = {"KEPT": KEPT, "OWN": KEPT + 1, "ROOM": KEPT + 2, "TURNS": TURNS, "OFTEN": OFTEN}
LONG_ROW, SHORT_ROW = 24, 6  # mean non-zeros of a row, from which on a row has 32 lanes, and 8


@dataclass(frozen=True, eq=False)
class LinearOnGPU:
    """Training and evaluation of a linear model with one output on a GPU."""

    table: CoordinateTable
    classes: bool  # whether labels are classes
    host_order: Literal["C"] = "C"

    @property
    def key(self) -> Hashable:
        """All that its kernels depend on."""
        kernels = self.table.kernels
        rule = sorted(self.table.kernel_parts.items(), key=itemgetter(0))
        loss = kernels.loss.function, kernels.loss.link
        return type(self), self._lanes, kernels.layout, loss, self.classes, *types_of(kernels.source), *rule

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
        if self.table.in_step:
            self._descend_in_step(rows, order, first, count, rates, parts, sums)
        else:
            self._launch(rows, order, first, count, rates, parts, sums)

    def _descend_in_step(
        self, rows: DeviceRows, order: Any, first: int, count: int, rates: Any, parts: tuple[Any, ...], sums: Any
    ) -> None:
        """Train on as many rows at a time as are in flight; all of them read the same parameters."""
        lanes, layout = self._lanes, self.table.kernels.layout
        size = launch_size(lanes, self.table.kernels.source.n_rows)
        numbers, together = len(self.table.rule.initial), size[0] * size[1] // lanes
        step = cuda_jit.kernel(linear_cuda.take_step, **LAYOUTS[layout], LANES=lanes, NUMBERS=numbers)
        indptr, indices, *_ = rows.arrays
        for done in range(0, max(1, count), together):
            rate, some = done * len(rates) // max(1, count), min(together, count - done)
            self._launch(rows, order, first + done, some, rates[rate : rate + 1], parts, sums)
            step[size](indptr, indices, order, first + done, some, *parts)

    def _launch(
        self, rows: DeviceRows, order: Any, first: int, count: int, rates: Any, parts: tuple[Any, ...], sums: Any
    ) -> None:
        table, kernels, lanes = self.table, self.table.kernels, self._lanes
        kernel = cuda_jit.kernel(linear_cuda.descend, **self._parts(rows, lanes), **table.kernel_parts, **COPIES)
        kernel[launch_size(lanes, kernels.source.n_rows)](
            *rows.arrays, order, first, count, rates, -(-count // len(rates)), *parts, *table.penalties,
            self._class_weights, float(kernels.loss.parameter), table.constants, *table.intercept, sums,
        )  # fmt: skip

    def evaluate(self, rows: DeviceRows, order: Any, count: int, parts: tuple[Any, ...], sums: Any) -> None:
        """Add up loss, weight, hits or squared errors, labels, squared labels and rows."""
        lanes, loss = self._lanes, self.table.kernels.loss
        hit = linear_cuda.HITS["signs" if self.classes else "exp" if loss.link == "exp" else "identity"]
        kernel = cuda_jit.kernel(linear_cuda.evaluate, **self._parts(rows, lanes), hit=hit)
        weights, bias = parts[:2]
        kernel[whole_device()](
            *rows.arrays, order, count, weights, bias, self._class_weights, float(loss.parameter), sums
        )

    @property
    def _lanes(self) -> int:
        if cuda_jit.simulated():
            return 1
        source = self.table.kernels.source
        length = source.nonzeros / max(1, source.n_rows)
        return 32 if length >= LONG_ROW else 8 if length >= SHORT_ROW else 4

    def _parts(self, rows: DeviceRows, lanes: int) -> dict[str, Any]:
        kernels = self.table.kernels
        return linear_cuda.parts_of(kernels.layout, lanes, rows.weighted, kernels.loss.function)

    @property
    def _class_weights(self) -> tuple[float, ...]:
        return tuple(float(weight) for weight in self.table.kernels.class_weights)


def types_of(data: Dataset) -> tuple[bool, bool]:
    """Return whether rows have weights, and whether indices have 32 bits: what the types of a kernel depend on."""
    return data.rows is None or bool(data.rows.weights.size), data.n_features < 2**31
