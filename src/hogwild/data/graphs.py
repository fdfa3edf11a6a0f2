"""Graphs, and their files: lists of edges, seeds and nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hogwild.data.arrays import require_structure
from hogwild.data.csr import NO_VALUES, Array, CSRRows
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.readers.line_segments import segments
from hogwild.data.readers.npz import matrix_in
from hogwild.data.unchanged_file import unchanged
from hogwild.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Undirected graph with weighted edges. ``names`` holds the names of the nodes if they are not just numbers.

    >>> graph = Graph.of_edges([0, 1, 1], [1, 2, 2], [2.0, 1.0, 0.5])
    >>> graph.nodes, len(graph.weights)
    (3, 3)
    """

    one: Array  # Smaller end of each edge, int64. ``other`` holds the larger end.
    other: Array
    weights: Array  # Weight of each edge, float64.
    nodes: int
    names: tuple[str, ...] | None = None
    name: str = "arrays"

    @classmethod
    def of_edges(
        cls, one: ArrayLike, other: ArrayLike, weights: ArrayLike | None = None, nodes: int | None = None,
        names: tuple[str, ...] | None = None, name: str = "arrays",
    ) -> Graph:  # fmt: skip
        """Make a graph from edges, given as node numbers that count from 0 and weights, by default 1.

        The graph leaves out edges from a node to itself and edges of weight 0.
        """
        ends = [np.asarray(end) for end in (one, other)]
        edge_weights = np.ones(len(ends[0])) if weights is None else np.asarray(weights, np.float64)
        if not all(end.shape == edge_weights.shape and end.ndim == 1 for end in ends):
            shapes = f"{ends[0].shape}, {ends[1].shape} and {edge_weights.shape}"
            raise DataError(f"the ends and weights of edges have the shapes {shapes}", remedy="Give as many of each.")
        if not all(end.dtype.kind in "iu" for end in ends):
            raise DataError("the ends of edges are no whole numbers", remedy="Number the nodes from 0.")
        known = int(max((end.max(initial=-1) for end in ends), default=-1)) + 1
        _check(ends, edge_weights, known if nodes is None else nodes)
        kept = (ends[0] != ends[1]) & (edge_weights > 0)
        if not kept.any():
            raise DataError("there is no edge between two nodes", path=None if name == "arrays" else name)
        low, high = np.minimum(*ends)[kept].astype(np.int64), np.maximum(*ends)[kept].astype(np.int64)
        return cls(low, high, edge_weights[kept], known if nodes is None else nodes, names, name)

    @classmethod
    def of_matrix(cls, matrix: Any, name: str = "arrays") -> Graph:
        """Make a graph from a matrix of weights: a symmetric sparse matrix, or one triangle of it.

        >>> import scipy.sparse
        >>> len(Graph.of_matrix(scipy.sparse.csr_array([[0.0, 2.0], [2.0, 0.0]])).weights)
        1
        """
        if not hasattr(matrix, "tocoo"):
            from scipy.sparse import coo_array

            matrix = coo_array(np.asarray(matrix))
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise DataError(f"the graph has the shape {matrix.shape}", remedy="Give a row and a column for each node.")
        matrix = require_structure(matrix)
        entries = matrix.tocoo()
        ends = entries.row.astype(np.int64), entries.col.astype(np.int64)
        above, below = ends[0] < ends[1], ends[0] > ends[1]
        if above.any() and below.any():
            difference = abs(matrix - matrix.T)
            if difference.nnz and difference.max() > 1e-6 * abs(matrix).max():
                raise DataError(
                    "the graph is not symmetric", remedy="Edges have no direction: give W + W.T, or one triangle."
                )
            ends, data = (ends[0][above], ends[1][above]), entries.data[above]
        else:
            data = entries.data
        return cls.of_edges(*ends, data, int(matrix.shape[0]), name=name)

    def numbers(self, nodes: Mapping[Any, Any]) -> dict[int, Any]:
        """Return the same mapping with node numbers as keys instead of node names."""
        places = None if self.names is None else {name: number for number, name in enumerate(self.names)}
        found: dict[int, Any] = {}
        for node, what in nodes.items():
            number = node if places is None else places.get(str(node), -1)
            if not isinstance(number, (int, np.integer)) or not 0 <= number < self.nodes:
                raise DataError(f"there is no node {node!r} in the graph", path=self.name)
            found[int(number)] = what
        return found

    def rows(self, scale: float = 1.0) -> InMemoryDataset:
        """Return the edges in random order, as rows in which both ends are present; multiply weights by ``scale``."""
        mixed = np.random.default_rng(0).permutation(len(self.weights))
        ends = np.stack([self.one[mixed], self.other[mixed]], axis=1).astype(np.uint32).reshape(-1)
        edges = CSRRows(
            np.arange(0, len(ends) + 1, 2, dtype=np.int64), ends, NO_VALUES, np.zeros(len(mixed), np.float32),
            (self.weights[mixed] * scale).astype(np.float32), self.nodes, "binary",
        )  # fmt: skip
        return InMemoryDataset(edges, shuffled=True, name=self.name)


def _check(ends: list[Array], weights: Array, nodes: int) -> None:
    for end in ends:
        wrong = (end < 0) | (end >= nodes)
        if wrong.any():
            at = int(wrong.argmax())
            raise DataError(f"there is no node {end[at]}: the graph has {nodes:,}, from 0", row=at)
    if nodes >= 2**31:
        raise DataError(f"{nodes:,} nodes are too many", remedy="At most 2,147,483,647 are supported.")
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        at = int(wrong.argmax())
        raise DataError(
            f"the weight {weights[at]} of an edge is negative or not finite", row=at, remedy="Weights are 0 or more."
        )


def grid(picture: ArrayLike, sharpness: float = 0.5, neighbours: int = 4) -> Graph:
    """Make a graph of the pixels of a picture, numbered row by row. Edges connect neighbouring pixels.

    ``picture`` is an array of rows x columns, or of rows x columns x channels. An edge between pixels with the mean
    squared difference d has the weight ``exp(-sharpness d / D)``, where D is the mean of all d. Similar neighbours
    therefore get heavy edges. ``neighbours`` is 4, or 8 with diagonals. Weights of diagonal edges are divided by the
    square root of two.

    >>> blank = np.zeros((3, 4))
    >>> grid(blank).nodes, len(grid(blank).weights), len(grid(blank, neighbours=8).weights)
    (12, 17, 29)
    """
    pixels = np.asarray(picture, np.float64)
    if pixels.ndim not in (2, 3) or 0 in pixels.shape or neighbours not in (4, 8):
        raise DataError(
            f"a picture of the shape {pixels.shape} with {neighbours} neighbours",
            remedy="Give rows x columns, or rows x columns x channels, and 4 or 8 neighbours.",
        )
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    number = np.arange(pixels.shape[0] * pixels.shape[1]).reshape(pixels.shape[:2])
    ones, others, squared_differences, distances = [], [], [], []
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))[: neighbours // 2]:
        here = slice(0, pixels.shape[0] - down), slice(max(0, -right), pixels.shape[1] - max(0, right))
        there = slice(down, None), slice(max(0, right), pixels.shape[1] + min(0, right))
        ones.append(number[here].ravel())
        others.append(number[there].ravel())
        squared_differences.append(np.square(pixels[here] - pixels[there]).mean(axis=2).ravel())
        distances.append(np.full(len(ones[-1]), np.hypot(down, right)))
    differences = np.concatenate(squared_differences)
    mean = differences.mean() if len(differences) else 0.0
    weights = np.exp(-sharpness * differences / mean) if mean > 0 else np.ones_like(differences)
    return Graph.of_edges(
        np.concatenate(ones), np.concatenate(others), weights / np.concatenate(distances), number.size, name="picture"
    )


_SEGMENT = 1 << 22  # Bytes of text that are read at a time.
_EDGE = "An edge is 'node node' or 'node node weight', with spaces, tabs or commas between them."


def read_edges(path: Path) -> Graph:
    """Read a graph from a list of edges or from a matrix of weights.

    The name of a node is any text without spaces and commas. A comment starts with ``#``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.edges").write_text("# who knows whom\\nann bob 2\\nbob cid\\n")
    ...     graph = read_edges(Path(folder, "a.edges"))
    >>> graph.names, graph.weights
    (('ann', 'bob', 'cid'), array([2., 1.]))
    """
    if path.suffix.lower() == ".npz":
        matrix = matrix_in(path)
        try:
            return Graph.of_matrix(matrix, str(path))
        except DataError as error:
            raise DataError(error.what, path=path, row=error.row, remedy=error.remedy) from None
    numbers: dict[str, int] = {}
    ends: list[int] = []
    weights: list[float] = []
    for line, fields in _lines(path):
        if len(fields) not in (2, 3):
            raise DataError(f"there are {len(fields)} fields", path=path, line=line, remedy=_EDGE)
        for name in fields[:2]:
            ends.append(numbers.setdefault(name, len(numbers)))
        weights.append(_weight(fields[2], path, line) if len(fields) == 3 else 1.0)
    if not ends:
        raise DataError("there are no edges in the file", path=path, remedy=_EDGE)
    pairs = np.array(ends).reshape(-1, 2)
    return Graph.of_edges(pairs[:, 0], pairs[:, 1], weights, len(numbers), tuple(numbers), str(path))


def read_seeds(path: Path) -> dict[str, int]:
    """Read the nodes whose parts are known: ``node part`` on each line, with parts numbered from 0."""
    seeds: dict[str, int] = {}
    for line, fields in _lines(path):
        if len(fields) != 2 or not fields[1].isdecimal() or len(fields[1]) > 18:
            raise DataError(
                f"this is no seed: {' '.join(fields)!r}", path=path, line=line,
                remedy="A seed is 'node part', with parts numbered from 0.",
            )  # fmt: skip
        node, part = fields[0], int(fields[1])
        if seeds.setdefault(node, part) != part:
            raise DataError(f"the node {node!r} is in part {seeds[node]} already", path=path, line=line)
    return seeds


def read_nodes(path: Path) -> list[str]:
    """Read the names of nodes, one per line."""
    nodes = []
    for line, fields in _lines(path):
        if len(fields) != 1:
            raise DataError(f"there are {len(fields)} fields", path=path, line=line, remedy="Name one node a line.")
        nodes.append(fields[0])
    return nodes


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of each line that has fields."""
    with unchanged(path):
        for segment in segments(path, _SEGMENT):
            try:
                text = segment.bytes.tobytes().decode()
            except UnicodeDecodeError as error:
                line = segment.first_line + segment.bytes[: error.start].tobytes().count(b"\n")
                raise DataError("this is not UTF-8 text", path=path, line=line, remedy=_EDGE) from None
            for number, line_of_text in enumerate(text.split("\n")[:-1], segment.first_line):
                fields = line_of_text.partition("#")[0].replace(",", " ").split()
                if fields:
                    yield number, fields


def _weight(text: str, path: Path, line: int) -> float:
    try:
        weight = float(text)
    except ValueError:
        raise DataError(f"the weight {text!r} is not a number", path=path, line=line, remedy=_EDGE) from None
    if not 0 <= weight < float("inf"):
        raise DataError(f"the weight {text} is negative or not finite", path=path, line=line, remedy=_EDGE)
    return weight
