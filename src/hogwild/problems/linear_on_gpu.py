"""Linear models on a GPU: the kernels of a problem and a rule, and their launches."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from operator import itemgetter
from typing import Any

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.jit import Function, bind
from hogwild.kernels import cuda_jit, cuda_vectors, linear, linear_cuda
from hogwild.kernels.cuda_device import Copy, DeviceRows, launch_size, to_device, whole_device
from hogwild.kernels.cuda_jit import cuda
from hogwild.problems.linear_kernels import LinearKernels
from hogwild.problems.problem import State
from hogwild.rules.rule import Rule

KEPT = 4  # non-zeros that a lane keeps in registers between the score and the step
TURNS, OFTEN = 8, 16  # most rows after which a group adds its changes to the intercept; times it does in an epoch
LONG_ROW, SHORT_ROW = 24, 6  # mean non-zeros of a row, from which on a row has 32 lanes, and 8


@dataclass(frozen=True, eq=False)
class LinearOnGPU:
    """Training and evaluation of a linear model with one output on a GPU."""

    kernels: LinearKernels
    rule: Rule
    classes: bool  # whether labels are classes
    # Function that returns the largest curvature of the objective along the features of each feature's tier, and that
    # along the intercept.
    curvatures: Callable[[], tuple[Array, float]]

    @property
    def key(self) -> Hashable:
        """All that its kernels depend on."""
        rows, features = self.kernels.source, self.kernels.source.n_features
        return (
            type(self),
            self._lanes,
            self.kernels.layout,
            rows.rows is None or bool(rows.rows.weights.size),
            (
                self.kernels.loss.function,
                self.kernels.loss.link,
                self.classes,
                features < 2**31,
                *sorted(self._rule_parts.items(), key=itemgetter(0)),
            ),
        )

    def rows(self, rows: CSRRows, copied: Copy) -> DeviceRows:
        """Copy rows to the GPU; ``copied`` remembers arrays that are there."""
        return DeviceRows.of(rows, copied)

    def put(self, state: State, copied: Copy) -> tuple[Any, ...]:
        """Copy the parameters to the GPU, with the curvature and the share of the penalty of each."""
        table = cuda.device_array((len(state[0]), self._width), np.float32)
        columns, (curvatures, _), shares = to_device(state[0]), self.curvatures(), self.kernels.shares()
        constants = (copied(array, partial(np.asarray, array)) for array in (curvatures, shares))
        self._table_kernel(linear_cuda.fill_table)[whole_device()](table, columns, *constants)
        bias = np.zeros((1, self._width), np.float32)
        bias[:, : state[1].shape[1]] = state[1]
        return table, to_device(bias)

    def get(self, parts: tuple[Any, ...], state: State) -> None:
        """Copy the parameters from the GPU."""
        columns = cuda.device_array(state[0].shape, np.float32)
        self._table_kernel(linear_cuda.read_table)[whole_device()](parts[0], columns)
        columns.copy_to_host(state[0])
        state[1][:] = parts[1].copy_to_host()[:, : state[1].shape[1]]

    def descend(
        self, rows: DeviceRows, order: Any, first: int, count: int, rates: Any, parts: tuple[Any, ...], sums: Any
    ) -> None:
        """Train on the rows ``order[first : first + count]``, with a step size for each of as many parts of them."""
        kernels = self.kernels
        lanes = self._lanes
        kernel = cuda_jit.kernel(linear_cuda.descend, **self._parts(rows, lanes), **self._rule_parts)
        l1, l2, parameter = np.float32(kernels.l1), np.float32(kernels.l2), float(kernels.loss.parameter)
        kernel[launch_size(lanes, kernels.source.n_rows)](
            *rows.arrays, order, first, count, rates, -(-count // len(rates)), *parts, l1, l2, self._class_weights,
            parameter, self._constants, np.float32(self.curvatures()[1]), np.float32(kernels.intercept_lr_multiplier),
            np.float32(kernels.intercept_gradient), sums,
        )  # fmt: skip

    def evaluate(self, rows: DeviceRows, order: Any, count: int, parts: tuple[Any, ...], sums: Any) -> None:
        """Add up loss, weight, hits or squared errors, labels, squared labels and rows."""
        lanes, loss = self._lanes, self.kernels.loss
        hit = linear_cuda.HITS["signs" if self.classes else "exp" if loss.link == "exp" else "identity"]
        kernel = cuda_jit.kernel(linear_cuda.evaluate, **self._parts(rows, lanes), hit=hit)
        kernel[whole_device()](*rows.arrays, order, count, *parts, self._class_weights, float(loss.parameter), sums)

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
        numbers, width = len(rule.initial), self._width
        whole = tuple(int(column in rule.accumulator_columns) for column in range(width))
        return {
            "NUMBERS": numbers,
            "WIDTH": width,
            "INTERCEPT": kernels.intercept,
            "skip": linear.when_zero if rests else linear.never,
            "KEPT": KEPT,
            "OWN": KEPT + 1,
            "ROOM": KEPT + 2,
            "TURNS": TURNS,
            "OFTEN": OFTEN,
            "WHOLE": whole,
            "step": rule.step,
            "damping": _damping(not rule.adds_up),
            "move": _move(rule, whole, kernels.layout == "dense"),
            "load": cuda_vectors.row_loader(width),
            "add": cuda_vectors.row_adder(numbers, width),
        }

    @property
    def _width(self) -> int:
        return cuda_vectors.padded(len(self.rule.initial) + 2)

    def _table_kernel(self, template: Function) -> Any:
        return cuda_jit.kernel(template, NUMBERS=len(self.rule.initial))

    @cached_property
    def _class_weights(self) -> tuple[float, ...]:
        return tuple(float(weight) for weight in self.kernels.class_weights)

    @cached_property
    def _constants(self) -> tuple[np.float32, ...]:
        return tuple(np.float32(number) for number in self.rule.constants)


@cache
def _damping(means: bool) -> Any:
    """Return one function per kind of rule, so that its kernels are compiled once."""
    return bind(linear_cuda.damping, MEANS=means)


@cache
def _move(rule: Rule, whole: tuple[int, ...], dense: bool) -> Any:
    presence = linear_cuda.all_rows if dense else linear_cuda.some_rows
    return bind(
        linear_cuda.move, NUMBERS=len(rule.initial), WIDTH=len(whole), WHOLE=whole, step=rule.step, presence=presence,
        damping=_damping(not rule.adds_up),
    )  # fmt: skip
