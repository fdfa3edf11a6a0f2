"""Graph cuts on a GPU: the kernels of a problem and a rule, and their launches."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from hogwild.data.csr import CSRRows
from hogwild.jit import Function, bind
from hogwild.kernels import cuda_jit, cuda_vectors, graph_cut_cuda
from hogwild.kernels.cuda_device import (
    Copy,
    as_single,
    device_array,
    in_small_blocks,
    launch_size,
    to_device,
    to_host,
    whole_device,
)
from hogwild.lazy import cached_property
from hogwild.problems.problem import State
from hogwild.rules.rule import Rule

SPARE = 4  # At most one node in this number has an edge in flight.


@dataclass(frozen=True, slots=True, eq=False)
class DeviceEdges:
    """Edges in the memory of the GPU."""

    pairs: Any  # both ends of each, in one number
    weights: Any
    labels: Any  # as many as edges

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Pairs and weights."""
        return self.pairs, self.weights


@dataclass(frozen=True, eq=False)
class GraphCutOnGPU:
    """Training and evaluation of the shares of nodes on a GPU."""

    rule: Rule
    parts: int
    free: Any  # whether each node is free
    edges: int  # number of edges
    host_order: Literal["C"] = "C"

    @property
    def key(self) -> Hashable:
        """All that its kernels depend on."""
        return type(self), self.rule.step, len(self.rule.initial), self.parts

    def rows(self, rows: CSRRows, copied: Copy) -> DeviceEdges:
        """Copy edges to the GPU; ``copied`` remembers arrays that are there."""
        pairs = rows.indices[int(rows.indptr[0]) : int(rows.indptr[-1])]
        weights = copied(rows.weights, partial(as_single, rows.weights))
        return DeviceEdges(copied(pairs, lambda: np.ascontiguousarray(pairs).view(np.int64)), weights, weights)

    def put(self, state: State, copied: Copy) -> tuple[Any, ...]:
        """Copy the shares to the GPU, and which nodes are free."""
        return *self._put(state, len(self.rule.initial)), copied(self.free, partial(np.asarray, self.free))

    def put_values(self, values: State) -> tuple[Any, ...]:
        """Copy shares without the rule's numbers to the GPU, for evaluation."""
        return self._put(values, 1)

    def get(self, parts: tuple[Any, ...], state: State) -> None:
        """Copy the shares from the GPU."""
        columns = device_array(state[0].shape, np.float32)
        self._kernel(graph_cut_cuda.read, len(self.rule.initial))[whole_device()](parts[0], columns)
        to_host(columns, state[0])

    def penalty(self, parts: tuple[Any, ...], copied: Copy) -> float | None:
        """Return None: the host computes the penalty."""
        return None

    def descend(
        self, rows: DeviceEdges, order: Any, first: int, count: int, rates: Any, parts: tuple[Any, ...], sums: Any
    ) -> None:
        """Train on the edges ``order[first : first + count]``; add their cut weights to ``sums[0]``."""
        numbers, (table, free) = len(self.rule.initial), parts
        kernel = self._kernel(graph_cut_cuda.descend, numbers, step=self.rule.step)
        kernel[self._launch_size](*rows.arrays, order, first, count, rates, table, free, self._constants, sums)
        if count:
            self._kernel(graph_cut_cuda.settle, numbers)[whole_device()](table, free)

    def evaluate(self, rows: DeviceEdges, order: Any, count: int, parts: tuple[Any, ...], sums: Any) -> None:
        """Add up the weights of the cut fractions of edges, and edges."""
        self._kernel(graph_cut_cuda.evaluate, 1)[whole_device()](*rows.arrays, order, count, parts[0], sums)

    def _put(self, state: State, numbers: int) -> tuple[Any]:
        nodes = max(1, len(state[0]) // self.parts)
        table = to_device(np.zeros((nodes, numbers * cuda_vectors.padded(self.parts)), np.float32))
        self._kernel(graph_cut_cuda.fill, numbers)[whole_device()](table, to_device(state[0]))
        return (table,)

    def _kernel(self, template: Function, numbers: int, **more: Any) -> Any:
        return cuda_jit.kernel(template, **_table_parts(numbers, self.parts), **more)

    @property
    def _launch_size(self) -> tuple[int, int]:
        blocks, threads = launch_size(1, self.edges)
        return in_small_blocks(max(1, min(blocks, len(self.free) // (SPARE * threads))), threads)

    @cached_property
    def _constants(self) -> tuple[np.float32, ...]:
        return tuple(np.float32(number) for number in self.rule.constants)


@cache
def _table_parts(numbers: int, parts: int) -> dict[str, Any]:
    """Return one set of functions for each shape, so that kernels are compiled once."""
    wide = cuda_vectors.padded(parts)
    given = {
        "NUMBERS": numbers, "WIDE": wide, "load_vector": cuda_vectors.fresh_load(), "store_vector": cuda_vectors.store()
    }  # fmt: skip
    return {
        "NUMBERS": numbers,
        "PARTS": parts,
        "WIDE": wide,
        "BOTH": 2 * wide,
        "load": bind(graph_cut_cuda.load_shares, **given),
        "store": bind(graph_cut_cuda.store_shares, **given),
    }
