"""Linear models on a GPU: the kernels of a problem and a rule, and their launches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from hogwild.data.csr import CSRRows
from hogwild.jit import bind
from hogwild.kernels import cuda_jit, linear, linear_cuda
from hogwild.kernels.cuda_device import Copy, DeviceRows, launch_size, to_device, whole_device
from hogwild.problems.linear_kernels import LinearKernels
from hogwild.rules.rule import Rule

LONG_ROW, SHORT_ROW = 24, 6  # mean non-zeros of a row, from which on a row has 32 lanes, and 8


@dataclass(frozen=True, eq=False)
class LinearOnGPU:
    """Training and evaluation of a linear model with one output on a GPU."""

    kernels: LinearKernels
    rule: Rule
    classes: bool  # whether labels are classes
    curvatures: Any  # largest curvature of the objective along the features of each feature's tier
    bias_curvature: float

    def rows(self, rows: CSRRows, copied: Copy) -> DeviceRows:
        """Copy rows to the GPU; ``copied`` remembers arrays that are there."""
        return DeviceRows.of(rows, copied)

    def descend(self, rows: DeviceRows, order: Any, first: int, count: int, rates: Any, state: Any, sums: Any) -> None:
        """Train on the rows ``order[first : first + count]``, with a step size for each of as many parts of them."""
        kernels = self.kernels
        lanes = self._lanes
        kernel = cuda_jit.kernel(linear_cuda.descend, **self._parts(rows, lanes), **self._rule_parts)
        l1, l2, parameter = np.float32(kernels.l1), np.float32(kernels.l2), float(kernels.loss.parameter)
        kernel[launch_size(lanes, kernels.source.n_rows)](
            *rows.arrays, order, first, count, rates, -(-count // len(rates)), *state, self._shares, l1, l2,
            self._class_weights, parameter, self._constants, self._curvatures, np.float32(self.bias_curvature),
            np.float32(kernels.intercept_lr_multiplier), np.float32(kernels.intercept_gradient), sums,
        )  # fmt: skip

    def evaluate(self, rows: DeviceRows, order: Any, count: int, values: tuple[Any, ...], sums: Any) -> None:
        """Add up loss, weight, hits or squared errors, labels, squared labels and rows."""
        lanes, loss = self._lanes, self.kernels.loss
        hit = linear_cuda.HITS["signs" if self.classes else "exp" if loss.link == "exp" else "identity"]
        kernel = cuda_jit.kernel(linear_cuda.evaluate, **self._parts(rows, lanes), hit=hit)
        kernel[whole_device()](*rows.arrays, order, count, *values, self._class_weights, float(loss.parameter), sums)

    @property
    def _lanes(self) -> int:
        if cuda_jit.simulated():
            return 1
        source = self.kernels.source
        length = source.nonzeros / max(1, source.n_rows)
        return 32 if length >= LONG_ROW else 8 if length >= SHORT_ROW else 4

    def _parts(self, rows: DeviceRows, lanes: int) -> dict[str, Any]:
        return linear_cuda.parts_of(self.kernels.layout, lanes, rows.weighted, self.kernels.loss.function)

    @cached_property
    def _rule_parts(self) -> dict[str, Any]:
        kernels, rule = self.kernels, self.rule
        rests = rule.skips_zero_gradient and not (kernels.intercept_gradient or kernels.l1 or kernels.l2)
        return {
            "NUMBERS": len(rule.initial),
            "INTERCEPT": kernels.intercept,
            "step": rule.step,
            "skip": linear.when_zero if rests else linear.never,
            "penalty1": linear.shared_penalty if kernels.l1 else linear.no_penalty,
            "penalty2": linear.shared_penalty if kernels.l2 else linear.no_penalty,
            "presence": linear_cuda.all_rows if kernels.layout == "dense" else linear_cuda.some_rows,
            "damping": _damping(not rule.adds_up),
            "WHOLE": tuple(int(column in rule.accumulator_columns) for column in range(len(rule.initial))),
        }

    @cached_property
    def _shares(self) -> Any:
        return to_device(np.ascontiguousarray(self.kernels.shares(), np.float32))

    @cached_property
    def _curvatures(self) -> Any:
        return to_device(np.ascontiguousarray(self.curvatures, np.float32))

    @cached_property
    def _class_weights(self) -> Any:
        return to_device(np.asarray(self.kernels.class_weights, np.float64))

    @cached_property
    def _constants(self) -> tuple[np.float32, ...]:
        return tuple(np.float32(number) for number in self.rule.constants)


@cache
def _damping(means: bool) -> Any:
    """Return one function per kind of rule, so that its kernels are compiled once."""
    return bind(linear_cuda.damping, MEANS=means)
