"""Parameters of linear models in the memory of a GPU, and the parts of kernels that depend on the rule.

A row of the table has what a step of a coordinate needs, in one piece of memory: the rule's numbers, the largest
curvature of the objective along the features of its tier, and n / d, where d of n rows have its feature.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.jit import Function, bind
from hogwild.kernels import cuda_jit, cuda_vectors, linear, linear_cuda
from hogwild.kernels.cuda_device import Copy, device_array, to_device, whole_device
from hogwild.lazy import cached_property
from hogwild.problems.linear_kernels import LinearKernels
from hogwild.problems.problem import State
from hogwild.rules.rule import Rule

NORM_THREADS = 64  # threads of a block that add up weights; each has sums of its own


@dataclass(frozen=True, eq=False)
class CoordinateTable:
    """Parameters of a linear model for one rule."""

    kernels: LinearKernels
    rule: Rule
    # Function that returns the largest curvature of the objective along the features of each feature's tier, and that
    # along the intercept.
    curvatures: Callable[[], tuple[Array, float]]
    in_step: bool = False  # whether the rows in flight read the same parameters, and take one step together

    def put(self, state: State, copied: Copy) -> tuple[Any, ...]:
        """Copy the parameters to the GPU, with the curvature and the share of the penalty of each."""
        table, bias = (device_array((len(part), self.width), np.float32) for part in state)
        columns, (curvatures, _), shares = to_device(state[0]), self.curvatures(), self.kernels.shares()
        constants = (copied(array, partial(np.asarray, array)) for array in (curvatures, shares))
        self._kernel(linear_cuda.fill_table)[whole_device()](table, columns, self.kernels.outputs, *constants)
        padded = np.zeros(bias.shape, np.float32)
        padded[:, : state[1].shape[1]] = state[1]
        bias.copy_to_device(padded)
        if not self.in_step:
            return table, bias, table, bias
        return table, bias, *(to_device(np.zeros(part.shape, np.int64)) for part in state)

    def put_values(self, values: State) -> tuple[Any, ...]:
        """Copy the first column of each part alone to the GPU, which is enough for evaluation."""
        return tuple(to_device(part[:, :1]) for part in values)

    def get(self, parts: tuple[Any, ...], state: State) -> None:
        """Copy the parameters from the GPU."""
        columns = device_array(state[0].shape, np.float32)
        self._kernel(linear_cuda.read_table)[whole_device()](parts[0], columns)
        columns.copy_to_host(state[0])
        state[1][:] = parts[1].copy_to_host()[:, : state[1].shape[1]]

    def penalty(self, parts: tuple[Any, ...], copied: Copy) -> float | None:
        """Return the penalty, which is not finite if a parameter is not; None for standardised columns."""
        kernels = self.kernels
        if kernels.standardised:
            return None
        blocks, threads = whole_device()[0], NORM_THREADS
        sums = device_array((2, blocks * threads), np.float64)
        cuda_jit.kernel(linear_cuda.norms)[blocks, threads](parts[0], sums)
        sizes, squares = sums.copy_to_host().sum(axis=1)
        bias = float(parts[1].copy_to_host()[:, 0].sum())
        # A bias that is not finite makes the sum so, also where it is not penalised.
        found = kernels.l1 * sizes + kernels.l2 / 2 * squares + kernels.intercept_gradient * bias
        return float(found + 0 * (squares + bias))

    @property
    def width(self) -> int:
        """The numbers of a row."""
        return cuda_vectors.padded(len(self.rule.initial) + 2)

    @property
    def constants(self) -> tuple[np.float32, ...]:
        """The rule's constants."""
        return tuple(np.float32(number) for number in self.rule.constants)

    @property
    def penalties(self) -> tuple[np.float32, np.float32]:
        """The strengths of the penalties l1 and l2."""
        return np.float32(self.kernels.l1), np.float32(self.kernels.l2)

    @property
    def intercept(self) -> tuple[np.float32, np.float32, np.float32]:
        """The curvature along the intercept, the factor of its step, and the gradient that the objective adds."""
        kernels = self.kernels
        numbers = self.curvatures()[1], kernels.intercept_lr_multiplier, kernels.intercept_gradient
        return np.float32(numbers[0]), np.float32(numbers[1]), np.float32(numbers[2])

    @cached_property
    def kernel_parts(self) -> dict[str, Any]:
        """The parts of kernels that depend on the rule and on the penalties."""
        kernels, rule = self.kernels, self.rule
        rests = rule.skips_zero_gradient and not (kernels.intercept_gradient or kernels.l1 or kernels.l2)
        numbers, width = len(rule.initial), self.width
        whole = tuple(int(column in rule.accumulator_columns) for column in range(width))
        return {
            "WIDTH": width,
            "INTERCEPT": kernels.intercept,
            "skip": linear.when_zero if rests else linear.never,
            "WHOLE": whole,
            "step": rule.step,
            "damping": linear_cuda.damping_of(rule),
            "move": _move(rule, whole, kernels.layout == "dense"),
            "load": cuda_vectors.row_loader(width),
            "add": cuda_vectors.fixed_adder(numbers, linear_cuda.FIXED)
            if self.in_step
            else cuda_vectors.row_adder(numbers, width),
        }

    def _kernel(self, template: Function) -> Any:
        return cuda_jit.kernel(template, NUMBERS=len(self.rule.initial))


@cache
def _move(rule: Rule, whole: tuple[int, ...], dense: bool) -> Any:
    presence = linear_cuda.all_rows if dense else linear_cuda.some_rows
    return bind(
        linear_cuda.move, NUMBERS=len(rule.initial), WIDTH=len(whole), WHOLE=whole, step=rule.step, presence=presence,
        damping=linear_cuda.damping_of(rule),
    )  # fmt: skip
