"""Result of a graph cut: a part for each node, and its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild import array_file
from hogwild.data.graphs import read_nodes
from hogwild.data.sources import local_files
from hogwild.errors import DataError
from hogwild.models import FORMAT
from hogwild.models.predictions import Predictions


@dataclass(frozen=True, slots=True, eq=False)
class GraphCutModel:
    """Part of each node, and its shares in all parts before they were rounded.

    >>> model = GraphCutModel(np.eye(2, dtype=np.float32), np.array([0, 1]), 1.5, ("a", "b"))
    >>> model.part_of("b"), model.cut
    (1, 1.5)
    """

    shares: NDArray[Any] = field(repr=False)  # Shares, with one row per node and one column per part.
    parts: NDArray[Any] = field(repr=False)  # One part per node.
    cut: float  # Weight of the edges between different parts.
    names: tuple[str, ...] | None = field(default=None, repr=False)  # Names of the nodes; None if nodes are numbers.
    reading: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def figures(self) -> dict[str, float]:
        """The entries of the model in the record of a run."""
        return {"cut": self.cut}

    def part_of(self, node: object) -> int:
        """Return the part of a node, given by its name or number."""
        return int(self.parts[self._numbers([str(node)])[0]])

    def answer(self, path: str | Path, *, proba: bool = False, **reading: object) -> Predictions:
        """Return the parts, or the shares, of the nodes in a file with one node per line."""
        with local_files([path]) as files:
            numbers = self._numbers(read_nodes(files[0]), files[0])
        if proba:
            return Predictions(self.shares[numbers], "shares")
        return Predictions(self.parts[numbers], "parts", more={"cut": self.cut})

    def answers(self, path: str | Path, *, proba: bool = False, **reading: Any) -> Iterator[Predictions]:
        """Yield what :meth:`answer` returns, in one block."""
        yield self.answer(path, proba=proba, **reading)

    def _numbers(self, nodes: list[str], path: Path | None = None) -> NDArray[np.int64]:
        places = None if self.names is None else {name: number for number, name in enumerate(self.names)}
        found = np.empty(len(nodes), np.int64)
        for at, node in enumerate(nodes):
            number = places.get(node, -1) if places is not None else int(node) if node.isdecimal() else -1
            if not 0 <= number < len(self.parts):
                raise DataError(f"there is no node {node!r} in the graph that was cut", path=path, line=at + 1)
            found[at] = number
        return found

    def save(self, path: str | Path) -> None:
        """Write the model to a file, atomically."""
        record = {
            "kind": "graph-cut", "format": FORMAT, "cut": self.cut, "reading": dict(self.reading),
            "training": dict(self.training),
        }  # fmt: skip
        arrays: dict[str, NDArray[Any]] = {
            "shares": np.asarray(self.shares, np.float32), "parts": np.asarray(self.parts, np.int64),
        }  # fmt: skip
        if self.names is not None:
            arrays["names"] = np.frombuffer("\n".join(self.names).encode(), np.uint8)
        array_file.save(path, arrays, record)


def from_file(arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> GraphCutModel:
    """Return the model of a file.

    Raises
    ------
    ValueError
        If the arrays do not match each other.
    """
    shares, parts = arrays["shares"], arrays["parts"]
    names = tuple(arrays["names"].tobytes().decode().split("\n")) if "names" in arrays else None
    if shares.ndim != 2 or parts.shape != shares.shape[:1] or (names is not None and len(names) != len(parts)):
        raise ValueError(f"arrays of shape {shares.shape} and {parts.shape}")
    return GraphCutModel(shares, parts, float(record["cut"]), names, dict(record["reading"]), dict(record["training"]))
