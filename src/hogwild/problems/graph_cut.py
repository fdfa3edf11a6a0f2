"""Graph cuts: assignments of nodes to parts that minimise the weight of the edges between different parts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hogwild.data.csr import Array
from hogwild.data.dataset import Chunk, Dataset, EpochPlan
from hogwild.data.graphs import Graph, read_edges
from hogwild.data.sampling import RowSampling, Weighted, row_sampling
from hogwild.data.sources import local_files
from hogwild.errors import ParameterError
from hogwild.kernels import graph_cut
from hogwild.kernels.sync_policies import new_sync
from hogwild.kernels.work_queue import new_queue, new_tally
from hogwild.lazy import cached_property
from hogwild.models.graph_cut import GraphCutModel
from hogwild.problems.graph_cut_rounding import Edges, nearest_edges, round_cut
from hogwild.problems.on_gpu import ProblemOnGPU
from hogwild.problems.problem import BoundKernel, Defaults, QueueKernel, RangeKernel, RowProblem, State
from hogwild.rules.rule import Rule

if TYPE_CHECKING:
    from scipy.sparse import sparray, spmatrix

LEAST_EPOCHS = 100
MOST_NUMBERS = 256  # numbers of a node, with those of the rule, of which a thread of a GPU can have a copy


class GraphCut(RowProblem):
    r"""Relaxed cut of a graph in two or more parts (Niu et al. 2011).

    Each node v has a share in each part, :math:`x_v` in the simplex. The objective over the edges is

    .. math:: \sum_{(u,v)} w_{uv} \, \tfrac12 \| x_u - x_v \|_1

    For two parts, the relaxation is exact: at its minimum, the model's ``parts`` are those of a minimum cut. The metric
    "loss" is the mean weight of the cut fractions of edges, relative to the mean weight of all edges. The metric
    "relaxed_cut" is the summed weight of the cut fractions, with costs.

    Parameters
    ----------
    graph : sparse matrix, Graph, tuple or path
        A symmetric SciPy sparse matrix of weights, a :class:`hogwild.data.graphs.Graph`, or a tuple
        ``(ends, ends, weights)``. A path names a list of edges: ``node node weight`` on each line, or SciPy's ``.npz``.
    seeds : mapping or array of int, optional
        Nodes whose parts are known, as a mapping from nodes to parts, or as an array with the part of each node. In an
        array, -1 means that the part is not known.
    costs : array of float, optional
        Cost of each node in each part, with one row for each node.
    sampling : {"split", "replacement", "weighted"} or RowSampling, default "split"
        Choice of the edges of an epoch: each edge once ("split"), or as many draws with replacement, all edges alike
        ("replacement") or each with a probability in proportion to its weight ("weighted"), with equal steps.

    Raises
    ------
    ParameterError
        If there are fewer than two parts, or if the sampling has weights of its own.

    Examples
    --------
    >>> from hogwild import minimise
    >>> chain = [0, 1, 2], [1, 2, 3], [2.0, 1.0, 2.0]
    >>> model = minimise(GraphCut(chain, {0: 0, 3: 1}), strategy="serial").model
    >>> model.parts, model.cut
    (array([0, 0, 1, 1]), 1.0)

    References
    ----------
    F. Niu, B. Recht, C. Ré and S. J. Wright, "HOGWILD!: A Lock-Free Approach to Parallelizing Stochastic Gradient
    Descent", NIPS 2011.
    """

    n_sums = 2
    n_outputs = 1

    def __init__(
        self,
        graph: sparray | spmatrix | Graph | tuple[ArrayLike, ...] | str | os.PathLike[str],
        seeds: Mapping[Any, int] | ArrayLike | None = None,
        costs: ArrayLike | None = None,
        *,
        sampling: str | RowSampling = "split",
    ) -> None:
        self.sampling = row_sampling(sampling)
        if isinstance(self.sampling, Weighted) and self.sampling.weights is not None:
            raise ParameterError("Edges are drawn by weights of their own: give Weighted() without weights.")
        self.graph = _graph(graph)
        self.seeds = _seeds(seeds, self.graph)
        cost_table = None if costs is None else np.asarray(costs, np.float64)
        known = max(self.seeds.values(), default=-1) + 1
        if known > self.graph.nodes:
            raise ParameterError(
                f"A seed is in part {known - 1}, but {self.graph.nodes:,} nodes have no more parts, "
                "which are numbered from 0."
            )
        self.parts = max(known, 0 if cost_table is None or cost_table.ndim != 2 else cost_table.shape[1])
        if self.parts < 2:
            raise ParameterError(
                "There must be two parts at least: give seeds in each, such as {0: 0, 7: 1}, or costs of each."
            )
        whole = self.graph if cost_table is None else _with_costs(self.graph, cost_table, self.parts)
        # The graph has one more node for each part, which belongs wholly to that part.
        if cost_table is not None:
            self.seeds |= {self.graph.nodes + part: part for part in range(self.parts)}
        self.costs, self._edges = cost_table, whole
        self._cost_offset = 0.0 if cost_table is None else _offset_of_costs(cost_table)
        self.scale = 1.0 / float(whole.weights.mean())
        self.source = whole.rows(self.scale)

    @property
    def data(self) -> Dataset:
        """The edges."""
        return self.source

    @property
    def defaults(self) -> Defaults:
        """Rule, schedule, step size and epochs.

        Shares are between 0 and 1 in every graph, so one step size suits all.
        """
        return Defaults("sgd", 0.1, LEAST_EPOCHS)

    @property
    def work(self) -> int:
        """The number of multiplications of an epoch."""
        return 4 * self.parts * self.source.n_rows

    @cached_property
    def free(self) -> Array:
        """Whether each node is free, that is, not a seed."""
        free = np.ones(self.source.n_features, np.bool_)
        free[list(self.seeds)] = False
        free.setflags(write=False)
        return free

    def open_held_out(self, source: object) -> Dataset:
        """Raise a ParameterError, as a graph has no held-out data."""
        raise ParameterError("A graph is cut as a whole: there is no test data for GraphCut. Leave it out.")

    def encoded(self, data: Dataset) -> Dataset:
        """Return the data unchanged, as edges have no labels."""
        return data

    def start(self, rule: Rule) -> State:
        """Return shares that put seeds into their parts, and all other nodes into all parts equally.

        Raises
        ------
        ParameterError
            If the rule cannot keep shares in the simplex.
        """
        if rule.position_columns != (0,) or rule.step_size != "scheduled":
            raise ParameterError(
                f"{type(rule).__name__} cannot keep shares in the simplex: use 'sgd', 'adagrad', 'ftrl', 'momentum' or "
                "'adam'."
            )
        state = np.tile(np.array(rule.initial, np.float32), (self.source.n_features * self.parts, 1))
        shares = state[:, 0].reshape(-1, self.parts)
        shares[:] = 1 / self.parts
        nodes = list(self.seeds)
        shares[nodes] = np.eye(self.parts, dtype=np.float32)[list(self.seeds.values())]
        return (state,)

    def sync_buffer(self, access: str) -> Array:
        """Return a lock for each node, or the turns of workers."""
        return new_sync(access, self.source.n_features)

    def kernel(self, rule: Rule, access: str, workers: int, alone: bool | None = None) -> BoundKernel:
        """Return the compiled inner loop for a rule and an access policy."""
        kernel = graph_cut.descent(access, rule.step, len(rule.initial))
        constants, free = tuple(np.float32(c) for c in rule.constants), self.free

        def rest(state: State, sync: Array) -> tuple[Any, ...]:
            return *state, free, constants, sync

        return RangeKernel(kernel, rest, turns=True) if access == "turns" else QueueKernel(kernel, rest)

    def on_gpu(self, rule: Rule, in_step: bool = False) -> ProblemOnGPU | None:
        """Return the kernels of this problem and a rule on a GPU; None where there are none."""
        if in_step or self.source.n_features >= 2**31 or self.parts * len(rule.initial) > MOST_NUMBERS:
            return None
        from hogwild.problems.graph_cut_on_gpu import GraphCutOnGPU

        return GraphCutOnGPU(rule, self.parts, self.free, self.source.n_rows)

    def measure(self, chunk: Chunk, state: State) -> Array:
        """Return the summed weight of the cut fractions of a chunk's edges, and the number of edges."""
        sums, starts = np.zeros((1, self.n_sums)), np.array([0, len(chunk.order)])
        self.evaluate_parts(EpochPlan(chunk.rows, chunk.order, starts), new_queue(), new_tally(), sums, state)
        measured: Array = sums[0]
        return measured

    def evaluate_parts(self, whole: EpochPlan, queue: Array, tally: Array, sums: Array, state: State) -> None:
        """Evaluate parts of an epoch until none is left to claim, and write one row of ``sums`` for each."""
        graph_cut.evaluation()(queue, whole.starts, tally, whole.rows.arrays, whole.order, (*state, self.free), sums)

    def metrics(self, sums: Array) -> dict[str, float]:
        """Return the mean cut weight relative to the mean weight of edges, and the weight of the cut with costs."""
        return {"loss": float(sums[0] / sums[1]), "relaxed_cut": float(sums[0]) / self.scale - self._cost_offset}

    def penalty(self, state: State) -> float:
        """Return 0, as there is no penalty."""
        return 0.0

    def sample(self, rows: int, seed: int, narrow: bool = False) -> GraphCut:
        """Return the same problem on the edges nearest to the seeds; at first, shares change only there."""
        if rows >= self.source.n_rows:
            return self
        whole = self._edges
        kept = nearest_edges(whole.one, whole.other, whole.nodes, list(self.seeds), rows)
        other = GraphCut.__new__(GraphCut)
        other.graph = other._edges = Graph(whole.one[kept], whole.other[kept], whole.weights[kept], whole.nodes)
        other.seeds, other.parts, other.scale = self.seeds, self.parts, self.scale
        other.costs, other._cost_offset = None, 0.0
        other.source = other.graph.rows(self.scale)
        return other

    def model(self, values: State, training: Mapping[str, Any]) -> GraphCutModel:
        """Return the model of a run: the shares, and the best cut that rounding them gives."""
        whole, nodes = self._edges, self.graph.nodes
        edges = Edges(whole.one, whole.other, whole.weights)
        shares = np.ascontiguousarray(values[0][:, 0]).reshape(-1, self.parts)
        parts = round_cut(shares, edges)
        return GraphCutModel(
            shares[:nodes], parts[:nodes], edges.cut(parts) - self._cost_offset, self.graph.names, training=training
        )

    def describe(self) -> dict[str, Any]:
        """Return the problem's parameters, for records."""
        return {
            "problem": "graph-cut", "parts": self.parts, "seeds": len(self.seeds), "rows": self.source.n_rows,
            "features": self.source.n_features, "data": self.source.fingerprint, **self.describe_sampling(),
        }  # fmt: skip


def _graph(graph: Any) -> Graph:
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, (str, os.PathLike)):
        with local_files([graph]) as files:
            return read_edges(files[0])
    if hasattr(graph, "tocoo"):
        return Graph.of_matrix(graph)
    if isinstance(graph, tuple) and len(graph) in (2, 3):
        return Graph.of_edges(*graph)
    raise ParameterError(
        "The 'graph' parameter must be a sparse matrix, (ends, ends, weights), a Graph or a path. "
        f"Got {type(graph).__name__} instead."
    )


def _seeds(seeds: object, graph: Graph) -> dict[int, int]:
    if seeds is None:
        return {}
    if not isinstance(seeds, Mapping):
        array = np.asarray(seeds)
        if array.shape != (graph.nodes,) or array.dtype.kind not in "iu":
            raise ParameterError(
                f"The 'seeds' parameter must be a mapping, or a whole number for each of the {graph.nodes:,} nodes (-1 "
                f"where the part is not known). Got an array of {array.dtype} with the shape {array.shape} instead."
            )
        return {int(node): int(array[node]) for node in np.flatnonzero(array >= 0)}
    known = graph.numbers(seeds)
    for node, part in known.items():
        if not isinstance(part, (int, np.integer)) or isinstance(part, bool) or part < 0:
            raise ParameterError(f"Parts are numbered from 0. Got {part!r} for the node {node} instead.")
    return {node: int(part) for node, part in known.items()}


def _offset_of_costs(costs: Array) -> float:
    """Return the constant by which the cut edges to part nodes outweigh the costs that they represent."""
    most = costs.max(axis=1, keepdims=True)
    return float((most - costs).sum() - most.sum())


def _with_costs(graph: Graph, costs: Array, parts: int) -> Graph:
    """Return the graph with one more node per part, and edges to these nodes that are heavier the lower the cost."""
    if costs.shape != (graph.nodes, parts) or not np.isfinite(costs).all():
        raise ParameterError(
            f"The 'costs' parameter must have a finite number for each of the {graph.nodes:,} nodes in each of the "
            f"{parts} parts. Got the shape {costs.shape} instead."
        )
    # An edge to a part's node is cut if its node is in any other part. With weights t, part k costs sum t - t_k.
    ties = costs.max(axis=1, keepdims=True) - costs
    node, part = np.nonzero(ties)
    return Graph(
        np.concatenate([graph.one, node]), np.concatenate([graph.other, graph.nodes + part]),
        np.concatenate([graph.weights, ties[node, part]]), graph.nodes + parts, graph.names, graph.name,
    )  # fmt: skip
