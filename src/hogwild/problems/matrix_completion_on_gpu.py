"""Matrix completion on a GPU: the kernels of a problem and a rule, and their launches."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.jit import Function, bind
from hogwild.kernels import cuda_jit, cuda_lanes, cuda_vectors, linear_cuda
from hogwild.kernels import matrix_factorisation_cuda as ratings_cuda
from hogwild.kernels.cuda_device import (
    NO_NUMBERS,
    Copy,
    as_single,
    device_array,
    in_small_blocks,
    launch_size,
    to_device,
    to_host,
    whole_device,
)
from hogwild.kernels.squares_cuda import weighted_squares
from hogwild.lazy import cached_property
from hogwild.problems.problem import State
from hogwild.rules.rule import Rule

MOST_LANES = 32  # lanes of a warp, which add up by shuffles
MOST_BLOCKS = 2  # blocks of a multiprocessor: with more, each waits longer for memory
# At most one item, and one user, in this number has a rating in flight; where they have many ratings, each of them.
SPARE, MANY_RATINGS = 4, 2_000


@dataclass(frozen=True, slots=True)
class TableShape:
    """Sizes of the parameters: a row on the host has ``room`` numbers, with ``wide`` factors and then the bias."""

    entities: int  # users, items, and one for all unknown ones
    fewest: int  # number of users or of items, the smaller one
    wide: int
    room: int


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRatings:
    """Ratings in the memory of the GPU."""

    pairs: Any  # user and item of each, in one number
    labels: Any
    weights: Any
    weighted: bool  # whether ratings have weights

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Pairs, labels and weights."""
        return self.pairs, self.labels, self.weights


@dataclass(frozen=True, eq=False)
class FactorsOnGPU:
    """Training and evaluation of users' and items' factors on a GPU.

    ``descent`` and ``evaluation`` are the arguments of the kernels after the tables.
    """

    templates: tuple[Function, Function]  # of descent and evaluation
    loss: Function
    rule: Rule
    shape: TableShape
    ratings: int  # number of ratings in the training data
    biased: bool
    descent: tuple[Any, ...]
    evaluation: tuple[Any, ...]
    l2: float
    penalised_shares: Callable[[], Array]  # function that returns the share of terms that penalise each user and item
    host_order: Literal["F"] = "F"

    def rows(self, rows: CSRRows, copied: Copy) -> DeviceRatings:
        """Copy ratings to the GPU; ``copied`` remembers arrays that are there."""
        pairs = rows.indices[int(rows.indptr[0]) : int(rows.indptr[-1])]
        weights = rows.weights if rows.weights.size else NO_NUMBERS
        return DeviceRatings(
            copied(pairs, lambda: np.ascontiguousarray(pairs).view(np.int64)),
            copied(rows.labels, partial(as_single, rows.labels)),
            copied(weights, partial(as_single, weights)),
            bool(rows.weights.size),
        )

    @property
    def key(self) -> Hashable:
        """All that its kernels depend on."""
        rule, shape = self.rule, self.shape
        return type(self), self.templates, self.loss, rule.step, len(rule.initial), shape.wide, shape.room, self.biased

    def put(self, state: State, copied: Copy) -> tuple[Any, ...]:
        """Copy the parameters to the GPU."""
        return self._put(state, len(self.rule.initial))

    def put_values(self, values: State) -> tuple[Any, ...]:
        """Copy parameters without the rule's numbers to the GPU, for evaluation."""
        return self._put(values, 1)

    def get(self, parts: tuple[Any, ...], state: State) -> None:
        """Copy the parameters from the GPU."""
        columns = device_array(state[0].T.shape, np.float32)
        self._copier(ratings_cuda.read, len(self.rule.initial))[whole_device()](*parts, columns)
        to_host(columns, state[0].T)

    def penalty(self, parts: tuple[Any, ...], copied: Copy) -> float | None:
        """Return the penalty, which is not finite if a parameter is not."""
        shares = self.penalised_shares() if self.l2 else NO_NUMBERS
        weights = copied(shares, partial(as_single, shares))
        wide, factors = self.shape.wide, 0.0
        for part, each in zip(parts, (wide, 1), strict=True):
            factors += weighted_squares(part.reshape(part.size), len(part), each, (part.shape[1], 1), weights)
        return self.l2 / 2 * factors

    def descend(
        self, rows: DeviceRatings, order: Any, first: int, count: int, rates: Any, parts: tuple[Any, ...], sums: Any
    ) -> None:
        """Train on the ratings ``order[first : first + count]``; add their losses to ``sums[0]``."""
        kernel = cuda_jit.kernel(self.templates[0], **self._parts(rows), **self._rule_parts)
        kernel[self._sizes[0]](*rows.arrays, order, first, count, rates, *parts, *self._there, sums)

    def evaluate(self, rows: DeviceRatings, order: Any, count: int, parts: tuple[Any, ...], sums: Any) -> None:
        """Add up loss, weight, squared errors or correctly ranked pairs, and ratings."""
        kernel = cuda_jit.kernel(self.templates[1], **self._parts(rows), **_table_parts(1, self.shape.wide))
        kernel[self._sizes[1]](*rows.arrays, order, count, *parts, parts[0].shape[1], *self._evaluation, sums)

    def _put(self, state: State, numbers: int) -> tuple[Any, ...]:
        whole = len(state[0]) // self.shape.room  # A state of a single number is given for compilation alone.
        table = device_array((max(1, whole), numbers * self.shape.wide), np.float32)
        biases = to_device(np.zeros((max(1, whole), cuda_vectors.padded(numbers)), np.float32))
        if whole:
            self._copier(ratings_cuda.fill, numbers)[whole_device()](table, biases, to_device(state[0].T))
        return table, biases

    def _copier(self, template: Function, numbers: int) -> Any:
        return cuda_jit.kernel(template, NUMBERS=numbers, WIDE=self.shape.wide, ROOM=self.shape.room)

    @property
    def _lanes(self) -> int:
        """Power of two with four factors for each lane, or more of long rows."""
        if cuda_jit.simulated():
            return 1
        return min(MOST_LANES, 1 << (self.shape.wide // cuda_vectors.VECTOR - 1).bit_length())

    @property
    def _sizes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Blocks and threads of descent, and of evaluation."""
        blocks, threads = launch_size(self._lanes, self.ratings, MOST_BLOCKS)
        spare = 1 if self.ratings >= MANY_RATINGS * self.shape.fewest else SPARE
        blocks = max(1, min(blocks, self.shape.fewest * self._lanes // (spare * threads)))
        return in_small_blocks(blocks, threads), in_small_blocks(*whole_device())

    def _parts(self, rows: DeviceRatings) -> dict[str, Any]:
        lanes = self._lanes
        return {
            "LANES": lanes,
            "WIDE": self.shape.wide,
            "of_lane": cuda_lanes.lane_value(lanes),
            "sum_of_lanes": cuda_lanes.lane_sum(lanes),
            "rating": _reader(rows.weighted),
            "loss": self.loss,
            "product": _product(self.shape.wide, lanes),
        }

    @cached_property
    def _rule_parts(self) -> dict[str, Any]:
        lanes, numbers = self._lanes, len(self.rule.initial)
        return {
            **_table_parts(numbers, self.shape.wide),
            **_own_factors(self.shape.wide, lanes),
            "NUMBERS": numbers,
            "SIDES": 2 if lanes == 1 else 1,
            "BIASED": self.biased,
            "step": self.rule.step,
        }

    @cached_property
    def _there(self) -> tuple[Any, ...]:
        return _on_device(self.descent)

    @cached_property
    def _evaluation(self) -> tuple[Any, ...]:
        return _on_device(self.evaluation)


def _on_device(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(to_device(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments)


def _own_factors(wide: int, lanes: int) -> dict[str, Any]:
    """Return the number of factors of a lane, and whether all lanes have as many."""
    mine = -(-wide // (cuda_vectors.VECTOR * lanes)) * cuda_vectors.VECTOR
    return {"MINE": mine, "EXACT": mine * lanes == wide}


@cache
def _table_parts(numbers: int, wide: int) -> dict[str, Any]:
    """Return one set of functions for each shape, so that kernels are compiled once."""
    given = {
        "NUMBERS": numbers, "WIDE": wide, "WIDTH": cuda_vectors.padded(numbers),
        "load_vector": cuda_vectors.fresh_load(), "store_vector": cuda_vectors.store(),
        "prefetch": cuda_vectors.prefetch(),
    }  # fmt: skip
    return {
        "WIDTH": given["WIDTH"],
        "load_vector": given["load_vector"],
        "ask": bind(ratings_cuda.ask_for_factors, **given),
        "load": bind(ratings_cuda.load_factors, **given),
        "store": bind(ratings_cuda.store_factors, **given),
        "load_bias": bind(ratings_cuda.load_bias, **given),
        "store_bias": bind(ratings_cuda.store_bias, **given),
    }


@cache
def _reader(weighted: bool) -> Function:
    return bind(ratings_cuda.rating, weight_of=linear_cuda.stored if weighted else linear_cuda.one)


@cache
def _product(wide: int, lanes: int) -> Function:
    own = _own_factors(wide, lanes)
    return bind(ratings_cuda.product, WIDE=wide, LANES=lanes, load_vector=cuda_vectors.fresh_load(), **own)
