"""Factorisation machines on a GPU: the kernels of a problem and a rule, and their launches."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache, partial
from operator import itemgetter
from typing import Any, Literal

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.jit import Function, bind
from hogwild.kernels import (
    cuda_jit,
    cuda_lanes,
    cuda_vectors,
    factorisation_cuda,
    ffm_cuda,
    fm_cuda,
    linear,
    linear_cuda,
)
from hogwild.kernels.cuda_device import (
    NO_INDICES,
    NO_NUMBERS,
    Copy,
    DeviceRows,
    as_single,
    copy_anew,
    device_array,
    spread_size,
    to_device,
    to_host,
    whole_device,
)
from hogwild.kernels.row_layouts import LAYOUTS
from hogwild.kernels.squares_cuda import weighted_squares
from hogwild.lazy import cached_property
from hogwild.losses import Loss
from hogwild.problems.linear_on_gpu import OFTEN, TURNS
from hogwild.problems.problem import State
from hogwild.rules.rule import Rule

THREADS = 128  # of a block
ROWS_EACH = 1024  # At most one row in this number is in flight.
MOST_ROWS = 12  # most rows in flight for a multiprocessor
LONG_ROW = 12  # mean non-zeros of a row, from which on a row has 32 lanes, else 8
KEPT = 4  # most non-zeros of which a lane keeps the weight in registers


@dataclass(frozen=True, eq=False)
class FactorisationOnGPU:
    """Training and evaluation of a factorisation machine on a GPU."""

    loss: Loss
    rule: Rule
    layout: str  # layout of the rows
    n_rows: int
    nonzeros: int
    rank: int
    padded: int  # numbers of a row of factors
    fields: Array  # field of each feature, followed by the number of fields; empty for a machine without fields
    l2: float
    l2_factors: float
    shares: Array  # n / d of each feature, where d of n rows have it
    squares: Array  # mean squared value of each feature in these rows
    visits: Callable[[], Array]  # function that returns the weight of each row of factors in the penalty
    intercept: bool
    normalise: bool
    class_weights: Array
    classes: bool  # whether labels are classes
    curvature: float  # the largest one of a row's loss by its score
    types: tuple[bool, bool]  # whether rows have weights, and whether indices have 32 bits

    host_order: Literal["F"] = "F"

    @property
    def key(self) -> Hashable:
        """All that its kernels depend on."""
        parts = sorted({**self._rule_parts, **self._pair_parts}.items(), key=itemgetter(0))
        loss = self.loss.function, self.loss.link
        return type(self), self._lanes, self.layout, self.padded, self.normalise, loss, self.classes, self.types, *parts

    def rows(self, rows: CSRRows, copied: Copy) -> DeviceRows:
        """Copy rows to the GPU; ``copied`` remembers arrays that are there."""
        return DeviceRows.of(rows, copied)

    def put(self, state: State, copied: Copy) -> tuple[Any, ...]:
        """Copy the parameters to the GPU, where the numbers of a coordinate lie side by side."""
        weights, intercept, factors = state
        table = device_array((len(weights), self._width), np.float32)
        near = device_array(factors.shape, np.float32)
        known = (copied(array, partial(np.asarray, array)) for array in (self.shares, self.squares))
        self._table_kernel(factorisation_cuda.fill_weights)[whole_device()](table, to_device(weights), *known)
        self._table_kernel(factorisation_cuda.to_rows)[whole_device()](to_device(factors.T), near)
        return table, to_device(intercept), near, self._fields(copied)

    def put_values(self, values: State) -> tuple[Any, ...]:
        """Copy parameters without the rule's numbers to the GPU, for evaluation."""
        return *(to_device(part[:, :1]) for part in values), self._fields(copy_anew)

    def get(self, parts: tuple[Any, ...], state: State) -> None:
        """Copy the parameters from the GPU."""
        weights = device_array(state[0].shape[::-1], np.float32)
        factors = device_array(state[2].shape[::-1], np.float32)
        self._table_kernel(factorisation_cuda.to_columns)[whole_device()](parts[0], weights)
        self._table_kernel(factorisation_cuda.to_columns)[whole_device()](parts[2], factors)
        to_host(weights, state[0].T)
        to_host(factors, state[2].T)
        state[1][:] = parts[1].copy_to_host()

    def _fields(self, copied: Copy) -> Any:
        return copied(self.fields, partial(np.asarray, self.fields)) if self.fields.size else to_device(NO_INDICES)

    def penalty(self, parts: tuple[Any, ...], copied: Copy) -> float | None:
        """Return the penalty, which is not finite if a parameter is not."""
        table, _, factors, _ = parts
        numbers, groups = len(self.rule.initial), len(factors) // self.padded
        visits = self.visits() if self.l2_factors else NO_NUMBERS
        alike, weights = (copied(array, partial(as_single, array)) for array in (NO_NUMBERS, visits))
        linear = weighted_squares(table.reshape(table.size), len(table), 1, (table.shape[1], 1), alike)
        apart = self.padded * numbers, numbers
        paired = weighted_squares(factors.reshape(factors.size), groups, self.padded, apart, weights)
        return self.l2 / 2 * linear + self.l2_factors / 2 * paired

    def descend(
        self, rows: DeviceRows, order: Any, first: int, count: int, rates: Any, parts: tuple[Any, ...], sums: Any
    ) -> None:
        """Train on the rows ``order[first : first + count]``, with a step size for each of as many parts of them."""
        kernel = cuda_jit.kernel(
            factorisation_cuda.descend, **self._parts(rows), **self._rule_parts, **self._pair_parts
        )
        table, bias, factors, fields = (part.reshape(part.size) for part in parts)
        kernel[spread_size(self._lanes, self.n_rows // ROWS_EACH, MOST_ROWS, THREADS)](
            *rows.arrays, order, first, count, rates, -(-count // len(rates)), table, bias, factors, fields,
            np.float32(self.l2), np.float32(self.l2_factors), self._class_weights,
            float(self.loss.parameter), self._constants, np.float32(self.curvature), sums,
        )  # fmt: skip

    def evaluate(self, rows: DeviceRows, order: Any, count: int, parts: tuple[Any, ...], sums: Any) -> None:
        """Add up loss, weight, hits or squared errors, labels, squared labels and rows."""
        hit = linear_cuda.HITS["signs" if self.classes else "exp" if self.loss.link == "exp" else "identity"]
        kernel = cuda_jit.kernel(
            factorisation_cuda.evaluate, **self._parts(rows), hit=hit,
            pairs_of=self._products.pairs(self.layout, self._lanes, self.padded),
        )  # fmt: skip
        kernel[whole_device()](
            *rows.arrays, order, count, *parts, self._class_weights, float(self.loss.parameter), sums
        )

    @property
    def _lanes(self) -> int:
        if cuda_jit.simulated():
            return 1
        return 32 if self._length >= LONG_ROW else 8

    @property
    def _length(self) -> float:
        return self.nonzeros / max(1, self.n_rows)

    def _parts(self, rows: DeviceRows) -> dict[str, Any]:
        lanes = self._lanes
        parts = linear_cuda.parts_of(self.layout, lanes, rows.weighted, self.loss.function)
        return {**parts, "length": _length(self.layout, lanes) if self.normalise else factorisation_cuda.as_it_is}

    @cached_property
    def _rule_parts(self) -> dict[str, Any]:
        rule, numbers, width = self.rule, len(self.rule.initial), self._width
        kept = min(KEPT, -(-int(self._length) // self._lanes) or 1)
        rests = rule.skips_zero_gradient and not (self.l2 or self.l2_factors)
        return {
            "NUMBERS": numbers,
            "WIDTH": width,
            "KEPT": kept,
            "ROOM": kept + 1,
            # Derivatives by factors differ in sign between rows, and add up as random numbers do.
            "EASE": np.float32((1 + self.rank) ** -0.5),
            "INTERCEPT": self.intercept,
            "TURNS": TURNS,
            "OFTEN": OFTEN,
            "WHOLE": factorisation_cuda.in_full(rule),
            "skip": linear.when_zero if rests else linear.never,
            "step": rule.step,
            "damping": linear_cuda.damping_of(rule),
            "change": factorisation_cuda.change_of(rule),
            "presence": factorisation_cuda.presence_in(self.layout),
            "load": cuda_vectors.fresh_row_loader(width),
            "add": cuda_vectors.flat_row_adder(numbers, width),
        }

    @property
    def _products(self) -> Any:
        return ffm_cuda if self.fields.size else fm_cuda

    @cached_property
    def _pair_parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = self._products.descent_parts(
            self.layout, self.rule, self._lanes, THREADS // self._lanes, int(self._length), self.rank, self.padded,
            self._width,
        )  # fmt: skip
        return parts

    @property
    def _width(self) -> int:
        return cuda_vectors.padded(len(self.rule.initial) + 2)

    def _table_kernel(self, template: Function) -> Any:
        return cuda_jit.kernel(template, NUMBERS=len(self.rule.initial))

    @property
    def _class_weights(self) -> tuple[float, ...]:
        return tuple(float(weight) for weight in self.class_weights)

    @cached_property
    def _constants(self) -> tuple[np.float32, ...]:
        return tuple(np.float32(number) for number in self.rule.constants)


@cache
def _length(layout: str, lanes: int) -> Function:
    """Return one function for each layout, so that its kernels are compiled once."""
    return bind(
        factorisation_cuda.to_length_one, value=LAYOUTS[layout]["value"], LANES=lanes,
        sum_of_lanes=cuda_lanes.lane_sum(lanes),
    )  # fmt: skip
