"""Problems of the command line. A new problem is one file here and one line in ``PROBLEMS``."""

from __future__ import annotations

from hogwild.cli.problems import factorised, graph_cut, linear, matrix_completion, sparse_mlp
from hogwild.cli.problems.adapter import Kind
from hogwild.registry import lookup

PROBLEMS: dict[str, Kind] = {
    "linear": linear.KIND,
    "fm": factorised.FM,
    "ffm": factorised.FFM,
    "sparse-mlp": sparse_mlp.KIND,
    "matrix-completion": matrix_completion.KIND,
    "graph-cut": graph_cut.KIND,
}


def named(name: str) -> Kind:
    """Return a kind of problem by its name.

    >>> sorted(named("linear").options)
    ['balanced', 'intercept', 'l1', 'l2', 'loss']
    """
    return lookup("problem", name, PROBLEMS)


__all__ = ["PROBLEMS", "Kind", "named"]
