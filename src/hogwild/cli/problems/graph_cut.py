"""Graph cuts on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hogwild.cli.problems.adapter import Kind, Opened, Source
from hogwild.errors import ParameterError


def open_graph(source: Source) -> Opened:
    """Open a graph, which has no held-out data because it is cut as a whole."""
    from hogwild.data.edge_lists import read_edges

    if source.test is not None or source.holdout is not None:
        raise ParameterError("A graph is cut as a whole: --test and --holdout do not go with --problem graph-cut.")
    return Opened(read_edges(source.data), None, {})


def make(data: Any, *, seeds: Path | None = None) -> Any:
    """Make a cut between the seed nodes that a file names."""
    from hogwild.data.edge_lists import read_seeds
    from hogwild.problems.graph_cut import GraphCut

    assert seeds is not None
    return GraphCut(data, read_seeds(seeds))


def check(options: Mapping[str, Any]) -> None:
    """Raise an error if no file of seed nodes is given."""
    if options.get("seeds") is None:
        raise ParameterError("A graph is cut between nodes whose parts are known: name them with --seeds FILE.")


KIND = Kind(open_graph, make, check)
