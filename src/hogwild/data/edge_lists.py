"""Graph files: one edge per line, one node and its part per line, or a ``.npz`` file of SciPy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hogwild.data.graphs import Graph
from hogwild.data.readers.line_segments import segments
from hogwild.data.readers.npz import matrix_in
from hogwild.errors import DataError

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
    if path.suffix == ".npz":
        return Graph.of_matrix(matrix_in(path))
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
        if len(fields) != 2 or not fields[1].isdecimal():
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
