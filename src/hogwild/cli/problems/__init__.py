"""Problems of the command line. A new problem is one file here and one line in ``PROBLEMS``."""

from __future__ import annotations

from hogwild.cli.problems import row_problems, sparse_mlp
from hogwild.cli.problems.adapter import Kind
from hogwild.registry import lookup

PROBLEMS: dict[str, Kind] = {
    "linear": row_problems.LINEAR,
    "fm": row_problems.FM,
    "ffm": row_problems.FFM,
    "sparse-mlp": sparse_mlp.KIND,
    "matrix-completion": row_problems.MATRIX_COMPLETION,
    "graph-cut": row_problems.GRAPH_CUT,
}


def named(name: str) -> Kind:
    """Return a kind of problem by its name.

    >>> sorted(named("linear").options)
    ['balanced', 'intercept', 'l1', 'l2', 'loss', 'sampling']
    """
    return lookup("problem", name, PROBLEMS)


def rules_help() -> str:
    """Return the names of the rules of each problem, for the help of the command line.

    >>> rules_help().partition(". ")[0]
    'linear: sgd, momentum, adagrad, ftrl, adam or sdca'
    """
    together: dict[tuple[str, ...], list[str]] = {}
    for name, kind in PROBLEMS.items():
        together.setdefault(kind.rules, []).append(name)
    return " ".join(f"{', '.join(names)}: {', '.join(rules[:-1])} or {rules[-1]}." for rules, names in together.items())


__all__ = ["PROBLEMS", "Kind", "named", "rules_help"]
